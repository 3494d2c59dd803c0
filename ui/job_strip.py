"""Runs beside a page: how far they are, a way to stop them, and how the last ones ended."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from annotations.jobs import Job
from annotations.judge_job import JudgeJob, current_job
from annotations.judge_words import outcome_line, progress_line
from annotations.refine_job import RefineJob, current_refining
from annotations.refine_words import STEP_HEADS, STEP_RIGHT, refined_line, refining_line, step_cells
from annotations.score_log import storable
from ui import session
from ui.messages import show_error, show_note
from ui.tables import show_rows

_SEEN = "_jobs_seen"
_LOOK_SECONDS = 1.0

STYLE = """
.st-key-pr_judge, .st-key-pr_refining { padding: 6px 12px; background: var(--surf);
  border: 1px solid var(--line); border-radius: 8px; }
:is(.st-key-pr_judge, .st-key-pr_refining) [data-testid="stProgress"] p { font-size: 12px; }
"""


def show() -> None:
    """What goes on, or went on until it is closed: judging, and automatic refinement."""
    store = session.store()
    judging, refining = current_job(store), current_refining(store)
    if judging is not None:
        _strip("pr_judge", judging, _judging, _judged)
    if refining is not None:
        _strip("pr_refining", refining, _refining, _refined)


def _strip(key: str, job: Any, moving: Callable[[Any], None], ended: Callable[[Any], None]) -> None:
    if any(job is one for one in st.session_state.get(_SEEN, ())):
        return
    st.html(f"<style>{STYLE}</style>")
    with st.container(key=key):
        if job.running:
            st.fragment(_watch, run_every=_LOOK_SECONDS)(key, job, moving)
        else:
            left, right = st.columns([9, 1], vertical_alignment="center")
            with left:
                ended(job)
            right.button("Close", on_click=_see, args=(job,), key=f"{key}_close", width="stretch")


def _watch(key: str, job: Job, moving: Callable[[Any], None]) -> None:
    if not job.running:
        st.rerun(scope="app")
    left, right = st.columns([9, 1], vertical_alignment="center")
    with left:
        moving(job)
    right.button(
        "Stop", on_click=job.stop, disabled=job.stopping, key=f"{key}_stop", width="stretch"
    )


def _see(job: Job) -> None:
    st.session_state[_SEEN] = (*st.session_state.get(_SEEN, ())[-3:], job)


def _judging(job: JudgeJob) -> None:
    now = job.progress()
    words = "Stopping, calls under way get a few seconds" if job.stopping else "Judging"
    names = ", ".join(name.removeprefix("judge:") for name in job.scorers)
    st.progress(now.share, text=plain(f"{words}: {names}: {progress_line(now)}"))


def _judged(job: JudgeJob) -> None:
    show_note(storable(outcome_line(job)))


def _refining(job: RefineJob) -> None:
    judging = job.judging
    share = judging.progress().share if judging is not None and judging.running else 0.0
    st.progress(share, text=plain(refining_line(job)))
    _steps(job.steps)


def _refined(job: RefineJob) -> None:
    if job.error is not None:
        show_error(job.error)
    else:
        show_note(storable(refined_line(job)))
    _steps(job.steps)


def _steps(steps: Sequence[Any]) -> None:
    if steps:
        show_rows(STEP_HEADS, [step_cells(s) for s in steps], right=STEP_RIGHT, height=190)


def plain(text: str) -> str:
    """Text for a label, whose Markdown is switched off."""
    return "".join(f"\\{char}" if char in r"\`*_{}[]()<>#+-.!|~$:" else char for char in text)
