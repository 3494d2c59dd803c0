"""Dataset: bring files, see what is there, take work out."""

import streamlit as st

from pages.dataset import bring, contents, take
from ui import session
from ui.access import Role
from ui.messages import show_note

_SAMPLE = (
    "This is the sample database; what you import here joins it. For a study of your own, start "
    "the app on a database of its own: pararecover app --db study.db"
)


def render() -> None:
    """Draw the page: imports on the left, what is there and exports on the right."""
    left, right = st.columns([5, 6], gap="small")
    with right, st.container(key="ds_contents"):
        contents.draw()
    with left:
        if not session.user().may(Role.ADJUDICATOR):
            show_note("Adjudicators and admins bring files and take work out.")
            return
        if session.is_sample():
            show_note(_SAMPLE)
        with st.container(key="ds_bring"):
            bring.draw()
        with st.container(key="ds_take"):
            take.draw()
