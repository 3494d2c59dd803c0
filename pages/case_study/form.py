"""The form beside the preview: rounds, texts, what to hide; save, take away."""

import uuid
from collections.abc import Sequence

import streamlit as st

from annotations import case_studies
from annotations.case_studies import Saved
from annotations.score_log import storable
from pararecover_core.case_study import (
    FORMS,
    HIDEABLE,
    Case,
    Spec,
    Subject,
    build,
    files,
    html,
    zipped,
)
from pararecover_core.case_study.model import MOST_ROUNDS
from pararecover_core.errors import InputError
from ui import session
from ui.messages import attempt

STYLE = """
.st-key-cs_form, .st-key-cs_saved, .st-key-cs_runs, .cs-empty {
  background: var(--surf); border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; }
.st-key-cs_form, .st-key-cs_saved, .st-key-cs_runs { gap: 8px; }
.st-key-cs_saved button p, .st-key-cs_runs button p { color: var(--acc); font-size: 13px; }
.cs-when { color: var(--mute); font-size: 12px; }
.cs-empty b { display: block; font-size: 15px; margin-bottom: 6px; }
.cs-empty a { color: var(--acc); }
.st-key-cs_preview iframe { background: light-dark(#fff, #0F141B); border: 1px solid var(--line);
  border-radius: 8px; }
"""
_PREVIEW = 860
_MIME = {"html": "text/html", "latex": "text/x-tex", "json": "application/json"}


def show() -> None:
    """Draw form and preview of the item that the link names."""
    store, reader = session.store(), session.user().name
    item, other = st.query_params["item"], st.query_params.get("other", "")
    subject = attempt(case_studies.subject, store, item, other, reader=reader)
    if subject is None:
        _back()
        return
    _edit(subject, item, other)


@st.fragment
def _edit(subject: Subject, item: str, other: str) -> None:
    left, right = st.columns([360, 900], gap="small")
    with left, st.container(key="cs_form"):
        _back()
        started = _started()
        spec = _choose(subject, started.spec if started else Spec(), item, other)
        case = attempt(_built, subject, spec)
        if case is not None:
            _keep(item, other, spec, started)
            _take(case)
    with right, st.container(key="cs_preview"):
        page = attempt(html, case) if case is not None else None
        if page is not None:
            st.iframe(page, height=_PREVIEW)


def _built(subject: Subject, spec: Spec) -> Case:
    return build(subject, spec)


def _back() -> None:
    if st.button("All case studies", icon=":material/arrow_back:", type="tertiary", key="cs_back"):
        st.query_params.clear()
        st.rerun(scope="app")


def _started() -> Saved | None:
    """The saved one (or the example) that the form starts from."""
    store = session.store()
    if st.query_params.get("example"):
        return case_studies.example(store)
    name = st.query_params.get("name", "")
    version = st.query_params.get("version", "")
    if not name:
        return None
    number = int(version) if version.isdecimal() and len(version) < 8 else 0
    try:
        return case_studies.saved(store, name, number)
    except InputError:  # taken out, or a link of another database: the form starts afresh
        return None


def _choose(subject: Subject, spec: Spec, item: str, other: str) -> Spec:
    mark = f"{item}_{other}_{st.query_params.get('name', '')}_{st.query_params.get('version', '')}"
    title = st.text_input(
        "Title", spec.title, key=f"cs_title_{mark}", placeholder="As the rounds suggest"
    )
    lead = st.text_area("Introduction", spec.lead, key=f"cs_lead_{mark}", height=80)
    there = sorted({number for source in subject.sources for number in source.numbers})
    rounds = st.multiselect(
        f"Rounds ({MOST_ROUNDS} at most)",
        there,
        [number for number in spec.rounds if number in there],
        key=f"cs_rounds_{mark}",
        max_selections=MOST_ROUNDS,
        placeholder="Those that tell the story",
    )
    captions, notes = _texts(rounds, spec, mark)
    _compare(item, other)
    nodes = sorted({n for s in subject.sources for one in s.rounds for n in one.plan.by_id})
    options = ["", *nodes[:400]]
    origin = st.selectbox(
        "Node where the error began",
        options,
        options.index(spec.origin) if spec.origin in options else 0,
        format_func=lambda node: storable(node) if node else "The first call that failed",
        key=f"cs_origin_{mark}",
    )
    hide = st.multiselect(
        "Leave out",
        list(HIDEABLE),
        [name for name in spec.hide if name in HIDEABLE],
        format_func=HIDEABLE.__getitem__,
        key=f"cs_hide_{mark}",
        placeholder="Nothing",
    )
    names = st.toggle("Name the annotators", spec.names, key=f"cs_names_{mark}")
    return Spec(
        title=title,
        lead=lead,
        rounds=tuple(sorted(rounds)),
        captions={number: text for number, text in captions.items() if text.strip()},
        notes={number: text for number, text in notes.items() if text.strip()},
        origin=origin or "",
        hide=tuple(hide),
        names=names,
    )


