"""The left side of the page: how many, why others are left out, how totals lie."""

from collections.abc import Sequence

import streamlit as st

from annotations import training
from annotations.training_files import Wanted
from pararecover_core.preferences import FULL, INCOMPLETE, Candidate, Selection, histogram
from ui import charts
from ui.messages import show_note
from ui.tables import show_figures, show_rows

_WHAT = {"sft": "answers", "dpo": "pairs", "kto": "answers"}


def draw(wanted: Wanted, found: Sequence[Candidate], chosen: Selection) -> None:
    """Draw the side."""
    train = chosen.tasks - chosen.test_tasks
    split = [("tasks to train", train), ("tasks to test", chosen.test_tasks)]
    kept = [(f"{_WHAT[wanted.kind]} kept", len(chosen.examples))] if wanted.kind in _WHAT else []
    show_figures([*kept, *split])
    if wanted.kind == "kto":
        good = sum(one.chosen.total > wanted.rules.above for one in chosen.examples)
        show_note(f"{good:,} good, {len(chosen.examples) - good:,} bad.")
    _left_out(found, chosen)
    if chosen.totals:
        rules = wanted.rules
        cuts = {"dpo": [rules.least], "kto": [rules.above - rules.gap, rules.above]}
        st.altair_chart(
            charts.histogram(
                histogram(chosen.totals),
                f"Total of {len(chosen.totals):,} scored answers, of {FULL:g}",
                cuts.get(wanted.kind, [rules.above]),
            ),
            width="stretch",
        )
    if wanted.kind == "dpo" and chosen.examples:
        gaps = histogram([one.gap for one in chosen.examples])
        title = f"Gap of {len(chosen.examples):,} pairs"
        st.altair_chart(charts.histogram(gaps, title, [wanted.rules.gap]), width="stretch")


def _left_out(found: Sequence[Candidate], chosen: Selection) -> None:
    if chosen.excluded:
        rows = sorted(chosen.excluded.items(), key=lambda pair: -pair[1])
        show_rows(("Left out because", "Count"), rows, right=(1,))
    if INCOMPLETE not in chosen.excluded:
        return
    show_note(training.missing_words(found))
