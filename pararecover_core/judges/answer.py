"""What a judge answers: strict, so that nothing but a score is ever taken for one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pararecover_core.loose_json import LooseJsonError, objects, without_thinking

PARSER_VERSION = "1"
"""Part of the cache key: raised when the same text is read in another way."""

_SCALE = (
    (1.0, re.compile(r"1(?:[.,]0{1,2})?", re.A)),
    (0.5, re.compile(r"0?[.,]50?", re.A)),
    (0.0, re.compile(r"0(?:[.,]0{1,2})?", re.A)),
)
_REASONS = ("reason", "rationale", "explanation")
_LONGEST = 200_000
"""Characters of an answer beyond which it is not read."""


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
    opened = (_opened(value, dimensions) for value in _objects(text))
    found = [value for value in opened if value is not None]
    if not found:
        raise UnparsableError("no JSON object with the asked sub-dimensions")
    answers = [_scores(value, dimensions) for value in found]
    scores = [{d: scored.score for d, scored in answer.items()} for answer in answers]
    if any(other != scores[0] for other in scores[1:]):
        raise UnparsableError("two different answers")
    return answers[0]


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The outermost JSON objects of a text, thinking left out."""
    try:
        for found in objects(without_thinking(text[:_LONGEST])):
            if isinstance(found.value, Mapping):
                yield found.value
    except LooseJsonError as error:
        raise UnparsableError(str(error)) from error


def _opened(value: Mapping[str, Any], dimensions: Sequence[str]) -> Mapping[str, Any] | None:
    """An object that speaks of the sub-dimensions, or the one inside it that does."""
    inner = [part for part in value.values() if isinstance(part, Mapping)]
    candidates: list[Mapping[str, Any]] = [value, *(inner if len(inner) == 1 else ())]
    for candidate in candidates:
        if any(d in candidate or f"{d}_score" in candidate for d in dimensions):
            return candidate
    return None


def _scores(value: Mapping[str, Any], dimensions: Sequence[str]) -> dict[str, Scored]:
    return {dimension: _scored(value, dimension) for dimension in dimensions}


def _scored(value: Mapping[str, Any], dimension: str) -> Scored:
    entry = value.get(dimension, value.get(f"{dimension}_score"))
    reason = value.get(f"{dimension}_reason", "")
    if isinstance(entry, Mapping):
        reason = next((entry[name] for name in _REASONS if name in entry), reason)
        entry = entry.get("score")
    if entry is None:
        raise UnparsableError(f"{dimension} has no score")
    return Scored(_score(entry, dimension), str(reason))


def _score(value: Any, dimension: str) -> float:
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        text = str(value).strip()
        for level, form in _SCALE:
            if form.fullmatch(text):
                return level
    raise UnparsableError(f"{dimension} is {str(value)[:60]!r}, not 1, 0.5 or 0")
