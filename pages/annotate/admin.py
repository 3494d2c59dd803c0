"""Batches: make them, see how far they are, give stale claims back."""

from typing import Any

import streamlit as st

from annotations import adjudicate, batches, progress, queue
from annotations.batches import Batch, BatchPlan, Preview
from annotations.blind import Reveal
from pararecover_core.errors import ParaRecoverError
from pararecover_core.literals import whole_number
from pararecover_core.rubric import JUDGED
from ui import batch_form, queue_data, queue_view, session
from ui.access import Role
from ui.batch_form import Draw, Offers
from ui.messages import attempt, show_error
from ui.shell import asset

_FORM = "prq_new_"
"""Prefix of the form's keys."""


def render() -> None:
    """Draw the page."""
    st.html(f"<style>{asset('queue.css')}</style>")
    if not session.user().may(Role.ADMIN):
        words = "Ask one to make a batch or to give you the role."
        st.html(queue_view.empty("Batches are made by administrators.", words))
        return
    found = batches.list_batches(session.store())
    offered = batch_form.offers(session.store())
    making = st.session_state.get("prq_making", False) or not found
    _bar(found, making)
    if not offered.replans:
        st.html(
            queue_view.empty(
                "No answer to score yet.",
                "Batches are drawn from agents' answers (replans).",
                ("dataset", "Import a results spreadsheet"),
            )
        )
        return
    if making:
        _form(found, offered)
    elif found:
        _overview(found)


def _bar(found: list[Batch], making: bool) -> None:
    with st.container(
        key="pr_queue_bar", horizontal=True, vertical_alignment="center", gap="small"
    ):
        st.html('<span class="prq-title">Batches</span>', width="content")
        st.space("stretch")
        if found and making:
            st.button("Back to the list", key="prq_toggle", on_click=_toggle, args=(False,))
        elif found:
            st.button("New batch", key="prq_toggle", on_click=_toggle, args=(True,), type="primary")
        st.button("Annotate", key="prq_annotate", on_click=_go, args=("",))


def _toggle(making: bool) -> None:
    st.session_state["prq_making"] = making


def _go(view: str) -> None:
    """Open another view of the page, on the batch at hand."""
    st.query_params.pop("item", None)
    if view:
        st.query_params["view"] = view
    else:
        st.query_params.pop("view", None)


# ---- the list and one batch ----------------------------------------------------------------


def _overview(found: list[Batch]) -> None:
    left, right = st.columns([1, 3], gap="small")
    by_id = {batch.id: batch for batch in found}
    with left.container(border=True, key="prq_card_batches"), st.container(key="prq_list"):
        chosen = st.radio(
            queue_view.counted(len(found), "batch", "batches"),
            list(by_id),
            index=_linked(list(by_id)),
            format_func=lambda number: queue_view.plain(by_id[number].name),
            captions=[queue_view.caption(batch) for batch in found],
            key="prq_batch",
        )
    st.query_params["batch"] = str(chosen)
    with right:
        _details(by_id[chosen])


def _linked(known: list[int]) -> int:
    """Place of the batch that the link names, else of the newest one."""
    linked = whole_number(st.query_params.get("batch", ""))
    return known.index(linked) if linked in known else 0


def _details(batch: Batch) -> None:
    store = session.store()
    people = queue_data.people(batch.id)
    pairs = adjudicate.item_figures(queue_data.shared_items(batch.id))
    st.html(queue_view.heading(batch.name, queue_view.description(batch, JUDGED)))
    if batch.plan.get("short"):
        st.html(queue_view.note(batch.plan["short"]))
    st.html(queue_view.batch_strip(batch, people, pairs))
    with st.container(border=True, key="prq_card_people"):
        st.html('<div class="prq-head">Annotators</div>')
        if people:
            st.html(queue_view.people_table(people))
        else:
            st.html(
                queue_view.empty(
                    "Nobody has started.",
                    "Send annotators this link:",
                    (f"annotate?batch={batch.id}", f"annotate?batch={batch.id}"),
                )
            )
    raised = progress.flags(store, batch.id)
    if raised:
        with st.container(border=True, key="prq_card_flags"):
            st.html('<div class="prq-head">Flags</div>')
            st.html(queue_view.flags_table(batch.id, raised))
    _actions(batch, sum(one.open for one in people), pairs.waiting)


def _actions(batch: Batch, at_work: int, waiting: int) -> None:
    with st.container(key="prq_actions", horizontal=True, vertical_alignment="center", gap="small"):
        words = f"Adjudicate {waiting:,}" if waiting else "See agreement"
        st.button(words, key="prq_open_adjudication", on_click=_go, args=("adjudicate",))
        with st.popover("Release stale claims", disabled=not at_work):
            _release(batch)
        address = f"dataset?batch={batch.id}"
        st.html(queue_view.link(address, "Export this batch's scores"), width="content")
    said = st.session_state.pop("prq_said", "")
    if said:
        st.toast(said)


def _release(batch: Batch) -> None:
    """Ask how long is stale, then release."""
    words = (
        "Claims that nobody touched or scored for this long go to others. Scores stay, and"
        " whoever comes back first goes on."
    )
    st.html(queue_view.sub(words))
    minutes = st.number_input(
        "Minutes without a touch", 1, 10_000, round(batch.stale_minutes) or 1, key="prq_minutes"
    )
    if st.button("Release now", key="prq_release", type="primary"):
        count = attempt(queue.release_stale, session.store(), batch.id, minutes=minutes)
        if count is not None:
            st.session_state["prq_said"] = f"{queue_view.counted(count, 'claim')} released."
            st.rerun()


# ---- a new batch ---------------------------------------------------------------------------


