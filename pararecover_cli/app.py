"""``pararecover app``: open the app in this machine's browser."""

import os
import socket
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_cache_path

from pararecover_cli.inputs import new_store
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
            envvar="PARARECOVER_DB",
            help="Database file, made when absent. Default: the one that import fills, else the "
            "sample data.",
        ),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Open the sample data.")] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine only with a login.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 8501,
) -> None:
    """Open the app on a database, or on the sample data.

    Example: pararecover app --db study.db --port 8502
    """
    local = is_loopback(host)
    check_binding(host, mode(os.environ, auth=not local and auth_configured()))
    _check_port(host, port)
    database = _database(db, sample=sample)
    run_folder = prepare()
    options: dict[str, Value] = {**OPTIONS, "server.address": host, "server.port": port}
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(run_folder / "main.py")]
    typer.echo(f"ParaRecover at http://{_shown(host)}:{port} with {database}", err=True)
    environ = {**os.environ, "PYTHONSAFEPATH": "1", "PARARECOVER_DB": str(database)}
    _become([*command, *as_flags(options)], environ)


def _database(db: Path | None, *, sample: bool) -> Path:
    from annotations.sample import choose_database, ensure_sample
    from annotations.store import Store

    if sample:
        return ensure_sample().resolve()
    if db is not None:
        return new_store(db).path.resolve()
    path = choose_database({})
    Store(path)  # a file that cannot be used is named here, not on a page
    return path


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


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            got, cure = error.strerror or str(error), "Choose another by --host and --port"
            raise ConfigError(f"{host}:{port}", got, "a free port of this machine", cure) from error


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def auth_configured() -> bool:
    """Whether Streamlit's own login is configured."""
    import streamlit as st

    return st.secrets.load_if_toml_exists() and bool(st.secrets.get("auth"))


def _become(command: list[str], environ: dict[str, str]) -> None:
    """Turn this process into the server, so that stopping it stops the server."""
    if os.name == "posix":
        os.execve(command[0], command, environ)
    import subprocess

    raise typer.Exit(subprocess.run(command, env=environ, check=False).returncode)
