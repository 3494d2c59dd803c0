"""Charts with Altair: drawn in the app's colours, taken away as SVG."""

from collections.abc import Sequence
from typing import Any

import altair as alt

BLUE, GREY = "#0A5CA8", "#808B99"


def _data(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> Any:
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return alt.Data(values=made)  # type: ignore[no-untyped-call]


def dots(points: Sequence[Any], title: str) -> Any:
    """Dots with intervals, a row each.

    Args:
        points: Named tuples with name, value, low, high and n.
        title: What the values are.
    """
    frame = _data(points, ("name", "value", "low", "high", "n"))
    scale = alt.Scale(zero=False, nice=True)
    name = alt.Y("name:N", title=None, sort=None)
    tips = [alt.Tooltip(field) for field in ("name:N", "value:Q", "low:Q", "high:Q", "n:Q")]
    line = (
        alt.Chart(frame)
        .mark_rule(color=BLUE, strokeWidth=2)
        .encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", y=name)
    )
    dot = (
        alt.Chart(frame)
        .mark_point(color=BLUE, filled=True, size=60, opacity=1)
        .encode(x=alt.X("value:Q", title=title, scale=scale), y=name, tooltip=tips)
    )
    return (line + dot).properties(width="container", height=alt.Step(24))


def curve(points: Sequence[tuple[str, int, float]]) -> Any:
    """Width of an interval over the number of samples, "overall" standing out."""
    frame = _data(points, ("name", "n", "width"))
    overall = alt.condition("datum.name == 'overall'", alt.value(BLUE), alt.value(GREY))
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("n:Q", title="Samples scored"),
            y=alt.Y("width:Q", title="Width of EMA's interval", scale=alt.Scale(zero=True)),
            detail="name:N",
            color=overall,
            opacity=alt.condition("datum.name == 'overall'", alt.value(1), alt.value(0.35)),
            tooltip=["name:N", "n:Q", alt.Tooltip("width:Q", format=".3f")],
        )
        .properties(width="container", height=240)
    )


def versions(rows: Sequence[tuple[str, float, float, float]], top: float | None) -> Any:
    """EMA over prompt versions, oldest first, with intervals and the people's ceiling."""
    names = ("version", "ema", "low", "high")
    frame = _data(rows, names)
    where = alt.X("version:N", sort=None, title="Version")
    scale = alt.Scale(zero=False)
    line = (
        alt.Chart(frame)
        .mark_line(color=BLUE, point=True)
        .encode(
            x=where,
            y=alt.Y("ema:Q", title="EMA on dev", scale=scale),
            tooltip=["version:N", "ema:Q", "low:Q", "high:Q"],
        )
    )
    ends = alt.Chart(frame).mark_rule(color=BLUE).encode(x=where, y="low:Q", y2="high:Q")
    made = ends + line
    if top is not None:
        made += (
            alt.Chart(_data([(top,)], ("top",)))
            .mark_rule(color=GREY, strokeWidth=2, strokeDash=[6, 3])
            .encode(y="top:Q")
        )
    return made.properties(width="container", height=220)


def histogram(
    counts: Sequence[int], title: str, cuts: Sequence[float] = (), *, width: float = 1.0
) -> Any:
    """Bars of how many values lie in each step from 0 on, and lines where it is cut.

    Args:
        counts: How many, step by step.
        title: What the values are.
        cuts: Where a threshold lies.
        width: Width of a step.
    """
    rows = [(n * width, (n + 1) * width, count) for n, count in enumerate(counts)]
    scale = alt.Scale(domain=[0, len(counts) * width])
    bars = (
        alt.Chart(_data(rows, ("from", "to", "answers")))
        .mark_bar(color=GREY)
        .encode(
            x=alt.X("from:Q", title=title, scale=scale, bin="binned"),
            x2="to:Q",
            y=alt.Y("answers:Q", title=None, axis=alt.Axis(tickMinStep=1)),
            tooltip=["from:Q", "to:Q", "answers:Q"],
        )
    )
    lines = (
        alt.Chart(_data([(cut,) for cut in cuts], ("cut",)))
        .mark_rule(color=BLUE, strokeWidth=2)
        .encode(x=alt.X("cut:Q", scale=scale), tooltip=[alt.Tooltip("cut:Q", title="threshold")])
    )
    made = (bars + lines).properties(width="container", height=130)
    return made.configure(background="transparent")


def svg(chart: Any) -> bytes:
    """A chart as an SVG file, made on this machine."""
    import vl_convert  # carries its own fonts and JavaScript; slow to import

    made = chart.to_dict()
    made["width"] = 640
    return str(vl_convert.vegalite_to_svg(made)).encode()
