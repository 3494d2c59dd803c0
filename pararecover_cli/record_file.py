"""Files of records that commands write line by line, and take up again where they stopped."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pararecover_cli.check import printable
from pararecover_cli.inputs import check_output
from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.formats.items import Answer, Reject
from pararecover_core.literals import loads
from pararecover_core.parallel import processes
from pararecover_core.records import Instance, Record, Replan, Trajectory
from pararecover_core.runs import Line, line_of

STOPPED = 130
"""Exit code after Ctrl-C."""


def contents(path: Path) -> Iterator[Any]:
    """Records of a file; rejects are listed on stderr.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        for item in read(path):
            if isinstance(item.content, Reject):
                typer.echo(printable(str(item.content)), err=True)
            else:
                yield item.content
    except OSError as error:
        got = error.strerror or str(error)
        raise InputError(str(path), got, "a file that can be read", "Check it") from error


def instances(path: Path) -> Iterator[Instance]:
    """Instances of a file, each once; an answer that brings its instance counts as one.

    Raises:
        InputError: The file cannot be read, or holds none.
    """
    seen: set[str] = set()
    for content in contents(path):
        if isinstance(content, Answer):
            content = content.instance
        if isinstance(content, Instance) and content.key not in seen:
            seen.add(content.key)
            yield content
    if not seen:
        cure = "Give a benchmark file, or make one with pararecover generate"
        raise InputError(str(path), "no instance", "query, tools, plan and results", cure)


def lines_in(path: Path) -> int | None:
    """Lines of a JSON-lines file, for progress; None for other files."""
    if path.suffix != ".jsonl":
        return None
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


_BEGINNING = b'{"kind":"'
"""How each line that ``line_of`` writes begins."""
_LONG = len(_BEGINNING)


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None for anything else, and for a part of one."""
    try:
        data = loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) and "kind" in data else None


class RecordFile:
    """A JSON-lines file that grows by whole records.

    Args:
        path: Where it is; what it holds already is kept, a half-written last line cut off.

    Attributes:
        instances: Keys of the instances in it.
        done: (kind, instance, agent) of the replans and trajectories in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.instances: set[str] = set()
        self.done: set[tuple[str, str, str]] = set()
        self._file: BinaryIO = path.open("ab+")
        self._take_up()

    def _take_up(self) -> None:
        """Note what is there; what a stopped command left of a last record is cut off.

        A last record that is whole, but for its line end, is kept: it may have been paid for.

        Raises:
            InputError: The file holds something else; it stays as it is.
        """
        self._file.seek(0)
        whole, last = 0, b"\n"
        for line in iter(self._file.readline, b""):
            data = _record(line)
            if data is None and not line.endswith(b"\n") and _BEGINNING.startswith(line[:_LONG]):
                break
            if data is None:
                self._file.close()
                cure = "Name a new file, or the one that this command wrote before"
                raise InputError(f"--out {self.path}", "other lines", "records of a run", cure)
            whole, last = whole + len(line), line
            self._note(data)
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)
        if not last.endswith(b"\n"):
            self._file.write(b"\n")

    def _note(self, data: dict[str, Any]) -> None:
        if data["kind"] == "instance":
            self.instances.add(str(data.get("key")))
        else:
            names = str(data["kind"]), str(data.get("instance")), str(data.get("agent"))
            self.done.add(names)

    def add(self, record: Record) -> None:
        """Write a record; an instance that is there already is passed over."""
        if isinstance(record, Instance):
            if record.key in self.instances:
                return
            self.instances.add(record.key)
        elif isinstance(record, Replan | Trajectory):
            kind = "replan" if isinstance(record, Replan) else "trajectory"
            self.done.add((kind, record.instance, record.agent))
        self._file.write(line_of(record))
        self._file.flush()  # an answer may have been paid for

    def add_line(self, line: Line, *, answers: bool) -> None:
        """Write a run that is a line already, its first answer before it unless that is there."""
        names = line.instance, line.agent
        if answers and line.answer and ("replan", *names) not in self.done:
            self.done.add(("replan", *names))
            self._file.write(line.answer)
        self.done.add(("trajectory", *names))
        self._file.write(line.text)
        self._file.flush()

    def count(self, kind: str) -> int:
        """How many replans or trajectories are in it."""
        return sum(found == kind for found, _, _ in self.done)

    def close(self) -> None:
        """Put everything on disk."""
        self._file.close()


@contextmanager
def record_file(path: Path) -> Iterator[RecordFile]:
    """A record file that is closed whatever happens.

    Raises:
        InputError: There can be no file, or it holds something else.
    """
    check_output(path)
    file = RecordFile(path)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def executor_of(workers: int, *, threads: bool = False) -> Iterator[Executor | None]:
    """Processes for ``workers`` > 1, else None; on Ctrl-C what has not begun is dropped.

    Args:
        workers: How many.
        threads: Threads instead: for work that waits for an endpoint.
    """
    if workers < 2:
        yield None
        return
    pool: Executor = ThreadPoolExecutor(workers) if threads else processes(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A bar with the time that is left on stderr; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(printable(what), total=total)
        yield lambda: bar.advance(task)


def stopped(done: int, what: str, out: Path) -> typer.Exit:
    """Say what Ctrl-C left behind."""
    typer.echo(
        f"Stopped. {out} holds {done:,} {what}; the same command goes on from there.", err=True
    )
    return typer.Exit(STOPPED)


def by_instance(path: Path) -> dict[str, Replan]:
    """Replans of a file by their instance's key, the last one of each.

    Raises:
        InputError: It holds none.
    """
    found = {c.instance: c for c in contents(path) if isinstance(c, Replan)}
    if not found:
        cure = "Give a file that `pararecover replan` wrote"
        raise InputError(str(path), "no replan", "answers to instances", cure)
    return found
