"""Lines of our own exports that hold more than one record, or an entry of the log."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from pararecover_core.formats.items import (
    InstanceRef,
    Item,
    LogLine,
    Mark,
    Place,
    Reject,
    ReplanRef,
)
from pararecover_core.formats.values import read_score, shown
from pararecover_core.records import Score, from_data
from pararecover_core.rubric import DIMENSIONS

_CURE = "Correct the field, or export the record again"


def record(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    """A record that we wrote ourselves."""
    yield _one(value, place)


def _one(value: Mapping[str, Any], place: Place) -> Item:
    try:
        found = from_data(value)
        if isinstance(found, Score):
            _check_score(found)
    except ValueError as error:
        kind = value.get("kind")
        got = f"a broken {kind} ({error})"
        return Item(place, Reject(place, got, f"the fields of a {kind}", _CURE))
    return Item(place, found)


def _check_score(score: Score) -> None:
    if score.dimension not in DIMENSIONS:
        raise ValueError(f"dimension: {shown(score.dimension)} is none of the 15")
    if score.value is not None:
        try:
            read_score(score.value, score.dimension)
        except ValueError as error:
            raise ValueError(f"value: {score.value:g} is not {error}") from error


def scored_replan(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    """A replan with its instance and all its scores; stubs come as what names them."""
    instance, replan, scores = (value.get(name) for name in ("instance", "replan", "scores"))
    if not (
        isinstance(instance, Mapping)
        and isinstance(replan, Mapping)
        and isinstance(scores, list)
        and all(isinstance(one, Mapping) for one in scores)
    ):
        got = "a scored replan without instance, replan or scores"
        yield Item(place, Reject(place, got, "these three fields", _CURE))
        return
    if not instance.get("stub"):
        yield _one(instance, place)
    if not replan.get("stub"):
        yield _one(replan, place)
        yield from (_one(score, place) for score in scores)
        return
    ref = ReplanRef(_ref(instance), str(replan.get("key", "")), str(replan.get("agent", "")))
    for score in scores:
        item = _one(score, place)
        if isinstance(item.content, Score):
            item = Item(place, _mark(ref, item.content))
        yield item


def _ref(instance: Mapping[str, Any]) -> InstanceRef:
    texts = {name: str(instance.get(name, "")) for name in ("key", "id", "query_id", "source")}
    level = instance.get("level")
    return InstanceRef(level=level if type(level) is int else 0, **texts)


def _mark(ref: ReplanRef, score: Score) -> Mark:
    said = (score.dimension, score.scorer, score.value, score.note, score.at, score.rubric)
    return Mark(ref, *said, score.extra)


def log_entry(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    """An entry of the score log."""
    fields = LogLine.__struct_fields__
    try:
        found = msgspec.convert({k: v for k, v in value.items() if k in fields}, LogLine)
    except msgspec.ValidationError as error:
        got = f"a broken entry of the log ({error})"
        yield Item(place, Reject(place, got, "the fields of an entry", _CURE))
        return
    yield Item(place, found)


KINDS: dict[str, Callable[[Mapping[str, Any], Place], Iterator[Item]]] = {
    "instance": record,
    "replan": record,
    "trajectory": record,
    "score": record,
    "scored_replan": scored_replan,
    "log_entry": log_entry,
}
"""What reads a line whose ``kind`` is one of ours."""
