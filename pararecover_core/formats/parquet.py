"""Parquet: columns that mean the same as in a sheet, read group by group."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from pararecover_core.formats.guard import unmask
from pararecover_core.formats.items import Item, Place, Reject
from pararecover_core.formats.rows import KNOWN, RowReader

PARQUET_MARK = b"PAR1"
"""How a Parquet file begins."""

_GROUP = 10_000


def read_parquet(stream: BinaryIO, name: str, rows: RowReader) -> Iterator[Item]:
    """Everything in a Parquet file.

    Args:
        stream: Seekable.
        name: Name of the file for messages.
        rows: Reads the rows.
    """
    import pyarrow as pa  # only this form needs it
    import pyarrow.parquet as pq

    place = Place(name)
    try:
        file = pq.ParquetFile(stream)
        header = rows.header(tuple(file.schema_arrow.names))
        if not header.is_known:
            got = f"columns {', '.join(file.schema_arrow.names)}"[:200]
            cure = "Name the columns like one of these"
            yield Item(place, Reject(place, got, f"columns of {KNOWN}", cure))
            return
        number = 0
        for group in file.iter_batches(_GROUP):
            for row in group.to_pylist():
                number += 1
                cells = {key: _as_written(value, header.own) for key, value in row.items()}
                yield from rows.items(Place(name, number), cells, header)
    except (pa.ArrowException, OSError) as error:
        got = f"a Parquet file that cannot be read ({error})"[:300]
        cure = "Write the file again"
        yield Item(place, Reject(place, got, "a whole Parquet file", cure))


def _as_written(value: Any, own: bool) -> Any:
    return unmask(value) if own and isinstance(value, str) else value
