"""The Guidelines as a Streamlit component: rubric, edge cases, keys, worked examples."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.shell import asset

_KEY = "guide_panel"
_guide = st.components.v2.component(
    "pararecover_guide",
    css="\n".join(map(asset, ("tokens.css", "plan.css", "guide.css"))),
    js="\n".join(map(asset, ("plan_ink.js", "plan.js", "annotate_dom.js", "guide.js"))),
)


def show_guide(data: Mapping[str, Any], *, chosen: str, on_choose: Callable[[str], None]) -> None:
    """Draw the guidelines.

    Args:
        data: What ``annotations.guide.guide`` gives.
        chosen: Sub-dimension to mark and to bring into view, "" for none.
        on_choose: Called with the sub-dimension whose link was asked for.
    """

    def heard() -> None:
        on_choose((st.session_state.get(_KEY) or {}).get("chosen") or "")

    _guide(data={**data, "chosen": chosen}, key=_KEY, on_chosen_change=heard)
