"""Small tables and figures as text: what a file says is never markup here.

For long, sortable tables pages use SQL paging and ``st.dataframe``.
"""

from collections.abc import Collection, Sequence
from html import escape

import streamlit as st

CELL_LIMIT = 400
"""Characters of a cell that are shown; the whole text stands in its tooltip, up to 4,000."""


def show_rows(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | int | float]],
    *,
    right: Collection[int] = (),
    height: int = 0,
) -> None:
    """Show a table.

    Args:
        heads: Names of the columns.
        rows: Cells; numbers get thousands separators.
        right: Columns whose cells and heads share their right edge.
        height: Pixels after which the table scrolls; 0 for never.
    """
    side = [' class="r"' if index in right else "" for index in range(len(heads))]
    head = "".join(f"<th{side[i]}>{escape(name)}</th>" for i, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(_cell(value, side[i]) for i, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    style = f' style="max-height:{height}px"' if height else ""
    st.html(
        f'<div class="pr-table"{style}><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: str | int | float, side: str) -> str:
    if not isinstance(value, str):
        return f"<td{side}>{value:,}</td>"
    if len(value) <= CELL_LIMIT:
        return f"<td{side}>{escape(value)}</td>"
    title = escape(value[: 10 * CELL_LIMIT])
    return f'<td{side} title="{title}">{escape(value[:CELL_LIMIT])}…</td>'


def show_figures(figures: Sequence[tuple[str, int]]) -> None:
    """Show key figures in a row, each with its word."""
    cells = "".join(f"<div><b>{count:,}</b> {escape(word)}</div>" for word, count in figures)
    st.html(f'<div class="pr-figures">{cells}</div>')
