"""Leaderboard, error types, cross-judge, comparison of runs, E5 against pass@1: tables of scores.

Source: paper tables 2, 3, 4, 6, 7 and 9.
"""

import math
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec
import numpy as np

from pararecover_core.agreement_groups import rank_agreement
from pararecover_core.report.scored import (
    MEASURES,
    RESAMPLES,
    Means,
    Scored,
    Whole,
    group_means,
    paired_test,
)
from pararecover_core.report.table import Cell, Report, Row
from pararecover_core.rubric import DIMENSIONS, JUDGED
from pararecover_core.taxonomy import ErrorType

LEVELS = (1, 2)
_E5 = DIMENSIONS.index("E5")
_SHOWN_NOTES = 6


def link(**wanted: str | int | Sequence[str]) -> str:
    """The query of a Trajectories view; empty fields are left out."""
    return urlencode({k: v for k, v in wanted.items() if v not in ("", 0, ())}, doseq=True)


def leaderboard(
    scored: Scored,
    *,
    levels: Sequence[int] = LEVELS,
    people: Mapping[tuple[str, int], Cell] | None = None,
    resamples: int = RESAMPLES,
) -> Report:
    """SI, DR, ES, Avg and pass@1 by agent and level.

    Args:
        scored: Scores of one scorer.
        levels: Which levels, in order; those without any replan are left out.
        people: Prediction-powered mean of people's scores by agent and level, where there is one.
        resamples: Bootstrap resamples.

    Source: paper table 2.
    """
    count = len(scored.agents)
    levels = [level for level in levels if (scored.level == level).any()] or levels
    means = _by_agent(scored, levels, resamples)
    columns = [f"L{level} {name}" for level in levels for name in (*MEASURES, "Pass@1")]
    if people:
        columns += [f"L{level} People" for level in levels]
    rows = []
    for agent, name in enumerate(scored.agents):
        cells: list[Cell] = []
        for place, level in enumerate(levels):
            query = link(agent=name, level=level)
            cells += _cells(means, place * count + agent, query)
            cells.append(_passed(means, place * count + agent, query))
        if people:
            cells += [people.get((name, level), Cell(math.nan, 0)) for level in levels]
        rows.append(Row((name,), tuple(cells)))
    kept = [row for row in rows if any(cell.n for cell in row.cells)]
    notes = [
        *_notes(scored, resamples),
        *_lacking(scored, means, levels),
        *_unscored(scored, means),
    ]
    if people:
        notes.append(
            "People: what people would give on the 13 judged sub-dimensions, estimated from "
            "both scorers' cells and the judge's alone (prediction-powered)."
        )
    return Report(
        title="Leaderboard",
        labels=("Model",),
        columns=tuple(columns),
        rows=tuple(kept),
        digits=(2,) * len(columns),
        notes=tuple(notes),
    )


def _by_agent(scored: Scored, levels: Sequence[int], resamples: int) -> Means:
    """Groups: level by level, agent by agent."""
    count = len(scored.agents)
    place = np.full(max([*levels, int(scored.level.max(initial=0))]) + 1, -1)
    place[list(levels)] = np.arange(len(levels))
    at = place[scored.level]
    groups = np.where(at >= 0, at * count + scored.agent, -1)
    return group_means(scored, groups, count * len(levels), resamples=resamples)


def _cells(means: Means, group: int, query: str = "") -> list[Cell]:
    return [
        Cell(
            float(means.value[group, k]),
            int(means.n[group, k]),
            low=float(means.low[group, k]),
            high=float(means.high[group, k]),
            link=query,
        )
        for k in range(len(MEASURES))
    ]


def _passed(means: Means, group: int, query: str = "") -> Cell:
    value, low, high = map(float, means.passed[group])
    return Cell(value, int(means.runs[group]), low=low, high=high, link=query)


_JUDGED = [DIMENSIONS.index(name) for name in JUDGED]


def _notes(scored: Scored, resamples: int) -> list[str]:
    covered = int(np.count_nonzero(~np.isnan(scored.values[:, _JUDGED]).all(axis=1)))
    words = f"Scores by {scored.scorer}" if scored.scorer else "Scores"
    notes = [f"{words} of {covered:,} of {len(scored.agent):,} replans."]
    if resamples:
        notes.append(f"Intervals: 95%, {resamples:,} bootstrap resamples of queries.")
    return notes


def _lacking(scored: Scored, means: Means, levels: Sequence[int]) -> list[str]:
    """Which means rest on fewer sub-dimensions than the paper's."""
    found: dict[tuple[str, ...], list[str]] = {}
    for place, level in enumerate(levels):
        for agent, name in enumerate(scored.agents):
            missing = means.lacking[place * len(scored.agents) + agent]
            if missing:
                found.setdefault(missing, []).append(f"{name} L{level}")
    return [
        f"Without {', '.join(missing)}: {', '.join(names[:8])}"
        + (f" and {len(names) - 8} more." if len(names) > 8 else ".")
        for missing, names in list(found.items())[:_SHOWN_NOTES]
    ]


