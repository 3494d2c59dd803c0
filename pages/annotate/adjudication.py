"""Adjudication: where annotators differ, read the item, decide, say why."""

from uuid import uuid4

import streamlit as st

from annotations import adjudicate, batches
from annotations.adjudicate import Cell, ItemAgreement
from annotations.batches import Batch
from pararecover_core.literals import whole_number
from pararecover_core.rubric import sde_rubric
from ui import queue_data, queue_view, reading_panel, session
from ui.access import Role
from ui.messages import attempt
from ui.queue_view import Which
from ui.shell import asset

PAGE_SIZE = 40
_EVERY = -1
"""Stands for every item of the database where a batch is chosen."""


def render() -> None:
    """Draw the page."""
    st.html(f"<style>{asset('queue.css')}</style>")
    if not session.user().may(Role.ADJUDICATOR):
        words = "Ask an administrator for the role."
        st.html(queue_view.empty("Adjudicators decide here.", words))
        return
    _page(batches.list_batches(session.store()))


@st.fragment
def _page(found: list[Batch]) -> None:
    batch, which = _bar(found)
    number = batch.id if batch else None
    items = queue_data.shared_items(number)
    if not items:
        st.html(queue_view.empty("No item by two or more annotators yet.", *_none_shared(batch)))
        return
    figures = queue_view.pairs_line(adjudicate.item_figures(items))
    listed = queue_view.cells_of(items, which)
    if which is Which.ITEMS:
        with st.container(border=True, key="prq_card_items"):
            st.html(queue_view.sub(figures))
            st.html(queue_view.items_table(number, items))
        return
    if not listed:
        st.html(queue_view.empty(*queue_view.nothing_of(which)))
        return
    left, middle, right = st.columns([1.5, 4.6, 2.4], gap="small")
    with left:
        item, cell = _choose(listed, figures)
    with right.container(border=True, key="prq_card_decide"):
        _decide(number, item, cell)
    with middle:
        reading_panel.show(cell.replan, key="prq_reading")


def _none_shared(batch: Batch | None) -> tuple[str, tuple[str, str]]:
    """Why there is nothing to decide, and where to go on."""
    if batch is None:
        words = "Make a batch whose items two or more people score; what they differ on comes here."
        return words, ("annotate?view=admin", "Make a batch")
    words = (
        "Agreement shows once two annotators have submitted the same item."
        f" This batch has {queue_view.counted(batch.submitted, 'submitted scoring')} so far."
    )
    return words, (f"annotate?view=admin&batch={batch.id}", "See its progress")


def _bar(found: list[Batch]) -> tuple[Batch | None, Which]:
    """The batch at hand, None for every item of the database, and what is listed."""
    names = {_EVERY: "Every item", **{batch.id: batch.name for batch in found}}
    with st.container(
        key="pr_queue_bar", horizontal=True, vertical_alignment="center", gap="small"
    ):
        st.html('<span class="prq-title">Adjudication</span>', width="content")
        number = st.selectbox(
            "Batch",
            list(names),
            index=_linked(list(names)),
            format_func=lambda n: names[n],
            label_visibility="collapsed",
            key="prq_adj_batch",
            width=220,
        )
        which = st.segmented_control(
            "Which",
            list(Which),
            default=_asked(),
            required=True,
            label_visibility="collapsed",
            key="prq_adj_which",
        )
        st.space("stretch")
        st.button("Batches", key="prq_admin", on_click=_go, args=("admin",))
        st.button("Annotate", key="prq_annotate", on_click=_go, args=("",))
    st.query_params["batch"] = "all" if number == _EVERY else str(number)
    if which is Which.WAITING:
        st.query_params.pop("which", None)
    else:
        st.query_params["which"] = which.name.lower()
    batch = next((batch for batch in found if batch.id == number), None)
    return batch, which


def _asked() -> Which:
    """What the link asks to list."""
    asked = st.query_params.get("which", "").upper()
    return Which.__members__.get(asked, Which.WAITING)


