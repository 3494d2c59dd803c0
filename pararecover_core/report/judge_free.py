"""Judge-free metrics of runs, over all, by level and by error type.

Source: paper table 8 and appendix B (table 9).
"""

import math
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

from pararecover_core.records import Trajectory
from pararecover_core.report.table import Cell, Report, Row
from pararecover_core.report.tables import link
from pararecover_core.scores import BROKEN_OFF
from pararecover_core.taxonomy import OTHER, ErrorType, split_labels

_Figure = tuple[str, int, Callable[[dict[str, Any]], tuple[float, float] | None]]
"""Column, decimals, and what a run adds: value and weight, None where it has none."""


def _share(name: str) -> Callable[[dict[str, Any]], tuple[float, float] | None]:
    return lambda run: None if run.get(name) is None else (100.0 * float(run[name]), 1.0)


def _count(name: str) -> Callable[[dict[str, Any]], tuple[float, float] | None]:
    return lambda run: None if run.get(name) is None else (float(run[name]), 1.0)


def _invalid(run: dict[str, Any]) -> tuple[float, float] | None:
    answers = run.get("answers")
    return (100.0 * float(run["invalid"]) / answers, float(answers)) if answers else None


FIGURES: tuple[_Figure, ...] = (
    ("Tool Use Eff.", 2, _share("tool_use_efficiency")),
    ("E5", 2, _share("e5")),
    ("Invalid DAG Rate", 2, _invalid),
    ("Pass@1", 2, _share("success")),
    ("Correct", 2, _share("correct")),
    ("Rounds", 2, _count("rounds")),
    ("Calls", 2, _count("calls")),
)

NOTES = (
    "Percent, rounds and calls are means over runs; Invalid DAG Rate is over all plans given.",
    "E5 and Tool Use Eff. count a run where its answer is correct; where the truth is not known, "
    "where the response was reached.",
    "Pass@1: response reached within the limit. Correct: the answer holds every fact asked for.",
    "An instance with several error types counts in the row of each.",
)


def judge_free(trajectories: Iterable[Trajectory], *, by_type: bool = True) -> Report:
    """Means of what execution tells, by agent, level and error type.

    Args:
        trajectories: N runs that ``runs.measured`` scored; others count where they can.
        by_type: Whether to add a row for each error type.

    Returns:
        Rows in the order agent, level, all types first. Keys are those of the trajectories;
        links open their list.
        Runs that were broken off are left out.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = {}
    broken_off = 0
    for run in trajectories:
        if run.outcome in BROKEN_OFF:
            broken_off += 1
            continue
        level = str(run.extra.get("level") or "?")
        data = run.key, {**run.extra, "success": run.success}
        for kind in ("all", *(_types(run.extra.get("tags")) if by_type else ())):
            groups.setdefault((run.agent, level, kind), []).append(data)
    rows = [
        Row(labels, tuple(_cell(group, add, _link(*labels)) for _, _, add in FIGURES))
        for labels, group in sorted(groups.items(), key=_order)
    ]
    words = f"{broken_off:,} runs that were cancelled or lost their endpoint are left out."
    left = (words,) if broken_off else ()
    return Report(
        title="Judge-free metrics",
        labels=("agent", "level", "error type"),
        columns=tuple(name for name, _, _ in FIGURES),
        rows=tuple(rows),
        digits=tuple(digits for _, digits, _ in FIGURES),
        notes=NOTES + left,
    )


def _types(tags: Any) -> list[str]:
    """The error types of a run's instance, each once."""
    given = tags if isinstance(tags, list) else []
    return list(dict.fromkeys(t for tag in given for t in split_labels(str(tag))))


def _order(item: tuple[tuple[str, str, str], Any]) -> tuple[str, str, bool, str]:
    agent, level, kind = item[0]
    return agent, level, kind != "all", kind


def _link(agent: str, level: str, kind: str) -> str:
    known = level if level.isdecimal() else ""
    types = "" if kind == "all" else kind if kind in set(ErrorType) else OTHER
    return link(agent=agent, level=known, error=types)


def _cell(
    group: list[tuple[str, dict[str, Any]]],
    add: Callable[[dict[str, Any]], tuple[float, float] | None],
    query: str,
) -> Cell:
    found = [(key, added) for key, run in group if (added := add(run)) is not None]
    if not found:
        return Cell(math.nan, 0)
    weight = fmean(w for _, (_, w) in found)
    mean = fmean(v * w for _, (v, w) in found) / weight
    return Cell(mean, len(found), tuple(key for key, _ in found), link=query)