@st.fragment
def _form(found: list[Batch], offered: Offers) -> None:
    with st.container(border=True, key="prq_card_form"):
        way = st.segmented_control(
            "How replans are drawn",
            list(Draw),
            key=_FORM + "draw",
            default=Draw.RANDOM,
            required=True,
            on_change=_preset,
            args=({batch.name for batch in found},),
        )
        left, right = st.columns(2, gap="medium")
        with left:
            _drawing(found, way or Draw.RANDOM, offered.replans)
        with right:
            _filters(offered)
        _asking()
        plan = batch_form.plan_of(_values(), session.user().name)
        _make(plan, offered)


def _preset(taken: set[str]) -> None:
    """Fill in what the chosen way of drawing brings, and a name where none was typed."""
    way = st.session_state[_FORM + "draw"] or Draw.RANDOM
    for name, value in batch_form.PRESETS[way].items():
        st.session_state[_FORM + name] = value
    if batch_form.is_free_name(st.session_state.get(_FORM + "name", "")):
        st.session_state[_FORM + "name"] = batch_form.free_name(taken, way)


def _values() -> dict[str, Any]:
    return {
        str(key).removeprefix(_FORM): value
        for key, value in st.session_state.items()
        if str(key).startswith(_FORM)
    }


def _drawing(found: list[Batch], way: Draw, most: int) -> None:
    preset = batch_form.PRESETS[way]
    usual = preset["size"] if way is Draw.PAPER else min(preset["size"], most)
    name, size, seed = st.columns([2, 1, 1], gap="small")
    taken = {batch.name for batch in found}
    name.text_input("Name", batch_form.free_name(taken, way), key=_FORM + "name", max_chars=80)
    words = "Replans each" if way is Draw.PAPER else "Replans"
    size.number_input(words, 1, 1_000_000, usual, key=_FORM + "size")
    seed.number_input(
        "Seed", 0, 2**31, 0, key=_FORM + "seed", help="Same seed and data: the same batch."
    )
    if way is Draw.STRATIFIED:
        by, share = st.columns([2, 1], gap="small", vertical_alignment="bottom")
        by.pills(
            "Strata",
            list(batch_form.STRATA),
            selection_mode="multi",
            default=["level"],
            format_func=lambda stratum: batch_form.STRATA[stratum],
            key=_FORM + "stratify",
            help="The error type is that of the newest round that has one.",
        )
        share.checkbox("Equal shares", key=_FORM + "equal", help="Else in proportion.")
    one, two = st.columns(2, gap="small")
    one.number_input(
        "Annotators of a shared item",
        1,
        batches.MOST_ANNOTATORS,
        preset["annotators"],
        key=_FORM + "annotators",
    )
    two.number_input(
        "Shared items, %",
        0,
        100,
        preset["share"],
        key=_FORM + "share",
        help="Items that get all these annotators, for agreement; the others get one.",
    )


def _asking() -> None:
    st.pills(
        "Sub-dimensions",
        list(JUDGED),
        selection_mode="multi",
        default=list(JUDGED),
        key=_FORM + "dimensions",
        help="S5 and E5 are computed.",
    )


def _filters(offered: Offers) -> None:
    one, two = st.columns(2, gap="small")
    one.multiselect("Levels", offered.levels, key=_FORM + "levels", placeholder="All")
    two.multiselect("Sources", offered.sources, key=_FORM + "sources", placeholder="All")
    st.multiselect("Error types", offered.error_types, key=_FORM + "error_types", placeholder="All")
    st.multiselect("Agents", offered.agents, key=_FORM + "agents", placeholder="All")
    one, two = st.columns(2, gap="small")
    one.selectbox(
        "Reveal",
        [Reveal.AFTER_SUBMIT, Reveal.NEVER, Reveal.OPEN],
        format_func=lambda rule: Reveal(rule).label,
        key=_FORM + "reveal",
        help="When judge, agent, error tags and others' scores may be seen.",
    )
    two.number_input(
        "Stale claims, minutes",
        1,
        10_000,
        batches.STALE_MINUTES,
        key=_FORM + "stale",
        help="A claim that nobody touched for so long goes to others.",
    )
    one, two = st.columns(2, gap="small")
    one.checkbox("Only replans that are in no batch yet", key=_FORM + "unbatched")
    two.checkbox(
        "Hide E5 while blind",
        key=_FORM + "hide_outcome",
        help="E5 tells how the run ended; it is shown with the reveal.",
    )


def _make(plan: BatchPlan, offered: Offers) -> None:
    """Say what the plan would give, and make it."""
    try:
        expected = _preview(str(session.database()), plan, offered.state)
    except ParaRecoverError as error:
        show_error(error)
        return
    if expected.short:
        st.html(queue_view.note(expected.short))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(
            "Make this batch", key="prq_make", type="primary", disabled=not expected.items
        ):
            made = attempt(batches.create_batch, session.store(), plan)
            if made:
                _made(made)
        st.html(queue_view.sub(queue_view.preview_text(expected)))


@st.cache_data(show_spinner="Counting", max_entries=50, hash_funcs={BatchPlan: repr})
def _preview(database: str, plan: BatchPlan, state: tuple[int, int]) -> Preview:
    """What a plan would give; kept until something is imported into the same database."""
    return batches.preview(session.store(), plan)


def _made(made: Batch) -> None:
    """Show the new batch in place of the form."""
    for key in [key for key in st.session_state if str(key).startswith(_FORM)]:
        del st.session_state[key]
    st.session_state.pop("prq_batch", None)
    st.session_state["prq_making"] = False
    st.session_state["prq_said"] = f"Batch {made.name} is ready."
    st.query_params["batch"] = str(made.id)
    st.rerun()
