"""What sessions hold out, on Calibrate: left out, and counted in where a look is counted first."""

import msgspec
import streamlit as st

from annotations import sealed, sessions
from annotations.calibration import Comparison
from annotations.pairs import Selection
from annotations.score_log import storable
from annotations.store import Store
from pararecover_core.pairing import SEALED
from ui import session
from ui.messages import attempt, show_note

_OPENED = "_calibrate_held_out"


def opened(selection: Selection) -> Selection:
    """The selection with what is held out, where this person opened it for this judge."""
    if st.session_state.get(_OPENED, "") != selection.judge or not selection.judge:
        return selection
    return msgspec.structs.replace(selection, held_out=True)


def note(store: Store, selection: Selection, comparison: Comparison) -> None:
    """Say what is left out and offer to count it in, or say that it is in."""
    cells = comparison.found.overall.coverage.judge_gaps.get(SEALED, 0)
    if not cells and not selection.held_out:
        return
    due = sealed.opens(store, selection.judge)
    looks = sum(len(sessions.looks(store, one.id)) for one in due)
    left, right = st.columns([3, 1], vertical_alignment="center")
    if selection.held_out:
        names = ", ".join(one.name for one in due)
        with left:
            show_note(storable(f"With what {names} holds out: looks so far {looks:,}"))
        right.button("Seal again", on_click=_seal, key="calibrate_seal", width="stretch")
        return
    with left:
        show_note(storable(sealed.words(cells, due)))
    right.button(
        f"Count them in: look {looks + 1:,}",
        on_click=_open,
        args=(store, selection.judge),
        key="calibrate_open",
        width="stretch",
        help="The look is kept in the session's history and shown on Refine; it ends with this "
        "page or by Seal again. People's scores and exports are not sealed.",
    )


def _open(store: Store, judge: str) -> None:
    if attempt(sealed.count_looks, store, judge, author=session.user().name):
        st.session_state[_OPENED] = judge


def _seal() -> None:
    st.session_state.pop(_OPENED, None)
