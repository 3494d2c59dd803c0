"""Forward migrations: one numbered step a version, a backup first, all or nothing.

``STEPS[n]`` brings a database from version n to n + 1. A step gets a connection inside the one
transaction of the whole migration. To change the schema: edit ``schema``, raise its ``VERSION``,
add a step here that does the same to a file of the version before, and a test that migrates one.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import sqlite_utils

from annotations import database
from annotations.ingest import Ingest
from annotations.record_rows import told_by_run
from annotations.schema import (
    APPLICATION_ID,
    CASE_STEP,
    JUDGING_STEP,
    RUN_COLUMNS,
    SESSION_STEP,
    TRAINING_STEP,
    VERSION,
)
from annotations.score_log import refresh_summary
from annotations.search_index import rebuild_search
from pararecover_core.errors import StoreError
from pararecover_core.formats.items import Item, Place
from pararecover_core.literals import loads
from pararecover_core.records import Score, Trajectory, from_data

Step = Callable[[sqlite3.Connection], None]

PRE_RELEASE = {
    "instances": {"key", "record"},
    "replans": {"key", "record"},
    "scores": {"replan", "dimension", "annotator", "value", "note", "at"},
}
"""Tables and columns of version 0, the layout before the first release."""


def from_pre_release(connection: sqlite3.Connection) -> None:
    """Version 0 to 1: records as JSON and one changeable score each become tables and a log.

    Raises:
        StoreError: A record or score of the old tables cannot be kept.
    """
    database.create_schema(connection)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    report = Ingest(connection, now).run(_pre_release_items(connection))
    if report.rejects:
        first = report.rejects[0]
        raise StoreError(str(first.place), first.got, first.expected, first.cure)
    for table in PRE_RELEASE:
        connection.execute(f"DROP TABLE {table}")


def _pre_release_items(connection: sqlite3.Connection) -> Iterator[Item]:
    for table in ("instances", "replans"):
        rows = connection.execute(f"SELECT rowid, record FROM {table} ORDER BY rowid")
        for number, record in rows:
            yield Item(Place(f"table {table}", number), from_data(loads(record)))
    for row in connection.execute("SELECT rowid, * FROM scores ORDER BY rowid"):
        scorer = row["annotator"] if ":" in row["annotator"] else f"human:{row['annotator']}"
        score = Score(
            *(row["replan"], row["dimension"], scorer, row["value"]),
            note=row["note"] or "",
            at=row["at"] or "",
        )
        yield Item(Place("table scores", row["rowid"]), score)


def add_judging(connection: sqlite3.Connection) -> None:
    """Version 3 to 4: prompts, judging runs and what their calls gave."""
    database.run_script(connection, JUDGING_STEP)


def add_training(connection: sqlite3.Connection) -> None:
    """Version 4 to 5: what people decided about training examples."""
    database.run_script(connection, TRAINING_STEP)


def add_sessions(connection: sqlite3.Connection) -> None:
    """Version 5 to 6: calibration sessions; summaries count submitted scores alone from now on."""
    database.run_script(connection, SESSION_STEP)
    query = "SELECT replan FROM replan_summary WHERE humans > 0"
    refresh_summary(connection, [row[0] for row in connection.execute(query).fetchall()])


def add_cases(connection: sqlite3.Connection) -> None:
    """Version 6 to 7: saved case studies."""
    database.run_script(connection, CASE_STEP)


def add_run_figures(connection: sqlite3.Connection) -> None:
    """Version 7 to 8: what a run's measures say stands in columns."""
    known = sqlite_utils.Database(connection)["trajectory"].columns_dict
    for name, kind in RUN_COLUMNS.items():
        if name not in known:
            connection.execute(f"ALTER TABLE trajectory ADD COLUMN {name} {kind}")
    update = f"UPDATE trajectory SET {', '.join(f'{name} = ?' for name in RUN_COLUMNS)}"
    numbers = connection.execute("SELECT rowid FROM trajectory").fetchall()
    for (number,) in map(tuple, numbers):
        found = "SELECT body FROM trajectory WHERE rowid = ?"
        run = from_data(loads(connection.execute(found, (number,)).fetchone()[0]))
        assert isinstance(run, Trajectory)
        told = told_by_run(run)
        values = [told[name] for name in RUN_COLUMNS]
        connection.execute(f"{update} WHERE rowid = ?", (*values, number))


STEPS: dict[int, Step] = {
    0: from_pre_release,
    1: rebuild_search,
    2: rebuild_search,
    3: add_judging,
    4: add_training,
    5: add_sessions,
    6: add_cases,
    7: add_run_figures,
}
"""The step from each version to the next."""


def migrate(path: Path, *, steps: Mapping[int, Step] = STEPS, target: int = VERSION) -> Path | None:
    """Bring a database to the newest version; a copy of the old one stays beside it.

    Args:
        path: The database.
        steps: The step from each version to the next.
        target: The version to reach.

    Returns:
        The backup, or None where another process had migrated already.

    Raises:
        StoreError: The file is another program's, lacks tables, or a step failed: it stays as it
            was.
    """
    with contextlib.closing(database.open_file(path, database.WRITE_WAIT)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        version = database.version_of(connection)
        if version == target:
            connection.rollback()
            return None
        _check_ours(path, connection, version)
        backup = _back_up(path, version)
        try:
            for number in range(version, target):
                steps[number](connection)
                connection.execute(f"PRAGMA user_version = {number + 1}")
        except (sqlite3.Error, StoreError, ValueError) as error:
            connection.rollback()
            got = f"a failure on the way from version {version} to {target} ({error})"
            cure = f"Nothing was changed; a copy is {backup.name}. Report this with the message"
            raise StoreError(str(path), got, "a database that migrates", cure) from error
        connection.commit()
        database.use_wal(connection)
    return backup


def _check_ours(path: Path, connection: sqlite3.Connection, version: int) -> None:
    tables = sqlite_utils.Database(connection)
    names = set(tables.table_names())
    if version == 0 and all(
        name in names and columns <= set(tables[name].columns_dict)
        for name, columns in PRE_RELEASE.items()
    ):
        return
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if version == 0 or not ours:
        got = "a SQLite database of another program"
        cure = "Choose another path; a new database is made where there is no file"
        raise StoreError(str(path), got, "a ParaRecover database", cure)


def _back_up(path: Path, version: int) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    backup = path.with_name(f"{path.name}.backup-v{version}-{stamp}")
    number = 1
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}.backup-v{version}-{stamp}-{number}")
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(backup)) as copy,
    ):
        source.backup(copy)
    return backup
