"""Reports as pictures: error frequency on a log axis, distributions, means with intervals.

Made as Vega-Lite specifications; ``vl-convert`` makes SVG, PNG or PDF of them without a browser.

Source: paper figures 3 and 4; the leaderboard's picture is ours.
"""

import math
from typing import Any

from pararecover_core.errors import InputError
from pararecover_core.literals import dumps
from pararecover_core.report.table import Report

KINDS = ("svg", "png", "pdf")
_COLOURS = ["#0A5CA8", "#AD3800", "#00694F", "#86357A", "#6B7685", "#B58900", "#18202B", "#5CCBA5"]
_SCALE = 2.5


def chart(report: Report, *, log: bool = False, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    """A horizontal bar (log: with a log axis) for each row and column of a report.

    Args:
        report: The table; rows are named by their last label, by all where that says too little.
        log: Whether the axis is logarithmic; counts of 0 have no bar then.
        columns: Which figure columns; ``main_columns`` by default.

    Returns:
        A Vega-Lite specification.
    """
    chosen = columns or main_columns(report)
    rows = [row for row in report.rows if row.labels[-1] != "Total"]
    whole = len({row.labels[-1] for row in rows}) < len(rows)
    names = [", ".join(row.labels) if whole else row.labels[-1] for row in rows]
    data = [
        _point(named, name, cell.value, cell.low, cell.high)
        for named, row in zip(names, rows, strict=True)
        for name, cell in zip(report.columns, row.cells, strict=True)
        if name in chosen and not math.isnan(cell.value) and (cell.value > 0 or not log)
    ]
    order = list(dict.fromkeys(names))
    y = {"field": "row", "type": "nominal", "sort": order, "title": None,
         "scale": {"domain": order}, "axis": {"labelLimit": 220}}  # fmt: skip
    offset = {"field": "column", "sort": list(chosen)}
    colour = {
        "field": "column", "type": "nominal", "sort": list(chosen), "title": None,
        "scale": {"range": _COLOURS}, "legend": {"orient": "top"} if len(chosen) > 1 else None,
    }  # fmt: skip
    x: dict[str, Any] = {"field": "value", "type": "quantitative", "title": None}
    bar: dict[str, Any] = {"mark": {"type": "bar"}, "encoding": {"x": x}}
    if log:
        x["scale"] = {"type": "log", "domainMin": 0.8, "nice": False}
        x["title"] = "Frequency (log)"
        bar["encoding"]["x2"] = {"datum": 0.8}
    whisker = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule"},
        "encoding": {
            "x": {"field": "low", "type": "quantitative"},
            "x2": {"field": "high"},
            "color": {"value": "#18202B"},
        },
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": report.title, "anchor": "start", "fontSize": 13},
        "data": {"values": data},
        "width": 460,
        "height": {"step": max(9, 22 // max(1, len(chosen)))},
        "encoding": {"y": y, "yOffset": offset, "color": colour},
        "layer": [bar, whisker],
        "config": {"font": "Liberation Sans, Arial, sans-serif", "view": {"stroke": None}},
    }


def main_columns(report: Report) -> tuple[str, ...]:
    """The columns that a picture of a report shows: averages, frequencies or errors, else all."""
    for end in ("Avg", "Frequency", "E5", "EMA"):
        found = tuple(name for name in report.columns if name.endswith(end))
        if found:
            return found
    return report.columns


def _point(row: str, column: str, value: float, low: float, high: float) -> dict[str, Any]:
    point: dict[str, Any] = {"row": row, "column": column, "value": value}
    if not math.isnan(low):
        point |= {"low": low, "high": high}
    return point


def drawn(spec: dict[str, Any], kind: str) -> bytes:
    """A chart as a file.

    Args:
        spec: What ``chart`` gave.
        kind: One of ``KINDS``.

    Raises:
        InputError: The kind is none of these.
    """
    import vl_convert  # 40 MB: only where a picture is asked for

    if kind == "svg":
        made: str = vl_convert.vegalite_to_svg(dumps(spec))
        return made.encode("utf-8")
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(dumps(spec), scale=_SCALE))
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(dumps(spec)))
    raise InputError("picture", repr(kind), f"one of {', '.join(KINDS)}", "Correct the name")
