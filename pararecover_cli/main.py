"""``pararecover COMMAND``: settings come from flags, then the environment, then ``.env``."""

import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated

import typer
from dotenv import find_dotenv, load_dotenv

from pararecover_core.errors import ParaRecoverError

cli = typer.Typer(
    name="pararecover",
    help="Score, calibrate and study error recovery in parallel tool-use agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = (("app", "app", "app"), ("import", "import_", "import_"), ("agree", "agree", "agree"))

for _name, _module, _function in COMMANDS:
    if find_spec(f"pararecover_cli.{_module}"):
        cli.command(_name)(getattr(import_module(f"pararecover_cli.{_module}"), _function))
if find_spec("pararecover_cli.batch"):
    cli.add_typer(import_module("pararecover_cli.batch").batch, name="batch")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pararecover {version('pararecover')}")
        raise typer.Exit


@cli.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Score, calibrate and study error recovery in parallel tool-use agents."""


def main() -> None:
    """Run the command; what a person must fix is one message and exit 2, never a traceback."""
    load_dotenv(find_dotenv(usecwd=True))
    try:
        cli()
    except ParaRecoverError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)
