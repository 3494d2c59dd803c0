"""The frame around every page: sizes, colours, the sample tag, who is here."""

from functools import cache
from html import escape
from importlib.resources import files
from urllib.parse import quote

import streamlit as st

from pararecover_core.rubric import sde_rubric
from ui import gate, session
from ui.access import Mode


@cache
def asset(name: str) -> str:
    """Text of a file in ``ui/assets``."""
    return files("ui").joinpath("assets", name).read_text(encoding="utf-8")


ICON = asset("icon.svg")
"""Icon of every page; without it Streamlit fetches the page's own from another host."""

_BROWSER = st.components.v2.component("pararecover_shell", js=asset("shell.js"))


@cache
def _style() -> str:
    return f"<style>{asset('tokens.css')}\n{asset('shell.css')}</style>"


def frame() -> None:
    """Draw what is there before anybody is let in: style and the sample tag."""
    st.html(_style())
    st.html(_top())


def _top() -> str:
    tag = ""
    if session.is_sample():
        tag = (
            '<span class="pr-tag">Sample data</span>'
            '<span class="pr-hint">written for trying the app out; '
            '<a href="dataset">bring your own files</a></span>'
        )
    return f'<div class="pr-top"><b class="pr-logo">ParaRecover</b>{tag}</div>'


def foot() -> None:
    """Draw the foot of the sidebar: who is here, which database, which rubric."""
    who = session.user()
    database = session.database().name
    with st.sidebar.container(key="pr_who"):
        st.html(
            f"<div><b>{escape(who.name)}</b> {_role_words()}</div>"
            f'<div title="{escape(str(session.database()))}">{escape(database)}</div>'
            f"<div>Rubric {escape(sde_rubric().version)}</div>"
        )
        if session.login_mode() is not Mode.HEADER:
            words = "Log out" if session.login_mode() is Mode.LOGIN else "Change name"
            st.button(words, on_click=gate.forget, type="tertiary")


def _role_words() -> str:
    return "all roles" if session.login_mode() is Mode.LOCAL else session.user().role.value


def settle() -> None:
    """Let the browser keep the name (local mode alone) and fit the frame to its window."""
    local = session.login_mode() is Mode.LOCAL
    known = session.who() if local else None
    cookie = {"name": gate.COOKIE, "value": quote(known.name, safe="") if known else ""}
    with st.container(key="pr_quiet"):
        _BROWSER(data={"cookie": cookie if local else None}, key="pr_shell")
