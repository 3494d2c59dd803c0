"""Files in and out: a reader recognises a file by its content and yields items one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pararecover_core.errors import InputError
from pararecover_core.formats import text, xlsx
from pararecover_core.formats.items import (
    Answer,
    InstanceRef,
    Item,
    Mark,
    Place,
    Reject,
    ReplanRef,
    ScoreRow,
)
from pararecover_core.formats.jsonl import read_json
from pararecover_core.formats.logs import LogReader, inspect
from pararecover_core.formats.logs.plans import is_compiler_text
from pararecover_core.formats.parquet import PARQUET_MARK, read_parquet
from pararecover_core.formats.rows import KNOWN, ReadOptions, RowReader
from pararecover_core.formats.tables import delimiter_of, read_csv, read_xlsx
from pararecover_core.formats.writers import FORMS, write_scores
from pararecover_core.records import Source

__all__ = [
    "FORMATS",
    "FORMS",
    "Answer",
    "InstanceRef",
    "Item",
    "Mark",
    "Place",
    "ReadOptions",
    "Reject",
    "ReplanRef",
    "ScoreRow",
    "read",
    "write_scores",
]

FORMATS = ("auto", "jsonl", "csv", "xlsx", "parquet")
"""What ``ReadOptions.format`` may be."""

MAX_PLAN_TEXT = 4 * 1024 * 1024
"""Longest text of plans that is taken, in bytes."""

_DEFAULT = ReadOptions()


def read(
    path_or_file: Path | BinaryIO, *, name: str = "", options: ReadOptions = _DEFAULT
) -> Iterator[Item]:
    """Read a file, whatever it is, one item at a time.

    Args:
        path_or_file: The file, or an open binary stream; a stream stays open.
        name: Name of the file for messages; by default the path's or the stream's own.
        options: What the caller knows about the file.

    Returns:
        Records, rows to be joined, and rejects, in the order of the file. A bad row is a reject
        and never an error; a file that cannot be read at all gives one reject.

    Raises:
        InputError: The options are wrong (before anything is read).
    """
    _check(options)
    return _read(path_or_file, name or _name(path_or_file), options)


def _check(options: ReadOptions) -> None:
    allowed = {
        "format": (options.format, FORMATS),
        "level": (options.level, (0, 1, 2)),
        "source": (options.source, ("", *Source)),
    }
    for field, (value, known) in allowed.items():
        if value not in known:
            expected = f"one of {', '.join(str(k) or repr(k) for k in known)}"
            raise InputError(field, repr(value), expected, "Choose one of these")


def _name(path_or_file: Path | BinaryIO) -> str:
    if isinstance(path_or_file, Path):
        return path_or_file.name
    return Path(str(getattr(path_or_file, "name", "") or "file")).name


def _read(path_or_file: Path | BinaryIO, name: str, options: ReadOptions) -> Iterator[Item]:
    if not isinstance(path_or_file, Path):
        yield from _read_stream(text.seekable(path_or_file), name, options)
        return
    try:
        stream = path_or_file.open("rb")
    except OSError as error:
        got = "a folder" if path_or_file.is_dir() else f"no readable file ({error.strerror})"
        yield _whole(name, got, "a file", "Check the path and its permissions")
        return
    with stream:
        yield from _read_stream(stream, name, options)


def _read_stream(stream: BinaryIO, name: str, options: ReadOptions) -> Iterator[Item]:
    rows = RowReader(options)
    start = stream.read(8)
    if options.format == "auto" and start.startswith(xlsx.ZIP_MARK) and inspect.is_archive(stream):
        yield from LogReader(options).archive(stream, name)
        return
    if options.format == "xlsx" or start.startswith((xlsx.ZIP_MARK, xlsx.OLE_MARK)):
        yield from read_xlsx(stream, name, rows)
        return
    if options.format == "parquet" or start.startswith(PARQUET_MARK):
        yield from read_parquet(stream, name, rows)
        return
    decoded = text.as_utf8(stream)
    try:
        yield from _read_text(decoded, name, rows)
    finally:
        if decoded is not stream:
            decoded.close()


def _read_text(stream: BinaryIO, name: str, rows: RowReader) -> Iterator[Item]:
    head = text.head_of(stream)
    form = rows.options.format
    if form == "auto" and is_compiler_text(head):
        whole = stream.read(MAX_PLAN_TEXT).decode("utf-8", "replace")
        yield from LogReader(rows.options).text(whole, Place(name, 1))
        return
    if form == "auto":
        form = _form(head, rows)
    if not head.strip():
        yield _whole(name, "an empty file", KNOWN, "Choose another file")
    elif form == "jsonl":
        yield from read_json(stream, name, rows)
    elif form == "csv":
        yield from read_csv(stream, name, rows)
    else:
        first = head.lstrip()[:40].decode("utf-8", "replace")
        cure = "Bring JSON lines, a CSV with a header row, or an XLSX workbook"
        yield _whole(name, f"a file that starts with {first!r}", KNOWN, cure)


def _form(head: bytes, rows: RowReader) -> str:
    """Which container the text of a file is; "" for none that we know."""
    start = head.lstrip()
    if start.startswith(b"{"):
        return "jsonl"
    if delimiter_of(head, rows):
        return "csv"
    records = start.startswith(b"[") or any(
        line.lstrip().startswith(b"{") for line in start.splitlines()
    )
    return "jsonl" if records else ""


def _whole(name: str, got: str, expected: str, cure: str) -> Item:
    place = Place(name)
    return Item(place, Reject(place, got, expected, cure))
