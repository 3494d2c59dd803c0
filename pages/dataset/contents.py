"""What is in the database: counts by level, source, error type, agent and scorer."""

import streamlit as st

from annotations.overview import TOP, Overview, Tally, overview, state_of
from annotations.store import Store
from ui import session
from ui.messages import show_note
from ui.tables import show_figures, show_rows


def draw() -> None:
    """Draw the card."""
    st.subheader("In this database", anchor=False)
    store = session.store()
    found = _overview(str(store.path), state_of(store))
    show_figures(
        (
            ("instances", found.instances),
            ("replans", found.replans),
            ("trajectories", found.trajectories),
            ("scores", found.scores),
        )
    )
    if not found.instances and not found.scores:
        show_note("Nothing yet. Drop a file on the left, or run: pararecover import FILE")
        return
    if found.stubs:
        show_note(
            f"{found.stubs:,} records are named by scores or answers, and their content is not "
            "here: import the files that hold them."
        )
    _tables(found)


@st.cache_data(show_spinner=False, max_entries=4)
def _overview(path: str, state: tuple[int, ...]) -> Overview:
    return overview(Store(path))


def _tables(found: Overview) -> None:
    left, right = st.columns(2, gap="small")
    with left:
        _tally("Level", "Instances", found.levels)
        _tally("Source", "Instances", found.sources)
        _tally("Error type, any round", "Instances", found.error_types)
    with right:
        _tally("Agent", "Replans", found.agents)
        _tally("Scorer", "Scores", found.scorers)


def _tally(name: str, what: str, tallies: tuple[Tally, ...]) -> None:
    if not tallies:
        return
    title = f"{name} (the first {TOP})" if len(tallies) == TOP else name
    show_rows((title, what), [(one.name, one.count) for one in tallies], right=(1,))
