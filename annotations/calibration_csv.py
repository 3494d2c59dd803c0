"""Figures and cells of the Calibrate page as CSV; texts are safe in a spreadsheet."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from annotations.calibration import coverage_text
from annotations.pairs import Named
from pararecover_core.agreement import MEASURES, Agreement
from pararecover_core.formats.guard import guard
from pararecover_core.pairing import Cell


def figures_csv(found: Agreement) -> bytes:
    """The figures as CSV with every interval; undefined figures are empty."""
    head = ["dimension", "n", "samples"]
    head += [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    head += ["kappa_note", "both", "only_human", "only_judge", "neither", "coverage"]
    rows: list[list[Any]] = [list(head)]
    for figures in (*found.dimensions, found.overall, found.pooled):
        data, coverage = figures.as_data(), figures.coverage
        row = [data[name] for name in head[: head.index("both")]]
        counts = (coverage.both, coverage.only_human, coverage.only_judge, coverage.neither)
        rows.append([*row, *counts, coverage_text(coverage)])
    return table_csv(rows)


def cells_csv(cells: Iterable[Cell], names: Callable[[str], Named]) -> bytes:
    """Cells as CSV: item, sub-dimension, both scores, both notes; texts safe in a sheet."""
    head = ("dimension", "human", "judge", "gap", "people", "human_note", "judge_reason")
    rows: list[tuple[Any, ...]] = [("replan", *Named._fields, *head)]
    for cell in cells:
        people = ", ".join(f"{name} {value:g}" for name, value in cell.people)
        scores = (cell.dimension, cell.human, cell.judge, cell.gap, people)
        rows.append((cell.sample, *names(cell.sample), *scores, cell.human_note, cell.judge_note))
    return table_csv(rows)


def table_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV with a BOM."""
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in row])
    return b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", "replace")
