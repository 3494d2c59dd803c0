"""Take work out: scores in long form, a copy of the database."""

import io

import streamlit as st

from annotations.overview import copy_database, snapshot
from annotations.store import Store
from pararecover_core.formats import write_scores
from ui import session
from ui.messages import attempt, show_note

_FORMS = {
    "CSV": ("csv", "text/csv"),
    "XLSX": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "JSONL": ("jsonl", "application/jsonl"),
}
_WHOSE = {"Everybody": "", "People": "human:", "Judges": "judge:", "Me": "me"}

_DOWNLOADED = 300_000_000
"""Bytes up to which a database is downloaded, for which it passes through memory."""


def draw() -> None:
    """Draw the card."""
    st.subheader("Take work out", anchor=False)
    whose, form = st.columns(2, gap="small", vertical_alignment="bottom")
    with whose:
        who = st.selectbox("Scores of", list(_WHOSE), key="_export_whose")
    with form:
        kind = st.segmented_control(
            "As", list(_FORMS), default="CSV", required=True, key="_export_form", width="stretch"
        )
    _downloads(session.store(), _WHOSE[who], kind or "CSV")
    st.caption(
        "One row per replan, sub-dimension and scorer, with note and time. Importing the file "
        "into an empty database gives the same scores."
    )


def _downloads(store: Store, whose: str, kind: str) -> None:
    form, mime = _FORMS[kind]
    scorer = session.scorer() if whose == "me" else whose
    scores, copy = st.columns(2, gap="small")
    scores.download_button(
        "Download scores", lambda: _scores(store, scorer, form), f"scores.{form}", mime,
        type="primary", on_click="ignore", width="stretch",
    )  # fmt: skip
    with copy:
        _database(store)


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


def _scores(store: Store, scorer: str, form: str) -> bytes:
    stream = io.BytesIO()
    write_scores(store.score_rows(scorer=scorer), stream, form)
    return stream.getvalue()
