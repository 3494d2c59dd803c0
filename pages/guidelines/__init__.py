"""Guidelines: the rubric with its anchors, edge cases, keys and worked examples."""

import streamlit as st

from annotations.guide import guide
from ui.guide_panel import show_guide


@st.fragment
def render() -> None:
    """Draw the page; ``?d=D3`` marks a sub-dimension."""
    show_guide(guide(), chosen=st.query_params.get("d", ""), on_choose=_link)


def _link(dimension: str) -> None:
    st.query_params["d"] = dimension
