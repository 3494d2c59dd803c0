"""The Refine page's bar and forms: sessions, people's scores, the editor, the methods text."""

from collections.abc import Sequence
from html import escape

import msgspec
import streamlit as st

from annotations import sessions
from annotations.batches import Sampling, list_batches
from annotations.methods import FORMS, methods
from annotations.pairs import names
from annotations.prompts import save_version
from annotations.refine_board import worst_cells
from annotations.refining import Kept, Version
from annotations.sampling import PAPER_SIZE, Stratum
from annotations.score_log import storable
from annotations.sessions import Session, SessionPlan
from pararecover_core.agreement_people import Ceiling
from pararecover_core.figures import fixed
from pararecover_core.judges.prompt import Prompt
from pararecover_core.rubric import sde_rubric
from ui import charts, session
from ui.messages import attempt, show_note
from ui.tables import show_rows

STYLE = """
.st-key-pr_refine_bar { padding: 6px 12px 8px; background: var(--surf); gap: 8px;
  border: 1px solid var(--line); border-radius: 8px; }
.st-key-pr_refine_bar [data-testid="stWidgetLabel"] { min-height: 0; margin-bottom: 1px; }
.st-key-pr_refine_bar [data-testid="stWidgetLabel"] p { font-size: 11px; color: var(--mute); }
.pr-empty { padding: 20px 24px; background: var(--surf); border: 1px solid var(--line);
  border-radius: 8px; font-size: 13px; }
.pr-empty b { display: block; font-size: 15px; margin-bottom: 6px; }
.pr-empty ol { margin: 0; padding-left: 18px; }
.pr-empty a { color: var(--acc); }
.pr-standing { font-size: 12px; color: var(--mute); padding: 0 4px; }
.pr-standing a { color: var(--acc); }
"""
_DRAW = 0
EDIT = "_refine_edit"
"""In the session state: name of the prompt to edit."""


@st.cache_resource(show_spinner=False)
def measured(path: str) -> Kept:
    """Versions of a database that were measured before: a new run measures one alone."""
    return {}


def choose_session(known: Sequence[Session]) -> Session | None:
    """The session in view, None where there is none yet."""
    if not known:
        return None
    by_name = {one.name: one for one in known}
    asked = st.query_params.get("session", "")
    if "refine_session" not in st.session_state and asked in by_name:
        st.session_state["refine_session"] = asked
    if st.session_state.get("refine_session") not in by_name:
        st.session_state.pop("refine_session", None)
    name = st.selectbox("Session", list(by_name), key="refine_session", width=170)
    st.query_params["session"] = storable(name)
    return by_name[name]


def choose_judge(models: Sequence[str]) -> str:
    """The judge's model in view, "" where none has judged."""
    chosen: str | None = st.selectbox(
        "Judge",
        models,
        key="refine_judge",
        width=170,
        disabled=not models,
        placeholder="None yet",
        format_func=lambda name: storable(name)[:40],
    )
    return chosen or ""


def new_session(*, main: bool = False) -> None:
    """A form that makes a session."""
    store = session.store()
    box = st.popover(
        "New session",
        icon=":material/add:",
        type="primary" if main else "secondary",
        key="refine_new",
        on_change="rerun",
    )
    if not box.open:
        return
    with box:
        batches = {_DRAW: "Draw a new one"} | {one.id: one.name for one in list_batches(store)}
        left, right = st.columns(2)
        name = left.text_input("Name", key="refine_new_name")
        batch = right.selectbox(
            "Sample", list(batches), format_func=lambda n: storable(batches[n]), key="refine_sample"
        )
        drawn = _drawing() if batch == _DRAW else None
        left, right = st.columns(2)
        held = left.slider("Held out, by query", 10, 60, 33, format="%d%%")
        seed = right.number_input("Seed", 0, 10**9, 0)
        plan = SessionPlan(
            name, batch or None, held_out=held / 100, seed=seed, created_by=session.user().name
        )
        if drawn is not None:
            sampling, people_each, overlap = drawn
            plan = msgspec.structs.replace(
                plan,
                sampling=msgspec.structs.replace(sampling, seed=seed),
                annotators_per_item=people_each,
                overlap=overlap / 100,
            )
        st.button(
            "Make the session", type="primary", key="refine_make", on_click=_make, args=(plan,)
        )


