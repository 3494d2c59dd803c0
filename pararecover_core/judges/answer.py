"""What a judge answers: strict, so that nothing but a score is ever taken for one."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from pararecover_core.literals import loads

PARSER_VERSION = "1"
"""Part of the cache key: raised when the same text is read in another way."""

_THINK = re.compile(r"<think>.*?</think>", re.S | re.I)
_FENCE = re.compile(r"```[a-zA-Z]*\s*(.*?)```", re.S)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_SCALE = {Decimal(1): 1.0, Decimal("0.5"): 0.5, Decimal(0): 0.0}


class UnparsableError(ValueError):
    """The text holds no legal answer; the message says why."""


class Scored(NamedTuple):
    """A score with its reason."""

    score: float
    reason: str


def answer_schema(dimensions: Sequence[str]) -> dict[str, Any]:
    """JSON schema of an answer for these sub-dimensions."""
    entry = {
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "score": {"type": "number", "enum": [0, 0.5, 1]},
        },
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": dict.fromkeys(dimensions, entry),
        "required": list(dimensions),
        "additionalProperties": False,
    }


def parse_answer(text: str, dimensions: Sequence[str]) -> dict[str, Scored]:
    """Read the scores of a judge's answer.

    Args:
        text: JSON of the asked form, also in a fence, behind thinking, with text around, with
            trailing commas or Python quotes.
        dimensions: Sub-dimensions that were asked.

    Returns:
        A score in {0, 0.5, 1} and its reason for each of them.

    Raises:
        UnparsableError: A sub-dimension is missing, a score is off the scale (never rounded),
            a key repeats, or two different answers stand side by side.
    """
    found = [value for value in _objects(text) if _speaks_of(value, dimensions)]
    if not found:
        raise UnparsableError("no JSON object with the asked sub-dimensions")
    answers = [_scores(value, dimensions) for value in found]
    scores = [{d: scored.score for d, scored in answer.items()} for answer in answers]
    if any(other != scores[0] for other in scores[1:]):
        raise UnparsableError("two different answers")
    return answers[0]


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The outermost JSON objects of a text."""
    text = _THINK.sub("", text.replace("\ufeff", ""))
    if "<think>" in text.casefold():
        raise UnparsableError("the thinking does not end")
    fences = _FENCE.findall(text)
    for part in fences or [text]:
        yield from _objects_in(part)


def _objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_no_repeats, strict=False)
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except UnparsableError:
            raise
        except (ValueError, RecursionError):
            value, end = _repaired(text[position:]), len(text)
        if isinstance(value, Mapping):
            yield value
        position = text.find("{", max(end, position + 1))


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise UnparsableError("a key stands twice")
    return made


def _repaired(text: str) -> Any:
    """Trailing commas and Python quotes mended; a cut text is never completed."""
    end = text.rfind("}")
    try:
        return loads(_TRAILING_COMMA.sub(r"\1", text[: end + 1])) if end > 0 else None
    except ValueError:
        return None


def _speaks_of(value: Mapping[str, Any], dimensions: Sequence[str]) -> bool:
    return any(d in value or f"{d}_score" in value for d in dimensions)


def _scores(value: Mapping[str, Any], dimensions: Sequence[str]) -> dict[str, Scored]:
    return {dimension: _scored(value, dimension) for dimension in dimensions}


def _scored(value: Mapping[str, Any], dimension: str) -> Scored:
    entry = value.get(dimension, value.get(f"{dimension}_score"))
    reason = value.get(f"{dimension}_reason", "")
    if isinstance(entry, Mapping):
        reason = entry.get("reason", entry.get("rationale", reason))
        entry = entry.get("score")
    if entry is None:
        raise UnparsableError(f"{dimension} has no score")
    return Scored(_score(entry, dimension), str(reason))


def _score(value: Any, dimension: str) -> float:
    problem = f"{dimension} is {value!r}, not 1, 0.5 or 0"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnparsableError(problem)
    text = str(value).strip().replace(",", ".")
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise UnparsableError(problem) from error
    if not number.is_finite() or number not in _SCALE:
        raise UnparsableError(problem)
    return _SCALE[number]
