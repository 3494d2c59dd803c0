"""Training data: scored answers become files that a trainer takes as they are."""

from collections.abc import Sequence

import streamlit as st

from annotations import training, training_files
from annotations.training import Digests, State
from annotations.training_files import Wanted
from pages.training import choices, examples, figures, start
from pararecover_core.preferences import INCOMPLETE, Candidate, Selection
from ui import job_strip, session
from ui.access import Role
from ui.messages import attempt, show_note

STYLE = """
.st-key-tr_bar, .st-key-tr_left, .st-key-tr_right, .st-key-tr_start {
  background: var(--surf); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 12px; gap: 8px; }
.st-key-tr_bar { padding-top: 6px; }
.st-key-tr_bar [data-testid="stButtonGroup"] button { padding: 0 10px; }
.st-key-tr_list { gap: 0; }
[class*="st-key-tr_row_"] { border-top: 1px solid var(--line); padding: 3px 0; gap: 8px; }
[class*="st-key-tr_row_"] button { min-height: 24px; padding: 0 8px; }
.tr-one { display: flex; gap: 8px; align-items: baseline; min-width: 0; }
.tr-one b { font-variant-numeric: tabular-nums; white-space: nowrap; }
.tr-one a { color: var(--acc); text-decoration: none; white-space: nowrap; }
.tr-one a:hover, .tr-one a:focus-visible { text-decoration: underline; }
.tr-one span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.tr-one span, .tr-said { color: var(--mute); }
.tr-said { font-size: 12px; overflow-wrap: anywhere; }
.tr-text { max-height: 260px; overflow: auto; background: var(--sunk); border-radius: 6px;
  padding: 8px; margin: 0; font: 12px/1.45 var(--mono); white-space: pre-wrap;
  overflow-wrap: anywhere; }
.tr-empty b { display: block; font-size: 15px; }
.tr-empty ul { margin: 6px 0 4px; padding-left: 20px; } .tr-empty li { font-size: 13px; }
.tr-empty a { color: var(--acc); }
.tr-text:focus-visible { outline: 2px solid var(--acc); }
"""


def render() -> None:
    """Draw the page; annotators stay blind."""
    if not session.user().may(Role.ADJUDICATOR):
        show_note(
            "Training data shows what judges and other people scored. It is open to adjudicators "
            "and admins, so that annotators stay blind."
        )
        return
    st.html(f"<style>{STYLE}</style>")
    job_strip.show()
    store = session.store()
    path, now = str(store.path), training.state(store)
    names = _scorers(path, now)
    usual = _usual(path, now)
    if not usual:
        start.draw(store, bool(names))
        return
    with st.container(key="tr_bar", horizontal=True, vertical_alignment="bottom"):
        wanted = attempt(choices.draw, names, usual)
        place = st.container(width="content")
    if wanted is None:
        return
    found = _found(path, now, wanted.scorer)
    chosen = attempt(_chosen, path, now, wanted)
    if chosen is not None:
        with place:
            choices.downloads(store, wanted, found, chosen)
        _draw(wanted, found, chosen)


def _draw(wanted: Wanted, found: Sequence[Candidate], chosen: Selection) -> None:
    left, right = st.columns([4, 7], gap="small")
    with left, st.container(key="tr_left"):
        figures.draw(wanted, found, chosen)
        if INCOMPLETE in chosen.excluded:
            start.offer(session.store())
    with right, st.container(key="tr_right"):
        if wanted.kind == "stepwise":
            examples.runs(session.store(), wanted, found, chosen)
        else:
            examples.draw(wanted, chosen)


_KEPT = 6


@st.cache_data(show_spinner=False, max_entries=_KEPT)
def _scorers(path: str, now: State) -> list[str]:
    return training.scorers(session.store())


@st.cache_resource(show_spinner="Adding up scores", max_entries=_KEPT)
def _found(path: str, now: State, scorer: str) -> list[Candidate]:
    return training.candidates(session.store(), scorer, _digests(path, now[-2:]))


@st.cache_resource(show_spinner=False, max_entries=2)
def _digests(path: str, stubs: State) -> Digests:
    """Kept over new scores: what a record says changes only where a stub gets its content."""
    return {}


@st.cache_data(show_spinner="Looking for totals", max_entries=_KEPT)
def _usual(path: str, now: State) -> str:
    return training.usual_scorer(session.store())


@st.cache_resource(show_spinner="Choosing examples", max_entries=_KEPT)
def _chosen(path: str, now: State, wanted: Wanted) -> Selection:
    decided = training.decisions(session.store())
    return training_files.choose(wanted, _found(path, now, wanted.scorer), decided)