def _drawing() -> tuple[Sampling, int, int]:
    """How to draw: the sampling, people for a shared item, share of items that are shared."""
    left, right = st.columns(2)
    size = left.number_input(
        "Answers", 2, 100_000, PAPER_SIZE, help="For each sub-dimension, or in all."
    )
    by = right.multiselect(
        "Stratified by",
        list(Stratum),
        disabled=st.session_state.get("refine_each", True),
        format_func=_stratum_words,
    )
    each = st.toggle(
        "A sample of its own for each sub-dimension",
        value=True,
        key="refine_each",
        help="As in the paper: an item asks only for the sub-dimensions that it was drawn for. "
        "Off: every item asks for all 13.",
    )
    left, right = st.columns(2)
    people_each = left.number_input("People for a shared item", 1, 20, 2)
    overlap = right.slider("Share of items that are shared", 0, 100, 20, format="%d%%")
    return (
        Sampling(size, 0, () if each else tuple(by), per_dimension=each), people_each, overlap
    )  # fmt: skip


def _make(plan: SessionPlan) -> None:
    made = attempt(sessions.create_session, session.store(), plan)
    if made is not None:
        st.query_params["session"] = storable(made.name)
        st.session_state["refine_session"] = made.name
        st.session_state["refine_new"] = False


def _stratum_words(by: Stratum) -> str:
    return by.value.replace("_", " ")


