"""Who is here, and which database: what every page asks first."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ui.access import Mode, Role, User, mode

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["Role", "User", "database", "is_sample", "scorer", "store", "user"]

_USER = "_user"


def user() -> User:
    """The person at this session; the gate has let them in.

    Raises:
        RuntimeError: Called before the gate.
    """
    found = who()
    if found is None:
        raise RuntimeError("nobody is here: the gate has not let anybody in")
    return found


def who() -> User | None:
    """The person at this session, None while nobody has been let in."""
    found = st.session_state.get(_USER)
    return found if isinstance(found, User) else None


def scorer() -> str:
    """The scorer name of the person at this session, ``human:NAME``."""
    return f"human:{user().name}"


def enter(who: User | None) -> None:
    """Let a person in (the gate does), or forget who was there."""
    st.session_state[_USER] = who


def login_mode() -> Mode:
    """How this app knows who is there."""
    return mode(os.environ, auth=_auth_configured())


def is_sample() -> bool:
    """Whether the database is the sample data that ships with the package."""
    from annotations.sample import sample_path

    return database() == sample_path().resolve()


@st.cache_resource(show_spinner=False)
def database() -> Path:
    """The database file in use; the same as long as the app runs."""
    from annotations.sample import choose_database

    return choose_database(os.environ).resolve()


def store() -> "Store":
    """The database in use; cheap, one object for each file of the process."""
    return _open(str(database()))


@st.cache_resource(show_spinner=False)
def _open(path: str) -> "Store":
    from annotations.store import Store

    return Store(path)


def _auth_configured() -> bool:
    return st.secrets.load_if_toml_exists() and bool(st.secrets.get("auth"))
