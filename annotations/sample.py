"""The sample data: shipped files, made into a database that people may score on."""

import os
from collections.abc import Iterable
from pathlib import Path

from platformdirs import user_data_path

from annotations.store import Store
from pararecover_core.formats import read
from pararecover_core.formats.items import Item

IMPORTABLE = (".jsonl", ".csv", ".xlsx", ".json")


def sample_folder() -> Path:
    """The shipped files: inside the installed package, or ``data`` of a checkout."""
    packed = Path(__file__).with_name("sample")
    return packed if packed.is_dir() else Path(__file__).resolve().parents[1] / "data"


def sample_files() -> list[Path]:
    """The shipped data files, instances before the answers and scores that name them."""
    found = [p for p in sample_folder().iterdir() if p.suffix in IMPORTABLE]
    return sorted(found, key=lambda p: (IMPORTABLE.index(p.suffix), p.name))


def sample_database() -> Path:
    """Where this person's sample database is."""
    return user_data_path("pararecover") / "sample.db"


def ensure_sample(path: Path | None = None) -> Path:
    """Make the sample database where it is absent.

    Args:
        path: Where it goes; the person's own data folder by default.

    Returns:
        The path. A database that is there is left as it is: people may have scored on it.
    """
    target = path or sample_database()
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        _build(target)
    return target


def _build(target: Path) -> None:
    """Build beside the target, then move: who opens it early never sees half of it."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    Store(part).ingest(_items(sample_files()))
    part.replace(target)


def _items(paths: Iterable[Path]) -> Iterable[Item]:
    for path in paths:
        yield from read(path)