def people(chosen: Session) -> None:
    """Take people's scores in, and see the rounds of annotation so far."""
    box = st.popover(
        "People's scores", icon=":material/group:", key="refine_people", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        st.html(
            '<div class="pr-standing">Figures rest on people\'s scores as they were last taken in. '
            f'People score on <a href="annotate?batch={chosen.batch}">Annotate</a>; what '
            'they differ on is decided under <a href="annotate?view=adjudication">Adjudication</a>.'
            "</div>"
        )
        st.text_input("Note, for example what changed in the guidelines", key="refine_note")
        st.button(
            "Take scores in now", type="primary", key="refine_take", on_click=_take, args=(chosen,)
        )
        rounds = sessions.history(session.store(), chosen.id, ("scores",))
        rows = [
            (
                one.at[:16].replace("T", " "),
                storable(one.author),
                storable(one.note),
                *(one.data[name] for name in ("n", "new", "changed", "gone", "disagreed")),
            )
            for one in reversed(rounds)
        ]
        heads = ("At", "By", "Note", "Cells", "New", "Changed", "Gone", "Differ")
        show_rows(heads, rows, right=range(3, 8), height=260)


def _take(chosen: Session) -> None:
    note = st.session_state.get("refine_note", "")
    who = session.user().name
    attempt(sessions.take_scores, session.store(), chosen.id, author=who, note=note)
    st.session_state["refine_note"] = ""


def standing(chosen: Session) -> None:
    """What the session holds, in a line."""
    dev, held = chosen.items["dev"], chosen.items["held-out"]
    st.html(
        f'<div class="pr-standing">dev {dev:,} items, {chosen.cells["dev"]:,} cells, '
        f"{chosen.scored['dev']:,} scored by people; held-out {held:,} items; "
        "split by query</div>"
    )


def first_steps() -> None:
    """Say what a session is and how to begin."""
    st.html(
        '<div class="pr-empty"><b>No calibration session yet</b><ol>'
        "<li>New session: draw a sample (400 answers for each sub-dimension in the paper), or take "
        "a batch that people have scored. It is split by query: dev to refine on, held-out "
        "sealed.</li>"
        '<li>People score the sample on <a href="annotate">Annotate</a>.</li>'
        "<li>Run a judge on dev, look at what it gets wrong, edit its prompt, run it again.</li>"
        "</ol></div>"
    )


def next_steps(chosen: Session) -> None:
    """Say what is missing before there are figures."""
    steps = []
    if not chosen.scored["dev"]:
        steps.append(
            "<li>People have scored nothing of dev that counts: they score and submit on "
            f'<a href="annotate?batch={chosen.batch}">Annotate</a>, then take the scores in under '
            "People's scores.</li>"
        )
    steps.append("<li>No model has judged dev: choose Run, name a model and a prompt.</li>")
    st.html(
        f'<div class="pr-empty"><b>{escape(chosen.name)} has no figures yet</b>'
        f"<ol>{''.join(steps)}</ol></div>"
    )


def open_editor(chosen: Session, current: Version) -> None:
    """Open the editor where the board asked for it."""
    name = st.session_state.pop(EDIT, "")
    if name in [prompt.name for prompt in current.prompts]:
        _editor(chosen, current, name)


@st.dialog("Edit the prompt", width="large")
def _editor(chosen: Session, current: Version, name: str) -> None:
    prompt = next(one for one in current.prompts if one.name == name)
    left, right = st.columns([3, 2])
    with left:
        text = st.text_area("Text", prompt.text, height=420, key=f"refine_text_{name}")
        note = st.text_input("What this version changes, and why", key=f"refine_why_{name}")
        if st.button(f"Save as a new version of {prompt.id}", type="primary", key="refine_save"):
            _save(prompt, text, note)
    with right:
        _beside(chosen, current, prompt)


def _save(prompt: Prompt, text: str, note: str) -> None:
    if not note.strip():
        show_note("Write what the version changes: the history is read by others.")
        return
    who = session.user().name
    if attempt(save_version, session.store(), prompt, text, note=note, author=who) is not None:
        st.rerun()


def _beside(chosen: Session, current: Version, prompt: Prompt) -> None:
    """Disagreements on dev, those of the weakest sub-dimension first."""
    rubric, store = sde_rubric(), session.store()
    ema = {one.name: one.ema.value for one in current.found.dimensions if one.n}
    weakest = sorted(
        (d for d in prompt.dimensions if d in ema),
        key=lambda d: (ema[d], prompt.dimensions.index(d)),
    )
    words = {d: f"{d} {rubric.dimension(d).short}, EMA {fixed(ema[d], 3)}" for d in weakest}
    dimension = st.selectbox(
        "Disagreements on dev, weakest sub-dimension first",
        [*weakest, ""],
        format_func=lambda d: words.get(d, "All, largest first"),
        key=f"refine_beside_{prompt.name}",
    )
    asked = [dimension] if dimension else prompt.dimensions
    kept = worst_cells(store, chosen.id, current.scorer, asked, reader=session.user().name)
    called = names(store, {cell.sample for cell in kept})
    rows = [
        (
            *(() if dimension else (cell.dimension,)),
            storable(called[cell.sample].short(cell.sample)),
            f"{cell.human:g}",
            f"{cell.judge:g}",
            storable(cell.judge_note),
        )
        for cell in kept
    ]
    if rows:
        heads = ("Item", "People", "Judge", "Judge's reason")
        show_rows(heads if dimension else ("For", *heads), rows, height=400)
    else:
        show_note("Judge and people agree on every dev cell of this prompt.")


def versions_chart(rows: Sequence[Version], top: Ceiling) -> None:
    """EMA over the versions that have one, oldest first."""
    points = [
        (storable(row.label), one.value, one.low, one.high)
        for row in reversed(rows)
        if (one := row.found.overall.ema).low == one.low
    ]
    if len(points) < 2:
        return
    with st.expander("EMA over prompt versions"):
        chart = charts.versions(points, top.ema.value if top.cells else None)
        st.altair_chart(chart, width="stretch")
        st.download_button(
            "SVG", lambda: charts.svg(chart), "versions.svg", "image/svg+xml", on_click="ignore"
        )


def methods_text(chosen: Session) -> None:
    """The history as a paragraph with a table."""
    box = st.popover(
        "Methods text", icon=":material/description:", key="refine_methods", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        form = st.segmented_control("Form", FORMS, default="text", key="refine_form") or "text"
        store = session.store()
        text = methods(store, chosen.id, form, kept=measured(str(store.path)))
        st.code(storable(text), language=None, wrap_lines=True, height=320)
        ending = {"text": "txt", "markdown": "md", "latex": "tex"}[form]
        st.download_button("Download", text, f"methods.{ending}", on_click="ignore")
