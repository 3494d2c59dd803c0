"""Work beside the page: a thread that can be stopped, and finding it again after a reload.

A kind of job (import, judging run, refinement) keeps its own ``Jobs``: one at a time on a database.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pararecover_core.errors import StoreError

if TYPE_CHECKING:
    from annotations.store import Store


class Job(ABC):
    """Work in a thread of its own; a subclass says what, in ``work``.

    Args:
        name: Name of the thread.
        clock: Seconds, ever growing.
    """

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._stop, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Do it; what goes wrong is kept by the subclass."""

    def start(self) -> Self:
        """Begin; returns at once."""
        self._began = self._clock()
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self._thread.ident is not None and not self._ended.is_set()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask it to stop; it does so as soon as it can."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it has ended, or for so many seconds."""
        self._ended.wait(seconds)  # joining a thread does not stand a Ctrl-C

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._began

    def _run(self) -> None:
        try:
            self.work()
        finally:
            self._ended.set()


J = TypeVar("J", bound=Job)


class Jobs(Generic[J]):
    """The newest job of a kind on each database of this process.

    Args:
        kind: What it is called in an error: "judge", "refine", "import".
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._known: dict[Path, J] = {}
        self._starting = threading.Lock()

    def start(self, store: "Store", make: Callable[[], J]) -> J:
        """Begin a job that every page of this process can find again.

        Raises:
            StoreError: One is running on this database.
        """
        with self._starting:
            known = self._known.get(store.path)
            if known is not None and known.running:
                got, cure = "one that is still going", "Wait for it, or stop it"
                raise StoreError(self._kind, got, "one at a time", cure)
            self._known[store.path] = made = make().start()
            return made

    def current(self, store: "Store") -> J | None:
        """The newest job on a database, running or ended."""
        return self._known.get(store.path)
