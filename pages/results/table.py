"""A report as a table on a page: figures with n and interval, each a link to its records."""

from html import escape

import streamlit as st

from annotations.score_log import storable
from pararecover_core.report import Cell, Report, Row
from pararecover_core.report.table import figure

STYLE = """
.st-key-rs_bar, .rs-empty { background: var(--surf); border: 1px solid var(--line);
  border-radius: 8px; padding: 6px 12px 8px; gap: 8px; }
.rs-empty b { display: block; font-size: 15px; margin-bottom: 6px; }
.rs-empty a { color: var(--acc); }
.rs { background: var(--surf); border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px;
  overflow: auto; }
.rs h3 { font-size: 15px; margin: 0 0 4px; padding: 0; }
.rs table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.rs th { font-size: 11px; font-weight: 600; color: var(--mute); text-align: left; padding: 0 8px;
  height: 24px; border-bottom: 1px solid var(--line); white-space: nowrap; }
.rs td { padding: 3px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; }
.rs tr:last-child td { border-bottom: 0; }
.rs .r { text-align: right; }
.rs .sep { border-left: 1px solid var(--line); }
.rs td a { color: var(--ink); text-decoration: none; }
.rs td a:hover, .rs td a:focus-visible { color: var(--acc); text-decoration: underline; }
.rs small { color: var(--mute); font-size: 11px; margin-left: 4px; }
.rs .iv { display: block; margin: 0; }
.rs .down { color: var(--fail); } .rs .up { color: var(--add); }
.rs p { color: var(--mute); font-size: 12px; margin: 6px 0 0; }
"""


def show(report: Report, *, intervals: bool, page: str) -> None:
    """Show a report.

    Args:
        report: The table.
        intervals: Whether intervals stand behind the figures; else in their tooltips.
        page: Path of the page that a figure's link opens.
    """
    st.html(html(report, intervals=intervals, page=page))


def html(report: Report, *, intervals: bool, page: str) -> str:
    """The table; every text of a record is escaped."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in report.labels)
    heads += "" if report.counts else '<th class="r">n</th>'
    heads += "".join(
        f'<th class="r{_sep(report, place)}">{escape(storable(name))}</th>'
        for place, name in enumerate(report.columns)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{escape(storable(label))}</td>" for label in row.labels)
        + ("" if report.counts else f'<td class="r">{_whole(row):,}</td>')
        + "".join(
            f'<td class="r{_sep(report, place)}">'
            f"{_cell(cell, report.digits[place], intervals=intervals, page=page)}"
            f"{_n(cell, row, report)}</td>"
            for place, cell in enumerate(row.cells)
        )
        + "</tr>"
        for row in report.rows
    )
    notes = "".join(f"<p>{escape(storable(note))}</p>" for note in report.notes)
    return (
        f'<div class="rs"><h3>{escape(storable(report.title))}</h3>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def _whole(row: Row) -> int:
    return max((cell.n for cell in row.cells), default=0)


def _n(cell: Cell, row: Row, report: Report) -> str:
    """The n of a figure where it is not that of its row."""
    if report.counts or cell.n == _whole(row) or cell.value != cell.value:
        return ""
    return f"<small>n {cell.n:,}</small>"


def _sep(report: Report, place: int) -> str:
    """A line where another level or round begins."""
    if not place:
        return ""
    before, now = report.columns[place - 1].split(" "), report.columns[place].split(" ")
    levels = now[0][:1] == "L" and now[0][1:].isdigit() and before[0] != now[0]
    return " sep" if levels or (now[0] == "Round" and before[:2] != now[:2]) else ""


def _cell(cell: Cell, digits: int, *, intervals: bool, page: str) -> str:
    if cell.value != cell.value:
        return '<span title="undefined: no record has this figure">–</span>'
    bare = Cell(cell.value, cell.n)
    text = figure(bare, digits, cell.n)
    whole = figure(
        Cell(cell.value, cell.n, low=cell.low, high=cell.high), digits, cell.n, intervals=True
    )
    title = f"{whole}, n = {cell.n:,}"
    if cell.link:
        title += "; opens the records behind it"
        shown = f'<a href="{page}?{escape(cell.link)}" target="_self" title="{title}">{text}</a>'
    else:
        shown = f'<span title="{title}">{text}</span>'
    if intervals and cell.low == cell.low:
        shown += f"<small class='iv'>{whole.partition(' ')[2]}</small>"
    if cell.mark:
        side = "down" if cell.mark.startswith("↓") else "up"
        shown += f'<small class="{side}">{escape(cell.mark)}</small>'
    return shown
