"""``pararecover report``: the tables that rest on scores, from a database."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from annotations.pairs import choices, sides
from annotations.results import Wanted, make
from annotations.score_log import storable
from annotations.store import Store
from pararecover_cli.inputs import open_store
from pararecover_core.errors import InputError
from pararecover_core.report import FORMATS, Report, render
from pararecover_core.report.figures import KINDS, chart, drawn

_Db = Annotated[
    Path | None, typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder.")
]
_Form = Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")]
_Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
_Scorer = Annotated[
    str, typer.Option(help="gold, a person (human:ann) or a judge; else the one with most scores.")
]
_Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Only this agent; may repeat, in order.")
]
_Intervals = Annotated[
    bool, typer.Option("--intervals", help="Write the 95% interval behind each figure.")
]
_Figure = Annotated[
    Path | None, typer.Option(help=f"Also draw it: a file that ends in {', '.join(KINDS)}.")
]
_Resamples = Annotated[
    int, typer.Option(min=0, max=20_000, help="Bootstrap resamples of queries; 0: no intervals.")
]


def leaderboard(
    db: _Db = None,
    scorer: _Scorer = "",
    agent: _Agents = None,
    form: _Form = "table",
    intervals: _Intervals = False,
    resamples: _Resamples = 500,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """SI, DR, ES, Avg and pass@1 by agent and level: table 2.

    Example: pararecover report leaderboard --db study.db --scorer gold --format latex
    """
    wanted = Wanted("leaderboard", scorer, "", tuple(agent or ()), resamples)
    show(made_of(db, wanted), form, as_json=as_json, intervals=intervals, figure=figure)


def error_types(
    db: _Db = None,
    scorer: _Scorer = "",
    agent: _Agents = None,
    form: _Form = "table",
    intervals: _Intervals = False,
    resamples: _Resamples = 500,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """DR, SI and ES by error type, with the change to LEVEL-2: tables 3 and 4.

    Example: pararecover report error-types --db study.db --agent agent-a --format markdown
    """
    wanted = Wanted("error-types", scorer, "", tuple(agent or ()), resamples)
    show(made_of(db, wanted), form, as_json=as_json, intervals=intervals, figure=figure)


def agreement(
    db: _Db = None,
    judge: Annotated[str, typer.Option(help="The judge; needed where there are several.")] = "",
    human: Annotated[str, typer.Option(help="gold, or one person.")] = "gold",
    form: _Form = "table",
    intervals: _Intervals = False,
    resamples: _Resamples = 500,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """EMA, MAE and both means by sub-dimension: table 5.

    Example: pararecover report agreement --db study.db --format latex
    """
    store = _store(db)
    side, other = sides(choices(store), human, judge)
    made = make(store, Wanted("agreement", other, side, (), resamples))
    show(made, form, as_json=as_json, intervals=intervals, figure=figure)


def cross_judge(
    db: _Db = None,
    judge: Annotated[str, typer.Option(help="One judge; else the one with most scores.")] = "",
    other: Annotated[str, typer.Option(help="Another judge; else the next one.")] = "",
    agent: _Agents = None,
    form: _Form = "table",
    intervals: _Intervals = False,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """Avg by agent and level by two judges, on what both scored: table 6.

    Example: pararecover report cross-judge --db study.db
    """
    wanted = Wanted("cross-judge", judge, other, tuple(agent or ()))
    show(made_of(db, wanted), form, as_json=as_json, intervals=intervals, figure=figure)


def training(
    db: _Db = None,
    scorer: _Scorer = "",
    agent: _Agents = None,
    form: _Form = "table",
    intervals: _Intervals = False,
    resamples: _Resamples = 500,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """Runs beside each other, each against the first by a paired test: table 7.

    Example: pararecover report training --db study.db --agent base --agent sft --agent dpo
    """
    wanted = Wanted("training", scorer, "", tuple(agent or ()), resamples)
    show(made_of(db, wanted), form, as_json=as_json, intervals=intervals, figure=figure)


def e5_pass1(
    db: _Db = None,
    agent: _Agents = None,
    form: _Form = "table",
    intervals: _Intervals = False,
    resamples: _Resamples = 500,
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """E5 against pass@1 by agent and level: table 9.

    Example: pararecover report e5-pass1 --db study.db
    """
    wanted = Wanted("e5-pass1", "gold", "", tuple(agent or ()), resamples)
    show(made_of(db, wanted), form, as_json=as_json, intervals=intervals, figure=figure)


def frequency(
    db: _Db = None,
    agent: _Agents = None,
    form: _Form = "table",
    figure: _Figure = None,
    as_json: _Json = False,
) -> None:
    """How often each agent makes each error in its runs: figure 3.

    Example: pararecover report frequency --db study.db --figure errors.pdf
    """
    wanted = Wanted("frequency", agents=tuple(agent or ()))
    show(made_of(db, wanted), form, as_json=as_json, figure=figure, log=True)


COMMANDS: dict[str, Callable[..., None]] = {
    "leaderboard": leaderboard,
    "error-types": error_types,
    "agreement": agreement,
    "cross-judge": cross_judge,
    "training": training,
    "e5-pass1": e5_pass1,
    "frequency": frequency,
}
"""Name of each command here."""


def made_of(db: Path | None, wanted: Wanted) -> list[Report]:
    """The report of a database.

    Raises:
        InputError: There is no database.
    """
    return make(_store(db), wanted)


def _store(db: Path | None) -> Store:
    cure = "Check --db and PARARECOVER_DB, or give files where the command takes them"
    return open_store(db, cure, reading=True)


def show(
    made: Sequence[Report],
    form: str,
    *,
    as_json: bool = False,
    intervals: bool = False,
    figure: Path | None = None,
    log: bool = False,
) -> None:
    """Print tables, one after the other, and draw the first where a file is named."""
    wanted = "json" if as_json else form
    for place, one in enumerate(made):
        if place and wanted not in ("json", "csv"):
            typer.echo()
        shown = msgspec.structs.replace(one, intervals=intervals)
        typer.echo(storable(render(shown, wanted)))
    if figure is not None and made:
        _draw(made[0], figure, log=log)


def _draw(report: Report, figure: Path, *, log: bool) -> None:
    kind = figure.suffix.casefold().lstrip(".")
    if kind not in KINDS:
        expected = "a name that ends in " + ", ".join(f".{known}" for known in KINDS)
        raise InputError("--figure", repr(str(figure)), expected, "Rename it")
    try:
        figure.write_bytes(drawn(chart(report, log=log), kind))
    except OSError as error:
        cure = "Name a file in a folder that exists and that you may write in"
        raise InputError(f"--figure {figure}", str(error.strerror), "a place", cure) from error
