"""Running a judge from the Calibrate page: beside the page, so that nothing waits for it."""

import os

import streamlit as st

from annotations.batches import list_batches
from annotations.judge_job import current_job, start_job
from annotations.judge_words import (
    RUN_HEADS,
    RUN_RIGHT,
    announce,
    judge_words,
    run_cells,
)
from annotations.judges import (
    PROGRAM,
    REPEATED_TEMPERATURE,
    Order,
    Prepared,
    order_of,
    prepare,
)
from annotations.judging import list_runs
from annotations.prompts import list_prompts
from annotations.score_log import storable
from pararecover_core.completions import LOCAL_HELP
from pararecover_core.rubric import JUDGED
from ui import session
from ui.messages import attempt, show_note
from ui.tables import show_rows

_EVERY, _SCORED = "Every replan", "Replans that people scored"


def button() -> None:
    """Open the dialog."""
    if st.button("Judges", icon=":material/gavel:", key="judge_open"):
        _dialog()


@st.dialog("Judges", width="large")
def _dialog() -> None:
    make, runs = st.tabs(["Run a judge", "Runs so far"])
    with make:
        _form()
    with runs:
        _runs()


def _form() -> None:
    order = _order()
    prepared = attempt(prepare, session.store(), order)
    if prepared is None:
        show_note(f"{LOCAL_HELP}. Then start the app again.")
        return
    for line in announce(prepared, "the switch above"):
        show_note(storable(line))
    if st.button("Begin", type="primary", disabled=not prepared.calls, key="judge_begin"):
        _begin(prepared)


def _begin(prepared: Prepared) -> None:
    if attempt(start_job, session.store(), prepared.parts) is not None:
        st.rerun(scope="app")


def _order() -> Order:
    left, middle, right = st.columns(3, gap="small")
    named = os.environ.get("OPENAI_MODEL", "").strip()
    judge = left.selectbox(
        "Judge",
        [PROGRAM, *([named] if named else [])],
        format_func=judge_words,
        accept_new_options=True,
        key="judge_name",
        help="The program, or the name of a model at your endpoint: type it.",
    )
    prompts = [one.prompt.name for one in list_prompts(session.store())]
    model = (judge or PROGRAM) != PROGRAM
    chosen = middle.multiselect(
        "Prompts", prompts, ["sde-1"], disabled=not model, key="judge_prompts",
        help="Several share the work, each sub-dimension once: s-1, d-1 and e-1 together.",
    )  # fmt: skip
    batches = {storable(one.name): one.id for one in list_batches(session.store())}
    scope = right.selectbox("Judge what", [_SCORED, _EVERY, *batches], key="judge_scope")
    asked = st.pills(
        "Sub-dimensions", JUDGED, selection_mode="multi", default=JUDGED, key="judge_dimensions"
    )
    limit, samples, heat, at_once, retry = st.columns(5, gap="small", vertical_alignment="bottom")
    return order_of(
        judge=judge or PROGRAM,
        prompts=chosen,
        batch=batches.get(scope or ""),
        scored=scope == _SCORED,
        dimensions=asked,
        limit=limit.number_input("Replans at most, 0: all", 0, key="judge_limit"),
        samples=samples.number_input("Runs", 1, 20, disabled=not model, key="judge_samples"),
        temperature=heat.number_input(
            "Temperature",
            0.0,
            2.0,
            None,
            0.1,
            disabled=not model,
            placeholder=f"0; of several runs {REPEATED_TEMPERATURE:g}",
            help="Several runs at temperature 0 are nearly the same run.",
            key="judge_temperature",
        ),
        concurrency=at_once.number_input(
            "Calls at once", 1, 256, 8, disabled=not model, key="judge_at_once"
        ),
        retry_failed=retry.toggle("Only failed calls, again", key="judge_retry"),
        started_by=session.user().name,
    )


def _runs() -> None:
    found = list_runs(session.store())
    if not found:
        show_note("No judge has run in this database yet.")
        return
    job = current_job(session.store())
    live = set(job.runs) if job is not None and job.running else set()
    rows = [tuple(map(_cell, run_cells(row, live=row.id in live))) for row in found]
    show_rows(RUN_HEADS, rows, right=RUN_RIGHT, height=420)


def _cell(value: str | int) -> str | int:
    return storable(value) if isinstance(value, str) else value
