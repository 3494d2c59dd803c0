"""The filter bar of the Calibrate page; what is chosen stands in the link."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from annotations.pairs import Choices, Selection
from annotations.score_log import storable
from pararecover_core.formats.items import Reject
from pararecover_core.pairing import GOLD, HUMAN
from pararecover_core.score_files import FileScores

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

T = TypeVar("T")
_DATABASE, _FILE = "", "file"
_GOLD_WORDS = "All people, gold score"
_REJECTS_SHOWN = 30
_NAME_LIMIT = 80

STYLE = """
.st-key-pr_filters { padding: 6px 12px 8px; background: var(--surf); gap: 8px;
  border: 1px solid var(--line); border-radius: 8px; }
.st-key-pr_filters [data-testid="stWidgetLabel"] { min-height: 0; margin-bottom: 1px; }
.st-key-pr_filters [data-testid="stWidgetLabel"] p { font-size: 11px; color: var(--mute); }
.pr-empty { padding: 20px 24px; background: var(--surf); border: 1px solid var(--line);
  border-radius: 8px; font-size: 13px; }
.pr-empty b { display: block; font-size: 15px; margin-bottom: 6px; }
.pr-empty ul { margin: 0; padding-left: 18px; }
.pr-empty a { color: var(--acc); }
"""


def from_file() -> bool:
    """Whether scores come from a spreadsheet instead of the database."""
    words = {_DATABASE: "This database", _FILE: "A spreadsheet"}
    chosen = pick_one("Scores from", "from", [_DATABASE, _FILE], lambda name: words[name], 130)
    return chosen == _FILE


def choose(known: Choices) -> Selection:
    """The sides and filters that the person chose from what the database has."""
    people = [name for name, _ in known.people]

    def side(
        name: str,
    ) -> str:  # no counts: a choice whose label changes is lost while a judge runs
        return _GOLD_WORDS if name == GOLD else _short(name)

    human = pick_one("People", "people", [GOLD, *people], side, 180)
    others = [name for name in people if name != human]
    judges = [name for name, _ in known.judges] + (others if human != GOLD else [])
    judge = pick_one("Judge", "judge", judges, side, 180)
    batches: dict[str, str] = {"": "All"} | {str(n): name for n, name in known.batches}
    batch = pick_one("Batch", "batch", list(batches), lambda n: batches[n], 100)
    levels = ["", *map(str, known.levels)]
    level = pick_one("Level", "level", levels, lambda n: f"LEVEL-{n}" if n else "All", 92)
    error, agent, revealed = _more(known)
    return Selection(
        human=human or GOLD,
        judge=judge or "",
        batch=int(batch) if batch else None,
        level=int(level or 0),
        error_type=error,
        agent=agent,
        revealed=revealed,
    )


def _more(known: Choices) -> tuple[str, str, bool]:
    with st.popover(_more_words(), key="calibrate_more"):
        error = pick_one("Error type, in any round", "error", ["", *known.error_types], _or_all)
        agent = pick_one("Agent", "agent", ["", *known.agents], _or_all)
        revealed = st.toggle(
            "Count scores made after the reveal",
            value=st.query_params.get("revealed") == "1",
            key="calibrate_toggle",
            help="Who has seen the judge's score may follow it. Off: the last score before the "
            "reveal counts.",
        )
        keep("revealed", "1" if revealed else "")
    return error or "", agent or "", revealed


def _more_words() -> str:
    active = sum(bool(st.query_params.get(name)) for name in ("error", "agent", "revealed"))
    return f"More filters: {active}" if active else "More filters"


def choose_in_file(found: FileScores) -> tuple[str, str]:
    """The two sides, from the scorers of a file."""
    people, judges = found.people(), found.judges()
    words: Callable[[str], str] = lambda n: _GOLD_WORDS if n == GOLD else _short(n)  # noqa: E731
    human = pick_one("People", "people", [GOLD, *people], words, 180)
    others = [name for name in people if name != human] if human != GOLD else []
    return human or GOLD, pick_one("Judge", "judge", [*judges, *others], words, 180) or ""


def upload() -> "tuple[UploadedFile | None, str, str]":
    """The file to compare, and how the names of its columns with scores end."""
    with st.popover("Choose file", icon=":material/upload_file:", key="calibrate_upload"):
        file = st.file_uploader(
            "File with people's and the judge's scores: CSV, XLSX or JSONL", key="calibrate_file"
        )
        human = st.text_input("Columns of people's scores end in", "_human")
        model = st.text_input("Columns of the judge's scores end in", "_model")
    return file, human, model


def how_to_upload() -> None:
    """Say what a file must hold."""
    st.html(
        '<div class="pr-empty"><b>Choose a file with scores of people and of a judge</b><ul>'
        "<li>It is read and compared, not imported: nothing in the database changes.</li>"
        "<li>Either one row an answer, with columns such as D3_human and D3_model,</li>"
        "<li>or one row a score, with columns id, scorer, dimension and score, as "
        '<a href="dataset">Dataset</a> exports them.</li></ul></div>'
    )


def rejects(found: Sequence[Reject]) -> None:
    """What a file held that was not taken, as text."""
    if not found:
        return
    lines = [storable(str(reject)) for reject in found[:_REJECTS_SHOWN]]
    if len(found) > _REJECTS_SHOWN:
        lines.append(f"... and {len(found) - _REJECTS_SHOWN:,} more")
    with st.expander(f"{len(found):,} cells or rows were not taken"):
        st.html(f'<div class="pr-error">{escape(chr(10).join(lines))}</div>')


def next_steps(missing: str) -> None:
    """Say what is missing and how to get it."""
    st.html(
        f'<div class="pr-empty"><b>{escape(missing)}</b><ul>'
        '<li>People score on <a href="annotate">Annotate</a>.</li>'
        "<li>A judge, a model or the program, is run from here: the button Judges.</li>"
        '<li>Scores in a file, by people or a judge, come in on <a href="dataset">Dataset</a>: '
        "columns such as D3_human and D3_model.</li>"
        "<li>To compare a file without importing it, choose A spreadsheet under Scores from.</li>"
        "</ul></div>"
    )


def pick_one(
    label: str,
    name: str,
    options: Sequence[str],
    words: Callable[[str], str],
    width: int | None = None,
) -> str | None:
    """A choice that is kept in the link under ``name``; None where there is nothing to choose."""
    _remember(name, options, options[0] if options else None)
    chosen: str | None = st.selectbox(
        label,
        options,
        format_func=words,
        key=f"calibrate_{name}",
        width=width or "stretch",
        disabled=not options,
        placeholder="None yet",
        filter_mode="fuzzy",
    )
    keep(name, chosen if options and chosen != options[0] else "")
    return chosen


def _remember(name: str, options: Sequence[str], first: str | None) -> None:
    """Before the widget is drawn: take the link's choice, and none that is not there any more."""
    key = f"calibrate_{name}"
    asked = st.query_params.get(name)
    if key not in st.session_state and asked in options:
        st.session_state[key] = asked
    elif key in st.session_state and st.session_state[key] not in options:
        st.session_state[key] = first


def keep(name: str, value: str | None) -> None:
    """Put a choice into the link, or take it out."""
    value = storable(value or "")
    if value:
        if st.query_params.get(name) != value:
            st.query_params[name] = value
    elif name in st.query_params:
        del st.query_params[name]


def _or_all(name: str) -> str:
    return name or "All"


def _short(scorer: str) -> str:
    return storable(scorer.removeprefix(HUMAN).removeprefix("judge:"))[:_NAME_LIMIT]
