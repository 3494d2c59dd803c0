"""The gallery: saved case studies, the shipped example, runs that are worth telling."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from annotations import case_studies
from annotations.case_studies import Candidate, Saved
from annotations.score_log import storable
from ui import session
from ui.messages import show_note

_MOST = 40


def show() -> None:
    """Draw the gallery."""
    store = session.store()
    kept = case_studies.gallery(store)
    shipped = case_studies.example(store)
    runs = case_studies.candidates(store, reader=session.user().name, limit=_MOST)
    if not kept and shipped is None and not runs:
        _nothing()
        return
    left, right = st.columns(2, gap="small")
    with left:
        _saved(kept, shipped)
    with right:
        _runs(runs)


def _saved(kept: Sequence[Saved], shipped: Saved | None) -> None:
    with st.container(key="cs_saved"):
        st.markdown("**Saved**")
        if not kept:
            show_note("None yet. Open a run, choose rounds, then Save.")
        for one in kept[:_MOST]:
            words = f"Version {one.version}" + (f", {one.author}" if one.author else "")
            _entry(one, f"saved_{one.name}", f"{words}, {one.at[:16].replace('T', ' ')}")
        if shipped is not None:
            st.markdown("**Example**")
            _entry(shipped, "example", "Appendix B's story, on the sample data", name="")


def _entry(one: Saved, key: str, words: str, *, name: str | None = None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(_plain(one.name), key=f"cs_{key}", type="tertiary"):
            _open(one.item, one.other, one.name if name is None else name, example=name == "")
        st.html(f'<span class="cs-when">{_html(words)}</span>')


def _runs(runs: Sequence[Candidate]) -> None:
    with st.container(key="cs_runs"):
        st.markdown("**Runs, most rounds over their optimum first**")
        if not runs:
            show_note(
                "No runs here. Import trajectories on the Dataset page, or run an agent with: "
                "pararecover run. Any item of Trajectories can be told too."
            )
        for run in runs:
            needed = f" of {run.optimal}" if run.optimal else ""
            words = f"{run.agent}, {run.rounds} rounds{needed}"
            with st.container(horizontal=True, vertical_alignment="center"):
                if st.button(_plain(words), key=f"cs_run_{run.item}", type="tertiary"):
                    _open(run.item, "", "")
                st.html(f'<span class="cs-when">{_html(run.query)}</span>')


def _open(item: str, other: str, name: str, *, example: bool = False) -> None:
    given = {"item": item, "other": other, "name": name, "example": "1" if example else ""}
    st.query_params.from_dict({key: value for key, value in given.items() if value})
    st.rerun()


def _plain(text: str) -> str:
    """A text on a button, where Markdown would be read: every special character is escaped."""
    flat = storable(" ".join(text.split()))[:120]
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+-.!|~$:&" else c for c in flat)


def _html(text: str) -> str:
    return escape(storable(text))


def _nothing() -> None:
    st.html(
        '<div class="cs-empty"><b>There is no run to tell yet</b><ul>'
        '<li>Import trajectories on <a href="dataset">Dataset</a>,</li>'
        "<li>or run an agent on your items: <code>pararecover run</code>,</li>"
        '<li>or open any item on <a href="trajectories">Trajectories</a> and put its key here as '
        "<code>case_study?item=KEY</code>.</li></ul></div>"
    )
