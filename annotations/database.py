"""Opening the SQLite file: connections, transactions, and SQLite's errors in plain words.

One connection per operation, never shared between threads. Readers see one snapshot; writers take
the write lock at once (``BEGIN IMMEDIATE``), so that they wait for each other and never fail half
way. The schema version is checked once per process and file.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from annotations.schema import APPLICATION_ID, SCHEMA, TABLES, VERSION
from pararecover_core.errors import NewerStoreError, StoreError

READ_WAIT, WRITE_WAIT = 5.0, 300.0
"""Seconds that a reader and a writer wait for a lock; a writer may wait for a whole import."""

_READY: dict[str, tuple[int, int]] = {}
"""Files (device, inode) whose version this process has checked."""

_ONLY_READ: dict[str, str] = {}
"""Files that this process may read but not write, each with how SQLite is to open it."""

_MEANINGS = (
    (
        "not a database",
        "a file that is no database",
        "a ParaRecover database",
        "Choose another path; to load a data file, use pararecover import",
    ),
    (
        "malformed",
        "a damaged database file",
        "a sound one",
        "Restore a backup, or recover what is left with: sqlite3 FILE .recover",
    ),
    (
        "readonly",
        "a database that cannot be written",
        "write permission for the file and its folder",
        "Change the permissions or copy the file elsewhere",
    ),
    (
        "unable to open",
        "a file that cannot be opened",
        "a readable and writable path",
        "Check that the folder exists and that you may write in it",
    ),
    (
        "disk is full",
        "a full disk",
        "free space",
        "Free some space and try again: nothing was written in part",
    ),
    (
        "disk i/o error",
        "an error of the disk",
        "a disk that can be read and written",
        "Check the disk; network folders often do not support SQLite",
    ),
    (
        "locked",
        f"a database that stayed locked for {WRITE_WAIT:.0f} s",
        "a lock within that time",
        "Wait for the import that runs elsewhere, or close the program that holds the file",
    ),
)


@contextlib.contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says of the file into a ``StoreError``; other errors pass through."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        said = str(error).casefold()
        for words, got, expected, cure in _MEANINGS:
            if words in said:
                raise StoreError(str(path), got, expected, cure) from error
        raise


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that sees one snapshot."""
    mode = _ONLY_READ.get(str(path))
    if mode is None:
        prepare(path)
    with (
        plain_errors(path),
        contextlib.closing(open_file(path, READ_WAIT, mode or "rw")) as connection,
    ):
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection


@contextlib.contextmanager
def writing(path: Path, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
    """A connection inside one write transaction: all of it lands, or nothing.

    Args:
        path: The database.
        durable: Whether the commit must survive a power cut (else: the end of the process alone).
    """
    with plain_errors(path), contextlib.closing(connect(path, WRITE_WAIT)) as connection:
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def held(path: Path) -> sqlite3.Connection:
    """An idle connection for as long as a program runs; any thread may drop it.

    When the last connection to a database closes, SQLite copies its log into the file and syncs
    both, which takes longer than writing a score. While this one is open, closing another is
    free.
    """
    with plain_errors(path):
        prepare(path)
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return connection


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """A new connection to a database that ``prepare`` has checked."""
    prepare(path)
    return open_file(path, wait)


def prepare(path: Path) -> None:
    """Create, migrate or refuse the file; once per process as long as the file stays the same.

    Raises:
        NewerStoreError: A newer version wrote it.
        StoreError: It is a folder, no database, of another program, damaged or not writable.
    """
    try:
        status = os.stat(path)
        if _READY.get(str(path)) == (status.st_dev, status.st_ino) and status.st_size:
            return
    except OSError:
        pass
    with plain_errors(path):
        _check_path(path)
        _check_version(path)
    status = os.stat(path)
    _READY[str(path)] = (status.st_dev, status.st_ino)


def prepare_reading(path: Path) -> bool:
    """Make ``reading`` possible of a file that is there and cannot be written.

    Returns:
        Whether it is such a file; False for any other, which ``prepare`` is for.

    Raises:
        NewerStoreError: A newer version wrote it.
        StoreError: It is no database, lacks tables, or has to be brought up to date first.
    """
    if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        _ONLY_READ.pop(str(path), None)
        return False
    with plain_errors(path):
        mode = _mode_to_read(path)
        with contextlib.closing(open_file(path, READ_WAIT, mode)) as connection:
            _check_schema(path, version_of(connection), tables_of(connection))
    _ONLY_READ[str(path)] = mode
    return True


def _mode_to_read(path: Path) -> str:
    """Beside a log that others write SQLite needs its locks; without one there may be none."""
    log = path.with_name(path.name + "-wal")
    return "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"


def _check_schema(path: Path, version: int, tables: frozenset[str]) -> None:
    """Refuse what cannot be read as it is.

    Raises:
        NewerStoreError: A newer version wrote it.
        StoreError: It is older, or lacks tables.
    """
    if version < VERSION:
        got = f"schema version {version} in a file that cannot be written"
        cure = "Copy it to where you may write: the copy is brought up to date when it is opened"
        raise StoreError(str(path), got, f"version {VERSION}", cure)
    if version > VERSION:
        got, expected = f"schema version {version}", f"at most {VERSION}"
        cure = "Install the newer pararecover that wrote it, or choose another database"
        raise NewerStoreError(str(path), got, expected, cure)
    if not tables >= set(TABLES):
        missing = ", ".join(sorted(set(TABLES) - tables))
        cure = "Restore a backup, or choose another database"
        raise StoreError(str(path), f"no tables {missing}", "all tables", cure)


def version_of(connection: sqlite3.Connection) -> int:
    """``PRAGMA user_version``."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables_of(connection: sqlite3.Connection) -> frozenset[str]:
    """Names of the tables in the file."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    return frozenset(row[0] for row in connection.execute(query))


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run statements inside the open transaction (``executescript`` would end it)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def create_schema(connection: sqlite3.Connection) -> None:
    """Create this version's tables and mark the file as ours."""
    run_script(connection, SCHEMA)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def open_file(path: Path, wait: float, mode: str = "rw") -> sqlite3.Connection:
    """A connection to a file, unchecked; ``mode`` is SQLite's (``rwc`` creates it)."""
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA recursive_triggers = ON")  # REPLACE must not pass the guards
    return connection


def _check_path(path: Path) -> None:
    if path.is_dir():
        cure = f"Name a file in it, such as {path / 'pararecover.db'}"
        raise StoreError(str(path), "a folder", "a database file", cure)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"a folder that cannot be made ({error.strerror})"
        cure = "Choose a path in a folder that you may write in"
        raise StoreError(str(path.parent), got, "a folder for the database", cure) from error
    if path.exists() and not os.access(path, os.W_OK):
        raise sqlite3.OperationalError("attempt to write a readonly database")


def _check_version(path: Path) -> None:
    with contextlib.closing(open_file(path, WRITE_WAIT, "rwc")) as connection:
        version, tables = version_of(connection), tables_of(connection)
        if version >= VERSION:
            _check_schema(path, version, tables)
            use_wal(connection)
            return
        if not tables and not version:
            use_wal(connection)
            _create(connection)
            return
    from annotations.migrations import migrate  # rare, and it reads through this module

    migrate(path)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not tables_of(connection):  # else another process was first
        create_schema(connection)
    connection.commit()


def use_wal(connection: sqlite3.Connection) -> None:
    """Turn WAL on; SQLite does not wait for this lock by itself."""
    until = time.monotonic() + WRITE_WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
