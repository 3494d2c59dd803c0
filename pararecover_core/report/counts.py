"""Tables of agreement, of error types over the data, and of errors that agents make.

Source: paper table 5, appendix F (tables 10 and 11, figure 4), appendix D (figure 3).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from pararecover_core.agreement import Agreement, Estimate, Figures
from pararecover_core.findings import Certainty, findings_of
from pararecover_core.pairing import SEALED
from pararecover_core.records import Tool, Trajectory
from pararecover_core.report.table import Cell, Report, Row
from pararecover_core.report.tables import link, types_in_order
from pararecover_core.rubric import sde_rubric
from pararecover_core.taxonomy import OTHER

_ORDER = ("D", "E", "S")
_COLUMNS = (
    ("EMA", "ema"),
    ("MAE", "mae"),
    ("Human Mean", "human_mean"),
    ("LLM Mean", "judge_mean"),
)


def agreement_table(found: Agreement, *, judge: str = "", human: str = "") -> Report:
    """EMA, MAE and both means by sub-dimension, with their intervals.

    Args:
        found: Figures of ``agreement.measure``.
        judge: Whose scores are compared, ``human`` with whose.
        human: The human side.

    Source: paper table 5.
    """
    groups = {d.id: d.group for d in sde_rubric().dimensions}
    shown = [one for one in found.dimensions if one.coverage.cells]
    ordered = sorted(
        shown, key=lambda one: _ORDER.index(groups[one.name]) if one.name in groups else 9
    )
    rows = [Row((one.name,), _measured(one)) for one in ordered]
    rows.append(Row(("Overall",), _measured(found.overall)))
    coverage = found.overall.coverage
    sealed = coverage.judge_gaps.get(SEALED, 0)
    notes = [
        f"{judge} against {human}." if judge and human else "",
        f"{coverage.both:,} of {coverage.cells:,} cells have both scores.",
        f"{sealed:,} cells held out by a calibration session are not counted." if sealed else "",
        f"Intervals: 95%, {found.resamples:,} bootstrap resamples." if found.resamples else "",
    ]
    return Report(
        title="Agreement of people and judge",
        labels=("Dimension",),
        columns=tuple(name for name, _ in _COLUMNS),
        rows=tuple(rows),
        digits=(4,) * len(_COLUMNS),
        notes=tuple(note for note in notes if note),
    )


def _measured(figures: Figures) -> tuple[Cell, ...]:
    query = (
        f"cell={figures.name}" if figures.name in {d.id for d in sde_rubric().dimensions} else ""
    )
    made = []
    for _, name in _COLUMNS:
        estimate: Estimate = getattr(figures, name)
        cell = Cell(estimate.value, figures.n, low=estimate.low, high=estimate.high, link=query)
        made.append(cell)
    return tuple(made)


Counts = Mapping[tuple[int, int, str], int]
"""Instances by level, round (from 1) and error type."""


def distribution_tables(counts: Counts, *, source: str = "") -> list[Report]:
    """Error types of LEVEL-1, and of each round of LEVEL-2, with their shares.

    Args:
        counts: Instances by level, round and label; other labels get rows of their own.
        source: Only named in the title.

    Source: paper tables 10 and 11.
    """
    made = []
    for level in sorted({level for level, _, _ in counts}):
        rounds = sorted({r for known, r, _ in counts if known == level})
        made.append(_distribution(counts, level, rounds, source))
    return made


def _distribution(counts: Counts, level: int, rounds: Sequence[int], source: str) -> Report:
    known = [kind for _, kind in types_in_order()]
    others = sorted({label for at, _, label in counts if at == level} - set(known))
    totals = {
        r: sum(n for (at, k, _), n in counts.items() if (at, k) == (level, r)) for r in rounds
    }
    rows = []
    for label in [*known, *others]:
        cells: list[Cell] = []
        for r in rounds:
            n = counts.get((level, r, label), 0)
            share = 100.0 * n / totals[r] if totals[r] else math.nan
            query = link(level=level, error=label if label in known else OTHER) if n else ""
            cells += [Cell(n, n, link=query), Cell(share, n, link=query)]
        if any(cell.n for cell in cells) or label in known:
            rows.append(Row((label,), tuple(cells)))
    every = link(level=level)
    whole = [Cell(value, totals[r], link=every) for r in rounds for value in (totals[r], 100.0)]
    names = [
        n for r in rounds for n in (_head(r, rounds, "Frequency"), _head(r, rounds, "Ratio (%)"))
    ]
    return Report(
        title=f"Error type statistics in LEVEL-{level or '?'}" + (f", {source}" if source else ""),
        labels=("Error type",),
        columns=tuple(names),
        rows=(*rows, Row(("Total",), tuple(whole))),
        digits=(0, 2) * len(rounds),
        notes=("An instance counts in the row of each label of a round.",),
        counts=True,
    )


def _head(number: int, rounds: Sequence[int], name: str) -> str:
    return name if len(rounds) == 1 else f"Round {number} {name}"


def error_frequency(runs: Iterable[tuple[Trajectory, Sequence[Tool], str]]) -> Report:
    """How often each agent makes each error in its runs, as far as a program can tell.

    Args:
        runs: Each run with its tools and its query.

    Returns:
        Counts by error type and agent: a fault of a node counts once a run, and only from the
        round on that the agent's own plan is there.

    Source: paper appendix D (figure 3); which faults are found is ours (``findings``).
    """
    found: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    for run, tools, query in runs:
        counts = found.setdefault(run.agent, {})
        sizes[run.agent] = sizes.get(run.agent, 0) + 1
        for kind in _faults(run, tools, query):
            counts[kind] = counts.get(kind, 0) + 1
    agents = sorted(found)
    rows = [
        Row((family, kind), tuple(_times(found[a].get(kind, 0), a) for a in agents))
        for family, kind in types_in_order()
    ]
    notes = [f"{agent}: {sizes[agent]:,} runs." for agent in agents]
    return Report(
        title="Errors in the runs of agents",
        labels=("Group", "Error type"),
        columns=tuple(agents),
        rows=tuple(rows),
        digits=(0,) * len(agents),
        notes=(*notes, "Counted where plan or results show it for certain or likely."),
        counts=True,
    )


def _times(count: int, agent: str) -> Cell:
    return Cell(count, count, link=link(agent=agent) if count else "")


def _faults(run: Trajectory, tools: Sequence[Tool], query: str) -> list[str]:
    given = {
        (f.error_type, f.node) for f in _found(run, 0, tools, query) if f.error_type is not None
    }
    seen: dict[tuple[str, str], None] = {}
    for place in range(1, len(run.rounds)):
        for finding in _found(run, place, tools, query):
            if finding.error_type is not None and (finding.error_type, finding.node) not in given:
                seen[finding.error_type.value, finding.node] = None
    return [kind for kind, _ in seen]


def _found(run: Trajectory, place: int, tools: Sequence[Tool], query: str):  # type: ignore[no-untyped-def]
    one = run.rounds[place]
    found = findings_of(one.plan, tools, one.observations, query=query)
    return [f for f in found if f.certainty is not Certainty.POSSIBLE]
