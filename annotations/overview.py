"""What is in a database, and taking all of it or its rejects out."""

import csv
import io
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.formats.guard import guard
from pararecover_core.formats.items import Reject

if TYPE_CHECKING:
    from annotations.store import Store

TOP = 40
"""Most rows of one table of the overview: there may be thousands of agents or error labels."""


class Tally(msgspec.Struct, frozen=True):
    """How often something occurs."""

    name: str
    count: int


class Overview(msgspec.Struct, frozen=True):
    """What a database holds.

    Attributes:
        levels: Instances by level.
        sources: Instances by source.
        error_types: Instances by error type of any round; an instance with two counts in both.
        agents: Replans by agent.
        scorers: Current scores by scorer.
        stubs: Records that a score or an answer names and whose content is not here.
    """

    instances: int
    replans: int
    trajectories: int
    scores: int
    stubs: int
    levels: tuple[Tally, ...]
    sources: tuple[Tally, ...]
    error_types: tuple[Tally, ...]
    agents: tuple[Tally, ...]
    scorers: tuple[Tally, ...]


_TALLIES = {
    "levels": "SELECT CASE level WHEN 0 THEN 'not said' ELSE 'level ' || level END, COUNT(*)"
    " FROM instance GROUP BY level ORDER BY level",
    "sources": "SELECT source, COUNT(*) FROM instance GROUP BY source ORDER BY 2 DESC, 1",
    "error_types": "SELECT error_type, COUNT(DISTINCT instance) FROM instance_error"
    " GROUP BY error_type ORDER BY 2 DESC, 1",
    "agents": "SELECT agent, COUNT(*) FROM replan GROUP BY agent ORDER BY 2 DESC, 1",
    # Each score has one first revision, and few are withdrawn: quicker than looking for the newest.
    "scorers": "SELECT scorer, SUM(n) FROM ("
    " SELECT scorer, COUNT(*) AS n FROM score_log WHERE revision = 1 GROUP BY scorer UNION ALL"
    " SELECT scorer, -COUNT(*) FROM score_current WHERE value IS NULL GROUP BY scorer)"
    " GROUP BY scorer HAVING SUM(n) > 0 ORDER BY 2 DESC, 1",
}
_COUNTS = (
    "SELECT (SELECT COUNT(*) FROM instance), (SELECT COUNT(*) FROM replan),"
    " (SELECT COUNT(*) FROM trajectory),"
    " (SELECT COUNT(*) FROM instance WHERE stub) + (SELECT COUNT(*) FROM replan WHERE stub)"
)


def state_of(store: "Store") -> tuple[int, ...]:
    """A value that changes when records or scores are added; costs nothing."""
    with store.read() as db:
        row = db.execute(
            "SELECT (SELECT MAX(n) FROM instance), (SELECT MAX(n) FROM replan),"
            " (SELECT MAX(rowid) FROM trajectory), (SELECT MAX(entry) FROM score_log),"
            " (SELECT COUNT(*) FROM instance WHERE stub)"
        ).fetchone()
    return tuple(value or 0 for value in row)


def overview(store: "Store") -> Overview:
    """What a database holds, with at most ``TOP`` rows a table."""
    with store.read() as db:
        instances, replans, trajectories, stubs = db.execute(_COUNTS).fetchone()
        tallies = {
            name: tuple(Tally(str(row[0]), row[1]) for row in db.execute(query))
            for name, query in _TALLIES.items()
        }
    scores = sum(tally.count for tally in tallies["scorers"])
    shown = {name: found[:TOP] for name, found in tallies.items()}
    return Overview(instances, replans, trajectories, scores, stubs, **shown)


def rejects_csv(rejects: Iterable[Reject]) -> bytes:
    """Rejects as CSV for a spreadsheet: UTF-8 with byte order mark, no cell is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("file", "line", "column", "got", "expected", "cure"))
    for reject in rejects:
        place = reject.place
        cells: Sequence[str | int] = (
            place.file, place.line, place.column, reject.got, reject.expected, reject.cure,
        )  # fmt: skip
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue().encode("utf-8-sig", "replace")


def copy_database(store: "Store", target: Path) -> Path:
    """Write a consistent copy of the database file, while others go on writing to it.

    Returns:
        The target.

    Raises:
        InputError: There is such a file already.
    """
    if target.exists():
        raise InputError(str(target), "a file", "a new file", "Move it away, then copy again")
    with store.read() as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target


def snapshot(store: "Store") -> bytes:
    """A consistent copy of the database file, to download; it is held in memory."""
    with tempfile.TemporaryDirectory(prefix="pararecover-") as folder:
        copy = Path(folder) / "copy.db"
        copy_database(store, copy)
        return copy.read_bytes()
