"""``pararecover import``: load instances, replans, scores and trajectories into a database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from annotations.score_log import storable
from annotations.store import ImportReport, Store
from pararecover_cli.check import printable
from pararecover_cli.inputs import check_input, new_store
from pararecover_core.errors import InputError
from pararecover_core.formats import FORMATS, ReadOptions, read
from pararecover_core.formats.items import Reject
from pararecover_core.literals import dumps
from pararecover_core.records import Source

_SOURCES = ", ".join(source.value for source in Source if source is not Source.UNKNOWN)


def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files to load.")],
    db: Annotated[
        Path | None,
        typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder."),
    ] = None,
    format: Annotated[
        str, typer.Option(help=f"One of {', '.join(FORMATS)}; auto: told by content.")
    ] = "auto",
    agent: Annotated[str, typer.Option(help="Agent of answers that name none.")] = "",
    annotator: Annotated[str, typer.Option(help="Person of human scores that name none.")] = "",
    judge: Annotated[str, typer.Option(help="MODEL@PROMPT of judge scores that name none.")] = "",
    level: Annotated[int, typer.Option(min=0, max=2, help="Level of all rows; 0: as given.")] = 0,
    source: Annotated[str, typer.Option(help=f"Source of all rows: {_SOURCES}.")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a row is rejected.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Load instances, replans, scores or trajectories.

    Every row lands or is listed with its line and the reason; loading a file twice changes
    nothing. A file of which nothing is taken makes it exit 1. Logs of agents (OpenAI, Anthropic,
    Inspect, spans, ...) are told by content: each run becomes a trajectory, its first failed round
    an instance, the agent's next turn a replan.

    Example: pararecover import LEVEL-1_augmented.jsonl results.xlsx --agent gpt-4o
    """
    options = ReadOptions(
        format=format,
        agent=agent,
        annotator=annotator,
        judge=judge,
        level=level,
        source=_source(source),
    )
    for file in files:
        check_input(file, "a file to import")
    store = new_store(db)
    reports = [(file, _load(store, file, options)) for file in files]
    typer.echo(as_document(store.path, reports) if as_json else as_text(store.path, reports))
    if not as_json:
        for _, report in reports:
            for reject in report.rejects:
                typer.echo(printable(str(reject)), err=True)
    if any(_failed(report, strict) for _, report in reports):
        raise typer.Exit(1)


def _failed(report: ImportReport, strict: bool) -> bool:
    """Whether rows were rejected and, unless that is enough, nothing else was in the file."""
    return bool(report.rejects) and (strict or not (report.kinds or report.known))


def _source(name: str) -> str:
    if name and name not in _SOURCES.split(", "):
        raise InputError("--source", repr(name), f"one of {_SOURCES}", "Correct the flag")
    return name


def _load(store: Store, file: Path, options: ReadOptions) -> ImportReport:
    with _progress(file.name) as progress:
        try:
            return store.ingest(read(file, options=options), progress=progress)
        except OSError as error:
            got = error.strerror or str(error)
            raise InputError(str(file), got, "a file that can be read", "Check it") from error


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int], None]]:
    """A line on stderr that counts rows; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(printable(name))
        yield lambda taken: bar.update(task, description=f"{printable(name)}: {taken:,} rows")


def as_text(db: Path, reports: list[tuple[Path, ImportReport]]) -> str:
    """The reports for people: one block a file, then where the data is."""
    lines = [line for file, report in reports for line in _block(file.name, report)]
    if len(reports) > 1:
        lines += _block("Together", _total(reports))
    return "\n".join([*lines, f"Database: {printable(str(db))}"])


def _block(name: str, report: ImportReport) -> list[str]:
    lines = [f"{printable(name)}: {_counted(report.kinds) or 'nothing new'}"]
    if report.known:
        lines.append(f"  already there: {_counted(report.known)}")
    if report.levels:
        levels = (f"{level or 'unknown'}: {n:,}" for level, n in sorted(report.levels.items()))
        lines.append(f"  level {', '.join(levels)}")
    if report.tags:
        ranked = sorted(report.tags.items(), key=lambda pair: (-pair[1], pair[0]))
        lines.append("  error types: " + ", ".join(f"{printable(tag)} {n:,}" for tag, n in ranked))
    if report.broken:
        plans = "plan of a replan does" if report.broken == 1 else "plans of replans do"
        lines.append(f"  {report.broken:,} {plans} not parse: S5 = 0")
    if report.rejects:
        rows = "row or cell was" if len(report.rejects) == 1 else "rows or cells were"
        lines.append(f"  {len(report.rejects):,} {rows} not taken; the reasons follow")
    return lines


_PLURALS = {"trajectory": "trajectories"}


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{n:,} {kind if n == 1 else _PLURALS.get(kind, kind + 's')}" for kind, n in counts.items()
    )


def _total(reports: list[tuple[Path, ImportReport]]) -> ImportReport:
    return sum((report for _, report in reports), start=ImportReport())


def as_document(db: Path, reports: list[tuple[Path, ImportReport]]) -> str:
    """The reports as one JSON document."""
    files = [{"file": str(file)} | _data(report) for file, report in reports]
    return storable(dumps({"db": str(db), "files": files, "total": _data(_total(reports))}))


def _data(report: ImportReport) -> dict[str, Any]:
    return {
        "kinds": report.kinds,
        "known": report.known,
        "levels": {str(level): n for level, n in report.levels.items()},
        "tags": report.tags,
        "broken": report.broken,
        "rejects": [_reject(reject) for reject in report.rejects],
    }


def _reject(reject: Reject) -> dict[str, Any]:
    place = reject.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "got": reject.got,
        "expected": reject.expected,
        "cure": reject.cure,
        "message": str(reject),
    }
