"""The Annotate page: score what the queue gives; batches and adjudication are its sub-pages."""

from importlib import import_module

import streamlit as st

SUB_PAGES = {"admin": "admin", "adjudicate": "adjudication"}
"""``?view=`` to the module that draws it."""


def render() -> None:
    """Draw the workbench, or the sub-page that the link names."""
    view = st.query_params.get("view", "")
    if view in SUB_PAGES:
        import_module(f"pages.annotate.{SUB_PAGES[view]}").render()
        return
    from ui import annotate_panel

    annotate_panel.show()
