"""``pararecover export``: take work out."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from annotations import exports
from annotations.batches import find_batch
from annotations.store import Store
from pararecover_cli import export_training
from pararecover_cli.case_study import case_study
from pararecover_cli.inputs import check_output, open_store
from pararecover_core.errors import InputError
from pararecover_core.formats.writers import FORMS, target

export = typer.Typer(no_args_is_help=True)


@export.callback()
def _group() -> None:
    """Take work out: scores, training data, case studies.

    Example: pararecover export scores --out scores.xlsx
    """


export.command("case-study")(case_study)


Anonymise = Annotated[
    bool, typer.Option("--anonymise", help="Give people stable pseudonyms; notes stay as written.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="Also write who is behind each pseudonym; keep it apart from the export."),
]
Db = Annotated[
    Path | None, typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder.")
]


@export.command()
def scores(
    out: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv, .xlsx, .jsonl or .parquet; else CSV on stdout."),
    ] = None,
    form: Annotated[
        str, typer.Option(help=f"{', '.join(FORMS)}; else told by the file's name.")
    ] = "",
    shape: Annotated[
        str,
        typer.Option(
            help="long: a row per replan, sub-dimension and scorer. wide: a row per replan with "
            "columns D1_human, D1_model (csv, xlsx). records: whole replans with instance and "
            "scores (jsonl)."
        ),
    ] = "long",
    scorer: Annotated[
        str, typer.Option(help="Only this scorer (human:ada), or a kind (human:, judge:).")
    ] = "",
    batch: Annotated[str, typer.Option(help="Only replans of this batch, by name.")] = "",
    anonymise: Anonymise = False,
    key_file: KeyFile = None,
    db: Db = None,
) -> None:
    """Write current scores, with note, time, rubric and prompt version.

    ``pararecover import`` of that file into an empty database gives the same scores.

    Example: pararecover export scores --db study.db --scorer human: --out scores.csv
    """
    if shape == "log":
        cure = "For the log: pararecover export annotations"
        raise InputError("--shape", "'log'", "long, wide or records", cure)
    store = open_store(db)
    form = form or form_of(out, "jsonl" if shape == "records" else "csv")
    which = exports.Filter(scorer, find_batch(store, batch) if batch else None)
    _take(store, out, shape, form, which, anonymise, key_file)


@export.command()
def annotations(
    out: Annotated[Path, typer.Option(help="File to write, JSON lines.")],
    anonymise: Anonymise = False,
    key_file: KeyFile = None,
    db: Db = None,
) -> None:
    """Write the whole log of scores: every entry ever made, withdrawn and replaced ones too.

    ``pararecover import`` of that file into an empty database replays it.

    Example: pararecover export annotations --db study.db --out log.jsonl
    """
    _take(open_store(db), out, "log", "jsonl", exports.Filter(), anonymise, key_file)


_WHAT = {"records": "replans with their scores", "wide": "rows", "log": "entries"}


def _take(
    store: Store,
    out: Path | None,
    shape: str,
    form: str,
    which: exports.Filter,
    anonymise: bool,
    key_file: Path | None,
) -> None:
    for path, option in ((out, "--out"), (key_file, "--key-file")):
        if path is not None:
            check_output(path, option)
    names = _names(store, anonymise, key_file)
    to: Path | BinaryIO = sys.stdout.buffer if out is None else out
    taken = exports.take(store, to, shape, form, which, names)
    if key_file is not None:
        with target(key_file, private=True) as stream:
            stream.write(exports.key_file(names))
    _name_broken(taken.broken)
    what = _WHAT.get(shape, "scores")
    typer.echo(f"{taken.rows:,} {what} written{f' to {out}' if out else ''}", err=True)


def _names(store: Store, anonymise: bool, key_file: Path | None) -> dict[str, str]:
    """Pseudonyms, where they are asked for."""
    if key_file is not None and not anonymise:
        cure = "Say --anonymise too, or leave --key-file out"
        raise InputError("--key-file", "no --anonymise", "pseudonyms to give a key to", cure)
    return exports.pseudonyms(store) if anonymise else {}


def _name_broken(rows: Sequence[int]) -> None:
    if rows:
        listed = ", ".join(map(str, rows[:20])) + (", ..." if len(rows) > 20 else "")
        typer.echo(
            f"lone surrogates, written so that import restores them, in rows {listed}", err=True
        )


def form_of(out: Path | None, usual: str = "csv") -> str:
    """The form that a file's name asks for.

    Raises:
        InputError: The name ends in none of them.
    """
    suffix = out.suffix.casefold().lstrip(".") if out else usual
    if suffix not in FORMS:
        expected = "a name that ends in " + ", ".join(f".{known}" for known in FORMS)
        raise InputError("--out", repr(str(out)), expected, "Rename it, or say --form")
    return suffix


for _command in (
    export_training.sft,
    export_training.dpo,
    export_training.kto,
    export_training.stepwise,
    export_training.few_shot,
):
    export.command()(_command)