def _linked(known: list[int]) -> int:
    """Place of the batch that the link names, else of every item."""
    linked = whole_number(st.query_params.get("batch", ""))
    return known.index(linked) if linked in known else 0


def _go(view: str) -> None:
    for name in ("replan", "dimension", "which"):
        st.query_params.pop(name, None)
    if st.query_params.get("batch") == "all":
        del st.query_params["batch"]
    if view:
        st.query_params["view"] = view
    else:
        st.query_params.pop("view", None)


def _choose(listed: list[tuple[ItemAgreement, Cell]], figures: str) -> tuple[ItemAgreement, Cell]:
    """The list of disagreements, and the one that is open."""
    by_key = {f"{cell.replan}/{cell.dimension}": (item, cell) for item, cell in listed}
    linked = f"{st.query_params.get('replan', '')}/{st.query_params.get('dimension', '')}"
    pages = -(-len(listed) // PAGE_SIZE)
    keys = list(by_key)
    start = 1 + keys.index(linked) // PAGE_SIZE if linked in by_key else 1
    with st.container(border=True, key="prq_card_list"), st.container(key="prq_list"):
        st.html(queue_view.sub(figures))
        page = st.pagination(pages, default=start, key="prq_adj_page") if pages > 1 else 1
        shown = keys[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
        chosen = st.radio(
            queue_view.counted(len(listed), "disagreement"),
            shown,
            index=shown.index(linked) if linked in shown else 0,
            format_func=lambda key: queue_view.cell_label(*by_key[key]),
            captions=[queue_view.cell_caption(by_key[key][1]) for key in shown],
        )
    item, cell = by_key[chosen]
    st.query_params["replan"], st.query_params["dimension"] = cell.replan, cell.dimension
    return item, cell


def _decide(batch: int | None, item: ItemAgreement, cell: Cell) -> None:
    dimension = sde_rubric().dimension(cell.dimension)
    notes = adjudicate.sample_notes(session.store(), batch, cell.replan)
    st.html(queue_view.anchors(dimension))
    st.html(queue_view.opinions(cell.opinions, notes))
    if session.user().name in item.annotators:
        st.html(queue_view.note("You scored this item yourself; better let somebody else decide."))
    if cell.outdated:
        st.html(queue_view.note("A score changed after this decision. Look at it again."))
    place = f"{cell.replan}/{cell.dimension}/{cell.decision.revision if cell.decision else 0}"
    value = st.segmented_control(
        "Your decision", [1.0, 0.5, 0.0], format_func=queue_view.level, key=f"prq_value/{place}"
    )
    reason = st.text_area(
        "Why", key=f"prq_why/{place}", height=90, placeholder="What in the item decides it"
    )
    ready = value is not None and bool(reason.strip())
    words = "Decide again" if cell.decided else "Decide"
    if st.button(words, key=f"prq_decide/{place}", type="primary", disabled=value is None):
        if not ready:
            st.html(queue_view.note("Say why first: annotators learn from it."))
        elif value is not None:
            _store(batch, cell, value, reason, place)
    history = adjudicate.decisions(session.store(), cell.replan, cell.dimension)
    if history:
        st.html(queue_view.history(history))
    st.html(queue_view.item_summary(item))


def _store(batch: int | None, cell: Cell, value: float, reason: str, place: str) -> None:
    event = st.session_state.setdefault(f"prq_event/{place}", str(uuid4()))
    made = attempt(
        adjudicate.adjudicate,
        session.store(),
        replan=cell.replan,
        dimension=cell.dimension,
        value=value,
        adjudicator=session.user().name,
        reason=reason,
        event=event,
        base_revision=cell.decision.revision if cell.decision else 0,
        batch=batch,
    )
    if made:
        st.toast(f"{cell.dimension} decided: {queue_view.level(value)}.")
        st.rerun()
