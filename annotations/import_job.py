"""An import that runs beside the page: how far it is, how long it still takes, a way to stop it.

The whole import is one transaction, so one that is stopped leaves the database as it was.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from annotations.jobs import Job
from pararecover_core.errors import ParaRecoverError
from pararecover_core.formats import ReadOptions, read
from pararecover_core.formats.items import Item

if TYPE_CHECKING:
    from annotations.ingest import ImportReport
    from annotations.store import Store

STEADY_SECONDS = 1.0
"""Before that, a guess of the time left would jump about."""


class Upload(msgspec.Struct, frozen=True):
    """A file to import.

    Attributes:
        name: What the person calls it; places in rejects name it so.
        temporary: Whether the file goes when the import has ended.
    """

    path: Path
    name: str
    temporary: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How far an import is.

    Attributes:
        share: Of the bytes, in [0, 1].
        items: Records and rows taken so far.
        seconds_left: None while there is nothing to guess from.
    """

    share: float
    items: int
    seconds_left: float | None


class _Stopped(Exception):
    """The person stopped the import; it never leaves this module."""


class ImportJob(Job):
    """One import of some files in a thread of its own.

    Args:
        store: Where it goes.
        uploads: The files; instances are read before the spreadsheets that name them.
        options: As for ``formats.read``.
        clock: Seconds, ever growing.
    """

    def __init__(
        self,
        store: "Store",
        uploads: Sequence[Upload],
        options: ReadOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("import", clock=clock)
        self.report: ImportReport | None = None
        self.error: ParaRecoverError | None = None
        self.stopped = False
        self._store, self._options = store, options or ReadOptions()
        self._uploads = sorted(uploads, key=lambda u: _reads_late(u.name))
        self._total = sum(u.path.stat().st_size for u in uploads)
        self._before = self._items = 0
        self._open: BinaryIO | None = None

    def progress(self) -> Progress:
        """How far it is."""
        done, spent = self._before + self._offset(), self.spent
        share = min(1.0, done / self._total) if self._total else 1.0
        known = spent >= STEADY_SECONDS and 0 < share < 1
        return Progress(share, self._items, spent * (1 - share) / share if known else None)

    def _offset(self) -> int:
        handle = self._open
        with contextlib.suppress(OSError, ValueError):  # it may close between the two lines
            return handle.tell() if handle is not None else 0
        return 0

    def work(self) -> None:
        """Import; nothing of one that is stopped stays in the database."""
        try:
            self.report = self._store.ingest(self._read_all(), progress=self._count)
        except _Stopped:
            self.stopped = True
        except ParaRecoverError as error:
            self.error = error
        except OSError as error:
            self.error = ParaRecoverError(
                str(error.filename or "file"), error.strerror or str(error), "a readable file",
                "Look whether it is still there",
            )  # fmt: skip
        finally:
            for upload in self._uploads:
                if upload.temporary:
                    upload.path.unlink(missing_ok=True)

    def _count(self, items: int) -> None:
        self._items = items

    def _read_all(self) -> Iterator[Item]:
        for upload in self._uploads:
            with upload.path.open("rb") as handle:
                self._open = handle
                for item in read(handle, name=upload.name, options=self._options):
                    if self._stop.is_set():
                        raise _Stopped
                    yield item
                self._open = None
            self._before += upload.path.stat().st_size


def _reads_late(name: str) -> tuple[bool, str]:
    """Sort key: record files before tables, which name the records."""
    return (not name.casefold().endswith((".jsonl", ".json", ".ndjson")), name)
