"""``pararecover doctor``: look whether everything is in place, and say what to do."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import typer
from packaging.requirements import Requirement

from annotations.sample import sample_files, sample_path
from annotations.store import Store, default_path
from pararecover_core.completions import (
    LOCAL_HELP,
    Endpoint,
    Request,
    Status,
    endpoint_from_environment,
)
from pararecover_core.errors import ConfigError, ParaRecoverError
from pararecover_core.literals import dumps
from pararecover_core.rubric import sde_rubric
from ui.access import HEADER, ROLE_SETTINGS, Mode, mode
from ui.options import app_script
from ui.static import vis_network

PING_SECONDS = 60.0
LOW_DISK = 1_000_000_000
"""Bytes under which a study may fill the disk."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        state: "ok", "note" (works, worth knowing) or "fix".
        cure: What to do, "" where nothing.
    """

    state: str
    what: str
    found: str
    cure: str = ""


def doctor(
    db: Annotated[
        Path | None,
        typer.Option(help="Database; else PARARECOVER_DB, else one in your data folder."),
    ] = None,
    ping: Annotated[
        bool, typer.Option("--ping", help="Ask the endpoint's model one tiny question.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check versions, database, browser files, login and endpoint; exit 1 if one needs fixing.

    Example: pararecover doctor --db study.db
    """
    findings = list(examine(db or default_path(), ping=ping))
    if as_json:
        typer.echo(dumps({"findings": [msgspec.to_builtins(finding) for finding in findings]}))
    else:
        for finding in findings:
            cure = f" {finding.cure}." if finding.cure else ""
            typer.echo(f"{finding.state:4}  {finding.what}: {finding.found}.{cure}")
    if any(finding.state == "fix" for finding in findings):
        raise typer.Exit(1)


def examine(database: Path, *, ping: bool = False) -> Iterator[Finding]:
    """Look at one thing after the other; what breaks is a finding, never an error."""
    yield from _versions()
    yield _attempt("database", "Restore a backup or name another file", lambda: _database(database))
    yield _attempt("sample data", "Install the package again", _sample)
    yield _attempt("browser files", "Install the package again", _browser_files)
    yield _disk(database)
    yield _login()
    yield _endpoint(ping)


def _attempt(what: str, cure: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except ParaRecoverError as error:
        found = f"got {error.got}, expected {error.expected}"
        return Finding("fix", f"{what} {error.where}", found, error.cure)
    except OSError as error:
        return Finding("fix", what, error.strerror or str(error), cure)


def _versions() -> Iterator[Finding]:
    yield Finding("ok", "ParaRecover", f"{version('pararecover')} with Python {_python()}")
    off = [text for text in map(_mismatch, requires("pararecover") or ()) if text]
    cure = "Install the package again: pip install ." if off else ""
    yield Finding("fix" if off else "ok", "packages", "; ".join(off) or "all as needed", cure)


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _mismatch(line: str) -> str:
    needed = Requirement(line)
    if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
        return ""
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        return f"{needed.name} is missing"
    if needed.specifier.contains(found, prereleases=True):
        return ""
    return f"{needed.name} is {found}, needed is {needed.specifier}"


def _database(path: Path) -> Finding:
    if not path.exists():
        cure = "Make it by pararecover import, or open the sample by pararecover app --sample"
        return Finding("note", f"database {path}", "not there yet", cure)
    store = Store(path)
    with store.read() as connection:
        said = connection.execute("PRAGMA quick_check").fetchone()[0]
    if said != "ok":
        return Finding("fix", f"database {path}", f"damaged: {said}", "Restore a backup")
    counts = store.counts()
    found = (
        f"{counts.instances:,} instances, {counts.replans:,} replans, {counts.scores:,} scores, "
        f"rubric {sde_rubric().version}"
    )
    return Finding("ok", f"database {path}", found)


def _sample() -> Finding:
    files = sample_files()
    if not files:
        return Finding("fix", "sample data", "no files", "Install the package again")
    made = "made" if sample_path().is_file() else "not made yet, the app does that"
    return Finding("ok", "sample data", f"{len(files)} files, database {made}")


def _browser_files() -> Finding:
    source = vis_network()
    if not app_script().is_file():
        return Finding("fix", "app", f"no file {app_script()}", "Install the package again")
    return Finding(
        "ok", "browser files", f"{source.parent.name} of pyvis; none comes from elsewhere"
    )


def _disk(database: Path) -> Finding:
    folder = next(parent for parent in database.resolve().parents if parent.is_dir())
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:,.1f} GB free in {folder}"
    if free < LOW_DISK:
        return Finding("fix", "disk", found, "Make room, or put the database elsewhere")
    return Finding("ok", "disk", found)


def _login() -> Finding:
    from pararecover_cli.app import auth_configured

    how = mode(os.environ, auth=auth_configured())
    if how is Mode.LOCAL:
        return Finding("ok", "login", "none: people at this machine say who they are")
    named = [setting for setting in ROLE_SETTINGS.values() if os.environ.get(setting)]
    where = f"header {os.environ.get(HEADER)}" if how is Mode.HEADER else "OpenID Connect"
    if named:
        return Finding("ok", "login", f"{where}, roles by {', '.join(named)}")
    cure = f"Set {', '.join(ROLE_SETTINGS.values())}"
    return Finding("fix", "login", f"{where}, but nobody has a role", cure)


def _endpoint(ping: bool) -> Finding:
    """Whether models can be asked; only ``ping`` asks one, once."""
    if not os.environ.get("OPENAI_API_KEY") and not os.environ.get("OPENAI_BASE_URL"):
        cure = f"Needed by model judges and agents alone: set OPENAI_API_KEY. {LOCAL_HELP}"
        return Finding("note", "endpoint", "none is set", cure)
    model = os.environ.get("OPENAI_MODEL", "")
    try:
        endpoint = endpoint_from_environment(model or "-", retries=0, timeout=PING_SECONDS)
    except ConfigError as error:
        return Finding("fix", f"endpoint {error.where}", f"got {error.got}", error.cure)
    host = urlsplit(endpoint.base_url).netloc.rpartition("@")[2]
    key = "a key" if os.environ.get("OPENAI_API_KEY") else "no key"
    found = f"{host} with {key}" + (f", model {model}" if model else "")
    if not ping:
        return Finding("ok", "endpoint", found, "Ask it once: pararecover doctor --ping")
    if not model:
        return Finding("fix", "endpoint", f"{found}, no model", "Set OPENAI_MODEL to ping it")
    return _ping(endpoint, found)


def _ping(endpoint: Endpoint, found: str) -> Finding:
    from pararecover_core.llm import Model  # takes a moment to import

    request = Request((("user", "Answer with the word ok."),), max_tokens=32)
    said = Model(endpoint).ask(request)
    if said.status in (Status.OK, Status.TRUNCATED):
        return Finding("ok", "endpoint", f"{found}, answered in {said.seconds:.1f} s")
    cure = f"Check OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL. {LOCAL_HELP}"
    return Finding("fix", "endpoint", f"{found}: {said.status}, {said.error}", cure)
