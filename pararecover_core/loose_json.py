"""Objects in a model's text: JSON as models write it, and never one that was cut.

Tolerated: text around, fences, thinking before, raw newlines in texts, trailing commas, Python
quotes. Not tolerated: an object without its closing brace, a key that stands twice.
"""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST = 2_000_000
"""Characters of a text beyond which it is not read."""

_THINK = re.compile(r"<think>.*?</think>", re.S | re.I)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_OPEN, _CLOSE = "{[", "}]"


class LooseJsonError(ValueError):
    """What a text holds must not be taken for an answer; the message says why."""


class Found(NamedTuple):
    """A value and where it stands.

    Attributes:
        value: What was read; None where it could not be.
    """

    value: Any
    start: int
    end: int


def without_thinking(text: str) -> str:
    """A text behind its thinking, byte order marks left out.

    Raises:
        LooseJsonError: The thinking does not end.
    """
    text = _THINK.sub("", text.replace("\ufeff", "")[:LONGEST])
    if "<think>" in text.casefold():
        raise LooseJsonError("the thinking does not end")
    mark = "</think>"  # some models leave out where their thinking begins
    at = text.casefold().rfind(mark)
    return text[at + len(mark) :] if at >= 0 else text


def objects(text: str, opening: str = "{") -> Iterator[Found]:
    """The outermost objects of a text; a cut one ends the search.

    Args:
        text: Any text.
        opening: What values begin with: "{" for objects, "{[" for lists too.
    """
    position = _next(text, opening, 0)
    while position >= 0:
        end = closing(text, position)
        if end < 0:
            return
        yield Found(value(text[position:end]), position, end)
        position = _next(text, opening, end)


def _next(text: str, opening: str, start: int) -> int:
    places = [at for char in opening if (at := text.find(char, start)) >= 0]
    return min(places, default=-1)


def closing(text: str, position: int) -> int:
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
        elif char in _OPEN or char in _CLOSE:
            depth += 1 if char in _OPEN else -1
            if depth == 0:
                return at + 1
        at += 1
    return -1


def value(text: str) -> Any:
    """A value as JSON, else with trailing commas taken out, else as a Python literal, else None.

    Raises:
        LooseJsonError: A key stands twice.
    """
    mended = _TRAILING_COMMA.sub(r"\1", text)
    for candidate in (text, mended):
        try:
            return json.loads(candidate, object_pairs_hook=_no_repeats, strict=False)
        except LooseJsonError:
            raise
        except (ValueError, RecursionError):
            continue
    try:
        tree = ast.parse(mended.strip(), mode="eval")
        _no_repeats_in(tree)
        return ast.literal_eval(tree)
    except LooseJsonError:
        raise
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise LooseJsonError("a key stands twice")
    return made


def _no_repeats_in(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if len(set(keys)) < len(keys):
                raise LooseJsonError("a key stands twice")
