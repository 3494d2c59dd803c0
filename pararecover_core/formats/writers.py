"""Writing scores in long form, so that reading the file gives the same scores again."""

import contextlib
import csv
import io
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from pararecover_core.errors import InputError
from pararecover_core.formats.columns import LONG_FORM
from pararecover_core.formats.guard import guard, mask, mask_surrogates
from pararecover_core.formats.items import ScoreRow
from pararecover_core.literals import dumps

FORMS = ("csv", "xlsx", "jsonl", "parquet")
"""What scores can be written as."""

_LONGEST_CELL = 32_767
_MOST_ROWS = 1_048_575
"""Rows of a sheet of XLSX below its head."""


def write_scores(rows: Iterable[ScoreRow], path: Path | BinaryIO, form: str = "csv") -> int:
    """Write scores in long form.

    Args:
        rows: The scores; taken one at a time.
        path: A file, written beside and moved into place, or an open binary stream.
        form: "csv" (UTF-8 with byte order mark), "xlsx", "jsonl" or "parquet".

    Returns:
        How many rows were written.

    Raises:
        InputError: The form is not known, or a text is too long for a cell of XLSX.
    """
    writer = _WRITERS.get(form)
    if writer is None:
        raise InputError("form", repr(form), f"one of {', '.join(FORMS)}", "Choose one of these")
    with target(path) as stream:
        return writer(rows, stream)


@contextlib.contextmanager
def target(path: Path | BinaryIO, *, private: bool = False) -> Iterator[BinaryIO]:
    """The stream to write to; a file appears whole or not at all.

    Args:
        path: A file, or an open stream, which is given back as it is.
        private: Whether only the file's owner may read it.
    """
    if not isinstance(path, Path):
        yield path
        return
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        os.chmod(name, 0o600 if private else 0o666 & ~_umask())
        with os.fdopen(handle, "wb") as stream:
            yield cast(BinaryIO, stream)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask_ = os.umask(0)
    os.umask(mask_)
    return mask_


def _cells(row: ScoreRow) -> list[Any]:
    return [getattr(row, name) for name in LONG_FORM]


def _write_csv(rows: Iterable[ScoreRow], stream: BinaryIO) -> int:
    return write_csv((_cells(row) for row in rows), LONG_FORM, stream)


def write_csv(rows: Iterable[Sequence[Any]], names: Sequence[str], stream: BinaryIO) -> int:
    """Write a table as CSV: UTF-8 with byte order mark, no cell is a formula.

    Returns:
        How many rows were written, the head not counted.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="", write_through=True)
    count = 0
    try:
        writer = csv.writer(text)
        writer.writerow(names)
        for row in rows:
            writer.writerow([_csv_cell(value) for value in row])
            count += 1
    finally:
        text.flush()
        text.detach()
    return count


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return mask_surrogates(guard(value))
    if isinstance(value, bool):
        return int(value)
    return f"{value:.17g}" if isinstance(value, float) else value


def _write_jsonl(rows: Iterable[ScoreRow], stream: BinaryIO) -> int:
    count = 0
    for row in rows:
        line = dumps({name: getattr(row, name) for name in LONG_FORM})
        stream.write(line.encode("utf-8", "surrogatepass") + b"\n")
        count += 1
    return count


def _write_xlsx(rows: Iterable[ScoreRow], stream: BinaryIO) -> int:
    return write_xlsx((_cells(row) for row in rows), LONG_FORM, stream, "scores")


def write_xlsx(
    rows: Iterable[Sequence[Any]], names: Sequence[str], stream: BinaryIO, title: str
) -> int:
    """Write a table as one sheet of a workbook; no cell is a formula.

    Returns:
        How many rows were written, the head not counted.

    Raises:
        InputError: A text is too long for a cell, or there are too many rows for a sheet.
    """
    from rustpy_xlsxwriter import FastExcel  # only this form needs it

    count = 0

    def cells() -> Iterator[dict[str, Any]]:
        nonlocal count
        for row in rows:
            count += 1
            if count > _MOST_ROWS:
                got, cure = f"more than {_MOST_ROWS:,}", "Export as CSV or Parquet instead"
                raise InputError("rows", got, "as many as a sheet of XLSX holds", cure)
            named = zip(names, row, strict=True)
            yield {name: _xlsx_cell(name, value, count + 1) for name, value in named}
        if not count:
            yield dict.fromkeys(names)  # the head comes with the first row

    FastExcel(stream, output_format="xlsx").sheet(title, cells()).save()
    return count


def _xlsx_cell(name: str, value: Any, row: int) -> Any:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = mask(guard(value))
    if len(text) > _LONGEST_CELL:
        raise InputError(
            f"row {row}, column {name}",
            f"{len(text)} characters",
            f"at most {_LONGEST_CELL} in a cell of XLSX",
            "Export as CSV or JSONL instead",
        )
    return text


_GROUP = 20_000
"""Rows of a group of Parquet: what is held in memory at once."""


def _write_parquet(rows: Iterable[ScoreRow], stream: BinaryIO) -> int:
    import pyarrow as pa  # only this form needs it
    import pyarrow.parquet as pq

    types = {"level": pa.int16(), "score": pa.float64(), "revealed": pa.bool_()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in LONG_FORM])
    count, source = 0, iter(rows)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while group := list(itertools.islice(source, _GROUP)):
            columns = {
                name: [_parquet_cell(getattr(row, name)) for row in group] for name in LONG_FORM
            }
            writer.write_table(pa.table(columns, schema=schema))
            count += len(group)
    return count


def _parquet_cell(value: Any) -> Any:
    return mask_surrogates(value) if isinstance(value, str) else value


_WRITERS: dict[str, Callable[[Iterable[ScoreRow], BinaryIO], int]] = {
    "csv": _write_csv,
    "xlsx": _write_xlsx,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
