"""Progress and agreement of a batch, kept until something changes in the database.

What is kept is immutable and shared by all sessions.
"""

import streamlit as st

from annotations import adjudicate, progress
from annotations.adjudicate import ItemAgreement
from annotations.progress import AnnotatorProgress
from ui import session

State = tuple[int, int, int]


def people(batch: int) -> list[AnnotatorProgress]:
    """Every annotator of a batch."""
    return _people(str(session.database()), batch, progress.state(session.store()))


def shared_items(batch: int | None) -> list[ItemAgreement]:
    """Items of a batch, or of the whole database, that two or more annotators scored."""
    return _shared(str(session.database()), batch, progress.state(session.store()))


@st.cache_resource(show_spinner=False, max_entries=8)
def _people(database: str, batch: int, state: State) -> list[AnnotatorProgress]:
    return progress.batch_progress(session.store(), batch)


@st.cache_resource(show_spinner=False, max_entries=8)
def _shared(database: str, batch: int | None, state: State) -> list[ItemAgreement]:
    return adjudicate.double_scored(session.store(), batch)
