"""The door of the app: nothing is shown to a person who has not come through it."""

import os

import streamlit as st

from pararecover_core.errors import ConfigError
from ui import session
from ui.access import (
    Mode,
    Role,
    User,
    check_binding,
    clean_name,
    header_name,
    is_local_host,
    role_of,
)

COOKIE = "pararecover_annotator"
"""Remembers the name on this browser; it says who scored and opens nothing."""

_SWITCH = "_switch_annotator"


def admit() -> bool:
    """Let the person in, or show what they have to do first.

    Returns:
        Whether the page may be shown.
    """
    how = session.login_mode()
    try:
        check_binding(st.get_option("server.address"), how)
    except ConfigError as error:
        _closed("This app is not open to other machines", str(error))
        return False
    if how is Mode.LOCAL:
        return _admit_local()
    names = _names_from_header() if how is Mode.HEADER else _names_from_login()
    return bool(names) and _admit_known(names)


def forget() -> None:
    """Go back to the door: pick another name, or log out."""
    session.enter(None)
    if session.login_mode() is Mode.LOGIN:
        st.logout()
    st.session_state[_SWITCH] = True


def _admit_local() -> bool:
    if not is_local_host(st.context.headers.get("Host")):
        _closed(
            "This app is open to its own machine alone",
            "The request came by another name than localhost. Open it on the machine that runs "
            "it, or configure a login: README, section Team.",
        )
        return False
    if st.session_state.get("_user") is None and not st.session_state.get(_SWITCH):
        remembered = clean_name(_cookie(COOKIE))
        if remembered:
            session.enter(User(remembered, Role.ADMIN))
    if st.session_state.get("_user") is None:
        _ask_name()
        return False
    return True


def _cookie(name: str) -> str:
    from urllib.parse import unquote

    return unquote(st.context.cookies.get(name) or "")


def _ask_name() -> None:
    with st.container(key="pr_gate"):
        st.subheader("Who is scoring?", anchor=False)
        names = _known_names()
        picked = st.selectbox(
            "Your name",
            names,
            index=None,
            placeholder="Pick your name or type a new one" if names else "Type your name",
            accept_new_options=True,
            key="_picked_name",
        )
        st.button("Start", type="primary", on_click=_start, disabled=not clean_name(picked))
        st.caption(
            "The name is written beside every score, so that agreement can be measured. "
            "It is attribution, not security: anyone at this machine can pick any name."
        )


def _start() -> None:
    name = clean_name(st.session_state.get("_picked_name"))
    if name:
        session.enter(User(name, Role.ADMIN))
        st.session_state.pop(_SWITCH, None)


def _known_names() -> list[str]:
    from annotations.people import annotators

    return annotators(session.store())


def _names_from_header() -> list[str]:
    name = header_name(dict(st.context.headers), os.environ)
    if not name:
        _closed(
            "You are not logged in",
            "The proxy in front of this app sent no name. Open the app by its public address.",
        )
        return []
    return [name]


def _names_from_login() -> list[str]:
    if not st.user.is_logged_in:
        with st.container(key="pr_gate"):
            st.subheader("Log in to score", anchor=False)
            st.button("Log in", type="primary", on_click=st.login)
        return []
    given = st.user.to_dict()
    email = str(given.get("email") or "") if given.get("email_verified", True) else ""
    names = [name for name in (clean_name(email), clean_name(given.get("sub"))) if name]
    if not names:
        _closed("Your login names nobody", "It carries neither a verified e-mail nor a subject.")
    return names


def _admit_known(names: list[str]) -> bool:
    role = role_of(names, os.environ)
    if role is None:
        _closed(
            f"{names[0]} has no role here",
            "Ask who runs this app to add you to PARARECOVER_ANNOTATORS, "
            "PARARECOVER_ADJUDICATORS or PARARECOVER_ADMINS.",
        )
        return False
    session.enter(User(names[0], role))
    return True


def _closed(title: str, reason: str) -> None:
    with st.container(key="pr_gate"):
        st.subheader("Closed", anchor=False)
        st.text(f"{title}.\n{reason}")
