"""Bring files: drop them, watch the import, read what landed and what did not."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import streamlit as st

from annotations.import_job import ImportJob, Upload
from annotations.overview import rejects_csv
from annotations.store import ImportReport
from pararecover_core.errors import InputError
from pararecover_core.formats import ReadOptions
from ui import session
from ui.access import Mode
from ui.messages import show_error, show_note
from ui.tables import show_rows

_JOB, _TURN = "_import_job", "_upload_turn"
SHOWN_REJECTS = 200
LOGS = (
    "Logs of agents: OpenAI, Anthropic, tau-bench, tau2-bench, Inspect, BFCL, OTel GenAI, "
    "OpenInference, LangSmith, Langfuse, ATIF, BUTTON, UnifiedToolHub, LLMCompiler, TaskBench. A "
    "round is one turn of the assistant. The first round with a failed call becomes an item, the "
    "agent's next turn its answer, so that you can score your own agent; where nothing fails, only "
    "the run is there to look at."
)
_KINDS = ("instance", "replan", "trajectory", "score")


def draw() -> None:
    """Draw the card."""
    st.subheader("Bring files", anchor=False)
    job: ImportJob | None = st.session_state.get(_JOB)
    if job is not None and job.running:
        _watch()
        return
    _choose()
    if job is not None:
        _outcome(job)


def _choose() -> None:
    turn = st.session_state.setdefault(_TURN, 0)
    files = st.file_uploader(
        "Drop JSONL as published, spreadsheets, CSV, our own exports or logs of agents: content "
        "tells what it is",
        accept_multiple_files=True,
        help=LOGS,
        key=f"_upload_{turn}",
    )
    paths = ""
    with st.expander("Names the files do not say, large files"):
        options = _options()
        if session.login_mode() is Mode.LOCAL:
            paths = st.text_area(
                "Files on this machine, one path a line",
                placeholder="Read where they are, without an upload",
                height=68,
                key=f"_paths_{turn}",
            )
    if st.button("Import", type="primary", disabled=not (files or paths.strip())):
        _begin(files or [], [line.strip() for line in paths.splitlines() if line.strip()], options)


def _options() -> ReadOptions:
    agent, annotator, judge = st.columns(3, gap="small")
    with agent:
        agent_name = st.text_input("Agent of answers", key="_import_agent")
    with annotator:
        annotator_name = st.text_input("Person of scores", key="_import_annotator")
    with judge:
        judge_name = st.text_input("Judge of scores", placeholder="MODEL@PROMPT", key="_import_j")
    return ReadOptions(
        agent=agent_name.strip(), annotator=annotator_name.strip(), judge=judge_name.strip()
    )


def _begin(files: list[Any], paths: list[str], options: ReadOptions) -> None:
    here = [Path(path).expanduser() for path in paths]
    missing = [path for path in here if not path.is_file()]
    if missing:
        got = "a folder" if missing[0].is_dir() else "no file"
        show_error(InputError(str(missing[0]), got, "a file on this machine", "Check the path"))
        return
    uploads = [_kept(file) for file in files] + [Upload(path, path.name) for path in here]
    st.session_state[_TURN] += 1  # a fresh uploader: the server lets go of the uploaded bytes
    st.session_state[_JOB] = ImportJob(session.store(), uploads, options).start()
    st.rerun()


def _kept(file: Any) -> Upload:
    with tempfile.NamedTemporaryFile(prefix="pararecover-", delete=False) as target:
        shutil.copyfileobj(file, target, 1 << 20)
    return Upload(Path(target.name), file.name, temporary=True)


@st.fragment(run_every=0.5)
def _watch() -> None:
    job: ImportJob = st.session_state[_JOB]
    if not job.running:
        st.rerun()
    progress = job.progress()
    left = progress.seconds_left
    guess = "" if left is None else f", about {left:,.0f} s left"
    st.progress(progress.share, text=f"{progress.items:,} rows taken{guess}")
    st.button("Stop", on_click=job.stop, help="Nothing of this import stays in the database")


def _outcome(job: ImportJob) -> None:
    if job.error is not None:
        show_error(job.error)
    elif job.stopped:
        show_note("Stopped. The database is as it was before.")
    elif job.report is not None:
        _report(job.report)


def _report(report: ImportReport) -> None:
    rows = [
        (f"{kind}s".replace("ys", "ies"), report.kinds.get(kind, 0), report.known.get(kind, 0))
        for kind in _KINDS
        if kind in report.kinds or kind in report.known
    ]
    if rows:
        show_rows(("Imported", "New", "Already there"), rows, right=(1, 2))
    elif not report.rejects:
        show_note("The files hold no rows.")
    if report.broken:
        show_note(f"Replans whose plan does not parse (S5 = 0): {report.broken:,}")
    if report.rejects:
        _rejects(report)


def _rejects(report: ImportReport) -> None:
    count = len(report.rejects)
    more = f", the first {SHOWN_REJECTS} are shown" if count > SHOWN_REJECTS else ""
    words, button = st.columns([3, 1], vertical_alignment="center")
    words.markdown(f"**{count:,} not taken**{more}")
    button.download_button(
        "All as CSV", lambda: rejects_csv(report.rejects), "rejects.csv", "text/csv",
        on_click="ignore", width="stretch",
    )  # fmt: skip
    shown = report.rejects[:SHOWN_REJECTS]
    show_rows(
        ("Where", "Got", "Expected", "What to do"),
        [(str(one.place), one.got, one.expected, one.cure) for one in shown],
        height=260,
    )
