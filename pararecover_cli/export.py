"""``pararecover export``: take work out."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from annotations.batches import find_batch
from annotations.store import Store, default_path
from pararecover_cli import export_training
from pararecover_cli.case_study import case_study
from pararecover_core.errors import InputError
from pararecover_core.formats.writers import FORMS, write_scores

export = typer.Typer(
    help="Take work out: scores, training data, case studies.", no_args_is_help=True
)


@export.callback()
def _group() -> None:
    """Take work out.

    Example: pararecover export scores --out scores.xlsx
    """


export.command("case-study")(case_study)


@export.command()
def scores(
    out: Annotated[
        Path | None, typer.Option(help="File to write: .csv, .xlsx or .jsonl; else CSV on stdout.")
    ] = None,
    form: Annotated[
        str, typer.Option(help=f"{', '.join(FORMS)}; else told by the file's name.")
    ] = "",
    scorer: Annotated[
        str, typer.Option(help="Only this scorer (human:ada), or a kind (human:, judge:).")
    ] = "",
    batch: Annotated[str, typer.Option(help="Only replans of this batch, by name.")] = "",
    db: Annotated[
        Path | None,
        typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder."),
    ] = None,
) -> None:
    """Write one row per replan, sub-dimension and scorer, with note and time.

    ``pararecover import`` of that file into an empty database gives the same scores.

    Example: pararecover export scores --db study.db --scorer human: --out scores.csv
    """
    path = db or default_path()
    if not path.is_file():
        raise InputError(str(path), "no file", "a database", "Check --db and PARARECOVER_DB")
    wanted = form or form_of(out)
    store = Store(path)
    number = find_batch(store, batch) if batch else None
    rows = store.score_rows(scorer=scorer, batch=number)
    if out is None:
        written = write_scores(rows, sys.stdout.buffer, wanted)
    else:
        check_target(out)
        written = write_scores(rows, out, wanted)
    typer.echo(f"{written:,} scores written{f' to {out}' if out else ''}", err=True)


def form_of(out: Path | None) -> str:
    """The form that a file's name asks for.

    Raises:
        InputError: The name ends in none of them.
    """
    suffix = out.suffix.casefold().lstrip(".") if out else "csv"
    if suffix not in FORMS:
        expected = "a name that ends in " + ", ".join(f".{known}" for known in FORMS)
        raise InputError("--out", repr(str(out)), expected, "Rename it, or say --form")
    return suffix


def check_target(out: Path) -> None:
    """Refuse a path that no file can be written to.

    Raises:
        InputError: It is a folder, or its folder is not there.
    """
    if out.is_dir() or not out.parent.is_dir():
        got = "a folder" if out.is_dir() else f"no folder {out.parent}"
        raise InputError(f"--out {out}", got, "a file in a folder that exists", "Name another")


for _command in (
    export_training.sft,
    export_training.dpo,
    export_training.kto,
    export_training.stepwise,
    export_training.few_shot,
):
    export.command()(_command)
