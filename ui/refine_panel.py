"""The Refine board as a Streamlit component."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.shell import asset

_board = st.components.v2.component(
    "pararecover_refine",
    css="\n".join(map(asset, ("tokens.css", "measures.css", "refine.css"))),
    js="\n".join(map(asset, ("annotate_dom.js", "refine.js"))),
)


def show_board(
    data: Mapping[str, Any],
    *,
    key: str,
    on_look: Callable[[], None],
    on_held: Callable[[], None],
    on_edit: Callable[[], None],
    on_open: Callable[[], None],
    on_version: Callable[[], None],
    on_whole: Callable[[], None],
    on_cells: Callable[[], None],
) -> None:
    """Draw the board.

    Args:
        data: What ``annotations.refine_board.board`` gives.
        key: Key of the component; ``ui.measures.heard`` reads what was chosen on it.
        on_look: Called when the sealed side is to be opened.
        on_held: Called when the version in view is to judge the sealed side, unseen.
        on_edit: Called when a prompt is to be edited.
        on_open: Called when an item was opened.
        on_version: Called when a version was chosen.
        on_whole: Called when the whole prompt, or changes only, are wanted.
        on_cells: Called when other cells, or another page of them, are wanted.
    """
    _board(
        data=dict(data),
        key=key,
        on_look_change=on_look,
        on_held_change=on_held,
        on_edit_change=on_edit,
        on_open_change=on_open,
        on_version_change=on_version,
        on_whole_change=on_whole,
        on_cells_change=on_cells,
    )
