"""Scores in long form: one row per replan, sub-dimension and scorer.

Foreign files name id, annotator, dimension, score and note; our own export has the columns of
``columns.LONG_FORM`` and names replan and instance by their keys.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pararecover_core.errors import InputError
from pararecover_core.formats.columns import Header
from pararecover_core.formats.items import InstanceRef, Item, Mark, Place, Reject, ReplanRef
from pararecover_core.formats.values import (
    COMPUTED,
    human_scorer,
    is_empty,
    judge_scorer,
    read_dimension,
    read_level,
    read_score,
    read_source,
    scorer,
    shown,
)
from pararecover_core.plan import text_of
from pararecover_core.records import as_text

if TYPE_CHECKING:
    from pararecover_core.formats.rows import ReadOptions


def no_instance() -> InputError:
    """A row that does not say which instance it is about."""
    return InputError(
        "id",
        "nothing that names an instance",
        "an id, a query_id, a query or a key",
        "Fill one of them in",
    )


def mark(
    place: Place, row: Mapping[str, Any], header: Header, options: "ReadOptions"
) -> Item | None:
    """The score of one row, or why it is none.

    Args:
        place: Where the row stands.
        row: Cells by column.
        header: What the columns mean.
        options: Who scored, where the row does not say.

    Returns:
        None for a row with neither score nor note, unless it is from our own export, where that
        means a score that was withdrawn.
    """
    try:
        ref = _ref(row, header, options)
        dimension = _read(read_dimension, row, header, "dimension")
        given = header.first(row, "score")
        value = None if given is None else _score(given, dimension, header)
        note = as_text(_exact(row, header, "note"))
        if value is None and not note and not ref.key:
            return None
        return Item(
            place,
            Mark(
                ref,
                dimension,
                _scorer(row, header, dimension, options),
                value,
                note,
                at=text_of(header.first(row, "at")),
                rubric=text_of(header.first(row, "rubric")),
                extra={"revealed": True} if _revealed(header.first(row, "revealed")) else {},
            ),
        )
    except InputError as error:
        here = Place(place.file, place.line, error.where)
        return Item(here, Reject(here, error.got, error.expected, error.cure))


def _ref(row: Mapping[str, Any], header: Header, options: "ReadOptions") -> ReplanRef:
    first = header.first
    source = read_source(options.source or first(row, "source"))
    ref = InstanceRef(
        key=text_of(first(row, "instance")),
        id=text_of(first(row, "id")),
        query_id=text_of(first(row, "query_id")),
        level=options.level or _read(read_level, row, header, "level"),
        source=source.value if source else "",
        query=as_text(first(row, "query")),
        plan=first(row, "plan"),
    )
    key = text_of(first(row, "replan"))
    if not (key or ref.key or ref.id or ref.query_id or ref.query):
        raise no_instance()
    agent = text_of(first(row, "agent")) or options.agent
    return ReplanRef(ref, key=key, agent=agent)


def _read(read: Any, row: Mapping[str, Any], header: Header, role: str) -> Any:
    value = header.first(row, role)
    try:
        return read(value)
    except ValueError as error:
        got = "nothing" if value is None else shown(value)
        raise InputError(header.column(role), got, str(error), "Correct the cell") from error


def _score(given: Any, dimension: str, header: Header) -> float:
    try:
        return read_score(given, dimension)
    except ValueError as error:
        cure = "Correct the cell, or empty it for no score"
        raise InputError(header.column("score"), shown(given), str(error), cure) from error


def _exact(row: Mapping[str, Any], header: Header, role: str) -> Any:
    """The first cell of a role that is not None, blank text included."""
    cells = (row.get(name) for name in header.roles.get(role, ()))
    return next((cell for cell in cells if cell is not None and cell != ""), None)


def _scorer(row: Mapping[str, Any], header: Header, dimension: str, options: "ReadOptions") -> str:
    stated = text_of(header.first(row, "scorer"))
    if stated:
        return scorer(stated)
    annotator, judge = header.first(row, "annotator"), header.first(row, "judge")
    prompt = text_of(header.first(row, "prompt"))
    if annotator is not None:
        return _named(text_of(annotator), options, prompt)
    if judge is not None:
        return judge_scorer(text_of(judge), prompt)
    if options.judge and not options.annotator:
        return judge_scorer(options.judge, prompt)
    if dimension in COMPUTED and not options.annotator:
        return "program"
    return human_scorer(options.annotator)


def _named(name: str, options: "ReadOptions", prompt: str) -> str:
    """The scorer behind an ``annotator``: a person's name, or a bare "human" or "model"."""
    if name.casefold() in ("model", "judge"):
        return judge_scorer(options.judge, prompt)
    if name.casefold() == "human":
        return human_scorer(options.annotator)
    return scorer(name)


def _revealed(value: Any) -> bool:
    return not is_empty(value) and text_of(value).casefold() in ("1", "true", "yes")
