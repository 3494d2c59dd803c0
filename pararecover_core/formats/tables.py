"""CSV, TSV and XLSX: rows under a header row, found by what the columns are called."""

import csv
import datetime
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from pararecover_core.errors import InputError
from pararecover_core.formats import text, xlsx
from pararecover_core.formats.columns import Header, fold
from pararecover_core.formats.guard import unguard, unmask
from pararecover_core.formats.items import Item, Place, Reject
from pararecover_core.formats.rows import KNOWN, RowReader
from pararecover_core.formats.values import is_empty, shown

HEADER_ROWS = 10
"""Within how many rows from the top the header row is looked for."""

MAX_CELL = 64 * 1024 * 1024
"""Longest cell of a CSV file, in characters."""

_DELIMITERS = (",", "\t", ";", "|")
Row = tuple[int, Sequence[Any], str]
"""Line or row number, cells, and what is wrong with the row, "" where nothing is."""


def delimiter_of(head: bytes, rows: RowReader) -> str:
    """The delimiter of a CSV file whose columns we know, "" for any other file.

    Args:
        head: The first 64 KB, UTF-8.
        rows: Knows the columns.
    """
    sample = head.decode("utf-8", "replace")
    best, most = "", 0
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            for cells in itertools.islice(reader, HEADER_ROWS):
                if len(cells) > most and is_header(cells, rows):
                    best, most = delimiter, len(cells)
        except csv.Error:
            continue
    return best


def is_header(cells: Sequence[Any], rows: RowReader) -> bool:
    """Whether cells are the names of columns that can be read."""
    names = _names(cells)
    return bool(names) and rows.header(names).is_known


def read_csv(stream: BinaryIO, name: str, rows: RowReader) -> Iterator[Item]:
    """Everything in a CSV or TSV file.

    Args:
        stream: UTF-8 without byte order mark, seekable, at its start.
        name: Name of the file for messages.
        rows: Reads the rows.
    """
    delimiter = delimiter_of(text.head_of(stream), rows) or ","
    yield from _items(_csv_rows(stream, delimiter), name, rows, masked=False)


def _csv_rows(stream: BinaryIO, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_CELL)
    broken: set[int] = set()
    reader = csv.reader(text.text_lines(stream, broken), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, (), f"quotes or delimiters that do not fit ({error})"
            continue
        bad = broken and broken.intersection(range(start, reader.line_num + 1))
        broken.clear()
        yield start, cells, "bytes that are no UTF-8, or a line over 64 MB" if bad else ""


def read_xlsx(stream: BinaryIO, name: str, rows: RowReader) -> Iterator[Item]:
    """Everything in a workbook, sheet by sheet.

    Args:
        stream: Seekable.
        name: Name of the file for messages.
        rows: Reads the rows.
    """
    try:
        sheets = xlsx.open_sheets(stream)
        for title, cells in sheets.each():
            place = name if sheets.count == 1 else f"{name}, sheet {title}"
            numbered = ((number, [_plain(c) for c in row], "") for number, row in cells)
            yield from _items(numbered, place, rows, masked=True)
    except InputError as error:
        place_ = Place(name)
        yield Item(place_, Reject(place_, error.got, error.expected, error.cure))


def _items(found: Iterable[Row], name: str, rows: RowReader, *, masked: bool) -> Iterator[Item]:
    """Find the header row, then read the rows below it."""
    stream = iter(found)
    above: list[Row] = []
    for row in itertools.islice(stream, HEADER_ROWS):
        if is_header(row[1], rows):
            names = _names(row[1])
            yield from _rows(stream, Place(name, row[0]), names, rows, masked=masked)
            return
        if any(not is_empty(cell) for cell in row[1]) or row[2]:
            above.append(row)
    if above:
        place = Place(name, above[0][0])
        got = above[0][2] or f"columns {shown(', '.join(map(str, above[0][1])), 200)}"
        cure = "Name the columns in one of the first rows like one of these"
        yield Item(place, Reject(place, got, f"columns of {KNOWN}", cure))


def _rows(
    found: Iterable[Row], top: Place, names: tuple[str, ...], rows: RowReader, *, masked: bool
) -> Iterator[Item]:
    header = rows.header(names)
    if header.repeated:
        got = f"two columns named like {', '.join(header.repeated)}"
        cure = "Rename one, or take it out"
        yield Item(top, Reject(top, got, "every column once", cure))
        return
    for number, cells, fault in found:
        place = Place(top.file, number)
        if fault:
            cure = "Write the file again with a CSV writer, in UTF-8"
            yield Item(place, Reject(place, fault, "one row of the table", cure))
        elif len(cells) > len(names) and any(not is_empty(c) for c in cells[len(names) :]):
            got = f"{len(cells)} cells under {len(names)} columns"
            cure = "Quote cells that hold a delimiter"
            yield Item(place, Reject(place, got, "a cell for each column", cure))
        elif any(not is_empty(cell) for cell in cells):
            row = dict(zip(names, cells, strict=False))
            yield from rows.items(place, _as_written(row, header, masked), header)


def _as_written(row: dict[str, Any], header: Header, masked: bool) -> dict[str, Any]:
    """In our own export, take off what kept texts from being read as formulas."""
    if not header.own:
        return row
    take = (lambda cell: unmask(unguard(cell))) if masked or header.masked else unguard
    return {name: take(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def _names(cells: Sequence[Any]) -> tuple[str, ...]:
    """Column names as given, blank ones at the end left out; repeated blanks told apart."""
    names = ["" if is_empty(cell) else str(cell).strip("\ufeff \t\r\n") for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not any(fold(name) for name in names):
        return ()
    seen: dict[str, int] = {}
    told = []
    for index, name in enumerate(names, start=1):
        name = name or f"column {index}"
        seen[name] = seen.get(name, 0) + 1
        told.append(name + " " * (seen[name] - 1))
    return tuple(told)


def _plain(cell: Any) -> Any:
    """A cell as JSON data: times as ISO 8601, an empty text as nothing."""
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return str(cell)
    return None if cell == "" else cell
