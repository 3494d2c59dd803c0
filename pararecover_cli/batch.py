"""``pararecover batch``: make batches to annotate, list them, see how far they are."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from annotations.adjudicate import double_scored, item_figures
from annotations.batches import (
    Batch,
    BatchPlan,
    Filter,
    Preview,
    Sampling,
    create_batch,
    find_batch,
    get_batch,
    list_batches,
    paper_plan,
    preview,
)
from annotations.blind import Reveal
from annotations.progress import AnnotatorProgress, batch_progress
from annotations.sampling import PAPER_SIZE, Allocation, Stratum
from annotations.score_log import storable
from pararecover_cli.inputs import open_store
from pararecover_core.errors import InputError
from pararecover_core.literals import dumps
from pararecover_core.rubric import JUDGED
from pararecover_core.taxonomy import normalise

batch = typer.Typer(no_args_is_help=True)


@batch.callback()
def _group() -> None:
    """Make batches to annotate, list them, see how far they are.

    Example: pararecover batch create "Pilot B" --size 120
    """


class RevealRule(StrEnum):
    """``Reveal`` as a flag."""

    NEVER = "never"
    AFTER_SUBMIT = "after-submit"
    OPEN = "open"


Database = Annotated[
    Path | None, typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@batch.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the new batch.")],
    size: Annotated[int, typer.Option(help="Replans to draw.")] = 100,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help=f"{PAPER_SIZE} replans of its own for each sub-dimension, a fifth of the items "
            "by two annotators; --size, --annotators and --overlap are not used.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same data: same batch.")] = 0,
    stratify: Annotated[list[Stratum] | None, typer.Option(help="Repeat for several.")] = None,
    equal: Annotated[
        bool, typer.Option("--equal", help="Equal shares of the strata; else in proportion.")
    ] = False,
    level: Annotated[list[int] | None, typer.Option(help="Only this level.")] = None,
    error_type: Annotated[list[str] | None, typer.Option(help="Only this error type.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent's answers.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Only this source.")] = None,
    unbatched: Annotated[
        bool, typer.Option("--unbatched", help="Only replans that are in no batch yet.")
    ] = False,
    replans: Annotated[
        Path | None,
        typer.Option(help="File with one replan key a line, in place of a sample."),
    ] = None,
    dimension: Annotated[
        list[str] | None, typer.Option(help="Sub-dimension to ask; default: the 13 judged ones.")
    ] = None,
    annotators: Annotated[int, typer.Option(help="Annotators of a shared item.")] = 1,
    overlap: Annotated[
        float, typer.Option(help="Share of items that get all these annotators, others get one.")
    ] = 1.0,
    reveal: Annotated[
        RevealRule, typer.Option(help="When judge, agent, tags and others' scores may be seen.")
    ] = RevealRule.AFTER_SUBMIT,
    stale_minutes: Annotated[
        float, typer.Option(help="Minutes after which an untouched claim goes to others.")
    ] = 60,
    hide_outcome: Annotated[
        bool, typer.Option("--hide-outcome", help="Hide E5, the run's outcome, while blind.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would be.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Draw a batch of replans to score.

    Example: pararecover batch create "Pilot B" --size 120 --stratify level --annotators 2
    --overlap 0.2
    """
    where = Filter(
        levels=tuple(level or ()),
        sources=tuple(source or ()),
        error_types=tuple(map(normalise, error_type or ())),
        agents=tuple(agent or ()),
        unbatched=unbatched,
    )
    allocation = Allocation.EQUAL if equal else Allocation.PROPORTIONAL
    plan = BatchPlan(
        name,
        sampling=Sampling(size, seed, tuple(stratify or ()), allocation, where=where),
        annotators_per_item=annotators,
        overlap=overlap,
    )
    if paper:
        plan = paper_plan(name, seed=seed, where=where)
    if replans:
        plan = msgspec.structs.replace(plan, replans=_keys(replans), sampling=None)
    plan = msgspec.structs.replace(
        plan,
        dimensions=tuple(dimension or JUDGED),
        reveal=Reveal[reveal.name],
        stale_minutes=stale_minutes,
        hide_outcome=hide_outcome,
    )
    store = open_store(db)
    found = preview(store, plan)
    made = None if dry_run else create_batch(store, plan)
    if as_json:
        _print({"batch": made and _data(made), **msgspec.to_builtins(found)})
        return
    typer.echo(_created(name, found, made))
    if found.short:
        typer.echo(found.short, err=True)


