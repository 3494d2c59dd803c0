"""Values that a repair may put in: converted, taken from words, or taken from results."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pararecover_core.findings.purpose import words_of

_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_TIME = re.compile(r"(?<![\d:])\d{1,2}:\d{2}(?![\d:])")
_EMAIL = re.compile(r"[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+")
_QUOTED = re.compile(r"\"([^\"]+)\"")
_NUMBER = re.compile(r"(?<![\w.:\-])-?\d+(?:\.\d+)?(?![\w:]|\.\d|-\d)")
_CODE = re.compile(r"\b[A-Z]{3}\b")
_NAMES = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
_FILE = re.compile(r"\b[\w\-]+\.[a-z]{2,4}\b")
_PLAIN = re.compile(r"[a-z][a-z\-]+")


def converted(value: Any, wanted: str) -> Any:
    """A value in the type that a parameter takes, None where there is no honest way.

    Args:
        value: A value of another type; a list or object of one value stands for that value.
        wanted: "string", "number", "integer", "boolean", "array" or "object".
    """
    if wanted != "object" and isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if wanted not in ("array", "object") and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and value.startswith("$"):
        return value
    if wanted == "string":
        return value if isinstance(value, str) else _as_text(value)
    if wanted in ("number", "integer", "float"):
        return _as_number(value)
    if wanted == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.casefold())
    if wanted == "array":
        return value if isinstance(value, list) else [value]
    return None


def _as_text(value: Any) -> str | None:
    return f"{value:g}" if isinstance(value, int | float) else None


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() and "." not in str(value) else number


def in_words(text: str, name: str, schema: Mapping[str, Any], known: str) -> list[Any]:
    """Values in a text that could fill a parameter.

    Args:
        text: A step's description or a sentence of the query.
        name: The parameter's name.
        schema: Its type and description.
        known: What describes the tool: its words are no values.

    Returns:
        N candidates in the order of the text, without repeats.
    """
    kind, about = str(schema.get("type", "")), f"{name} {schema.get('description', '')}".casefold()
    if kind in ("number", "integer", "float"):
        masked = _TIME.sub(" ", _DATE.sub(" ", text))
        return _unique(_as_number(match) for match in _NUMBER.findall(masked))
    if kind not in ("string", "") or "identifier" in about or name.endswith("_id"):
        return []
    for marks, pattern in (
        (("yyyy", "date", " day "), _DATE),
        (("hh:mm", "time"), _TIME),
        (("mail",), _EMAIL),
        (("currency", "code"), _CODE),
    ):
        if any(mark in about for mark in marks):
            return _unique(pattern.findall(text))
    for pattern in (_QUOTED, _NAMES, _FILE):
        if found := pattern.findall(text):
            return _unique(found)
    said = words_of(f"{known} {about}")
    return _unique(word for word in _PLAIN.findall(text) if words_of(word) - said)


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(value for value in values if value is not None))


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "array": (list,),
    "object": (dict,), "boolean": (bool,),
}  # fmt: skip


def best_field(
    results: Mapping[str, Mapping[str, Any]], name: str, schema: Mapping[str, Any], text: str
) -> str:
    """A reference to the result that fits a parameter best.

    Args:
        results: Node id to the fields that its call gave.
        name: The parameter's name.
        schema: Its type and description.
        text: The step's words: they may name the field.

    Returns:
        "$ID.field"; "" where nothing fits, or two fit alike.
    """
    types = _JSON_TYPES.get(str(schema.get("type", "")), (object,))
    task, mine = words_of(text), words_of(f"{name} {schema.get('description', '')}")
    ranked = []
    for node, fields in results.items():
        for field, value in fields.items():
            if isinstance(value, bool) or not isinstance(value, types):
                continue
            words = words_of(field)
            told = len(words & task) / max(1, len(words))
            ranked.append((2.0 * (field == name) + told + len(words & mine) * 0.3, node, field))
    ranked.sort(reverse=True)
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return ""
    return f"${ranked[0][1]}.{ranked[0][2]}"
