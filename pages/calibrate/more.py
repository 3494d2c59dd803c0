"""More figures under the board: slices, scales, learning curve, test, powered means, judges."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from annotations import calibration_more as more
from annotations.calibration import Comparison
from annotations.calibration_csv import table_csv
from annotations.pairs import Choices, Selection
from annotations.store import Store
from pararecover_core.pairing import HUMAN, Cell
from ui import charts
from ui.messages import show_note
from ui.tables import show_rows

_VIEWS = (
    *("By slice", "All coefficients", "SI, DR, ES, total", "How many more samples"),
    *("May it replace a person?", "Powered means", "Judges compared"),
)
_TEXTS = ("Note", "Agent", "Level")
"""Columns of text."""


def show(
    store: Store, selection: Selection, known: Choices, comparison: Comparison,
    cells: Callable[[], list[Cell]],
) -> None:  # fmt: skip
    """One view at a time, so that only what is looked at is computed."""
    view = st.segmented_control(
        "More figures", _VIEWS, key="calibrate_view", label_visibility="collapsed"
    )
    if view is None:
        return
    chart: Any = None
    with st.container(key="pr_more"):
        if view == "By slice":
            by = st.radio("By", more.SLICES, horizontal=True, key="calibrate_by")
            table, points = more.slices(store, cells(), by)
            chart = charts.dots(points, "EMA, 95% interval") if points else None
        elif view == "All coefficients":
            table = more.other_figures(comparison.found)
        elif view == "SI, DR, ES, total":
            table = more.scales(cells())
        elif view == "How many more samples":
            table, widths = more.curve(cells())
            chart = charts.curve(widths) if widths else None
        elif view == "May it replace a person?":
            table, _ = more.replacement(cells())
        elif view == "Powered means":
            table = more.powered(store, selection, cells())
        else:
            table = _judges(store, known)
        _draw(view, table, chart)


def _judges(store: Store, known: Choices) -> more.Table:
    names = [name for name, _ in known.judges if not name.startswith(HUMAN)]
    chosen = st.multiselect("Judges, the first one against the others", names, names[:2])
    if len(chosen) < 2:
        return more.Table((), [], "Choose two judges that scored the same answers.")
    return more.cross_judge(store, chosen)


def _draw(view: str, table: more.Table, chart: Any) -> None:
    if table.note:
        show_note(table.note)
    if not table.rows:
        show_note("Nothing to show: no cell has what this needs.")
        return
    numbers = [at for at in range(1, len(table.heads)) if table.heads[at] not in _TEXTS]
    if chart is not None:
        st.altair_chart(chart, width="stretch")
    show_rows(table.heads, table.rows, right=numbers, height=420)
    name = view.lower().replace(",", "").replace("?", "").replace(" ", "-")
    with st.container(horizontal=True):
        csv = table_csv([table.heads, *table.rows])
        st.download_button("CSV", csv, f"{name}.csv", "text/csv", on_click="ignore")
        if chart is not None:
            st.download_button(
                "SVG", lambda: charts.svg(chart), f"{name}.svg", "image/svg+xml", on_click="ignore"
            )
