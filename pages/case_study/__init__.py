"""Case studies: tell one run (or two) in rounds, look at the page, take it away, keep it."""

import streamlit as st

from pages.case_study import form, gallery


def render() -> None:
    """Draw the page: the gallery, or one case study with its form and its preview."""
    st.html(f"<style>{form.STYLE}</style>")
    if st.query_params.get("item"):
        form.show()
    else:
        gallery.show()