def _texts(rounds: Sequence[int], spec: Spec, mark: str) -> tuple[dict[int, str], dict[int, str]]:
    """Caption and note of each chosen round; those of others are kept."""
    captions, notes = dict(spec.captions), dict(spec.notes)
    if not rounds:
        return captions, notes
    with st.expander("Headings and notes of the rounds"):
        for number in sorted(rounds):
            captions[number] = st.text_input(
                f"Round {number}, heading",
                spec.captions.get(number, ""),
                key=f"cs_caption_{number}_{mark}",
            )
            notes[number] = st.text_area(
                f"Round {number}, note",
                spec.notes.get(number, ""),
                key=f"cs_note_{number}_{mark}",
                height=80,
            )
    return captions, notes


def _compare(item: str, other: str) -> None:
    """Another agent's answer beside this one; it is part of the link."""
    store = session.store()
    found = dict(case_studies.others(store, item, reader=session.user().name))
    options = ["", *found]
    chosen = st.selectbox(
        "Beside it",
        options,
        options.index(other) if other in options else 0,
        format_func=lambda key: storable(found[key]) if key else "No other agent",
        key=f"cs_other_{item}_{other}",
        disabled=not found,
    )
    if (chosen or "") != other:
        given = st.query_params.to_dict() | {"other": chosen or ""}
        st.query_params.from_dict({name: value for name, value in given.items() if value})
        st.rerun(scope="app")


def _keep(item: str, other: str, spec: Spec, started: Saved | None) -> None:
    store = session.store()
    named = started.name if started and not st.query_params.get("example") else ""
    name = st.text_input("Name in the gallery", named, key=f"cs_name_{item}_{named}")
    with st.container(horizontal=True):
        if st.button("Save", type="primary", key="cs_save"):
            made = attempt(
                case_studies.save,
                *(store, storable(name), item, spec),
                event=str(uuid.uuid4()),
                other=other,
                author=session.user().name,
            )
            if made is not None:
                given = {"item": item, "other": other, "name": made.name}
                st.query_params.from_dict({k: v for k, v in given.items() if v})
                st.toast(f"Saved as version {made.version}")
        if named and st.button("Take out of the gallery", key="cs_out"):
            case_studies.take_out(store, named, event=str(uuid.uuid4()), author=session.user().name)
            st.query_params.clear()
            st.rerun(scope="app")
    _history(named)


def _history(name: str) -> None:
    made = case_studies.versions(session.store(), name) if name else []
    if len(made) < 2:
        return
    with st.expander(f"{len(made)} versions"):
        for one in made:
            words = f"Version {one.version}, {one.at[:16].replace('T', ' ')}"
            if st.button(words, key=f"cs_version_{one.version}", type="tertiary"):
                st.query_params["version"] = str(one.version)
                st.rerun(scope="app")


def _take(case: Case) -> None:
    with st.popover("Download", icon=":material/download:", key="cs_download"):
        for form, words in FORMS.items():
            name, mime = _file(form)
            st.download_button(
                words,
                lambda form=form: _content(case, form),  # type: ignore[misc]
                name,
                mime,
                key=f"cs_take_{form}",
                on_click="ignore",
                width="stretch",
            )


def _file(form: str) -> tuple[str, str]:
    suffixes = {"html": "html", "latex": "tex", "json": "json"}
    if form in suffixes:
        return f"case-study.{suffixes[form]}", _MIME[form]
    return f"case-study-{form}.zip", "application/zip"


def _content(case: Case, form: str) -> bytes:
    made = files(case, form)
    return zipped(made) if form not in _MIME else next(iter(made.values()))
