"""Reading values that were written as JSON, as a Python literal, or as something close to it."""

import ast
import json
from typing import Any

import orjson

MAX_DEPTH = 200
"""Deepest nesting of lists and objects that is taken."""

_LITERAL_LIMIT = 2_000_000
_DIGITS = 18
_PYTHON_SIGNS = ("'", "None", "True", "False", "(")  # what Python writes and JSON does not


def is_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects are nested deeper than a limit; walks without recursion.

    What has few brackets as JSON is not walked: that is seen far sooner.

    Args:
        value: Anything that JSON can hold.
        limit: Levels, at least 1.

    Returns:
        True where a level beyond the limit is reached.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
        if text.count(b"[") + text.count(b"{") <= limit:
            return False
    except (TypeError, ValueError):
        pass
    level = [value]
    for _ in range(limit):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(v for v in item.values() if isinstance(v, dict | list | tuple))
            elif isinstance(item, list | tuple):
                below.extend(v for v in item if isinstance(v, dict | list | tuple))
        if not below:
            return False
        level = below
    return True


def loads(text: str | bytes) -> Any:
    """Read JSON, else a Python literal.

    Strict JSON is tried first, then JSON with raw control characters, NaN and lone surrogates
    (all seen in published files), then a Python literal such as ``{'a': None}``. Whole numbers
    beyond 64 bits become floats.

    Args:
        text: The text, or its UTF-8; white space around it and a byte order mark are passed over.

    Returns:
        The value.

    Raises:
        ValueError: The text is neither, or is nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = orjson.loads(text)
    except ValueError as error:
        value = _loads_slowly(text, str(error))
    if isinstance(text, str):
        opened = text.count("[") + text.count("{")
    else:
        opened = text.count(b"[") + text.count(b"{")
    if opened > MAX_DEPTH and is_deep(value):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _loads_slowly(text: str | bytes, reason: str) -> Any:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ValueError("bytes that are no UTF-8") from None
    text = text.strip().lstrip("\ufeff").lstrip()
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:
        pass
    if len(text) <= _LITERAL_LIMIT and any(sign in text for sign in _PYTHON_SIGNS):
        try:
            return as_json(ast.literal_eval(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    raise ValueError(reason)


def as_json(value: Any) -> Any:
    """A Python literal with lists for tuples and sets, and text for every key."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else dumps(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, set):
        return sorted(map(as_json, value), key=repr)
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"{type(value).__name__} is nothing that JSON can hold")


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


def whole_number(text: str) -> int | None:
    """The number that a link or a field name writes in plain digits, else None.

    ``str.isdigit`` is also true for signs that ``int`` refuses, and digits may be thousands.
    """
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None
