"""Refine: versions of a judge's prompt, what each changed, and the sealed held-out side."""

from collections.abc import Sequence

import streamlit as st

from annotations import refining, sessions
from annotations.pairs import State, state
from annotations.refine_board import CellPick, board, people_ceiling
from annotations.refining import Version
from annotations.sessions import Session, Side
from pages.refine import actions, work
from pararecover_core.agreement_people import Ceiling
from ui import job_strip, session
from ui.access import Role
from ui.measures import heard
from ui.messages import attempt, show_note
from ui.refine_panel import show_board

_BOARD, _OPEN = "refine_board", "_refine_open"
_VERSION, _WHOLE, _CELLS = "_refine_version", "_refine_whole", "_refine_cells"


def render() -> None:
    """Draw the page."""
    if not session.user().may(Role.ADJUDICATOR):
        show_note(
            "Refine shows what judges and other people scored. It is open to adjudicators and "
            "admins, so that annotators stay blind."
        )
        return
    _open_item()
    st.html(f"<style>{actions.STYLE}</style>")
    store = session.store()
    known = sessions.list_sessions(store)
    with st.container(key="pr_refine_bar", horizontal=True, vertical_alignment="bottom"):
        chosen = actions.choose_session(known)
        if chosen is None:
            actions.new_session(main=True)
        else:
            model = actions.choose_judge(refining.judges(store, chosen.id))
            now, path = state(store), str(store.path)
            rows = _versions(path, now, chosen, model) if model else []
            current = _current(rows)
            actions.new_session()
            actions.people(chosen)
            work.run(chosen, model, current)
            work.propose(chosen, model, current)
            actions.methods_text(chosen)
    job_strip.show()
    if chosen is None:
        actions.first_steps()
        return
    actions.standing(chosen)
    if current is None:
        actions.next_steps(chosen)
        return
    work.waiting(chosen, model, refining.unrun(store, rows))
    _board(chosen, rows, current)


def _current(rows: Sequence[Version]) -> Version | None:
    """The version that was chosen, else the newest."""
    asked = st.session_state.get(_VERSION, "")
    return next((row for row in rows if row.scorer == asked), rows[0] if rows else None)


def _board(chosen: Session, rows: Sequence[Version], current: Version) -> None:
    store = session.store()
    now, path = state(store), str(store.path)
    top = _ceiling(path, now, chosen)
    data = board(
        store,
        chosen,
        rows,
        current,
        top,
        reader=session.user().name,
        whole=bool(st.session_state.get(_WHOLE)),
        repeats=_repeats(path, chosen.id, (current.edited or current.prompts[0]).text),
        pick=st.session_state.get(_CELLS) or CellPick(),
    )
    show_board(
        data,
        key=_BOARD,
        on_look=lambda: _on_look(chosen, current),
        on_held=lambda: work.run_version(chosen, current.scorer, Side.HELD_OUT),
        on_edit=_on_edit,
        on_open=_on_open,
        on_version=_on_version,
        on_whole=_on_whole,
        on_cells=_on_cells,
    )
    actions.versions_chart(rows, top)
    actions.open_editor(chosen, current)


@st.cache_resource(show_spinner="Comparing versions", max_entries=4)
def _versions(path: str, now: State, chosen: Session, model: str) -> list[Version]:
    kept = actions.measured(path)
    return refining.versions(session.store(), chosen.id, model, kept=kept)


@st.cache_resource(show_spinner=False, max_entries=4)
def _ceiling(path: str, now: State, chosen: Session) -> Ceiling:
    return people_ceiling(session.store(), chosen)


@st.cache_resource(show_spinner=False, max_entries=32)
def _repeats(path: str, number: int, text: str) -> list[str]:
    return refining.repeats(session.store(), number, text)


def _on_look(chosen: Session, current: Version) -> None:
    store, who = session.store(), session.user().name
    attempt(sessions.look, store, chosen.id, current.scorer, author=who)


def _on_version() -> None:
    st.session_state[_VERSION] = heard(_BOARD, "version") or ""
    st.session_state[_WHOLE] = False
    st.session_state[_CELLS] = None


def _on_whole() -> None:
    st.session_state[_WHOLE] = bool(heard(_BOARD, "whole"))


def _on_cells() -> None:
    st.session_state[_CELLS] = CellPick.of(heard(_BOARD, "cells") or {})


def _on_edit() -> None:
    st.session_state[actions.EDIT] = heard(_BOARD, "edit") or ""


def _on_open() -> None:
    st.session_state[_OPEN] = heard(_BOARD, "open") or ""


def _open_item() -> None:
    """Go to the item that was opened on the board."""
    item = st.session_state.pop(_OPEN, "")
    if item:
        target = st.Page(_nowhere, title="Trajectories", url_path="trajectories")
        st.switch_page(target, query_params={"item": item})


def _nowhere() -> None:
    """Stands for a page of the app that is known by its path."""
