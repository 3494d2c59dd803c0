"""``pararecover app``: open the app in this machine's browser."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_cache_path

from pararecover_core.errors import ConfigError
from ui.access import check_binding, is_loopback, mode
from ui.options import OPTIONS, Value, app_script, as_flags
from ui.static import ensure_static

MAIN = '''"""Started by ``pararecover app``; no ``pages`` folder may stand beside it."""

import runpy

runpy.run_path({script!r}, run_name="__main__")
'''


def app(
    db: Annotated[
        Path | None,
        typer.Option(
            envvar="PARARECOVER_DB", help="Database file, made when absent. Default: sample data."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine only with a login.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 8501,
) -> None:
    """Open the app on a database, or on the sample data.

    Example: pararecover app --db study.db --port 8502
    """
    check_binding(
        host, mode(os.environ, auth=_auth_configured() if not is_loopback(host) else False)
    )
    environ = {**os.environ, "PYTHONSAFEPATH": "1"}
    environ.pop("PARARECOVER_DB", None)
    if db is not None:
        environ["PARARECOVER_DB"] = str(_usable(db))
    run_folder = prepare()
    options: dict[str, Value] = {**OPTIONS, "server.address": host, "server.port": port}
    command = [
        sys.executable,
        "-P",
        "-m",
        "streamlit",
        "run",
        str(run_folder / "main.py"),
        *as_flags(options),
    ]
    typer.echo(f"ParaRecover at http://{_shown(host)}:{port}", err=True)
    _become(command, environ)


def prepare() -> Path:
    """Make the folder that Streamlit runs from, one for each installed version and place."""
    from pararecover_core.records import content_key

    script = app_script()
    name = f"run-{version('pararecover')}-{content_key(str(script))}"
    folder = user_cache_path("pararecover") / name
    ensure_static(folder)
    part = folder / f"main.{os.getpid()}.part"
    part.write_text(MAIN.format(script=str(script)), encoding="utf-8")
    part.replace(folder / "main.py")
    return folder


def _usable(db: Path) -> Path:
    path = db.expanduser().resolve()
    if path.is_dir() or not path.parent.is_dir():
        got = "a folder" if path.is_dir() else f"no folder {path.parent}"
        raise ConfigError(f"--db {db}", got, "a database file in a folder that exists", "Name one")
    return path


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _auth_configured() -> bool:
    import streamlit as st

    return st.secrets.load_if_toml_exists() and bool(st.secrets.get("auth"))


def _become(command: list[str], environ: dict[str, str]) -> None:
    """Turn this process into the server, so that stopping it stops the server."""
    if os.name == "posix":
        os.execve(command[0], command, environ)
    import subprocess

    raise typer.Exit(subprocess.run(command, env=environ, check=False).returncode)
