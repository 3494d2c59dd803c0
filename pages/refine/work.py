"""Runs of the Refine page: a version on dev or held-out, and the automatic refinement."""

from collections.abc import Callable

import streamlit as st

from annotations.judge_job import current_job, start_job
from annotations.judges import cache_folder
from annotations.prompts import get_prompt, list_prompts
from annotations.refining import (
    current_refining,
    dev_items,
    prepare_run,
    refine_session,
    start_refining,
)
from annotations.score_log import storable
from annotations.sessions import Session, Side
from annotations.store import Store
from pararecover_core.completions import FileCache, endpoint_from_environment
from pararecover_core.figures import fixed
from pararecover_core.refine import Outcome, Rules, Step
from ui import session
from ui.messages import attempt, show_error, show_note
from ui.tables import show_rows


def run(chosen: Session, model: str) -> None:
    """Run a judge on one side of the session."""
    store = session.store()
    with st.popover("Run", icon=":material/play_arrow:", key="refine_run"):
        asked = st.text_input("Model at the endpoint", model, key="refine_run_model")
        default = st.session_state.get("_refine_next", "s+d+e")
        prompts = st.text_input(
            "Prompts, + between them",
            default,
            help=f"Known: {', '.join(one.prompt.name for one in list_prompts(store))}. "
            "An id alone means its newest version.",
        )
        words = {Side.DEV: "dev", Side.HELD_OUT: "held-out (shows nothing yet)"}
        side = st.radio("Side", list(Side), format_func=lambda one: words[one], horizontal=True)
        if not asked or side is None:
            return
        who = session.user().name
        made = attempt(prepare_run, store, chosen.id, asked, prompts, side, by=who)
        if made is None:
            return
        cost = "cost unknown"
        if made.forecast is not None and made.forecast.cost is not None:
            cost = f"about {fixed(made.forecast.cost, 2)} US dollars"
        if not made.calls:
            show_note("Nothing to do: every cell of this side has this judge's score.")
        elif st.button(f"Run, {made.calls:,} calls, {cost}", type="primary", key="refine_go"):
            attempt(start_job, store, made.parts)
            st.rerun()


def propose(chosen: Session) -> None:
    """Let a model propose edits; only those that win on dev are kept."""
    store = session.store()
    with st.popover("Propose edits", icon=":material/auto_fix:", key="refine_auto"):
        judge = st.text_input("Judge's model", key="refine_auto_judge")
        proposer = st.text_input("Proposer's model, the judge's if empty", key="refine_proposer")
        names = [one.prompt.name for one in list_prompts(store)]
        prompt = st.selectbox("Begin with", names, index=len(names) - 1, key="refine_auto_prompt")
        left, right = st.columns(2)
        tries = left.number_input("Stop after tries without a win", 1, 20, 3)
        most = right.number_input("Edits in all", 1, 100, 10)
        tokens = left.number_input("Budget, tokens (0: none)", 0, 10**9, 0, step=10_000)
        money = right.number_input("Budget, US dollars (0: none)", 0.0, 1e6, 0.0)
        ema = left.number_input("Target EMA (0: none)", 0.0, 1.0, 0.0)
        mae = right.number_input("Target MAE (1: none)", 0.0, 1.0, 1.0)
        show_note(
            "An edit is kept only if the paired test on dev gives p < 0.05 and the interval of the "
            "difference of EMA excludes 0. The held-out side is not read."
        )
        if judge and st.button("Begin", type="primary", key="refine_auto_go"):
            rules = Rules(tries=tries, most=most, tokens=tokens, money=money, ema=ema, mae=mae)
            who = session.user().name
            attempt(_begin, store, chosen, judge, proposer or judge, prompt, rules, who)
            st.rerun()


def _begin(
    store: Store, chosen: Session, judge: str, proposer: str, prompt: str, rules: Rules, who: str
) -> None:
    from pararecover_core.llm import Model  # takes a third of a second to import
    from pararecover_core.refine_models import ModelProposer

    model = Model(endpoint_from_environment(proposer), cache=FileCache(cache_folder()))
    start = get_prompt(store, prompt)

    def work(done: Callable[[Step], object], cancelled: Callable[[], bool]) -> Outcome:
        items = ModelProposer(model, dev_items(store, chosen.id))
        return refine_session(
            store, chosen.id, judge, start, items,
            rules=rules, author=who, done=done, cancelled=cancelled,
        )  # fmt: skip

    start_refining(store, work)


def progress() -> None:
    """How far runs are; drawn again every second while one goes on."""
    store = session.store()
    job, refining = current_job(store), current_refining(store)
    running = bool((job and job.running) or (refining and refining.running))
    if running:
        st.session_state["_refine_ran"] = True
        st.fragment(_moving, run_every=1.0)()
    else:
        _ended()


def _moving() -> None:
    store = session.store()
    job, refining = current_job(store), current_refining(store)
    if not (job and job.running) and not (refining and refining.running):
        st.rerun()
    if job and job.running:
        now = job.progress()
        cost = "" if now.cost is None else f", {fixed(now.cost, 2)} US dollars"
        left = "" if now.seconds_left is None else f", {now.seconds_left:.0f} s left"
        words = f"Judging: {now.done:,} of {now.total:,} calls, {now.failed:,} failed{cost}{left}"
        st.progress(now.share, words)
        st.button("Stop the run", on_click=job.stop, key="refine_stop")
    if refining and refining.running:
        show_note(f"Refining: {len(refining.steps)} steps so far.")
        _steps(refining.steps)
        st.button("Stop refining", on_click=refining.stop, key="refine_auto_stop")


def _ended() -> None:
    """What the last run left to say, once."""
    if not st.session_state.pop("_refine_ran", False):
        return
    store = session.store()
    job, refining = current_job(store), current_refining(store)
    if job and job.error:
        show_error(job.error)
    elif job and job.message:
        show_note(f"The run ended: {job.message}")
    if refining and refining.error:
        show_error(refining.error)
    elif refining and refining.outcome:
        show_note(
            f"Refined: the best prompt is {refining.outcome.prompt.name}. "
            f"Stopped: {refining.outcome.stopped}."
        )
        _steps(refining.steps)


def _steps(steps: list[Step]) -> None:
    rows = [
        (
            step.prompt.name,
            step.dimension or "all",
            fixed(step.ema) if step.n else "not judged",
            step.fate.value,
            storable(step.detail),
            storable(step.prompt.note)[:200],
        )
        for step in steps
    ]
    if rows:
        show_rows(("Version", "For", "EMA on dev", "Fate", "Test", "Note"), rows, height=220)