def _unscored(scored: Scored, means: Means) -> list[str]:
    """Which agents this scorer gave no score."""
    count = len(scored.agents)
    names = [name for at, name in enumerate(scored.agents) if not means.n[at::count].any()]
    if not names:
        return []
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    words = f"Not scored yet: {', '.join(names[:8])}{more}."
    return [
        f"{words} A judge can score them; the program judge needs no model (Calibrate, Judges)."
    ]


def types_in_order() -> list[tuple[str, str]]:
    """Group and error type as tables 3 and 4 list them."""
    return [(kind.group.value, kind.value) for kind in ErrorType]


def error_types(
    scored: Scored, bits: Mapping[str, int], agent: str = "", *, resamples: int = RESAMPLES
) -> Report:
    """DR, SI and ES by error type and level, with the relative change from LEVEL-1 to LEVEL-2.

    Args:
        scored: Scores of one scorer.
        bits: Bit of each error type in ``scored.errors``.
        agent: Only this agent; "" for all.
        resamples: Bootstrap resamples.

    Source: paper tables 3 and 4.
    """
    if agent:
        known = scored.agents.index(agent) if agent in scored.agents else -1
        scored = scored.where(scored.agent == known)
    kinds = types_in_order()
    rows_at, groups_at = [], []
    for place, (_, kind) in enumerate(kinds):
        hit = np.flatnonzero((scored.errors & bits[kind]) != 0)
        at = np.where(scored.level[hit] == 1, 0, np.where(scored.level[hit] == 2, 1, -1))
        rows_at.append(hit)
        groups_at.append(np.where(at >= 0, at * len(kinds) + place, -1))
    rows: Whole = np.concatenate(rows_at)
    groups: Whole = np.concatenate(groups_at)
    means = group_means(scored, groups, 2 * len(kinds), rows=rows, resamples=resamples)
    made = [
        Row((family, kind), _pair_of_levels(means, place, len(kinds), kind, agent))
        for place, (family, kind) in enumerate(kinds)
    ]
    columns = [f"L{level} {name}" for level in LEVELS for name in ("DR", "SI", "ES")]
    title = "Error types" + (f", {agent}" if agent else "")
    notes = [
        *_notes(scored, resamples),
        "Arrows: change from LEVEL-1 to LEVEL-2, in percent of LEVEL-1.",
        "An instance with several error types counts in the row of each.",
    ]
    return Report(
        title, ("Group", "Error type"), tuple(columns), tuple(made), (2,) * 6, tuple(notes)
    )


def _pair_of_levels(
    means: Means, place: int, count: int, kind: str, agent: str
) -> tuple[Cell, ...]:
    order = [MEASURES.index(name) for name in ("DR", "SI", "ES")]
    first = _cells(means, place, link(agent=agent, level=1, error=kind))
    second = _cells(means, count + place, link(agent=agent, level=2, error=kind))
    marked = [
        msgspec.structs.replace(second[k], mark=change(first[k].value, second[k].value))
        for k in order
    ]
    return tuple([*(first[k] for k in order), *marked])


def change(before: float, after: float) -> str:
    """A relative change as an arrow and percents, "" where it is undefined or rounds to none."""
    if math.isnan(before) or math.isnan(after) or before == 0:
        return ""
    percent = 100.0 * (after - before) / before
    words = f"{abs(percent):.1f}%"
    return "" if words == "0.0%" else f"{'↑' if percent > 0 else '↓'} {words}"


def cross_judge(first: Scored, second: Scored, *, resamples: int = RESAMPLES) -> Report:
    """Avg by agent and level by two judges, on the cells that both scored.

    Args:
        first: Scores of one judge.
        second: Scores of the other; the same replans in the same order.
        resamples: Bootstrap resamples.

    Source: paper table 6.
    """
    lacks = np.isnan(first.values) | np.isnan(second.values)
    both = np.asarray(~lacks[:, _JUDGED].all(axis=1), dtype=np.bool_)
    sides = [
        _by_agent(
            msgspec.structs.replace(one, values=np.where(lacks, np.nan, one.values)).where(both),
            LEVELS,
            resamples,
        )
        for one in (first, second)
    ]
    names = [_short(first.scorer), _short(second.scorer)]
    count = len(first.agents)
    rows = []
    for agent, name in enumerate(first.agents):
        cells = [
            _cells(side, place * count + agent, link(agent=name, level=level))[3]
            for place, level in enumerate(LEVELS)
            for side in sides
        ]
        if any(cell.n for cell in cells):
            rows.append(Row((name,), tuple(cells)))
    columns = [f"L{level} {name}" for level in LEVELS for name in names]
    notes = [
        f"Avg on {int(both.sum()):,} replans, on the cells that both judges scored.",
        *(_ranks(rows, place, level) for place, level in enumerate(LEVELS)),
    ]
    return Report(
        "Cross-judge", ("Model",), tuple(columns), tuple(rows), (2,) * 4, tuple(filter(None, notes))
    )


