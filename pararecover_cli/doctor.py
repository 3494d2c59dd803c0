"""``pararecover doctor``: look whether everything is in place, and say what to do."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from packaging.requirements import Requirement

from annotations.sample import sample_files, sample_path
from annotations.store import Store, default_path
from pararecover_core.errors import ParaRecoverError
from pararecover_core.literals import dumps
from pararecover_core.rubric import sde_rubric
from ui.access import HEADER, ROLE_SETTINGS, Mode, mode
from ui.options import app_script
from ui.static import vis_network

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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check versions, database, browser files, login and endpoint; exit 1 if one needs fixing.

    Example: pararecover doctor --db study.db
    """
    findings = list(examine(db or default_path()))
    if as_json:
        typer.echo(dumps({"findings": [msgspec.to_builtins(finding) for finding in findings]}))
    else:
        for finding in findings:
            cure = f" {finding.cure}." if finding.cure else ""
            typer.echo(f"{finding.state:4}  {finding.what}: {finding.found}.{cure}")
    if any(finding.state == "fix" for finding in findings):
        raise typer.Exit(1)


def examine(database: Path) -> Iterator[Finding]:
    """Look at one thing after the other; what breaks is a finding, never an error."""
    yield from _versions()
    yield _attempt("database", "Restore a backup or name another file", lambda: _database(database))
    yield _attempt("sample data", "Install the package again", _sample)
    yield _attempt("browser files", "Install the package again", _browser_files)
    yield _disk(database)
    yield _login()
    yield _endpoint()


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


def _endpoint() -> Finding:
    if os.environ.get("OPENAI_API_KEY"):
        where = "another base URL" if os.environ.get("OPENAI_BASE_URL") else "the usual base URL"
        return Finding("ok", "endpoint", f"a key is set, for {where}")
    cure = "Needed by judges that are models alone: set OPENAI_API_KEY, here or in .env"
    return Finding("note", "endpoint", "no key is set", cure)
