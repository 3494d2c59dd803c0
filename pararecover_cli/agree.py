"""``pararecover agree``: how far people and a judge agree, from files or from a database."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from annotations import sealed
from annotations.pairs import Selection, choices, load_shared, sides
from annotations.score_log import storable
from annotations.store import Store
from pararecover_cli.check import printable
from pararecover_cli.inputs import check_input, open_store
from pararecover_core.agreement import Agreement, Estimate, Figures, measure
from pararecover_core.errors import InputError
from pararecover_core.figures import fixed
from pararecover_core.formats import ReadOptions, read
from pararecover_core.formats.items import Item, Reject
from pararecover_core.literals import dumps
from pararecover_core.pairing import GOLD, Cell, Coverage
from pararecover_core.rubric import sde_rubric
from pararecover_core.score_files import file_cells, file_scores

REJECTS_SHOWN = 20
WIDE = 120
"""Columns of a terminal from which on the table has everything."""


class _Compared(NamedTuple):
    """Cells of both sides, their names, what a file held that was not taken, other cells' count."""

    cells: list[Cell]
    human: str
    judge: str
    rejects: list[Reject]
    alone: Mapping[str, int]


def agree(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Spreadsheets, CSV or JSONL with scores."),
    ] = None,
    db: Annotated[Path | None, typer.Option(help="Database, instead of files.")] = None,
    human_suffix: Annotated[
        str, typer.Option(help="End of the names of columns with people's scores.")
    ] = "_human",
    model_suffix: Annotated[
        str, typer.Option(help="End of the names of columns with the judge's scores.")
    ] = "_model",
    human: Annotated[
        str, typer.Option(help="Human side: gold (adjudicated, else agreed), or one person.")
    ] = GOLD,
    judge: Annotated[
        str, typer.Option(help="Judge side: a judge, or a person; needed where there are several.")
    ] = "",
    batch: Annotated[str, typer.Option(help="Only this batch, by name (database).")] = "",
    level: Annotated[int, typer.Option(min=0, max=2, help="Only this level (database).")] = 0,
    revealed: Annotated[
        bool,
        typer.Option("--revealed", help="Count scores made after the judge's were shown, too."),
    ] = False,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Count what sessions hold out, too: a look is counted in each (database).",
        ),
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=0, max=100_000, help="Bootstrap resamples; 0: no intervals.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 20260101,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if a row or cell is rejected.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show EMA, MAE, means, kappa and coverage for each sub-dimension and overall.

    Example: pararecover agree scored.xlsx --human-suffix _gold
    """
    if bool(files) == (db is not None):
        got = "both" if files else "neither"
        raise InputError("agree", got, "files or --db", "Give one of the two")
    if db is not None:
        store = open_store(db, reading=not held_out)  # a look is noted
        selection = _selection(store, human, judge, batch, level=level, revealed=revealed)
        if held_out:
            sealed.count_looks(store, selection.judge, author="pararecover agree")
            selection = msgspec.structs.replace(selection, held_out=True)
        shared = load_shared(store, selection)
        compared = _Compared(shared.cells, selection.human, selection.judge, [], shared.alone)
    else:
        options = ReadOptions(human_suffix=human_suffix, model_suffix=model_suffix)
        compared = _from_files(files or [], options, human, judge, revealed=revealed)
    found = measure(compared.cells, resamples=resamples, seed=seed, alone=compared.alone)
    typer.echo(_document(found, compared) if as_json else _report(found, compared), nl=as_json)
    _tell_rejects(compared.rejects)
    if strict and compared.rejects:
        raise typer.Exit(1)


def _from_files(
    files: Sequence[Path], options: ReadOptions, human: str, judge: str, *, revealed: bool
) -> _Compared:
    found = file_scores(_items(files, options))
    cells = file_cells(found, human=human, judge=judge, revealed=revealed)
    side, other = found.sides(human, judge)
    return _Compared(cells, side, other, found.rejects, {})


def _items(files: Sequence[Path], options: ReadOptions) -> Iterator[Item]:
    for file in files:
        check_input(file, "a file with scores")
        yield from read(file, options=options)


def _selection(
    store: Store, human: str, judge: str, batch: str, *, level: int, revealed: bool
) -> Selection:
    known = choices(store)
    side, other = sides(known, human, judge)
    batches = {name: number for number, name in known.batches}
    if batch and batch not in batches:
        listed = ", ".join(batches) or "none, the database has no batch"
        raise InputError("--batch", repr(batch), f"one of {listed}", "Name one of them")
    return Selection(
        human=side, judge=other, batch=batches.get(batch), level=level, revealed=revealed
    )


def _document(found: Agreement, compared: _Compared) -> str:
    named = {"human": compared.human, "judge": compared.judge}
    rejects = [str(reject) for reject in compared.rejects]
    return storable(dumps(found.as_data() | named | {"rejects": rejects}))


def _report(found: Agreement, compared: _Compared) -> str:
    terminal = Console()
    console = Console(
        width=terminal.width if terminal.is_terminal else WIDE,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(Text(printable(f"People: {compared.human}   Judge: {compared.judge}")))
        console.print(_table(found, wide=console.width >= WIDE))
        for line in _footnotes(found):
            console.print(Text(line))
    return captured.get()


def _table(found: Agreement, *, wide: bool) -> Table:
    """One row a sub-dimension; a narrow one leaves out names and the intervals of MAE."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    names = ["n", "EMA", f"{100 * found.level:g}%", "MAE", "human", "judge", "bias", "kappa"]
    if wide:
        table.add_column("Sub-dimension", no_wrap=True)
        names.insert(4, f"{100 * found.level:g}% ")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    rows = [figures for figures in found.dimensions if figures.coverage.cells]
    for figures in rows:
        short = [sde_rubric().dimension(figures.name).short] if wide else []
        table.add_row(figures.name, *short, *_cells_of(figures, wide=wide))
    table.add_row()
    for name, label, figures in (
        ("Overall", "mean of the rows above", found.overall),
        ("Pooled", "over all cells", found.pooled),
    ):
        table.add_row(name, *([label] if wide else []), *_cells_of(figures, wide=wide))
    return table