def _short(scorer: str) -> str:
    return scorer.removeprefix("judge:") or "scorer"


def _ranks(rows: Sequence[Row], place: int, level: int) -> str:
    """Kendall's tau-b of the models' order by both judges."""
    pairs = [(r.cells[2 * place].value, r.cells[2 * place + 1].value) for r in rows]
    known = [pair for pair in pairs if not any(map(math.isnan, pair))]
    if len(known) < 3:
        return ""
    tau = rank_agreement([one for one, _ in known], [other for _, other in known])
    return (
        "" if math.isnan(tau) else f"LEVEL-{level}: Kendall's tau of the models' order {tau:.2f}."
    )


def comparison(scored: Scored, agents: Sequence[str], *, resamples: int = RESAMPLES) -> Report:
    """SI, DR, ES and Avg of runs beside each other, each against the first by a paired test.

    Args:
        scored: Scores of one scorer.
        agents: Names of the runs, the base first; unknown ones are left out.
        resamples: Bootstrap resamples.

    Source: paper table 7; the paired test is ours.
    """
    count = len(scored.agents)
    means = _by_agent(scored, LEVELS, resamples)
    chosen = [scored.agents.index(name) for name in agents if name in scored.agents]
    rows, notes = [], _notes(scored, resamples)
    for agent in chosen:
        cells: list[Cell] = []
        for place, level in enumerate(LEVELS):
            made = _cells(
                means, place * count + agent, link(agent=scored.agents[agent], level=level)
            )
            base = float(means.value[place * count + chosen[0], 3])
            cells += [*made[:3], _against(made[3], base, first=agent == chosen[0])]
            if agent != chosen[0]:
                notes += _tested(scored, agent, chosen[0], level)
        rows.append(Row((scored.agents[agent],), tuple(cells)))
    columns = [f"L{level} {name}" for level in LEVELS for name in MEASURES]
    return Report(
        "Comparison of runs", ("Model",), tuple(columns), tuple(rows), (2,) * 8, tuple(notes)
    )


def _against(cell: Cell, base: float, *, first: bool) -> Cell:
    gap = round(cell.value, 2) - round(base, 2)
    if first or math.isnan(gap) or abs(gap) < 0.005:
        return cell
    return msgspec.structs.replace(cell, mark=f"{'↑' if gap > 0 else '↓'} {abs(gap):.2f}")


def _tested(scored: Scored, agent: int, base: int, level: int) -> list[str]:
    found = paired_test(scored, agent, base, level)
    if not found.n:
        return []
    names = f"{scored.agents[agent]} against {scored.agents[base]}, LEVEL-{level}"
    words = f"{names}: {found.difference:+.2f} points on {found.n:,} shared instances"
    if math.isnan(found.p):
        return [f"{words}; too few queries for a test."]
    chance = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    return [f"{words} [{found.low:+.2f}, {found.high:+.2f}], {chance} (sign flips)."]


def e5_pass1(scored: Scored, *, resamples: int = RESAMPLES) -> Report:
    """E5 (0 to 100) against pass@1 by agent and level.

    Source: paper table 9, appendix B.
    """
    only = np.full_like(scored.values, np.nan)
    only[:, :] = scored.values[:, [_E5]]  # every column E5: each aggregate is then its mean
    means = _by_agent(msgspec.structs.replace(scored, values=only), LEVELS, resamples)
    count = len(scored.agents)
    rows = []
    for agent, name in enumerate(scored.agents):
        cells = []
        for place, level in enumerate(LEVELS):
            query = link(agent=name, level=level)
            cells.append(_cells(means, place * count + agent, query)[0])
            cells.append(_passed(means, place * count + agent, query))
        if any(cell.n for cell in cells):
            rows.append(Row((name,), tuple(cells)))
    columns = [f"L{level} {name}" for level in LEVELS for name in ("E5", "Pass@1")]
    notes = (
        "E5 = S × min(1, G / T); pass@1: the response is reached within 40 rounds.",
        *(["Intervals: 95%, bootstrap over queries."] if resamples else []),
    )
    return Report("E5 against pass@1", ("Model",), tuple(columns), tuple(rows), (2,) * 4, notes)
