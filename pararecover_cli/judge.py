"""``pararecover judge``: score replans by a model or by the program."""

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from annotations.batches import find_batch
from annotations.judge_job import JudgeJob
from annotations.judge_words import announce, counted, progress_line
from annotations.judges import (
    DEFAULT_PROMPT,
    PROGRAM,
    REPEATED_TEMPERATURE,
    Order,
    Prepared,
    prepare,
)
from annotations.judging import Scope, open_failures
from annotations.score_log import storable
from annotations.store import Store
from pararecover_cli.check import printable
from pararecover_cli.export import form_of
from pararecover_cli.inputs import check_input, check_output, open_store
from pararecover_core.errors import InputError
from pararecover_core.formats import read, write_scores
from pararecover_core.formats.items import ScoreRow
from pararecover_core.literals import dumps
from pararecover_core.rubric import JUDGED

_LINE_SECONDS = 10.0
_LOOK_SECONDS = 0.2


def judge(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="File with replans, else --db.")
    ] = None,
    judge: Annotated[
        str,
        typer.Option(help=f"{PROGRAM} (rules, no key needed) or a model of the endpoint."),
    ] = PROGRAM,
    prompt: Annotated[
        str,
        typer.Option(help="Prompt by name, or several that share the work: s+d+e."),
    ] = DEFAULT_PROMPT,
    dimensions: Annotated[
        str, typer.Option(help="Only these sub-dimensions: D1,D3; else all of the prompt.")
    ] = "",
    db: Annotated[
        Path | None,
        typer.Option(help="Database to read and write; else PARARECOVER_DB, without a FILE."),
    ] = None,
    batch: Annotated[str, typer.Option(help="Only replans of this batch, by name.")] = "",
    scored: Annotated[
        bool, typer.Option("--scored", help="Only replans that people scored.")
    ] = False,
    level: Annotated[int, typer.Option(min=0, max=2, help="Only this level.")] = 0,
    agent: Annotated[str, typer.Option(help="Only this agent's replans.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="So many replans at most.")] = None,
    samples: Annotated[
        int, typer.Option(min=1, max=50, help="Runs of the same judge (self-consistency).")
    ] = 1,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=2,
            help=f"Left out: 0, or {REPEATED_TEMPERATURE:g} with --samples; at 0 repeated runs are "
            "nearly the same.",
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=512, help="Calls at once.")] = 8,
    per_minute: Annotated[int, typer.Option(min=0, help="Calls a minute at most; 0: any.")] = 0,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one call in total.")] = 180,
    max_tokens: Annotated[
        int, typer.Option(min=64, help="Length of an answer, reasoning included.")
    ] = 4096,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Only calls that failed before.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it costs money.")] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Hand the calls in at /v1/batches; the same command later collects the answers.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the scores: .csv, .xlsx or .jsonl.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Score replans; every result is kept as it comes, and a stopped run goes on where it was.

    The endpoint is OPENAI_BASE_URL with OPENAI_API_KEY. A failed call is never a score: it is
    counted, listed with --json, and tried again by --retry-failed. Ctrl-C stops; exit 1 where the
    run did not end or calls failed.

    Example: pararecover judge --db study.db --judge program
    """
    form = form_of(out) if out else ""
    if out:
        check_output(out)
    with _store(file, db, out) as store:
        number = find_batch(store, batch) if batch else None
        scope = Scope(number, scored, level, agent, limit=limit)
        order = Order(
            judge, prompt, _dimensions(dimensions), scope, samples, concurrency, per_minute,
            timeout, max_tokens, retry_failed, "command line", temperature,
        )  # fmt: skip
        prepared = prepare(store, order)
        for line in announce(prepared, "--retry-failed"):
            typer.echo(printable(line), err=True)
        if dry_run:
            return
        if offline:
            _offline(store, prepared, yes)
            return
        _confirm(prepared, yes)
        job = _watch(JudgeJob(store, prepared.parts).start())
        if out:
            written = write_scores(_rows(store, job), out, form)
            typer.echo(f"{written:,} rows written to {printable(str(out))}", err=True)
        _tell(store, job, as_json=as_json)
    if job.error is not None:
        raise job.error
    if job.outcome != "done" or job.progress().failed:
        raise typer.Exit(1)


@contextlib.contextmanager
def _store(file: Path | None, db: Path | None, out: Path | None) -> Iterator[Store]:
    """The database; for a file one of its own, for as long as the command runs."""
    if file is None:
        yield open_store(db, "Check --db, or give a FILE")
        return
    check_input(file, "a file with replans")
    if db is not None or out is None:
        got = "a file and --db" if db else "a file without --out"
        cure = "Give --out, or import the file and give --db alone"
        raise InputError("judge", got, "a file and a place for its scores", cure)
    with tempfile.TemporaryDirectory(prefix="pararecover-") as folder:
        store = Store(Path(folder) / "judge.db")
        for reject in store.ingest(read(file)).rejects:
            typer.echo(printable(str(reject)), err=True)
        if not store.counts().replans:
            cure = "Give a file whose rows have instance, thought and new plan"
            raise InputError(str(file), "no replan", "replans to judge", cure)
        yield store


def _dimensions(text: str) -> tuple[str, ...]:
    named = [name.strip().upper() for name in text.replace("+", ",").split(",") if name.strip()]
    for name in named:
        if name not in JUDGED:
            expected = f"some of {', '.join(JUDGED)}"
            raise InputError("--dimensions", repr(name), expected, "Correct it")
    return tuple(d for d in JUDGED if d in named) if named else JUDGED


def _offline(store: Store, prepared: Prepared, yes: bool) -> None:
    """Collect batches that have ended; where none waits, hand in what is to do."""
    from annotations.judge_batches import collect, hand_in, waiting
    from pararecover_core.llm_batch import BatchEndpoint

    parts = {part.judge.scorer: part for part in prepared.parts}
    if prepared.endpoint is None:
        raise InputError("--offline", "the program", "a model", "Leave --offline out")
    endpoint = BatchEndpoint(prepared.endpoint)
    found = waiting(store, list(parts), prepared.endpoint.base_url)
    for batch in found:
        state = endpoint.state(batch.id)
        if not state.ended:
            typer.echo(f"{batch.id}: {state.status}, {state.done:,} of {state.total:,} answered")
            continue
        counts = collect(store, endpoint, state, parts[batch.scorer])
        typer.echo(f"{batch.id}: {state.status}; {counted(counts) or 'collected elsewhere'}")
    if found:
        return
    _confirm(prepared, yes)
    for part in prepared.parts:
        if part.todo:
            ids = ", ".join(hand_in(store, endpoint, part))
            typer.echo(f"handed in {len(part.todo):,} calls as {ids}; the same command collects")


def _confirm(prepared: Prepared, yes: bool) -> None:
    forecast = prepared.forecast
    if yes or forecast is None or not forecast.calls:
        return
    if not sys.stdin.isatty():
        raise InputError("judge", "no answer", "--yes", "Say --yes to begin without being asked")
    if not typer.confirm("Begin?", err=True):
        raise typer.Exit(1)


def _watch(job: JudgeJob) -> JudgeJob:
    """Show progress until the job ends; the first Ctrl-C stops it, the second at once."""
    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    said = time.monotonic()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)
        while job.running:
            try:
                job.wait(_LOOK_SECONDS)
                line = progress_line(job.progress())
                bar.update(task, completed=job.progress().share, description=line)
                if not console.is_terminal and time.monotonic() - said > _LINE_SECONDS:
                    said = time.monotonic()
                    typer.echo(line, err=True)
            except KeyboardInterrupt:
                if job.stopping:
                    raise
                job.stop()
                typer.echo("Stopping; calls under way get a few seconds.", err=True)
    return job


def _rows(store: Store, job: JudgeJob) -> Iterator[ScoreRow]:
    """Scores of the job's judges; a failed call as rows without a score that say why."""
    for scorer in job.scorers:
        yield from store.score_rows(scorer=scorer)
        for failure in open_failures(store, scorer):
            replan = store.replan(failure.replan)
            of = store.instance(replan.instance)
            for dimension in failure.dimensions:
                yield ScoreRow(
                    *(replan.key, of.key, of.id, of.query_id, of.level, of.source.value),
                    *(replan.agent, dimension, scorer, None),
                    *(f"{failure.status}: {failure.error}", "", "", False),
                )


def _tell(store: Store, job: JudgeJob, *, as_json: bool) -> None:
    now = job.progress()
    if as_json:
        failures = [
            {"scorer": scorer, **one._asdict()}
            for scorer in job.scorers
            for one in open_failures(store, scorer)
        ]
        document = {
            "outcome": job.outcome, "message": job.message, "runs": job.runs,
            "scorers": job.scorers, "calls": now.total, "done": now.done, "cached": now.cached,
            "statuses": now.statuses, "prompt_tokens": now.usage.prompt,
            "completion_tokens": now.usage.completion, "cost": now.cost, "failures": failures,
        }  # fmt: skip
        typer.echo(storable(dumps(document)))
        return
    listed = ", ".join(f"{count:,} {status}" for status, count in sorted(now.statuses.items()))
    typer.echo(
        f"{job.outcome}: {now.done:,} of {now.total:,} calls{f' ({listed})' if listed else ''}"
    )
    if job.message:
        typer.echo(printable(job.message), err=True)
