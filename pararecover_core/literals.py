"""Reading values that were written as JSON, as a Python literal, or as something close to it."""

import ast
import json
from typing import Any

import orjson

MAX_DEPTH = 200
_LITERAL_LIMIT = 5_000_000


def nesting_depth(text: str) -> int:
    """Upper bound of the bracket nesting of a text, quotes disregarded.

    Args:
        text: Any text.

    Returns:
        The deepest nesting of ``[``, ``{`` and ``(``; at least 0.
    """
    depth = deepest = 0
    for char in text:
        if char in "[{(":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]})":
            depth -= 1
    return deepest


def loads(text: str) -> Any:
    """Read JSON, else a Python literal.

    Strict JSON is tried first, then JSON with raw control characters, NaN, lone surrogates and
    big integers (all seen in published files), then a Python literal such as ``{'a': None}``.

    Args:
        text: The text; surrounding white space and a byte order mark are passed over.

    Returns:
        The value.

    Raises:
        ValueError: The text is neither, or is nested deeper than ``MAX_DEPTH``.
    """
    text = text.strip().lstrip("\ufeff")
    try:
        return orjson.loads(text)
    except ValueError as error:
        reason = str(error)
    if nesting_depth(text) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    if len(text) <= _LITERAL_LIMIT:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    raise ValueError(reason)


def dumps(value: Any) -> str:
    """Write JSON that any text can go through, lone surrogates included.

    Args:
        value: Anything that ``json`` can write.

    Returns:
        Compact JSON; non-ASCII text as it is, escaped only where it cannot be encoded.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):
        return json.dumps(value, default=str, separators=(",", ":"))
