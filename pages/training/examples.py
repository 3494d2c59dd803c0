"""The right side of the page: the examples, to read, take out with a reason, and put back."""

import uuid
from collections.abc import Sequence
from html import escape
from itertools import islice

import streamlit as st

from annotations import training, training_files
from annotations.score_log import storable
from annotations.store import Store
from annotations.training_files import Wanted
from pararecover_core.errors import ParaRecoverError
from pararecover_core.preferences import Candidate, Decision, Example, Kind, Selection
from ui import session
from ui.messages import show_error, show_note

_PAGE = 12
_QUERY = 160
_RUNS = 8


def draw(wanted: Wanted, chosen: Selection) -> None:
    """Draw the list, a page at a time."""
    sides = {"kept": chosen.examples, "out": chosen.dropped}
    words = {"kept": f"Kept {len(chosen.examples):,}", "out": f"Taken out {len(chosen.dropped):,}"}
    with st.container(horizontal=True, vertical_alignment="center"):
        side = st.segmented_control(
            "Which", list(sides), default="kept", required=True, format_func=words.__getitem__,
            key="tr_side", label_visibility="collapsed", width="content",
        )  # fmt: skip
        listed = sides[side or "kept"]
        first = _first(len(listed))
    if not listed:
        show_note(_nothing(wanted, chosen) if side != "out" else "Nothing was taken out by hand.")
        return
    with st.container(key="tr_list"):
        for place, one in enumerate(listed[first : first + _PAGE], start=first):
            _row(wanted, one, place)


def _nothing(wanted: Wanted, chosen: Selection) -> str:
    if not chosen.totals:
        return "This scorer has no answer with all 15 sub-dimensions: choose another one above."
    rules, best = wanted.rules, max(chosen.totals)
    if wanted.kind == "dpo":
        return (
            "No two answers to one instance differ enough. Lower the gap, or the total that both "
            f"need (the best total is {best:.1f}), or bring answers of more agents."
        )
    if best > rules.above:
        return "Every good answer is on the other side of the split, or was taken out by hand."
    return f"No total is above {rules.above:g}: the best one is {best:.1f}. Lower the threshold."


def _first(count: int) -> int:
    """Where the page begins, with buttons that turn it."""
    pages = max(-(-count // _PAGE), 1)
    page = min(int(st.session_state.get("tr_page", 0)), pages - 1)
    if pages > 1:
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            st.button("Back", icon=":material/chevron_left:", key="tr_back", disabled=not page,
                      help="The page before", on_click=_turn, args=(page - 1,))  # fmt: skip
            st.html(f'<span class="tr-said">{page + 1:,} of {pages:,}</span>', width="content")
            st.button("Next", icon=":material/chevron_right:", key="tr_next",
                      disabled=page + 1 == pages, help="The next page", on_click=_turn,
                      args=(page + 1,))  # fmt: skip
    return page * _PAGE


def _turn(page: int) -> None:
    st.session_state["tr_page"] = page


def _row(wanted: Wanted, one: Example, place: int) -> None:
    with st.container(key=f"tr_row_{place}", horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch"):
            st.html(_line(one, wanted))
        if one.decision is not None and not one.decision.keep:
            st.button("Put back", key=f"tr_undo_{place}", on_click=_put_back, args=(wanted, one))
        if st.button("Read", key=f"tr_read_{place}", help="Read it, keep it or take it out"):
            _read(wanted, one)


def _line(one: Example, wanted: Wanted) -> str:
    query = escape(storable(" ".join(one.chosen.query.split())[:_QUERY]))
    if one.rejected is None:
        label = ""
        if wanted.kind == "kto":
            label = " good" if one.chosen.total > wanted.rules.above else " bad"
        head = f"<b>{one.chosen.total:.1f}{label}</b>{_link(one.chosen)}"
    else:
        totals = f"{one.chosen.total:.1f} &gt; {one.rejected.total:.1f}"
        head = f"<b>{totals}</b>{_link(one.chosen)}{_link(one.rejected)}"
    said = f'<div class="tr-said">{escape(decided(one.decision))}</div>' if one.decision else ""
    return f'<div class="tr-one">{head}<span title="{query}">{query}</span></div>{said}'


def _link(one: Candidate) -> str:
    agent = escape(storable(one.agent)[:40]) or "answer"
    where = f"trajectories?item={escape(one.replan)}"
    return f'<a href="{where}" target="_self" title="Opens it on Trajectories">{agent}</a>'


def decided(one: Decision) -> str:
    """What somebody decided, in a line."""
    what = "Read and kept" if one.keep else "Taken out"
    reason = f": {storable(one.reason)}" if one.reason else ""
    return f"{what} by {storable(one.by) or 'somebody'}, {one.at[:16].replace('T', ' ')}{reason}"


def _decide(wanted: Wanted, example: str, keep: bool, reason: str) -> bool:
    kind: Kind = "dpo" if wanted.kind == "dpo" else "sft"
    try:
        training.decide(
            session.store(), kind, example, keep=keep, reason=reason,
            by=session.user().name, event=uuid.uuid4().hex,
        )  # fmt: skip
    except ParaRecoverError as error:
        show_error(error)
        return False
    return True


def _put_back(wanted: Wanted, one: Example) -> None:
    _decide(wanted, one.id, True, "put back")


@st.dialog("Example", width="large")
def _read(wanted: Wanted, one: Example) -> None:
    store = session.store()
    [text] = training.texts(store, [one], tools_apart=wanted.tools)
    st.html(_line(one, wanted))
    prompt = "\n\n".join(message["content"] for message in text.prompt)
    _text("Prompt", prompt)
    if text.rejected:
        left, right = st.columns(2, gap="small")
        with left:
            _text(f"Better, {one.chosen.total:.1f}", text.chosen)
        with right:
            _text(f"Worse, {one.rejected.total if one.rejected else 0:.1f}", text.rejected)
    else:
        _text("Answer", text.chosen)
    reason = st.text_input(
        "Reason", key=f"tr_reason_{one.id}", help="Needed to take it out; goes into the card."
    )
    with st.container(horizontal=True):
        if st.button("Take out", type="primary", key="tr_drop") and _decide(
            wanted, one.id, False, reason
        ):
            st.rerun()
        if st.button("Keep", key="tr_keep", help="Says that it was read and stays") and _decide(
            wanted, one.id, True, reason
        ):
            st.rerun()


def _text(title: str, text: str) -> None:
    st.html(
        f'<b>{escape(title)}</b><pre class="tr-text" tabindex="0">{escape(storable(text))}</pre>'
    )


def runs(store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection) -> None:
    """The first runs whose every round has a label."""
    shown = list(islice(training_files.texts(store, wanted, found, chosen), _RUNS))
    if not shown:
        show_note(
            "No run has a label for each of its rounds. A round counts as right where the answer "
            "that it gave is scored as a replan with a total above the threshold; labels may also "
            "come with a run, as its list labels."
        )
        return
    show_note(f"The first {len(shown)} runs; a round is right where its total is above the line.")
    for one in shown:
        rounds = zip(one.steps, one.labels, strict=True)
        steps = "\n\n".join(f"{'right' if right else 'wrong'}: {step}" for step, right in rounds)
        _text(f"{len(one.steps)} round{'s' if len(one.steps) > 1 else ''}", steps)
