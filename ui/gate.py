"""The door of the app: nothing is shown to a person who has not come through it."""

import os
from collections.abc import Callable
from urllib.parse import unquote

import streamlit as st

from pararecover_core.errors import ConfigError
from ui import session
from ui.access import (
    NAME_LIMIT,
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

_SWITCH, _TYPED, _PICKED = "_switch_annotator", "_typed_name", "_picked_name"


Door = Callable[[], None]
"""Draws what a person has to do before they may come in."""


def closed_door() -> Door | None:
    """Decide, and draw nothing yet: the app has to know its pages before anything is shown.

    Returns:
        None for a person who is let in; ``session.user()`` then says who. Else the door.
    """
    how = session.login_mode()
    try:
        check_binding(st.get_option("server.address"), how)
    except ConfigError as error:
        return _closed("This app is not open to other machines", str(error))
    if how is Mode.LOCAL:
        return _local_door()
    return _known_door(_header_names()) if how is Mode.HEADER else _login_door()


def forget() -> None:
    """Go back to the door: pick another name, or log out."""
    session.enter(None)
    if session.login_mode() is Mode.LOGIN:
        st.logout()
    st.session_state[_SWITCH] = True


def _local_door() -> Door | None:
    if not is_local_host(st.context.headers.get("Host")):
        return _closed(
            "This app is open to its own machine alone",
            "The request came by another name than localhost. Open it on the machine that runs "
            "it, or configure a login: README, section Team.",
        )
    if session.who() is None and not st.session_state.get(_SWITCH):
        remembered = clean_name(_cookie(COOKIE))
        if remembered:
            session.enter(User(remembered, Role.ADMIN))
    return _ask_name if session.who() is None else None


def _cookie(name: str) -> str:
    return unquote(st.context.cookies.get(name) or "")


def _ask_name() -> None:
    with st.container(key="pr_gate"):
        st.subheader("Who is scoring?", anchor=False)
        with st.form("_who", border=False):
            st.text_input("Your name", key=_TYPED, max_chars=NAME_LIMIT, autocomplete="off")
            st.form_submit_button("Start", type="primary", on_click=_start, args=(_TYPED,))
        names = _known_names()
        if names:
            st.selectbox(
                "Or pick who has scored here before",
                names,
                index=None,
                placeholder="Pick a name",
                key=_PICKED,
                on_change=_start,
                args=(_PICKED,),
            )
        st.caption(
            "The name is written beside every score, so that agreement can be measured. "
            "It is attribution, not security: anyone at this machine can use any name."
        )


def _start(key: str) -> None:
    name = clean_name(st.session_state.get(key))
    if name:
        session.enter(User(name, Role.ADMIN))
        st.session_state.pop(_SWITCH, None)


def _known_names() -> list[str]:
    from annotations.people import annotators

    return annotators(session.store())


def _header_names() -> list[str]:
    name = header_name(dict(st.context.headers), os.environ)
    return [name] if name else []


def _login_door() -> Door | None:
    if not st.user.is_logged_in:
        return _ask_login
    given = st.user.to_dict()
    email = str(given.get("email") or "") if given.get("email_verified", True) else ""
    return _known_door([name for name in (clean_name(email), clean_name(given.get("sub"))) if name])


def _ask_login() -> None:
    with st.container(key="pr_gate"):
        st.subheader("Log in to score", anchor=False)
        st.button("Log in", type="primary", on_click=st.login)


def _known_door(names: list[str]) -> Door | None:
    session.enter(None)
    if not names:
        return _closed(
            "You are not logged in",
            "Neither a login nor the proxy in front of this app says who you are. Open the app "
            "by its public address.",
        )
    role = role_of(names, os.environ)
    if role is None:
        return _closed(
            f"{names[0]} has no role here",
            "Ask who runs this app to add you to PARARECOVER_ANNOTATORS, "
            "PARARECOVER_ADJUDICATORS or PARARECOVER_ADMINS.",
        )
    session.enter(User(names[0], role))
    return None


def _closed(title: str, reason: str) -> Door:
    def draw() -> None:
        with st.container(key="pr_gate"):
            st.subheader("Closed", anchor=False)
            st.text(f"{title}.\n{reason}")

    return draw
