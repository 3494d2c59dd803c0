"""Dataset: bring files, see what is there, take work out."""

import streamlit as st


def render() -> None:
    """Draw the page."""
    st.subheader("Dataset", anchor=False)
