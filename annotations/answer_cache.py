"""Answers of models in one SQLite file of their own, for many a second; see ``Cache``.

It survives the end of a process at any moment; what a power cut takes is asked again.
"""

import contextlib
import sqlite3
import threading
from pathlib import Path

import msgspec

from pararecover_core.completions import Completion
from pararecover_core.errors import ConfigError

_WAIT_SECONDS = 30.0
_SCHEMA = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = OFF",
    "CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
)


class AnswerCache:
    """Answers by key; one object may be used in many threads.

    Args:
        path: The file; it and its folder are made when the first answer comes or is looked for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def get(self, key: str) -> Completion | None:
        """The kept answer, or None; a damaged one counts as none."""
        with contextlib.suppress(sqlite3.Error, OSError, msgspec.MsgspecError), self._lock:
            query = "SELECT body FROM answer WHERE key = ?"
            row = self._connection().execute(query, (key,)).fetchone()
            return msgspec.json.decode(row[0], type=Completion) if row else None
        return None

    def put(self, key: str, completion: Completion) -> None:
        """Keep an answer.

        Raises:
            ConfigError: The file cannot be written: answers that are paid for would be lost.
        """
        body = msgspec.json.encode(completion)
        try:
            with self._lock:
                self._connection().execute(
                    "INSERT OR REPLACE INTO answer (key, body) VALUES (?, ?)", (key, body)
                )
        except (sqlite3.Error, OSError) as error:
            cure = "Make room, or set PARARECOVER_CACHE to another folder"
            got = f"a file that cannot be written ({error})"
            raise ConfigError(str(self._path), got, "a place for answers", cure) from error

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            made = sqlite3.connect(
                self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            for statement in _SCHEMA:
                made.execute(statement)
            self._open = made
        return self._open

    def close(self) -> None:
        """Let go of the file; it is opened again where that is needed."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None
