"""``pararecover export case-study``: one run, told in rounds, in any form."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from annotations import case_studies
from annotations.store import Store
from pararecover_cli.inputs import open_store
from pararecover_core.case_study import FORMS, HIDEABLE, Case, Spec, Subject, build, files
from pararecover_core.errors import InputError

_SUFFIXES = {"html": "html", "markdown": "md", "latex": "tex", "json": "json"}


def case_study(
    out: Annotated[
        Path,
        typer.Option(help="File for html, latex and json; folder for forms with pictures."),
    ],
    item: Annotated[
        str, typer.Option(help="Key of a replan, an instance or a run (as in links).")
    ] = "",
    other: Annotated[str, typer.Option(help="Another agent's answer to the same instance.")] = "",
    saved: Annotated[str, typer.Option(help="Name of one saved in the app.")] = "",
    example: Annotated[
        bool, typer.Option("--example", help="The shipped one, on the sample data.")
    ] = False,
    form: Annotated[
        str, typer.Option(help=f"{', '.join(FORMS)}; else told by the file's name.")
    ] = "",
    title: Annotated[str, typer.Option(help="Title; else what the rounds suggest.")] = "",
    rounds: Annotated[str, typer.Option(help="Rounds to show, such as 3,4,18.")] = "",
    hide: Annotated[
        list[str] | None, typer.Option(help=f"What to leave out: {', '.join(HIDEABLE)}.")
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Name the annotators.")] = False,
    db: Annotated[
        Path | None,
        typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder."),
    ] = None,
) -> None:
    """Write a case study: rounds with the change marked, where the error began, scores, E5.

    Example: pararecover export case-study --example --out case.html
    """
    if sum((bool(item), bool(saved), example)) != 1:
        got = "none" if not (item or saved or example) else "several"
        expected = "one of --item, --saved and --example"
        raise InputError("export case-study", got, expected, "Name what the case study is about")
    wanted = form or _form_of(out)
    changes: dict[str, object] = {"title": title, "rounds": _numbers(rounds)}
    kept = {name: value for name, value in changes.items() if value}
    if hide:
        kept["hide"] = tuple(hide)
    if names:
        kept["names"] = True
    content = files(_case(db, item, other, saved, kept), wanted)
    _write(out, content)
    size = sum(map(len, content.values()))
    typer.echo(f"{len(content)} file{'s' if len(content) > 1 else ''}, {size:,} bytes", err=True)


def _case(db: Path | None, item: str, other: str, saved: str, changes: dict[str, object]) -> Case:
    if not item and not saved:
        from annotations.sample import ensure_sample

        store = Store(ensure_sample())
        found = case_studies.example(store)
        if found is None:
            cure = "Move the sample database away; it is made again"
            raise InputError("--example", "no sample run", "the sample data", cure)
        return build(*_chosen(store, found, changes))
    store = open_store(db)
    if saved:
        return build(*_chosen(store, case_studies.saved(store, saved), changes))
    return build(case_studies.subject(store, item, other), Spec(**changes))  # type: ignore[arg-type]


def _chosen(
    store: Store, found: case_studies.Saved, changes: dict[str, object]
) -> tuple[Subject, Spec]:
    spec = msgspec.structs.replace(found.spec, **changes)
    return case_studies.subject(store, found.item, found.other), spec


def _form_of(out: Path) -> str:
    """The form that a file's name asks for.

    Raises:
        InputError: The name ends in none of them.
    """
    suffix = out.suffix.casefold().lstrip(".")
    for form, known in _SUFFIXES.items():
        if suffix == known and form != "markdown":
            return form
    raise InputError(
        "--out",
        repr(str(out)),
        "a name that ends in .html, .tex or .json",
        f"Rename it, or say --form (one of {', '.join(FORMS)})",
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Round numbers from a list with commas.

    Raises:
        InputError: Something in it is no number.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise InputError("--rounds", repr(text), "numbers with commas", "Write 3,4,18")
    return tuple(int(part) for part in parts)


def _write(out: Path, content: dict[str, bytes]) -> None:
    """One file goes to ``out``, several into it as a folder.

    Raises:
        InputError: The place cannot be written.
    """
    one = len(content) == 1 and out.suffix
    try:
        if one:
            out.write_bytes(next(iter(content.values())))
            return
        out.mkdir(parents=True, exist_ok=True)
        for name, data in content.items():
            out.joinpath(name).write_bytes(data)
    except OSError as error:
        cure = "Name a file in a folder that exists and that you may write in"
        raise InputError(f"--out {out}", str(error.strerror), "a place to write", cure) from error
