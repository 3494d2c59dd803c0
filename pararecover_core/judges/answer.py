"""What a judge answers: strict, so that nothing but a score is ever taken for one."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

PARSER_VERSION = "1"
"""Part of the cache key: raised when the same text is read in another way."""

_THINK = re.compile(r"<think>.*?</think>", re.S | re.I)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
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
    """The outermost JSON objects of a text, thinking left out; a cut one ends the search."""
    text = _THINK.sub("", text.replace("\ufeff", "")[:_LONGEST])
    if "<think>" in text.casefold():
        raise UnparsableError("the thinking does not end")
    text = text[_end_of_thinking(text) :]
    position = text.find("{")
    while position >= 0:
        end = _closing(text, position)
        if end < 0:
            return
        value = _value(text[position:end])
        if isinstance(value, Mapping):
            yield value
        position = text.find("{", end)


def _end_of_thinking(text: str) -> int:
    """Where the answer begins: some models leave out where their thinking begins."""
    mark = "</think>"
    at = text.casefold().rfind(mark)
    return at + len(mark) if at >= 0 else 0


def _closing(text: str, position: int) -> int:
    """Behind the brace that closes the one at ``position``, -1 where none does."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        pass
    depth, quote, at = 0, "", position
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'" and not (char == "'" and text[at - 1].isalnum()):
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return at + 1
        at += 1
    return -1


def _value(text: str) -> Any:
    """An object as JSON, else with trailing commas taken out, else as a Python literal."""
    mended = _TRAILING_COMMA.sub(r"\1", text)
    for candidate in (text, mended):
        try:
            return json.loads(candidate, object_pairs_hook=_no_repeats, strict=False)
        except UnparsableError:
            raise
        except (ValueError, RecursionError):
            continue
    try:
        tree = ast.parse(mended.strip(), mode="eval")
        _no_repeats_in(tree)
        return ast.literal_eval(tree)
    except UnparsableError:
        raise
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise UnparsableError("a key stands twice")
    return made


def _no_repeats_in(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if len(set(keys)) < len(keys):
                raise UnparsableError("a key stands twice")


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
