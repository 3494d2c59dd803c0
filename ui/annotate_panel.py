"""The Annotate workbench as Streamlit components.

Two components: the bench draws and takes the keys; the feed, a few lines of script, hands it what
the server says. The bench's script and data do not change, so Streamlit sends them once; a score
costs the feed's few hundred bytes and Streamlit's envelopes.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from annotations import desk
from annotations.database import held
from annotations.workbench import rubric_data
from pararecover_core.errors import ParaRecoverError
from pararecover_core.rubric import sde_rubric
from ui import session
from ui.access import Role
from ui.shell import asset

_SCRIPTS = (
    "plan_ink.js",
    "plan.js",
    "annotate_dom.js",
    "annotate_outbox.js",
    "annotate_dialogs.js",
    "annotate_keys.js",
    "annotate_bar.js",
    "annotate_tools.js",
    "annotate_reading.js",
    "annotate_scoring.js",
    "annotate.js",
)
_STYLES = ("tokens.css", "plan.css", "annotate.css")
_SUB_PAGES = (
    ("Adjudication", "adjudicate", Role.ADJUDICATOR),
    ("Batches", "admin", Role.ADMIN),
)
_STATE = "_annotate"
_BENCH = "annotate_bench"

_bench = st.components.v2.component(
    "pararecover_annotate",
    css="\n".join(map(asset, _STYLES)),
    js="\n".join(map(asset, _SCRIPTS)),
)
_feed = st.components.v2.component(
    "pararecover_annotate_feed",
    js="""
export default function ({ data }) {
  window.pararecoverFeed ??= { data: null, listeners: new Set(), contents: new Map() };
  window.pararecoverFeed.data = data;
  for (const listener of window.pararecoverFeed.listeners) listener(data);
}
""",
)


class _State:
    """What a session keeps between two runs: where the annotator is, and the newest feed."""

    def __init__(self, who: str, at: desk.Desk, link: tuple[str, str]) -> None:
        self.who, self.at, self.link = who, at, link
        self.feed: dict[str, Any] | None = None


def show() -> None:
    """Draw the workbench for the person and the link at hand."""
    _held(str(session.database()))
    _run(_state())


@st.cache_resource(show_spinner=False)
def _held(path: str) -> object:
    """Keep the database open, so that a score does not wait for its log to be copied."""
    return held(Path(path))


@st.fragment
def _run(state: _State) -> None:
    feed, state.feed = state.feed, None
    if feed is None:  # a fresh page or a rerun from outside: the page says what it lacks
        feed = _answer(state, {})
    with st.container(key="pr_annotate"):
        _bench(key=_BENCH, data=_who(), on_outbox_change=_heard(state))
    with st.container(key="pr_quiet_feed"):
        _feed(key="annotate_feed", data={**_who_is_it(), **feed})
    _keep_link(state)


def _state() -> _State:
    """The session's state; a new link, a new person or an empty desk sits down anew."""
    link = (st.query_params.get("batch", ""), st.query_params.get("item", ""))
    who = f"{session.database()}/{session.user().name}"
    state: _State | None = st.session_state.get(_STATE)
    moved = state is None or state.who != who or (any(link) and link != state.link)
    if state is None or moved or not state.at.item:
        at = desk.open_desk(session.store(), session.user().name, batch=link[0], item=link[1])
        state = _State(who, at, link)
        st.session_state[_STATE] = state
    return state


def _heard(state: _State) -> Callable[[], None]:
    """What to do when the page has sent something: before the fragment draws."""

    def heard() -> None:
        message = st.session_state[_BENCH].get("outbox")
        who = _who_is_it()
        if isinstance(message, Mapping) and all(message.get(k) == who[k] for k in who):
            state.feed = _answer(state, message)

    return heard


def _answer(state: _State, message: Mapping[str, Any]) -> dict[str, Any]:
    here = session.store(), session.user().name
    try:
        state.at, feed = desk.respond(*here, state.at, message)
    except ParaRecoverError as error:  # the item is gone: another database stands at that path
        state.at, feed = desk.respond(*here, desk.open_desk(*here), {})
        feed["notice"] = str(error)
    return feed


def _who_is_it() -> dict[str, str]:
    path = str(session.database()).encode()
    store = hashlib.blake2b(path, digest_size=6).hexdigest()
    return {"store": store, "annotator": session.user().name}


def _who() -> dict[str, Any]:
    ways = [(words, view) for words, view, role in _SUB_PAGES if session.user().may(role)]
    return {**_who_is_it(), "rubric": rubric_data(sde_rubric()), "ways": ways}


def _keep_link(state: _State) -> None:
    """Let the address name the open item, so that a reload or a colleague opens it."""
    link = (str(state.at.batch or ""), state.at.item)
    if state.at.look:
        link = ("", state.at.item)
    if link != state.link or link != (
        st.query_params.get("batch", ""),
        st.query_params.get("item", ""),
    ):
        state.link = link
        for name, value in zip(("batch", "item"), link, strict=True):
            if value:
                st.query_params[name] = value
            elif name in st.query_params:
                del st.query_params[name]
