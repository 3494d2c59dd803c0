"""The sample data: shipped files, made into a database that people may score on."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from platformdirs import user_data_path

from annotations.batches import BatchPlan, create_batch
from annotations.store import Store, default_path
from pararecover_core.formats.items import Item

_KINDS = (".jsonl", ".csv", ".xlsx")
"""Shipped data, instances before the answers and scores that name them."""

BATCH = "Sample"
"""The batch that waits for whoever opens the sample data."""


def sample_folder() -> Path:
    """The shipped files: inside the installed package, or ``data`` of a checkout."""
    packed = Path(__file__).with_name("sample")
    return packed if packed.is_dir() else Path(__file__).resolve().parents[1] / "data"


def sample_files() -> list[Path]:
    """The shipped data files in the order in which they are read."""
    return [*written_files(), *made_files()]


def written_files() -> list[Path]:
    """Items, answers and scores that were written by hand."""
    return _files("sample_")


def made_files() -> list[Path]:
    """Items, answers and runs that the engine made."""
    return _files("made_")


def _files(start: str) -> list[Path]:
    found = [path for path in sample_folder().glob(f"{start}*") if path.suffix in _KINDS]
    return sorted(found, key=lambda path: (_KINDS.index(path.suffix), path.name))


def sample_path() -> Path:
    """Where this person's sample database is."""
    return user_data_path("pararecover", appauthor=False) / "sample.db"


def choose_database(environ: Mapping[str, str]) -> Path:
    """The database to open where no flag names one.

    Args:
        environ: ``PARARECOVER_DB`` names one.

    Returns:
        That one, else the one that ``pararecover import`` fills by default where it exists, else
        the sample data, made where that is absent.
    """
    named = environ.get("PARARECOVER_DB", "").strip()
    if named:
        return Path(named).expanduser().resolve()
    usual = default_path()
    return usual if usual.is_file() else ensure_sample()


def ensure_sample(path: Path | None = None) -> Path:
    """Make the sample database where it is absent.

    Args:
        path: Where it goes; the person's own data folder by default.

    Returns:
        The path. A database that is there is left as it is: people may have scored on it.
    """
    target = path or sample_path()
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        _build(target)
    return target


def _build(target: Path) -> None:
    """Build beside the target, then move: who opens it early never sees half of it."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    store = Store(part)
    _load(store, written_files())
    waiting = _unscored(store)
    if waiting:
        plan = BatchPlan(BATCH, replans=waiting, created_by="sample", annotators_per_item=2)
        create_batch(store, plan)
    _load(store, made_files())
    part.replace(target)


def _load(store: Store, files: Iterable[Path]) -> None:
    report = store.ingest(_items(files))
    if report.rejects:
        raise report.rejects[0].error()


def _unscored(store: Store) -> tuple[str, ...]:
    """Answers that nobody has scored: a visitor scores these, and may look at all others."""
    query = (
        "SELECT key FROM replan WHERE stub = 0"
        " AND NOT EXISTS (SELECT 1 FROM score_log WHERE replan = key) ORDER BY n"
    )
    with store.read() as db:
        return tuple(row[0] for row in db.execute(query))


def _items(paths: Iterable[Path]) -> Iterable[Item]:
    from pararecover_core.formats import read  # spreadsheet readers: only when they are needed

    for path in paths:
        yield from read(path)
