"""What to do where no answer has a total yet."""

from html import escape

import streamlit as st

from annotations.judge_job import current_job, start_job
from annotations.judges import PROGRAM, Order, prepare
from annotations.store import Store
from ui import session
from ui.messages import attempt

_RUNS = (
    "<li>E5 comes from running on: <code>pararecover run FILE --agent patch --out runs.jsonl</code>"
    ', then import its file on <a href="dataset">Dataset</a>.</li>'
)


_PROGRAM = "The 13 judged sub-dimensions by rules, beside the page; no model, no cost."


def draw(store: Store, scored: bool) -> None:
    """Say what is missing, and offer the judge that needs no model.

    Args:
        store: The database.
        scored: Whether anybody has scored anything.
    """
    with st.container(key="tr_start"):
        if not store.counts().replans:
            _say(
                "There are no answers here yet",
                '<li>Bring instances and answers on <a href="dataset">Dataset</a>,</li>'
                "<li>or let an agent answer: <code>pararecover replan</code>.</li>",
            )
            return
        title = "No answer has all 15 sub-dimensions scored yet"
        words = "" if scored else "Nobody has scored anything. "
        _say(
            title,
            f"<li>{escape(words)}People score on <a href='annotate'>Annotate</a>, models on "
            "<a href='calibrate'>Calibrate</a> (Judges),</li>"
            "<li>the program scores all 13 judged sub-dimensions by rules, without a model: "
            f"quick, and good enough to try this page out.</li>{_RUNS}",
        )
        offer(store)


def offer(store: Store) -> None:
    """Offer to score what the program has not scored, as a run beside the page."""
    job = current_job(store)
    running = job is not None and job.running
    prepared = attempt(prepare, store, Order(PROGRAM, started_by=session.user().name))
    if prepared is None or not prepared.calls:
        return
    words = f"Score {prepared.calls:,} answers with the program"
    asked = st.button(words, disabled=running, key="tr_program", help=_PROGRAM)
    if asked and attempt(start_job, store, prepared.parts) is not None:
        st.rerun()


def _say(title: str, items: str) -> None:
    st.html(f'<div class="tr-empty"><b>{escape(title)}</b><ul>{items}</ul></div>')
