"""Values that have the right type and still cannot be: dates, times, ranges, choices."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec
from rapidfuzz import fuzz, process

from pararecover_core.findings.model import Certainty
from pararecover_core.literals import dumps

_DATE = re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(?P<one>\d{1,2})[-/.](?P<two>\d{1,2})[-/.](?P<y>\d{4})(?!\d)")
_TIME = re.compile(r"(?<![\d:.\-])(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}))?(?![\d:])")
_EMAIL_NAME = re.compile(r"e?_?-?mail(?:_?address)?$|^(?:recipient|sender)(?:_email)?$", re.I)
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s.]+$")
_WORDS = re.compile(
    r"(?<![a-z])(?:invalid|non[ _\-]?exist(?:ent|ing)|not[ _]?exist(?:ing)?|does[ _]not[ _]exist"
    r"|fake"
    r"|bogus|undefined|unspecified|wrong|incorrect|none_selected|n/a)(?![a-z])|不存在|无效|非法",
    re.I,
)
_VAGUE = re.compile(r"^\W*(?:unknown|none|null|tbd|nan)\W*$", re.I)
_POSITIVE = re.compile(
    r"(?:^|_|(?<=[a-z]))(?:quantity|amount|count|number|num|duration|price|size|weight|volume|age"
    r"|limit|minutes?|hours?|days?|seconds?|width|height|length|radius|distance|portions?|servings?"
    r"|people|guests|passengers|seats|copies|budget|capacity|grams?|speed|rating|index|width|depth"
    r"|thickness|max\w*|min\w*)s?(?=$|_|[A-Z])",
    re.I,
)
_SIGNED = re.compile(r"temp|degree|offset|delta|change|diff|balance|latitude|longitude|shift", re.I)
_ZERO = re.compile(r"duration|quantity|count|amount|copies|seats|people|portions|speed", re.I)
_RANGE = re.compile(
    r"(?<![\d.\-])(?P<low>-?\d+(?:\.\d+)?)\s?(?:to|-|–|and"
    r"|through)\s?(?P<high>-?\d+(?:\.\d+)?)(?![\d\-])"
)
_DEGREES = {"latitude": 90, "lat": 90, "longitude": 180, "lon": 180, "lng": 180}
_CHOICES = re.compile(r"\be\.?g\.?|\bsuch as|\bfor example|例如|比如", re.I)


class ValueFault(msgspec.Struct, frozen=True):
    """Why a value cannot be, and how certain that is."""

    path: str
    value: Any
    reason: str
    certainty: Certainty
    suggestion: str = ""


def invalid_value(name: str, value: Any, schema: Any) -> ValueFault | None:
    """The first reason why a value of the right type cannot be.

    Args:
        name: The parameter's name; it tells what a number or text stands for.
        value: The value; objects and lists are looked into.
        schema: The parameter's schema: enum, minimum, maximum, description.

    Returns:
        The fault, or None where nothing speaks against the value.
    """
    return _fault(name, name, value, schema if isinstance(schema, Mapping) else {}, 0)


def _fault(
    path: str, name: str, value: Any, schema: Mapping[str, Any], depth: int
) -> ValueFault | None:
    choice = _not_allowed(path, value, schema)
    if choice:
        return choice
    if isinstance(value, str):
        return _text_fault(path, name, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_fault(path, name, value, schema)
    if depth < 3:
        return _inside(path, name, value, schema, depth)
    return None


def _inside(
    path: str, name: str, value: Any, schema: Mapping[str, Any], depth: int
) -> ValueFault | None:
    if isinstance(value, Mapping):
        if value and set(value) <= {"type", "description"} and "type" in value:
            reason = "it repeats the schema instead of giving a value"
            return ValueFault(path, value, reason, Certainty.LIKELY)
        properties = schema.get("properties")
        for key, item in list(value.items())[:30]:
            inner = properties.get(key) if isinstance(properties, Mapping) else None
            inner = inner if isinstance(inner, Mapping) else {}
            fault = _fault(f"{path}.{key}", str(key), item, inner, depth + 1)
            if fault:
                return fault
    elif isinstance(value, list):
        items = schema.get("items")
        for item in value[:20]:
            inner = items if isinstance(items, Mapping) else {}
            fault = _fault(path, name, item, inner, depth + 1)
            if fault:
                return fault
    return None


def _not_allowed(path: str, value: Any, schema: Mapping[str, Any]) -> ValueFault | None:
    allowed = schema.get("enum")
    if not isinstance(allowed, list) or not allowed or isinstance(value, list | Mapping):
        return None
    if value in allowed or str(value) in {str(item) for item in allowed}:
        return None
    folded = {str(item).casefold(): str(item) for item in allowed}
    same = folded.get(str(value).strip().casefold())
    if same:
        reason = f"it is written '{same}' in the list of allowed values"
        return ValueFault(path, value, reason, Certainty.LIKELY, same)
    best = process.extractOne(str(value), list(folded.values()), scorer=fuzz.ratio, score_cutoff=60)
    listed = ", ".join(f"'{item}'" for item in list(folded.values())[:6])
    return ValueFault(
        path,
        value,
        f"allowed are {listed}",
        Certainty.CERTAIN,
        str(best[0]) if best else "",
    )


def _text_fault(path: str, name: str, text: str) -> ValueFault | None:
    stripped = text.strip()
    if len(stripped) > 200:
        return None
    for match in _DATE.finditer(stripped):
        if not _is_date(int(match["y"]), int(match["m"]), int(match["d"])):
            reason = f"{match[0]} is no day of the calendar"
            return ValueFault(path, text, reason, Certainty.CERTAIN)
    for match in _DAY_FIRST.finditer(stripped):
        one, two, year = int(match["one"]), int(match["two"]), int(match["y"])
        if not (_is_date(year, two, one) or _is_date(year, one, two)):
            reason = f"{match[0]} is no day of the calendar"
            return ValueFault(path, text, reason, Certainty.CERTAIN)
    lowered = name.casefold()
    if "time" in lowered or "date" in lowered or lowered in ("start", "end", "when", "at"):
        for match in _TIME.finditer(stripped):
            if int(match["h"]) > 24 or int(match["m"]) > 59:
                return ValueFault(path, text, f"{match[0]} is no time of day", Certainty.CERTAIN)
    if _EMAIL_NAME.search(name) and " " not in stripped and not _EMAIL.match(stripped):
        sure = "mail" in lowered and "id" not in lowered
        certainty = Certainty.LIKELY if sure else Certainty.POSSIBLE
        return ValueFault(path, text, "it is no e-mail address", certainty)
    if len(stripped) <= 60 and (_WORDS.search(stripped) or _VAGUE.match(stripped)):
        return ValueFault(path, text, "the value itself says that it is none", Certainty.LIKELY)
    return None


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _number_fault(
    path: str, name: str, value: float, schema: Mapping[str, Any]
) -> ValueFault | None:
    low, high = schema.get("minimum"), schema.get("maximum")
    certainty = Certainty.CERTAIN
    if low is None and high is None:
        low, high = _range_in(str(schema.get("description", "")))
        certainty = Certainty.LIKELY
    low, high = _number(low), _number(high)
    if low is not None and value < low:
        return ValueFault(path, value, f"the smallest allowed is {dumps(low)}", certainty)
    if high is not None and value > high:
        return ValueFault(path, value, f"the largest allowed is {dumps(high)}", certainty)
    limit = {"latitude": 90, "lat": 90, "longitude": 180, "lon": 180, "lng": 180}.get(
        name.casefold()
    )
    if limit and abs(value) > limit:
        return ValueFault(path, value, f"a {name} lies within {limit} degrees", Certainty.CERTAIN)
    if value < 0 and not _SIGNED.search(name) and _POSITIVE.search(name):
        return ValueFault(path, value, "it cannot be negative", Certainty.LIKELY)
    if value == 0 and _ZERO.search(name):
        return ValueFault(path, value, "zero leaves nothing to do", Certainty.POSSIBLE)
    return None


def _range_in(description: str) -> tuple[float | None, float | None]:
    """A range such as "between 1 and 5" or "(5 to 30)" in a description."""
    if len(description) > 300 or _CHOICES.search(description):
        return None, None
    match = _RANGE.search(description)
    if not match:
        return None, None
    low, high = float(match["low"]), float(match["high"])
    return (low, high) if low < high and high < 1900 else (None, None)


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None
