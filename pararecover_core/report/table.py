"""A table of figures, each with its n and its records, written in five formats."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.figures import fixed
from pararecover_core.latex import NEEDS, definitions, tex
from pararecover_core.literals import dumps


class Cell(msgspec.Struct, frozen=True):
    """One figure.

    Attributes:
        value: The figure; NaN where nothing defines it.
        n: How many records it rests on.
        keys: The records behind it; () where a figure has no records of its own.
        low: Lower end of its interval, ``high`` the upper; NaN where there is none.
        mark: A word behind the figure, such as "↓ 7.3%".
        link: Query of the page that shows the records behind it, "" for none.
    """

    value: float
    n: int
    keys: tuple[str, ...] = ()
    low: float = math.nan
    high: float = math.nan
    mark: str = ""
    link: str = ""


class Row(msgspec.Struct, frozen=True):
    """One line: what it is about, and a cell a column."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


class Report(msgspec.Struct, frozen=True):
    """A table.

    Attributes:
        labels: Names of the label columns.
        columns: Names of the figure columns.
        digits: Decimals of each figure column.
        notes: What a reader has to know.
        counts: Whether the figures are counts themselves, so that an n beside them says nothing.
        intervals: Whether figures are written with their intervals.
    """

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    digits: tuple[int, ...]
    notes: tuple[str, ...] = ()
    counts: bool = False
    intervals: bool = False

    @property
    def has_intervals(self) -> bool:
        """Whether any figure has an interval."""
        return any(not math.isnan(cell.low) for row in self.rows for cell in row.cells)


FORMATS = ("table", "csv", "json", "markdown", "latex")


def render(report: Report, form: str = "table") -> str:
    """A report as text.

    Args:
        report: The table.
        form: One of ``FORMATS``; "json" holds unrounded values and the keys behind each cell.

    Raises:
        InputError: The format is none of these.
    """
    writers = {"table": _plain, "csv": _csv, "json": _json, "markdown": _markdown, "latex": _latex}
    if form not in writers:
        expected = f"one of {', '.join(FORMATS)}"
        raise InputError("--format", repr(form), expected, "Correct the name")
    return writers[form](report)


def _head(report: Report) -> list[str]:
    return [*report.labels, *([] if report.counts else ["n"]), *report.columns]


def _texts(report: Report) -> list[list[str]]:
    """Every row as texts: labels, the largest n of its cells, figures.

    A figure that rests on fewer records says so: "51.2 (n 7)".
    """
    lines = []
    for row in report.rows:
        whole = max((cell.n for cell in row.cells), default=0)
        figures = [
            figure(cell, digits, cell.n if report.counts else whole, intervals=report.intervals)
            for cell, digits in zip(row.cells, report.digits, strict=True)
        ]
        lines.append([*row.labels, *([] if report.counts else [f"{whole:,}"]), *figures])
    return lines


def figure(cell: Cell, digits: int, whole: int, *, intervals: bool = False) -> str:
    """A figure as text: its interval where asked for, its mark, its n where it is not ``whole``."""
    if math.isnan(cell.value):
        return "-"
    text = fixed(cell.value, digits)
    if intervals and not math.isnan(cell.low):
        text += f" [{fixed(cell.low, digits)}, {fixed(cell.high, digits)}]"
    if cell.mark:
        text += f" {cell.mark}"
    return text if cell.n == whole else f"{text} (n {cell.n:,})"


def _plain(report: Report) -> str:
    lines = [_head(report), *_texts(report)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = len(report.labels)
    shown = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    rule = "-" * max(map(len, shown))
    return "\n".join([report.title, rule, shown[0], rule, *shown[1:], rule, *report.notes])


def _csv(report: Report) -> str:
    """Figures unrounded, an n for each; undefined ones are empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    ends = ("low", "high") if report.has_intervals else ()
    writer.writerow(
        [
            *report.labels,
            *(n for c in report.columns for n in (c, f"{c} n", *(f"{c} {end}" for end in ends))),
        ]
    )
    for row in report.rows:
        cells = [
            v
            for cell in row.cells
            for v in (_number(cell.value), cell.n, *(_number(getattr(cell, end)) for end in ends))
        ]
        writer.writerow([*row.labels, *("" if v is None else v for v in cells)])
    return stream.getvalue().rstrip("\n")


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _json(report: Report) -> str:
    rows = [
        {
            **dict(zip(report.labels, row.labels, strict=True)),
            "figures": {
                name: _data(cell) for name, cell in zip(report.columns, row.cells, strict=True)
            },
        }
        for row in report.rows
    ]
    data: dict[str, Any] = {"title": report.title, "rows": rows, "notes": list(report.notes)}
    return dumps(data)


def _data(cell: Cell) -> dict[str, Any]:
    data: dict[str, Any] = {"value": _number(cell.value), "n": cell.n, "keys": list(cell.keys)}
    if not math.isnan(cell.low):
        data |= {"low": cell.low, "high": cell.high}
    if cell.link:
        data["link"] = cell.link
    return data


def _markdown(report: Report) -> str:
    head = _head(report)
    marks = ["---"] * len(report.labels) + ["---:"] * (len(head) - len(report.labels))
    lines = [head, marks, *_texts(report)]
    table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"**{report.title}**", "", *table, "", *report.notes])


_COLUMNS = 9
"""Columns that fit a page's column of text; a wider table goes over the whole page, set small."""


def _latex(report: Report) -> str:
    head = _head(report)
    columns = "l" * len(report.labels) + "r" * (len(head) - len(report.labels))

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(tex, cells)) + r" \\"

    body = [line(cells) for cells in _texts(report)]
    many = len(head) > _COLUMNS
    place = "table*" if many else "table"
    size = [r"\footnotesize\setlength{\tabcolsep}{3pt}"] if many else []
    source = "\n".join(
        [rf"\begin{{{place}}}", r"\centering", *size,
         rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(head), r"\midrule", *body,
         r"\bottomrule", r"\end{tabular}",
         rf"\caption{{{tex(report.title)}}}", rf"\end{{{place}}}"]
    )  # fmt: skip
    notes = [f"% {' '.join(note.split())}" for note in report.notes]  # for the author, not in print
    return "\n".join([rf"{NEEDS} \usepackage{{booktabs}}", *notes, *definitions(source), source])
