"""The app: its pages, who is here, which database; nothing else."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import streamlit as st

from ui import gate, shell
from ui.messages import attempt
from ui.static import ensure_static

PAGES = {
    "Score": (
        ("annotate", "Annotate", "edit"),
        ("trajectories", "Trajectories", "share"),
        ("guidelines", "Guidelines", "menu_book"),
    ),
    "Measure": (
        ("calibrate", "Calibrate", "target"),
        ("refine", "Refine", "sync"),
        ("results", "Results", "bar_chart"),
    ),
    "Keep": (
        ("case_study", "Case studies", "auto_stories"),
        ("training", "Training data", "model_training"),
        ("dataset", "Dataset", "database"),
    ),
}
"""Section to its pages: package and path, title, icon. The first one opens by default."""


def page(name: str, title: str, icon: str) -> Any:
    """A page whose package is imported when it is first shown."""

    def render() -> None:
        show: Callable[[], None] = import_module(f"pages.{name}").render
        show()

    return st.Page(render, title=title, icon=f":material/{icon}:", url_path=name)


def home(first: Any) -> Any:
    """The page at ``/``: goes on to the first one, which has a path of its own that way."""

    def render() -> None:
        st.switch_page(first, query_params=st.query_params.to_dict())

    return st.Page(render, title="ParaRecover", default=True, visibility="hidden")


def main() -> None:
    """Draw the frame, and the page for a person whom the gate lets in."""
    st.set_page_config(page_title="ParaRecover", page_icon=shell.ICON, layout="wide")
    ensure_static(Path(__file__).parent)
    sections = {
        section: [page(*entry) for entry in entries if find_spec(f"pages.{entry[0]}")]
        for section, entries in PAGES.items()
    }
    pages = {section: found for section, found in sections.items() if found}
    pages[""] = [home(next(iter(pages.values()))[0])]
    door = gate.closed_door()
    chosen = st.navigation(pages, position="hidden" if door else "sidebar")
    shell.frame()
    shell.settle()
    if door is not None:
        door()
    else:
        shell.foot()
        attempt(chosen.run)


main()
