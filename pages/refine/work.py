"""Runs of the Refine page: a version on dev or held-out, and the automatic refinement."""

from collections.abc import Sequence

import streamlit as st

from annotations.judge_job import start_job
from annotations.judge_words import announce, money
from annotations.judges import Prepared, answers
from annotations.prompts import get_prompt, list_prompts
from annotations.refine_job import RefineJob, start_refining, steps_of
from annotations.refine_words import STEP_HEADS, STEP_RIGHT, begun_words, rule_words, step_cells
from annotations.refining import Unrun, Version, dev_items, named, prepare_run
from annotations.score_log import storable
from annotations.sessions import Session, Side
from pararecover_core.completions import endpoint_from_environment
from pararecover_core.refine import Proposer, Rules
from ui import session
from ui.messages import attempt, show_note
from ui.tables import show_rows

_RUN, _AUTO = "refine_run", "refine_auto"
_SIDES = {Side.DEV: "dev", Side.HELD_OUT: "held-out (shows nothing yet)"}


def run(chosen: Session, model: str, current: Version | None) -> None:
    """Run a judge on one side of the session."""
    store = session.store()
    box = st.popover("Run", icon=":material/play_arrow:", key=_RUN, on_change="rerun")
    if not box.open:
        return
    with box:
        asked = st.text_input("Model at the endpoint", model, key="refine_run_model")
        names = "+".join(p.name for p in current.prompts) if current else "s+d+e"
        prompts = st.text_input(
            "Prompts, + between them",
            names,
            key="refine_run_prompts",
            help=f"Known: {', '.join(one.prompt.name for one in list_prompts(store))}. "
            "An id alone means its newest version.",
        )
        side = st.radio("Side", list(Side), format_func=_SIDES.__getitem__, horizontal=True)
        again = st.toggle("Only failed calls, again", key="refine_run_again")
        if not asked or side is None:
            show_note("Name the model that judges.")
            return
        made = attempt(_prepared, chosen, asked, prompts, side, again)
        if made is None:
            return
        for line in announce(made, "the switch above"):
            show_note(storable(line))
        words = f"Run, {made.calls:,} {'call' if made.calls == 1 else 'calls'}"
        st.button(
            words, type="primary", disabled=not made.calls, key="refine_go",
            on_click=_start, args=(made,),
        )  # fmt: skip


def _prepared(chosen: Session, model: str, prompts: str, side: Side, again: bool) -> Prepared:
    who = session.user().name
    return prepare_run(session.store(), chosen.id, model, prompts, side, by=who, retry_failed=again)


def _start(made: Prepared) -> None:
    attempt(start_job, session.store(), made.parts)
    st.session_state[_RUN] = False


def run_version(chosen: Session, scorer: str, side: Side) -> None:
    """Run a judge that is known by its scorer name on a side."""
    of = named(scorer)
    made = attempt(_prepared, chosen, of.model, "+".join(of.prompts), side, False)
    if made is not None:
        attempt(start_job, session.store(), made.parts)


def waiting(chosen: Session, model: str, found: Sequence[Unrun]) -> None:
    """Versions that were saved and not run yet; the newest can be run from here."""
    if not found:
        return
    newest = found[0]
    made = attempt(_prepared, chosen, model, newest.prompts, Side.DEV, False)
    if made is None:
        return
    words = f"{newest.label} is saved; {model} has not run it on dev: {newest.note}"
    if len(found) > 1:
        words += f". Not run either: {', '.join(one.label for one in found[1:6])}"
    left, right = st.columns([3, 1], vertical_alignment="center")
    with left:
        show_note(storable(words)[:300])
    price = money(made.forecast.cost) if made.forecast else ""
    right.button(
        f"Run {newest.label} on dev, {made.calls:,} calls",
        type="primary", key="refine_run_new", on_click=_start, args=(made,), width="stretch",
        disabled=not made.calls, help=price.replace("$", "US dollars "),
    )  # fmt: skip


def propose(chosen: Session, model: str, current: Version | None) -> None:
    """Let a model propose edits; only those that win on dev are kept."""
    store = session.store()
    box = st.popover("Propose edits", icon=":material/auto_fix:", key=_AUTO, on_change="rerun")
    if not box.open:
        return
    names = [one.prompt.name for one in list_prompts(store)]
    first = (current.edited or current.prompts[0]).name if current else names[-1]
    with box:
        left, right = st.columns(2)
        judge = left.text_input("Judge's model", model, key="refine_auto_judge")
        proposer = right.text_input(
            "Proposer's model", key="refine_proposer", placeholder="the judge's"
        )
        prompt = st.selectbox(
            "Begin with", names, index=names.index(first), key="refine_auto_prompt"
        )
        left, right = st.columns(2)
        tries = left.number_input("Stop after tries without a win", 1, 20, 3)
        most = right.number_input("Edits in all", 1, 100, 10)
        tokens = left.number_input("Budget, tokens (0: none)", 0, 10**9, 0, step=10_000)
        paid = right.number_input("Budget, US dollars (0: none)", 0.0, 1e6, 0.0)
        ema = left.number_input("Target EMA (0: none)", 0.0, 1.0, 0.0)
        mae = right.number_input("Target MAE (1: none)", 0.0, 1.0, 1.0)
        earlier = steps_of(store, chosen.id, judge, prompt)
        rules = Rules(tries=tries, most=most, tokens=tokens, money=paid, ema=ema, mae=mae)
        st.button(
            "Go on" if earlier else "Begin",
            type="primary",
            disabled=not judge,
            key="refine_auto_go",
            on_click=_refine,
            args=(chosen, judge, proposer or judge, prompt, rules),
        )
        show_note(f"{begun_words(earlier)} {rule_words()}".strip())
        if earlier:
            rows = [step_cells(step) for step in earlier]
            show_rows(STEP_HEADS, rows, right=STEP_RIGHT, height=160)


def _refine(chosen: Session, judge: str, proposer: str, prompt: str, rules: Rules) -> None:
    attempt(_begin, chosen, judge, proposer, prompt, rules)
    st.session_state[_AUTO] = False


def _begin(chosen: Session, judge: str, proposer: str, prompt: str, rules: Rules) -> None:
    from pararecover_core.llm import Model  # takes a third of a second to import
    from pararecover_core.refine_models import ModelProposer

    store, who = session.store(), session.user().name
    model = Model(endpoint_from_environment(proposer), cache=answers())
    start = get_prompt(store, prompt)

    def ask() -> Proposer:
        return ModelProposer(model, dev_items(store, chosen.id))

    start_refining(
        store,
        lambda: RefineJob(store, chosen.id, judge, start, ask, rules=rules, author=who),
    )
