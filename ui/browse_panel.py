"""The Trajectories page as Streamlit components: one draws, a few lines of script feed it."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from annotations import browse
from ui import session
from ui.shell import asset

_SCRIPTS = (
    *("plan_ink.js", "plan.js", "annotate_dom.js", "browse_filters.js", "browse_list.js"),
    *("browse_detail.js", "browse.js"),
)
_STYLES = ("tokens.css", "plan.css", "browse.css")
_STATE, _PAGE = "_browse", "browse_page"

_page = st.components.v2.component(
    "pararecover_browse",
    css="\n".join(map(asset, _STYLES)),
    js="\n".join(map(asset, _SCRIPTS)),
)
_feed = st.components.v2.component(
    "pararecover_browse_feed",
    js="""
export default function ({ data }) {
  window.pararecoverBrowse ??= { data: null, listeners: new Set() };
  window.pararecoverBrowse.data = data;
  for (const listener of window.pararecoverBrowse.listeners) listener(data);
}
""",
)


class _State:
    """What a session keeps between two runs: the view that is shown and the open item."""

    def __init__(self, view: browse.View) -> None:
        self.view = view
        self.shown: browse.View | None = None
        self.opened: browse.Opened | None = None
        self.feed: dict[str, Any] | None = None


def show() -> None:
    """Draw the page for the link at hand."""
    _run(_State(browse.view_from(_params())))


@st.fragment
def _run(state: _State) -> None:
    feed, state.feed = state.feed, None
    if feed is None:  # a fresh page, or a rerun from outside: everything is sent
        state.shown = state.opened = None
        feed = {"seq": 0, "fresh": True, **_answer(state, state.view)}
    _page(key=_PAGE, on_asked_change=_heard(state))
    with st.container(key="pr_quiet_feed"):
        _feed(key="browse_feed", data=feed)
    _keep_link(feed["query"])


def _heard(state: _State) -> Callable[[], None]:
    """What to do when the page asks: before the fragment draws."""

    def heard() -> None:
        asked = st.session_state[_PAGE].get("asked")
        if isinstance(asked, Mapping):
            view = browse.view_from(_lists(asked.get("query")))
            state.feed = {"seq": asked.get("seq", 0), **_answer(state, view)}

    return heard


def _answer(state: _State, view: browse.View) -> dict[str, Any]:
    state.view, state.opened, feed = browse.respond(
        *(session.store(), view),
        reader=session.user().name,
        before=state.shown,
        opened=state.opened,
    )
    state.shown = state.view
    return feed


def _lists(query: object) -> dict[str, list[str]]:
    """A query as the page sends it, as lists of text."""
    if not isinstance(query, Mapping):
        return {}
    return {str(name): list(map(str, value)) for name, value in query.items() if value}


def _params() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _keep_link(query: dict[str, list[str]]) -> None:
    """Let the address name filter, item and round, so that a reload or a colleague sees them."""
    if query != _params():
        st.query_params.from_dict(query)
