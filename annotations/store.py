"""The store: records, scores and assignments in one SQLite file.

Scores are an append-only log; the current score is the newest revision (``score_current``).
"""

import contextlib
import gc
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
import orjson
from platformdirs import user_data_path

from annotations import database, score_log
from annotations.ingest import ImportReport, Ingest
from annotations.score_log import Saved, ScoreEntry
from pararecover_core.errors import StoreError
from pararecover_core.formats.items import Item, ScoreRow
from pararecover_core.literals import loads
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Score, Source, Trajectory, from_data

__all__ = ["Counts", "ImportReport", "Saved", "ScoreEntry", "Store", "default_path", "utc_now"]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def default_path() -> Path:
    """Where the database is when nobody says: ``PARARECOVER_DB``, else the user's data folder."""
    named = os.environ.get("PARARECOVER_DB", "").strip()
    if named:
        return Path(named).expanduser()
    return user_data_path("pararecover", appauthor=False) / "pararecover.db"


class Counts(msgspec.Struct, frozen=True):
    """How much is in the database; ``scores`` are current ones, ``stubs`` lack their content."""

    instances: int
    replans: int
    trajectories: int
    scores: int
    scorers: int
    stubs: int


class Store:
    """A database file and what can be done with it; cheap to make, safe in every thread.

    Args:
        path: The file; created or migrated where that is needed.
        clock: Gives the time that is written into logs.
        reading: Whether it is only read: then a file that cannot be written will do.

    Raises:
        NewerStoreError: A newer version wrote the file.
        StoreError: The file cannot be used; the message says why and what to do.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Callable[[], datetime] = utc_now,
        reading: bool = False,
    ) -> None:
        self.path = Path(path).expanduser()
        self.clock = clock
        if not (reading and database.prepare_reading(self.path)):
            database.prepare(self.path)

    def now(self) -> str:
        """The clock's time in ISO 8601, UTC, to the millisecond."""
        return self.clock().astimezone(UTC).isoformat(timespec="milliseconds")

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection that sees one snapshot; rows are ``sqlite3.Row``."""
        with database.reading(self.path) as connection:
            yield connection

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection in one ``BEGIN IMMEDIATE`` transaction: all lands, or nothing.

        Args:
            durable: Whether the commit must survive a power cut (synchronous FULL).
        """
        with database.writing(self.path, durable=durable) as connection:
            yield connection

    # Records

    def ingest(
        self, items: Iterable[Item], *, progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Take what a reader found, in one transaction: a row lands whole or is listed.

        Args:
            items: What ``formats.read`` yields.
            progress: Called now and then with the number of items taken so far.

        Returns:
            What landed, what was there already, and every reject with its reason.
        """
        with _no_collecting(), self.write(durable=False) as connection:
            return Ingest(connection, self.now(), progress).run(items)

    def _reading(
        self, db: sqlite3.Connection | None
    ) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return self.read() if db is None else contextlib.nullcontext(db)

    def instance(self, key: str, *, db: sqlite3.Connection | None = None) -> Instance:
        """One instance; of a stub, the fields that are known.

        Args:
            key: Its key.
            db: A connection of ``read``: many lookups are quicker on one.

        Raises:
            StoreError: There is none of that key.
        """
        with self._reading(db) as connection:
            row = connection.execute(
                "SELECT i.*, b.body FROM instance i LEFT JOIN instance_body b USING (n) "
                "WHERE i.key = ?",
                (key,),
            ).fetchone()
        if row is None:
            raise _missing("instance", key)
        if row["body"] is None:
            return Instance(
                key, row["file_id"], row["query_id"], row["level"], Source(row["source"]),
                row["query"], (), Plan.parse(None), (),
            )  # fmt: skip
        record = from_data(loads(row["body"]))
        return _checked(record, Instance, key)

    def replan(self, key: str, *, db: sqlite3.Connection | None = None) -> Replan:
        """One replan; of a stub, key, instance and agent.

        Args:
            key: Its key.
            db: A connection of ``read``: many lookups are quicker on one.

        Raises:
            StoreError: There is none of that key.
        """
        with self._reading(db) as connection:
            row = connection.execute(f"{_REPLAN} WHERE r.key = ?", (key,)).fetchone()
        if row is None:
            raise _missing("replan", key)
        return _replan(row)

    def replans_of(self, instance: str) -> list[Replan]:
        """The replans of an instance, in order of import; none for an unknown key."""
        with self.read() as connection:
            rows = connection.execute(f"{_REPLAN} WHERE r.instance = ? ORDER BY r.n", (instance,))
            return [_replan(row) for row in rows]

    def trajectory(self, key: str) -> Trajectory:
        """One trajectory.

        Raises:
            StoreError: There is none of that key.
        """
        with self.read() as connection:
            row = connection.execute("SELECT body FROM trajectory WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise _missing("trajectory", key)
        return _checked(from_data(loads(row["body"])), Trajectory, key)

    def counts(self) -> Counts:
        """How much is in the database."""
        query = (
            "SELECT (SELECT COUNT(*) FROM instance), (SELECT COUNT(*) FROM replan), "
            "(SELECT COUNT(*) FROM trajectory), "
            "(SELECT COUNT(*) FROM score_current WHERE value IS NOT NULL), "
            "(SELECT COUNT(DISTINCT scorer) FROM score_log), "
            "(SELECT COUNT(*) FROM instance WHERE stub) + (SELECT COUNT(*) FROM replan WHERE stub)"
        )
        with self.read() as connection:
            return Counts(*connection.execute(query).fetchone())

    # Scores

    def append(self, entries: Sequence[ScoreEntry]) -> list[Saved]:
        """Append to the score log: all of the entries, or none.

        An event that is already there is acknowledged again and stored once.

        Returns:
            One acknowledgement per entry, in order; what they say is on disk.

        Raises:
            StaleScoreError: A base revision is not the newest; the message says what stands.
            StoreError: A replan is not in the database.
            InputError: A value that the sub-dimension cannot have.
        """
        with self.write() as connection:
            return score_log.append(connection, entries, self.now())

    def undo(self, entry: ScoreEntry) -> Saved | None:
        """Go back to the state before the newest entry that is not undone, by appending.

        Args:
            entry: Event, score and base revision; value, note and action are not used.

        Returns:
            The acknowledgement, or None where nothing is left to undo.

        Raises:
            StaleScoreError: The base revision is not the newest.
        """
        with self.write() as connection:
            return score_log.undo(connection, entry, self.now())

    def scores(self, replan: str) -> list[Score]:
        """The current scores of a replan; withdrawn ones have no value and stay listed.

        ``extra`` holds ``revision``, and ``revealed`` where it was made after the reveal.
        """
        query = "SELECT * FROM score_current WHERE replan = ? ORDER BY scorer, dimension"
        with self.read() as connection:
            entries = [score_log.log_entry(row) for row in connection.execute(query, (replan,))]
        return [
            Score(
                *(one.replan, one.dimension, one.scorer, one.value, one.note, one.at, one.rubric),
                extra=one.extra
                | {"revision": one.revision}
                | ({"revealed": True} if one.revealed else {}),
            )
            for one in entries
        ]

    def history(self, replan: str) -> list[score_log.LogEntry]:
        """Everything that was ever scored on a replan, oldest first."""
        query = "SELECT * FROM score_log WHERE replan = ? ORDER BY entry"
        with self.read() as connection:
            return [score_log.log_entry(row) for row in connection.execute(query, (replan,))]

    def score_rows(
        self, *, scorer: str = "", batch: int | None = None, replans: Iterable[str] | None = None
    ) -> Iterator[ScoreRow]:
        """Current scores in long form, streaming, in order of import.

        Args:
            scorer: Only of this scorer, or of a kind such as ``human:``; "" for all.
            batch: Only replans of this batch.
            replans: Only these keys.

        Yields:
            One row per replan, sub-dimension and scorer that has a value or a note.
        """
        where = ["(s.value IS NOT NULL OR s.note <> '')"]
        values: list[str | int] = []
        if scorer:
            where.append("substr(s.scorer, 1, ?) = ?" if scorer.endswith(":") else "s.scorer = ?")
            values += [len(scorer), scorer] if scorer.endswith(":") else [scorer]
        if batch is not None:
            where.append("s.replan IN (SELECT replan FROM batch_item WHERE batch = ?)")
            values.append(batch)
        if replans is not None:
            where.append("s.replan IN (SELECT value FROM json_each(?))")
            values.append(orjson.dumps(list(replans)).decode())
        query = f"{_ROWS} WHERE {' AND '.join(where)} ORDER BY r.n, s.scorer, s.dimension"
        with self.read() as connection:
            for row in connection.execute(query, values):
                yield ScoreRow(
                    *(row["replan"], row["instance"], row["file_id"], row["query_id"]),
                    *(row["level"], row["source"], row["agent"], row["dimension"]),
                    *(row["scorer"], row["value"], score_log.exact_note(row), row["at"]),
                    *(row["rubric"], bool(row["revealed"])),
                )


@contextlib.contextmanager
def _no_collecting() -> Iterator[None]:
    """Leave the cyclic garbage collector off: records hold no cycles, and it takes a fifth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_REPLAN = "SELECT r.*, b.body FROM replan r LEFT JOIN replan_body b USING (n)"
_ROWS = (
    "SELECT s.*, r.instance, r.agent, i.file_id, i.query_id, i.level, i.source "
    "FROM replan r CROSS JOIN score_current s ON s.replan = r.key "
    "JOIN instance i ON i.key = r.instance"
)


def _replan(row: sqlite3.Row) -> Replan:
    if row["body"] is None:
        return Replan(row["key"], row["instance"], row["agent"], "", Plan.parse(None))
    return _checked(from_data(loads(row["body"])), Replan, row["key"])


R = TypeVar("R", Instance, Replan, Trajectory)


def _checked(record: object, kind: type[R], key: str) -> R:
    if not isinstance(record, kind):
        got, expected = type(record).__name__, kind.__name__
        raise StoreError(key, got, expected, "Restore a backup of the database")
    return record


def _missing(kind: str, key: str) -> StoreError:
    where, cure = f"{kind} {key}", "Check the link, or import the file that holds it"
    return StoreError(where, "a key that is not in the database", "a known key", cure)
