"""``pararecover report``: the paper's tables from files of records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from annotations.results import Wanted
from annotations.score_log import storable
from annotations.store import default_path
from pararecover_cli import report_scores
from pararecover_cli.inputs import check_input
from pararecover_cli.record_file import contents, instances
from pararecover_cli.report_scores import made_of, show
from pararecover_core.errors import InputError
from pararecover_core.records import Trajectory
from pararecover_core.report import FORMATS, Report, distribution, judge_free, render

T = TypeVar("T")

report = typer.Typer(no_args_is_help=True)

_FILES = typer.Argument(metavar="[FILE]...", help="Files of records; else --db.")
_DB = typer.Option(help="Database, instead of files.")
_FORMAT = typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")


@report.callback()
def _group() -> None:
    """The paper's tables from your data.

    Every figure has its n, JSON the records behind it.

    Example: pararecover report judge-free t.jsonl --format markdown
    """


@report.command("judge-free")
def judge_free_(
    files: Annotated[list[Path] | None, _FILES] = None,
    form: Annotated[str, _FORMAT] = "table",
    types: Annotated[bool, typer.Option(help="A row for each error type.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    db: Annotated[Path | None, _DB] = None,
) -> None:
    """E5, pass@1, correctness, tool-use efficiency, invalid plans, rounds and calls of runs.

    The keys in JSON are those of the trajectories: the Trajectories page opens them once the
    file is imported.

    Example: pararecover report judge-free t.jsonl --format json
    """
    if files:
        _print(judge_free(_runs(files), by_type=types), form, as_json)
    else:
        made = made_of(db, Wanted("judge-free", types=types))
        if not any(one.rows for one in made):
            raise _no_run(str(db or default_path()), "Import a file that `pararecover run` wrote")
        show(made, form, as_json=as_json)


@report.command("distribution")
def distribution_(
    files: Annotated[list[Path] | None, _FILES] = None,
    form: Annotated[str, _FORMAT] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    db: Annotated[Path | None, _DB] = None,
) -> None:
    """Error types by level, source and round: tables 10 and 11.

    Example: pararecover report distribution l1.jsonl l2.jsonl
    """
    if not files:
        show(made_of(db, Wanted("distribution")), form, as_json=as_json)
        return
    for file in files:
        check_input(file)
    _print(distribution(i for file in files for i in instances(file)), form, as_json)


def _runs(files: list[Path]) -> Iterator[Trajectory]:
    """Runs of all files, each once.

    Raises:
        InputError: There is none.
    """
    for file in files:
        check_input(file)
    seen: set[str] = set()
    for file in files:
        for content in contents(file):
            if isinstance(content, Trajectory) and content.key not in seen:
                seen.add(content.key)
                yield content
    if not seen:
        raise _no_run(", ".join(map(str, files)), "Give files that `pararecover run` wrote")


def _no_run(where: str, cure: str) -> InputError:
    return InputError(where, "no run", "trajectories", cure)


def _print(made: Report, form: str, as_json: bool) -> None:
    typer.echo(storable(render(made, "json" if as_json else form)))


for _name, _command in report_scores.COMMANDS.items():
    report.command(_name)(_command)
