"""``pararecover prompt``: judge prompts of a database as files, and back."""

from pathlib import Path
from typing import Annotated

import typer

from annotations.prompts import get_prompt, import_prompt, list_prompts
from annotations.store import Store, default_path
from pararecover_cli.check import printable
from pararecover_cli.inputs import check_output, new_store, open_store
from pararecover_core.errors import InputError
from pararecover_core.judges.prompt import parse_prompt, write_prompt

prompt = typer.Typer(no_args_is_help=True)


@prompt.callback()
def _group() -> None:
    """List judge prompts, write them as files, take files in.

    Example: pararecover prompt list
    """


Database = Annotated[
    Path | None, typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder.")
]


def _store(db: Path | None) -> Store | None:
    """The database to read; None where none is named and none is there yet."""
    return None if db is None and not default_path().is_file() else open_store(db)


@prompt.command("list")
def list_(db: Database = None) -> None:
    """List the prompts: name, parent, sub-dimensions, author, note.

    Example: pararecover prompt list --db study.db
    """
    for one in list_prompts(_store(db)):
        parent = f"from {one.prompt.parent}" if one.prompt.parent else "first"
        author = one.author or ("built in" if one.built_in else "from a file")
        asked = " ".join(one.prompt.dimensions)
        cells = (one.prompt.name, parent, asked, author, one.prompt.note)
        typer.echo("\t".join(map(printable, cells)))


@prompt.command()
def show(
    name: Annotated[str, typer.Argument(help="Name, such as sde-1; an id means its newest.")],
    db: Database = None,
    out: Annotated[Path | None, typer.Option(help="File to write; else stdout.")] = None,
) -> None:
    """Write a prompt as the text of a file.

    Example: pararecover prompt show d --db study.db --out d.md
    """
    text = write_prompt(get_prompt(_store(db), name))
    if out is None:
        typer.echo(text, nl=False)
        return
    check_output(out)
    out.write_text(text, encoding="utf-8")


@prompt.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of prompts.")],
    db: Database = None,
    author: Annotated[str, typer.Option(help="Who made them.")] = "",
) -> None:
    """Take prompts from files; one that is there already stays as it is.

    Example: pararecover prompt import d.md --db study.db --author ada
    """
    store = new_store(db)
    for file in files:
        try:
            found = parse_prompt(file.read_text(encoding="utf-8"), where=str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(str(file), str(error), "a prompt file", "Check the path") from error
        new = import_prompt(store, found, author=author)
        typer.echo(f"{printable(found.name)}: {'taken' if new else 'there already'}")
