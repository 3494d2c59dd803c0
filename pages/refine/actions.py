"""The Refine page's bar and forms: sessions, people's scores, the editor, the methods text."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from annotations import sessions
from annotations.batches import Sampling, list_batches
from annotations.methods import FORMS, methods
from annotations.prompts import save_version
from annotations.refine_board import worst_cells
from annotations.refining import Version
from annotations.sampling import PAPER_SIZE, Stratum
from annotations.score_log import storable
from annotations.sessions import Session, SessionPlan
from pararecover_core.agreement_people import Ceiling
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
"""
_DRAW = 0


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
    with st.popover("New session", icon=":material/add:", type="primary" if main else "secondary"):
        batches = {0: "Draw a new one"} | {one.id: one.name for one in list_batches(store)}
        name = st.text_input("Name", key="refine_new_name")
        batch = st.selectbox("Sample", list(batches), format_func=lambda n: batches[n])
        if batch == _DRAW:
            size = st.number_input(
                "Answers", 2, 100_000, PAPER_SIZE, help="For each sub-dimension, or in all."
            )
            per_dimension = st.toggle("A sample of its own for each sub-dimension", value=True)
            by = st.multiselect(
                "Stratified by", list(Stratum), disabled=per_dimension, format_func=_stratum_words
            )
            people_each = st.number_input("People for a shared item", 1, 20, 2)
            overlap = st.slider("Share of items that are shared", 0, 100, 20, format="%d%%")
        held = st.slider("Held out, by query", 10, 60, 33, format="%d%%")
        seed = st.number_input("Seed", 0, 10**9, 0)
        if not st.button("Make the session", type="primary", key="refine_make"):
            return
        plan = SessionPlan(
            name, batch or None, held_out=held / 100, seed=seed, created_by=session.user().name
        )
        if batch == _DRAW:
            sampling = Sampling(
                size, seed, () if per_dimension else tuple(by), per_dimension=per_dimension
            )
            plan = SessionPlan(
                name,
                None,
                sampling,
                people_each,
                overlap / 100,
                held / 100,
                seed,
                session.user().name,
            )
        made = attempt(sessions.create_session, store, plan)
        if made is not None:
            st.query_params["session"] = storable(made.name)
            st.session_state.pop("refine_session", None)
            st.rerun()


def _stratum_words(by: Stratum) -> str:
    return by.value.replace("_", " ")


def people(chosen: Session) -> None:
    """Take people's scores in, and see the rounds of annotation so far."""
    store = session.store()
    with st.popover("People's scores", icon=":material/group:"):
        st.html(
            '<div class="pr-standing">Figures rest on people\'s scores as they were last taken in. '
            f'People score on <a href="annotate?batch={chosen.batch}">Annotate</a>; what '
            'they differ on is decided under <a href="annotate?view=adjudication">Adjudication</a>.'
            "</div>"
        )
        note = st.text_input("Note, for example what changed in the guidelines", key="refine_note")
        if st.button("Take scores in now", type="primary", key="refine_take"):
            sessions.take_scores(store, chosen.id, author=session.user().name, note=note)
            st.rerun()
        rounds = sessions.history(store, chosen.id, ("scores",))
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


def edit(chosen: Session, current: Version) -> None:
    """The buttons under the board: edit the prompt in view."""
    columns = st.columns([1, 1, 4])
    names = [prompt.name for prompt in current.prompts]
    edited = current.edited.name if current.edited else names[0]
    with columns[0]:
        name = st.selectbox(
            "Prompt",
            names,
            index=names.index(edited),
            key="refine_prompt",
            label_visibility="collapsed",
        )
    with columns[1]:
        if st.button(f"Edit {name}", icon=":material/edit:", key="refine_edit"):
            _editor(chosen, current, name)


@st.dialog("Edit the prompt", width="large")
def _editor(chosen: Session, current: Version, name: str) -> None:
    store = session.store()
    prompt = next(one for one in current.prompts if one.name == name)
    left, right = st.columns([3, 2])
    with left:
        text = st.text_area("Text", prompt.text, height=420, key=f"refine_text_{name}")
        note = st.text_input("What this version changes, and why", key=f"refine_why_{name}")
        if st.button(f"Save as a new version of {prompt.id}", type="primary", key="refine_save"):
            if not note.strip():
                show_note("Write what the version changes: the history is read by others.")
                return
            made = attempt(save_version, store, prompt, text, note=note, author=session.user().name)
            if made is not None:
                names = "+".join(
                    made.name if one.name == name else one.name for one in current.prompts
                )
                st.session_state["_refine_next"] = names
                st.session_state["_refine_said"] = f"{made.name} is saved. Run it on dev next."
                st.rerun()
    with right:
        dimension = st.selectbox(
            "Disagreements on dev",
            ["", *prompt.dimensions],
            format_func=lambda d: d or "all, largest first",
        )
        rubric = sde_rubric()
        asked = [dimension] if dimension else prompt.dimensions
        who = session.user().name
        kept = worst_cells(store, chosen.id, current.scorer, asked, reader=who)
        rows = [
            (
                f"{cell.dimension} {rubric.dimension(cell.dimension).short}",
                f"{cell.human:g}",
                f"{cell.judge:g}",
                storable(cell.judge_note),
            )
            for cell in kept
        ]
        if rows:
            show_rows(("Sub-dimension", "People", "Judge", "Judge's reason"), rows, height=430)
        else:
            show_note("Judge and people agree on every dev cell of this prompt.")


def versions_chart(rows: Sequence[Version], top: Ceiling) -> None:
    """EMA over the versions, oldest first."""
    if len(rows) < 2:
        return
    with st.expander("EMA over prompt versions"):
        points = [
            (storable(row.label), one.value, one.low, one.high)
            for row in reversed(rows)
            if (one := row.found.overall.ema).low == one.low
        ]
        chart = charts.versions(points, top.ema.value if top.cells else None)
        st.altair_chart(chart, width="stretch")
        st.download_button(
            "SVG", lambda: charts.svg(chart), "versions.svg", "image/svg+xml", on_click="ignore"
        )


def methods_text(chosen: Session) -> None:
    """The history as a paragraph with a table."""
    with st.popover("Methods text", icon=":material/description:"):
        form = st.segmented_control("Form", FORMS, default="text", key="refine_form") or "text"
        text = methods(session.store(), chosen.id, form)
        st.code(storable(text), language=None, wrap_lines=True, height=320)
        ending = {"text": "txt", "markdown": "md", "latex": "tex"}[form]
        st.download_button("Download", text, f"methods.{ending}", on_click="ignore")