def _keys(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), str(error), "a file of replan keys", "Check it") from error
    if not lines:
        raise InputError(str(path), "no key", "one replan key a line", "Fill the file")
    return tuple(lines)


def _created(name: str, found: Preview, made: Batch | None) -> str:
    did = f"Made batch {made.id}, {name}" if made else f"Batch {name} would have"
    return (
        f"{did}: {found.items:,} items of {found.available:,} that match,"
        f" {found.slots:,} scorings, {found.cells:,} single scores."
    )


@batch.command("list")
def list_(db: Database = None, as_json: AsJson = False) -> None:
    """List the batches, newest first.

    Example: pararecover batch list
    """
    found = list_batches(open_store(db))
    if as_json:
        _print([_data(one) for one in found])
        return
    rows = [
        (
            str(one.id),
            one.name,
            f"{one.items:,}",
            f"{one.submitted:,} of {one.slots:,}",
            f"{len(one.dimensions)}",
            one.created[:10],
        )
        for one in found
    ]
    head = ("id", "name", "items", "submitted", "asks", "created")
    typer.echo(
        _table(head, rows, left=1) if rows else "No batch yet: pararecover batch create NAME"
    )


@batch.command("progress")
def progress_(
    which: Annotated[str, typer.Argument(metavar="BATCH", help="Name or id of a batch.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say how far a batch is, who did what, and how far annotators agree.

    Example: pararecover batch progress "Pilot B"
    """
    store = open_store(db)
    info = get_batch(store, find_batch(store, which))
    people = batch_progress(store, info.id)
    figures = item_figures(double_scored(store, info.id))
    if as_json:
        data = {name: _finite(value) for name, value in figures._asdict().items()}
        rows = [msgspec.to_builtins(one) for one in people]
        _print({"batch": _data(info), "annotators": rows, "agreement": data})
        return
    typer.echo(f"{info.name}: {info.submitted:,} of {info.slots:,} scorings submitted")
    head = ("annotator", "done", "at work", "flagged", "median s", "an hour", "too fast")
    if people:
        typer.echo(_table(head, [_row(one) for one in people], left=0))
    if figures.pairs:
        typer.echo(
            f"Items by two or more: {figures.items:,}; pairs of scores: {figures.pairs:,};"
            f" exact match {figures.ema:.3f}, mean difference {figures.mae:.3f};"
            f" disagreements that wait for an adjudicator: {figures.waiting:,}"
        )


def _row(one: AnnotatorProgress) -> tuple[str, ...]:
    return (
        one.annotator,
        f"{one.done:,}",
        f"{one.open:,}",
        f"{one.flagged:,}",
        "-" if one.median_seconds is None else f"{one.median_seconds:.0f}",
        "-" if one.pace_per_hour is None else f"{one.pace_per_hour:.1f}",
        f"{one.too_fast:,}",
    )


def _data(one: Batch) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(one)
    return data | {"reveal": one.reveal.name.lower()}


def _finite(value: float) -> float | None:
    return None if value != value else value


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left: int) -> str:
    """Columns of text, numbers to the right; column ``left`` holds names."""
    shown = [tuple(storable(cell) for cell in row) for row in (head, *rows)]
    widths = [max(len(row[n]) for row in shown) for n in range(len(head))]
    lines = (
        (
            row[n].ljust(width) if n == left else row[n].rjust(width)
            for n, width in enumerate(widths)
        )
        for row in shown
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _print(document: Any) -> None:
    typer.echo(storable(dumps(document)))
