"""How the app says what a person must fix."""

from collections.abc import Callable
from html import escape
from typing import ParamSpec, TypeVar

import streamlit as st

from pararecover_core.errors import ParaRecoverError

P = ParamSpec("P")
R = TypeVar("R")


def attempt(action: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
    """Do it, or show why it cannot be done.

    Returns:
        What the action returned, None where one of our errors was shown instead.
    """
    try:
        return action(*args, **kwargs)
    except ParaRecoverError as error:
        show_error(error)
        return None


def show_error(error: ParaRecoverError) -> None:
    """Show an error as text: what it quotes may come from a file."""
    st.html(f'<div class="pr-error" role="alert">{escape(str(error))}</div>')


def show_note(text: str) -> None:
    """Show a quiet remark as text."""
    st.html(f'<div class="pr-note">{escape(text)}</div>')
