"""The Calibrate board as a Streamlit component: tables, dot plot, matrices, disagreements."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.shell import asset

_board = st.components.v2.component(
    "pararecover_measures",
    css="\n".join(map(asset, ("tokens.css", "measures.css"))),
    js="\n".join(map(asset, ("annotate_dom.js", "measures.js"))),
)


def show_board(
    data: Mapping[str, Any],
    *,
    key: str,
    on_pick: Callable[[], None],
    on_page: Callable[[], None],
    on_open: Callable[[], None],
) -> None:
    """Draw the board.

    Args:
        data: What ``annotations.calibration.board`` gives.
        key: Key of the component; ``heard`` reads what was chosen on it.
        on_pick: Called when a sub-dimension or a cell of a matrix was chosen.
        on_page: Called when another page of the list was asked for.
        on_open: Called when an item was opened.
    """
    _board(
        data=dict(data),
        key=key,
        on_pick_change=on_pick,
        on_page_change=on_page,
        on_open_change=on_open,
    )


def heard(key: str, name: str) -> Any:
    """What the board last said under a name ("pick", "page", "open"); None for nothing yet."""
    said = st.session_state.get(key)
    return said.get(name) if said else None