def _cells_of(figures: Figures, *, wide: bool) -> list[str]:
    return [
        f"{figures.n:,}",
        fixed(figures.ema.value),
        _interval(figures.ema),
        fixed(figures.mae.value),
        *([_interval(figures.mae)] if wide else []),
        fixed(figures.human_mean.value),
        fixed(figures.judge_mean.value),
        fixed(figures.difference.value, sign=True),
        fixed(figures.kappa.value, 3),
    ]


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return ""
    return f"{fixed(estimate.low, 3)}-{fixed(estimate.high, 3)}"


def _footnotes(found: Agreement) -> Iterator[str]:
    """What the table's figures rest on, and why some are undefined."""
    coverage = found.overall.coverage
    yield "bias: judge mean minus human mean; above 0 the judge is milder."
    yield f"{coverage.both:,} of {coverage.cells:,} cells have both scores{_left_out(coverage)}."
    if not coverage.both:
        yield (
            "Nothing to compare yet: both sides have to score the same answers. What people score "
            "in a batch counts once its item is submitted (pararecover batch list)."
        )
        return
    for figures in (*found.dimensions, found.overall):
        if figures.kappa_note and figures.coverage.cells:
            yield f"Kappa, {figures.name}: {figures.kappa_note}."
    if found.resamples:
        yield (
            f"Intervals: {found.resamples:,} bootstrap resamples of {found.overall.samples:,} "
            f"samples, seed {found.seed}."
        )


def _left_out(coverage: Coverage) -> str:
    reasons = [
        f"{count:,} {reason}"
        for gaps in (coverage.human_gaps, coverage.judge_gaps)
        for reason, count in sorted(gaps.items(), key=lambda gap: (-gap[1], gap[0]))
    ]
    return f"; left out: {', '.join(reasons)}" if reasons else ""


def _tell_rejects(rejects: Sequence[Reject]) -> None:
    for reject in rejects[:REJECTS_SHOWN]:
        typer.echo(printable(str(reject)), err=True)
    if len(rejects) > REJECTS_SHOWN:
        typer.echo(f"... and {len(rejects) - REJECTS_SHOWN:,} more", err=True)
