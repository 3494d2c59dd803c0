"""Work on many items side by side through any executor, in order, with bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 8
"""Chunks under way at once: enough for any number of workers that one machine has."""


def ordered(
    work: Callable[[T], R],
    jobs: Iterable[T],
    executor: Executor | None = None,
    *,
    chunk: int = 20,
    ahead: int = _AHEAD,
) -> Generator[R, None, None]:
    """Results of ``work`` in the order of the jobs.

    Args:
        work: A function; for processes and clusters it must pickle.
        jobs: N jobs, read as they are needed.
        executor: Threads, processes or a cluster; None for this thread.
        chunk: Jobs that travel together, at least 1.
        ahead: Chunks under way at once, at least 1.

    Yields:
        N results; never more than ``chunk * ahead`` are held. Closing the iterator cancels what
        has not begun.
    """
    if executor is None:
        yield from map(work, jobs)
        return
    many, source = partial(_many, work), iter(jobs)
    waiting: deque[Future[list[R]]] = deque()
    try:
        while True:
            while len(waiting) < ahead and (taken := list(islice(source, chunk))):
                waiting.append(executor.submit(many, taken))
            if not waiting:
                return
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _many(work: Callable[[T], R], jobs: list[T]) -> list[R]:
    return [work(job) for job in jobs]


def processes(workers: int) -> ProcessPoolExecutor:
    """Worker processes that leave Ctrl-C to the command and end with it, however it ends.

    Args:
        workers: How many, at least 1.
    """
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin_worker)


def _begin_worker() -> None:
    signal(SIGINT, SIG_IGN)
    Thread(target=_end_with_command, daemon=True).start()


def _end_with_command() -> None:
    command = parent_process()  # one that was killed would leave its workers waiting for ever
    if command is not None:
        command.join()
        os._exit(1)
