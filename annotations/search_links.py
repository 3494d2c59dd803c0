"""Filters as links: every view of the list has an address that restores it."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from annotations.search import Filter, Order, Sort
from annotations.search_schema import ERROR_BITS
from pararecover_core.records import Source
from pararecover_core.taxonomy import OTHER

__all__ = ["from_query", "to_query"]

_PARAMS = {"q": "text", "level": "levels", "error": "errors", "source": "sources"} | {
    "agent": "agents"
}


def to_query(wanted: Filter, sort: Sort = Sort()) -> dict[str, list[str]]:  # noqa: B008
    """A filter and order as query parameters of a link; empty fields are left out."""
    found: dict[str, list[str]] = {}
    for name, field in _PARAMS.items():
        value = getattr(wanted, field)
        if value:
            found[name] = [str(one) for one in value] if isinstance(value, tuple) else [value]
    if wanted.s5 is not None:
        found["s5"] = [str(wanted.s5)]
    if wanted.ranged:
        span = f"{wanted.measure}.{wanted.by}.{wanted.low:g}-{wanted.high:g}"
        found["score"] = [span]
    if wanted.gap:
        found["gap"] = [f"{wanted.gap:g}"]
    if wanted.answer:
        found["answer"] = [wanted.answer]
    if sort != Sort():
        found["sort"] = [sort.by + ("-down" if sort.descending else "")]
    return found


def from_query(params: Mapping[str, Sequence[str]]) -> tuple[Filter, Sort]:
    """The filter and order of a link; what cannot be understood asks for nothing."""
    given = {name: [str(v) for v in values] for name, values in params.items()}
    one = {name: values[-1] for name, values in given.items() if values}
    asked: dict[str, Any] = {
        "text": one.get("q", "")[:500],
        "levels": tuple(int(v) for v in given.get("level", ()) if v in ("0", "1", "2")),
        "errors": tuple(v for v in given.get("error", ()) if v in ERROR_BITS or v == OTHER),
        "sources": tuple(v for v in given.get("source", ()) if v in set(Source)),
        "agents": tuple(given.get("agent", ())),
        "s5": int(one["s5"]) if one.get("s5") in ("0", "1") else None,
        "answer": one["answer"] if one.get("answer") in ("yes", "no") else "",
        "gap": _number(one.get("gap", ""), 0.0, 1.0, 0.0),
        **_range(one.get("score", "")),
    }
    by, _, down = one.get("sort", "").partition("-")
    sort = Sort(by, down == "down") if by in get_args(Order) else Sort()  # type: ignore[arg-type]
    return Filter(**asked), sort


def _range(text: str) -> dict[str, Any]:
    measure, _, rest = text.partition(".")
    by, _, span = rest.partition(".")
    low, _, high = span.partition("-")
    if measure not in ("total", "si", "dr", "es") or by not in ("people", "judges"):
        return {}
    low_value = _number(low, 0.0, 100.0, 0.0)
    return {
        "measure": measure,
        "by": by,
        "low": low_value,
        "high": max(low_value, _number(high, 0.0, 100.0, 100.0)),
    }


def _number(text: str, low: float, high: float, default: float) -> float:
    try:
        value = float(text)
    except ValueError:
        return default
    return min(max(value, low), high) if value == value else default
