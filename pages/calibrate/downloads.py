"""Taking figures and disagreements away as CSV."""

import streamlit as st

from annotations.calibration import Comparison
from annotations.calibration_csv import cells_csv, figures_csv
from annotations.pairs import Named, Selection, names, with_notes
from annotations.store import Store
from pararecover_core.score_files import FileScores


def from_store(store: Store, comparison: Comparison, selection: Selection) -> None:
    """Downloads of a comparison from the database."""

    def cells() -> bytes:
        noted = with_notes(store, comparison.disagreements, selection.judge)
        called = names(store, {cell.sample for cell in noted})
        return cells_csv(noted, called.__getitem__)

    _buttons(comparison, cells)


def from_file(found: FileScores, comparison: Comparison) -> None:
    """Downloads of a comparison from a file."""

    def cells() -> bytes:
        return cells_csv(comparison.disagreements, lambda sample: Named(found.labels[sample]))

    _buttons(comparison, cells)


def _buttons(comparison: Comparison, cells: object) -> None:
    with st.popover("Download", icon=":material/download:", key="calibrate_download"):
        st.download_button(
            "Figures with intervals, CSV",
            lambda: figures_csv(comparison.found),
            "agreement.csv",
            "text/csv",
            on_click="ignore",
            width="stretch",
        )
        st.download_button(
            f"Disagreements, {len(comparison.disagreements):,} rows, CSV",
            cells,  # type: ignore[arg-type]
            "disagreements.csv",
            "text/csv",
            on_click="ignore",
            width="stretch",
        )
