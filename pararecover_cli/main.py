"""``pararecover COMMAND``: settings come from flags, then the environment, then ``.env``."""

import errno
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any, NoReturn

import typer
from dotenv import find_dotenv, load_dotenv
from typer.core import TyperGroup

from pararecover_core.errors import InputError, ParaRecoverError

COMMANDS = {
    "app": ("app", "app"),
    "import": ("import_", "import_"),
    "check": ("check", "check"),
    "generate": ("generate", "generate"),
    "run": ("run", "run"),
    "replan": ("run", "replan"),
    "judge": ("judge", "judge"),
    "prompt": ("prompt", "prompt"),
    "report": ("report", "report"),
    "batch": ("batch", "batch"),
    "agree": ("agree", "agree"),
    "refine": ("refine", "refine"),
    "methods": ("refine", "methods_text"),
    "export": ("export", "export"),
    "doctor": ("doctor", "doctor"),
}
"""Command to its module in this package, and the function or group of commands in it."""


class LazyCommands(TyperGroup):
    """Commands whose modules are imported when they are asked for: starting stays quick."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the help."""
        return [name for name, (module, _) in COMMANDS.items() if _exists(module)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name, None for an unknown one."""
        module, attribute = COMMANDS.get(cmd_name, ("", ""))
        if not module or not _exists(module):
            return None
        found = getattr(import_module(f"pararecover_cli.{module}"), attribute)
        parent = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=cmd_name)
        else:
            parent.command(cmd_name)(found)
        return typer.main.get_group(parent).commands[cmd_name]


def _exists(module: str) -> bool:
    return find_spec(f"pararecover_cli.{module}") is not None


cli = typer.Typer(
    name="pararecover",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Score, calibrate and study error recovery in parallel tool-use agents.

    Example: pararecover app
    """


_DENIED = ("that it may be read or written", "Change its permissions, or name another place")
_FULL = ("free space", "Free some space and try again, or name another place")
_OF_THE_MACHINE = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
}
"""What a person must mend outside the program: number to what was expected and the cure."""


def _of_the_machine(error: OSError) -> InputError | None:
    """The message for an error that the machine is to blame for; None for any other."""
    expected, cure = _OF_THE_MACHINE.get(error.errno or 0, ("", ""))
    if not cure:
        return None
    got = (error.strerror or str(error)).lower()
    return InputError(str(error.filename or "files"), got, expected, cure)


def main() -> None:
    """Run the command; what a person must fix is one message and exit 2, never a traceback."""
    load_dotenv(find_dotenv(usecwd=True))
    try:
        cli(prog_name="pararecover")
    except ParaRecoverError as error:
        _end(error)
    except OSError as error:
        told = _of_the_machine(error)
        if told is None:
            raise
        _end(told)


def _end(error: ParaRecoverError) -> NoReturn:
    typer.echo(f"Error: {error}", err=True)
    sys.exit(2)
