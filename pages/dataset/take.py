"""Take work out: scores in every shape and form, the log, a copy of the database."""

import io

import streamlit as st

from annotations import exports
from annotations.batches import list_batches
from annotations.exports import SHAPES, Filter, Names
from annotations.overview import copy_database, snapshot, state_of
from annotations.score_log import storable
from annotations.store import Store
from ui import session
from ui.messages import attempt, show_note

_SHAPES = {
    "long": "A row per score",
    "wide": "A row per replan",
    "records": "Whole records",
    "log": "The log",
}
_ABOUT = {
    "long": "One row per replan, sub-dimension and scorer, with note, time, rubric and prompt "
    "version. Importing the file into an empty database gives the same scores.",
    "wide": "One row per replan with columns D1_human and D1_model, as spreadsheets of scores "
    "have them; a second person or judge gets a row of their own.",
    "records": "One line per replan: its instance, its thought and plan, and all its scores. "
    "Importing the file into an empty database gives the same records and scores.",
    "log": "Every entry ever made, withdrawn and replaced ones too; always whole. Importing the "
    "file into an empty database replays it.",
}
_MIMES = {
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
_TITLES = {"csv": "CSV", "xlsx": "XLSX", "jsonl": "JSONL", "parquet": "Parquet"}
_WHOSE = {"Everybody": "", "People": "human:", "Judges": "judge:", "Me": "me"}

_DOWNLOADED = 300_000_000
"""Bytes up to which a file is downloaded, for which it passes through memory."""


def draw() -> None:
    """Draw the card."""
    st.subheader("Take work out", anchor=False)
    store = session.store()
    shape, form, which = _choose(store)
    names = _names(store)
    size = _size(str(store.path), state_of(store), shape, which)
    scores, copy = st.columns(2, gap="small")
    with scores:
        if size <= _DOWNLOADED:
            _scores(store, shape, form, which, names)
    with copy:
        _database(store)
    if size > _DOWNLOADED:
        show_note(_by_command(store, shape, form, which, size, bool(names)))
    st.caption(_ABOUT[shape])


def _choose(store: Store) -> tuple[str, str, Filter]:
    left, right = st.columns(2, gap="small", vertical_alignment="bottom")
    with left:
        shape = st.selectbox(
            "What", list(SHAPES), format_func=_SHAPES.__getitem__, key="_export_shape"
        )
    whole = shape == "log"
    with right:
        who = st.selectbox("Scores of", list(_WHOSE), key="_export_whose", disabled=whole)
    left, right = st.columns([2, 3], gap="small", vertical_alignment="bottom")
    with left:
        batch = _batch(store, disabled=whole)
    with right:
        form = st.segmented_control(
            "As", SHAPES[shape], default=SHAPES[shape][0], required=True, width="stretch",
            format_func=_TITLES.__getitem__, key=f"_export_form_{shape}",
        ) or SHAPES[shape][0]  # fmt: skip
    if whole:
        return shape, form, Filter()
    scorer = session.scorer() if _WHOSE[who] == "me" else _WHOSE[who]
    return shape, form, Filter(scorer, batch)


def _batch(store: Store, *, disabled: bool) -> int | None:
    """The batch to take from; the link ``?batch=ID`` names one."""
    names = {one.id: storable(one.name) for one in list_batches(store)}
    known = [None, *names]
    asked = st.query_params.get("batch", "")
    given = next((one for one in names if str(one) == asked), None)
    return st.selectbox(
        "Batch", known, known.index(given), disabled=disabled or not names, key="_export_batch",
        format_func=lambda one: "All" if one is None else names[one],
    )  # fmt: skip


def _names(store: Store) -> Names:
    """Pseudonyms where they are asked for, and the key to them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        hidden = st.toggle(
            "People by pseudonym", key="_export_hidden",
            help="annotator-1 and so on, the same in every later file. Notes stay as written.",
        )  # fmt: skip
        if not hidden:
            return {}
        names = exports.pseudonyms(store)
        st.download_button(
            "Who is who", lambda: exports.key_file(names), "annotators.csv", "text/csv",
            on_click="ignore", type="tertiary", help="Keep it apart from the scores.",
        )  # fmt: skip
    return names


def _scores(store: Store, shape: str, form: str, which: Filter, names: Names) -> None:
    st.download_button(
        "Download the log" if shape == "log" else "Download scores",
        lambda: _made(store, shape, form, which, names), _file_name(shape, form), _MIMES[form],
        type="primary", on_click="ignore", width="stretch",
    )  # fmt: skip


def _file_name(shape: str, form: str) -> str:
    return f"{'log' if shape == 'log' else 'scores'}.{form}"


def _made(store: Store, shape: str, form: str, which: Filter, names: Names) -> bytes:
    stream = io.BytesIO()
    exports.take(store, stream, shape, form, which, names)
    return stream.getvalue()


@st.cache_data(show_spinner=False, max_entries=16)
def _size(path: str, state: tuple[int, ...], shape: str, which: Filter) -> int:
    return exports.about_bytes(session.store(), shape, which.batch)


def _by_command(store: Store, shape: str, form: str, which: Filter, size: int, hidden: bool) -> str:
    """How to take out what is too large for a browser."""
    said = exports.command(store, shape, form, which, anonymise=hidden)
    return (
        f"About {size / 1e6:,.0f} MB, too much to pass through a browser. On the machine that has "
        f"the database this writes it piece by piece: {said}"
    )


def _database(store: Store) -> None:
    name = f"{store.path.stem}-copy.db"
    if store.path.stat().st_size <= _DOWNLOADED:
        st.download_button(
            "Download database", lambda: snapshot(store), name, "application/vnd.sqlite3",
            on_click="ignore", width="stretch",
        )  # fmt: skip
    elif st.button("Copy database", help="Too large to download", width="stretch"):
        copied = attempt(copy_database, store, store.path.with_name(name))
        if copied is not None:
            show_note(f"Copied to {copied}")
