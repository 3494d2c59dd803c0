"""Calibrate: how far the judge agrees with people, figure by figure and cell by cell."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from annotations.calibration import (
    Comparison,
    Pick,
    compare,
    file_board,
    store_board,
    what_is_missing,
)
from annotations.pairs import Choices, Selection, Shared, State, choices, load_shared, state
from pages.calibrate import downloads, filters, held_out, judge, more
from pararecover_core.formats import ReadOptions, read
from pararecover_core.score_files import FileScores, file_cells, file_scores
from ui import job_strip, session
from ui.access import Role
from ui.measures import heard, show_board
from ui.messages import attempt, show_note

_BOARD = "calibrate_board"
_OPEN, _SIDES = "_calibrate_open", "_calibrate_sides"
_KEPT = 6


def render() -> None:
    """Draw the page."""
    if not session.user().may(Role.ADJUDICATOR):
        show_note(
            "Calibrate shows what judges and other people scored. It is open to adjudicators and "
            "admins, so that annotators stay blind."
        )
        return
    job_strip.show()
    _page()


@st.fragment
def _page() -> None:
    _open_item()
    st.html(f"<style>{filters.STYLE}</style>")
    bar = st.container(key="pr_filters", horizontal=True, vertical_alignment="bottom")
    with bar:
        wanted = filters.from_file()
    if wanted:
        _spreadsheet(bar)
    else:
        _database(bar)


def _database(bar: DeltaGenerator) -> None:
    store = session.store()
    now = state(store)
    known = _choices(str(store.path), now)
    with bar:
        selection = filters.choose(known)
        judge.button()
    selection = held_out.opened(selection)
    comparison = attempt(_compare, str(store.path), now, selection)
    if comparison is None:
        return
    _start_over_for(selection)
    held_out.note(store, selection, comparison)
    missing = what_is_missing(known, selection, comparison)
    if missing:
        filters.next_steps(missing)
    if comparison.found.overall.coverage.cells:
        with bar:
            downloads.from_store(store, comparison, selection)
        who = session.user().name
        cells = lambda: _shared(str(store.path), now, selection).cells  # noqa: E731
        more.show(store, selection, known, comparison, cells)
        _show(store_board(store, comparison, selection, _pick(), _number(), who))


def _spreadsheet(bar: DeltaGenerator) -> None:
    with bar:
        file, human_suffix, model_suffix = filters.upload()
    if file is None:
        filters.how_to_upload()
        return
    found = _read(file.file_id, file, human_suffix, model_suffix)
    with bar:
        sides = filters.choose_in_file(found)
    filters.rejects(found.rejects)
    comparison = attempt(_compare_file, found, *sides)
    if comparison is None:
        return
    _start_over_for((file.file_id, *sides))
    with bar:
        downloads.from_file(found, comparison)
    _show(file_board(found, comparison, _pick(), _number(), sides))


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def _choices(path: str, now: State) -> Choices:
    return choices(session.store())


@st.cache_resource(show_spinner="Measuring agreement", max_entries=_KEPT)
def _compare(path: str, now: State, selection: Selection) -> Comparison:
    shared = _shared(path, now, selection)
    return compare(shared.cells, alone=shared.alone)


@st.cache_resource(show_spinner=False, max_entries=2)
def _shared(path: str, now: State, selection: Selection) -> Shared:
    return load_shared(session.store(), selection)


@st.cache_resource(show_spinner="Reading the file", max_entries=4)
def _read(file_id: str, _file: UploadedFile, human: str, model: str) -> FileScores:
    _file.seek(0)
    options = ReadOptions(human_suffix=human, model_suffix=model)
    return file_scores(read(_file, name=_file.name, options=options))


def _compare_file(found: FileScores, human: str, judge: str) -> Comparison:
    return compare(file_cells(found, human=human, judge=judge))


def _show(data: dict[str, object]) -> None:
    show_board(data, key=_BOARD, on_pick=_on_pick, on_page=_on_page, on_open=_on_open)


def _pick() -> Pick:
    return Pick.parse(st.query_params.get("cell", ""))


def _number() -> int:
    page = st.query_params.get("page", "")
    return int(page) if page.isdecimal() and len(page) < 8 else 1


def _on_pick() -> None:
    said = heard(_BOARD, "pick") or {}
    pick = Pick(said.get("dimension", ""), said.get("human"), said.get("judge"))
    filters.keep("cell", pick.text())
    filters.keep("page", "")


def _on_page() -> None:
    page = heard(_BOARD, "page") or 1
    filters.keep("page", str(page) if page > 1 else "")


def _on_open() -> None:
    st.session_state[_OPEN] = (heard(_BOARD, "open") or {}).get("sample", "")


def _start_over_for(sides: object) -> None:
    """The list of other sides starts at its first page."""
    if st.session_state.get(_SIDES, sides) != sides:
        filters.keep("page", "")
    st.session_state[_SIDES] = sides


def _open_item() -> None:
    """Go to the item that was opened on the board."""
    item = st.session_state.pop(_OPEN, "")
    if item:
        target = st.Page(_nowhere, title="Trajectories", url_path="trajectories")
        st.switch_page(target, query_params={"item": item})


def _nowhere() -> None:
    """Stands for a page of the app that is known by its path."""
