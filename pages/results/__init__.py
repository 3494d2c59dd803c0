"""Results: the paper's tables and figures from this database; each figure opens its records."""

from collections.abc import Sequence
from typing import Any

import msgspec
import streamlit as st

from annotations import results
from annotations.pairs import State, state
from annotations.results import REPORTS, Wanted
from annotations.score_log import storable
from pages.results import table
from pararecover_core import report as reports
from pararecover_core.pairing import GOLD, HUMAN
from pararecover_core.report import Report
from pararecover_core.report.figures import KINDS, chart, drawn
from ui import session
from ui.access import Role
from ui.messages import attempt, show_note

_KEPT = 24
_SCORED = ("leaderboard", "error-types", "agreement", "cross-judge", "training")
_TEXTS = {
    "csv": ("CSV, unrounded", "text/csv"),
    "markdown": ("Markdown", "text/markdown"),
    "latex": ("LaTeX (booktabs)", "text/x-tex"),
    "json": ("JSON with the records behind each figure", "application/json"),
}
_SUFFIX = {"csv": "csv", "markdown": "md", "latex": "tex", "json": "json"}


def _page() -> None:
    """Draw the page for somebody who may see scores."""
    st.html(f"<style>{table.STYLE}</style>")
    store = session.store()
    now = state(store)
    known = _scorers(str(store.path), now)
    with st.container(key="rs_bar", horizontal=True, vertical_alignment="bottom"):
        wanted = _choose(known, _agents(str(store.path), now))
        intervals = _switch("Intervals", "intervals")
        place = st.container(width="content")
    made = attempt(_made, str(store.path), now, wanted)
    if made is None:
        _next_steps()
        return
    if not any(cell.n for one in made for row in one.rows for cell in row.cells):
        _next_steps()
        return
    with place:
        _downloads(wanted, made, intervals)
    for one in made:
        table.show(one, intervals=intervals, page=_page_of(wanted))
    _pictures(wanted.report, made)


def _pictures(report: str, made: Sequence[Report]) -> None:
    """Drawn while they are looked at: the first one takes a second and a hundred megabytes."""
    shown = report in ("frequency", "distribution")
    place = st.expander("Picture", expanded=shown, key=f"rs_picture_{report}", on_change="rerun")
    if place.open:
        for one in made:
            words = f"{one.title}, as bars; the table above has the figures"
            place.image(_picture(one, report == "frequency"), width="content", alt=words)


def render() -> None:
    """Draw the page; annotators stay blind."""
    if not session.user().may(Role.ADJUDICATOR):
        show_note(
            "Results shows what judges and other people scored. It is open to adjudicators and "
            "admins, so that annotators stay blind."
        )
        return
    _page()


def _page_of(wanted: Wanted) -> str:
    return "calibrate" if wanted.report == "agreement" else "trajectories"


@st.cache_data(show_spinner=False, max_entries=_KEPT)
def _scorers(path: str, now: State) -> list[str]:
    return results.scorers(session.store())


@st.cache_data(show_spinner=False, max_entries=_KEPT)
def _agents(path: str, now: State) -> list[str]:
    return results.agents(session.store())


@st.cache_resource(show_spinner="Computing", max_entries=_KEPT)
def _made(path: str, now: State, wanted: Wanted) -> list[Report]:
    return results.make(session.store(), wanted)


@st.cache_data(show_spinner="Drawing", max_entries=_KEPT, hash_funcs={Report: repr})
def _picture(report: Report, log: bool) -> str:
    return drawn(chart(report, log=log), "svg").decode("utf-8")


def _choose(known: Sequence[str], agents: Sequence[str]) -> Wanted:
    report = _pick("Table", "report", list(REPORTS), REPORTS.__getitem__, 280)
    scorer = other = ""
    if report in _SCORED:
        scorer = _pick("Scores by", "scorer", list(known), _words, 200)
    if report == "cross-judge":
        rest = [name for name in known if name not in (scorer, GOLD)]
        other = _pick("and by", "other", rest, _words, 200)
    chosen: tuple[str, ...] = ()
    if report not in ("agreement", "distribution"):
        label = "Models, the base first" if report == "training" else "Models"
        asked = [name for name in st.query_params.get_all("agent") if name in agents]
        picked = st.multiselect(
            label, list(agents), asked, key="rs_agents", placeholder="All", width=240,
            format_func=storable,
        )  # fmt: skip
        if picked != st.query_params.get_all("agent"):
            st.query_params["agent"] = picked
        chosen = tuple(picked)
    types = report == "judge-free" and _switch("Error types", "types")
    return Wanted(report or "leaderboard", scorer or "", other or "", chosen, types=types)


def _switch(label: str, name: str) -> bool:
    on = st.toggle(label, key=f"rs_{name}", value=_asked(name) == "1")
    _keep(name, "1" if on else "")
    return on


def _words(name: str) -> str:
    if name == GOLD:
        return "People (gold)"
    return storable(name.removeprefix("judge:").removeprefix(HUMAN))[:60]


def _pick(label: str, name: str, options: list[str], words: Any, width: int) -> str:
    asked = _asked(name)
    chosen = st.selectbox(
        label,
        options,
        options.index(asked) if asked in options else 0,
        format_func=words,
        key=f"rs_{name}",
        width=width,
        disabled=not options,
        placeholder="None yet",
    )
    _keep(name, chosen if chosen and chosen != options[0] else "")
    return chosen or ""


def _asked(name: str) -> str:
    return st.query_params.get(name, "")


def _keep(name: str, value: str) -> None:
    if value and st.query_params.get(name) != value:
        st.query_params[name] = storable(value)
    elif not value and name in st.query_params:
        del st.query_params[name]


def _downloads(wanted: Wanted, made: Sequence[Report], intervals: bool) -> None:
    shown = [msgspec.structs.replace(one, intervals=intervals) for one in made]
    with st.popover("Download", icon=":material/download:", key="rs_download"):
        for form, (words, mime) in _TEXTS.items():
            st.download_button(
                words,
                lambda form=form: _text(shown, form),  # type: ignore[misc]
                f"{wanted.report}.{_SUFFIX[form]}",
                mime,
                key=f"rs_take_{form}",
                on_click="ignore",
                width="stretch",
            )
        for kind in KINDS:
            st.download_button(
                f"Picture, {kind.upper()}",
                lambda kind=kind: drawn(  # type: ignore[misc]
                    chart(made[0], log=wanted.report == "frequency"), kind
                ),
                f"{wanted.report}.{kind}",
                key=f"rs_take_{kind}",
                on_click="ignore",
                width="stretch",
            )


def _text(made: Sequence[Report], form: str) -> str:
    return "\n\n".join(storable(reports.render(one, form)) for one in made) + "\n"


def _next_steps() -> None:
    st.html(
        '<div class="rs-empty"><b>There is nothing to report here yet</b><ul>'
        '<li>Scores of people come from <a href="annotate">Annotate</a>,</li>'
        "<li>scores of judges from <code>pararecover judge</code>, or from a file on "
        '<a href="dataset">Dataset</a>,</li>'
        "<li>pass@1 and E5 from runs: <code>pararecover run</code>, then import its file.</li>"
        "</ul></div>"
    )
