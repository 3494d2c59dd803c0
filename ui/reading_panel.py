"""An item to read: query, plans before and after, thought, observations, tools; no scores."""

from typing import Any

import streamlit as st

from annotations.workbench import content, full_text
from ui import session
from ui.shell import asset

_SCRIPTS = (
    "plan_ink.js",
    "plan.js",
    "annotate_dom.js",
    "annotate_dialogs.js",
    "annotate_tools.js",
    "annotate_reading.js",
    "reading.js",
)
_STYLES = ("tokens.css", "plan.css", "annotate.css", "reading.css")

_panel = st.components.v2.component(
    "pararecover_reading",
    css="\n".join(map(asset, _STYLES)),
    js="\n".join(map(asset, _SCRIPTS)),
)


def show(replan: str, *, key: str) -> None:
    """Draw an item; judge, agent, tags and scores are not in it.

    Args:
        replan: Key of the replan.
        key: Key of the component on its page.

    Raises:
        StoreError: The replan is not in the database.
    """
    given = session.store().replan(replan)
    instance = session.store().instance(given.instance)
    data: dict[str, Any] = {"content": content(instance, given)}
    asked = (st.session_state.get(key) or {}).get("full")
    if isinstance(asked, str):
        data["full"] = {"field": asked, "text": full_text(instance, given, asked)}
    _panel(key=key, data=data, on_full_change=lambda: None)
