"""Fixtures for every test: nothing of the person who runs them is read or written."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")

SETTINGS = ("PARARECOVER_", "OPENAI_", "STREAMLIT_")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the user's folders at a temporary place and forget the person's settings."""
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "home"
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Give ``__main__`` back: a page under test takes its place, and processes start from it."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def sample_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample data as a database, made once; copy it before writing."""
    from annotations.sample import ensure_sample

    return ensure_sample(tmp_path_factory.mktemp("sample") / "sample.db")
