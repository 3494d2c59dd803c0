"""What stands under the Calibrate board: slices, scales, learning curve, and the judges compared.

Every table is (heads, rows of text and numbers): the page shows it, and takes it away as CSV.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from annotations.pairs import Selection, judge_alone, load
from annotations.score_log import storable
from pararecover_core.agreement import Agreement, Estimate
from pararecover_core.agreement_groups import (
    by_group,
    learning_curve,
    rank_agreement,
    scale_agreement,
)
from pararecover_core.agreement_means import powered_means
from pararecover_core.agreement_people import Replacement, may_replace
from pararecover_core.figures import UNDEFINED, fixed
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED

if TYPE_CHECKING:
    from annotations.store import Store

SLICES = ("level", "error type", "agent")


class Table(NamedTuple):
    """A table ready to be shown; ``note`` says how to read it."""

    heads: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    note: str = ""


class Point(NamedTuple):
    """A dot with its interval, for a chart; ends are None where there is no interval."""

    name: str
    value: float
    low: float | None
    high: float | None
    n: int


def interval_words(one: Estimate, digits: int = 3) -> str:
    """A figure with its interval, "undefined" where there is none."""
    if math.isnan(one.value):
        return UNDEFINED
    ends = (
        "" if math.isnan(one.low) else f" ({fixed(one.low, digits)} to {fixed(one.high, digits)})"
    )
    return fixed(one.value, digits) + ends


def groups_of(store: "Store", samples: Iterable[str], by: str) -> dict[str, list[str]]:
    """Sample to its groups: its level, its error types (of any round), or its agent."""
    query = {
        "level": "SELECT r.key, 'LEVEL-' || i.level FROM replan r JOIN instance i"
        " ON i.key = r.instance WHERE i.level > 0",
        "error type": "SELECT DISTINCT r.key, e.error_type FROM replan r JOIN instance_error e"
        " ON e.instance = r.instance WHERE 1",
        "agent": "SELECT r.key, r.agent FROM replan r WHERE r.agent <> ''",
    }[by]
    listed = orjson.dumps(list(samples)).decode()
    found: dict[str, list[str]] = {}
    with store.read() as db:
        for key, group in db.execute(
            f"{query} AND r.key IN (SELECT value FROM json_each(?))", (listed,)
        ):
            found.setdefault(key, []).append(storable(group))
    return found


def slices(store: "Store", cells: Sequence[Cell], by: str) -> tuple[Table, list[Point]]:
    """Figures of each level, error type or agent."""
    groups = groups_of(store, {cell.sample for cell in cells}, by)
    found = by_group(cells, groups)
    rows = [_slice(name, one) for name, one in found.items()]
    heads = (by.capitalize(), "n", "Samples", "EMA", "MAE", "Bias", "Linear kappa", "AC2")
    points = [_point(name, one.pooled.ema, one.pooled.n) for name, one in found.items()]
    note = "Pooled over cells. An instance with several error types counts under each."
    return Table(heads, rows, note), [point for point in points if point.n]


def _slice(name: str, found: Agreement) -> tuple[Any, ...]:
    one = found.pooled
    return (
        *(name, one.n, one.samples, interval_words(one.ema), interval_words(one.mae)),
        *(interval_words(one.difference), interval_words(one.kappa, 2), interval_words(one.ac2, 2)),
    )


def _point(name: str, one: Estimate, n: int) -> Point:
    known = not math.isnan(one.low)
    return Point(name, one.value, one.low if known else None, one.high if known else None, n)


def scales(cells: Sequence[Cell]) -> Table:
    """Agreement of SI, DR, ES and the total."""
    rows = [
        (
            *(one.name, one.n, one.partial, f"0 to {one.top:g}"),
            *(fixed(one.human_mean, 2), fixed(one.judge_mean, 2)),
            *(interval_words(one.difference, 2), interval_words(one.mae, 2)),
            fixed(one.tau, 3),
        )
        for one in scale_agreement(cells)
    ]
    heads = ("Scale", "n", "In part", "Range", "People", "Judge", "Bias", "MAE", "Kendall's tau")
    note = (
        "Judged sub-dimensions alone (S5 and E5 are computed). n: samples that both scored whole; "
        "samples scored in part are left out."
    )
    return Table(heads, rows, note)


def other_figures(found: Agreement) -> Table:
    """Kappa with quadratic weights, alpha, AC2 and signed errors by sub-dimension."""
    rows = [
        (
            *(one.name, one.n, interval_words(one.kappa, 2)),
            *(interval_words(one.kappa_quadratic, 2), interval_words(one.alpha, 2)),
            *(interval_words(one.ac2, 2), *one.signed),
        )
        for one in (*found.dimensions, found.overall)
    ]
    heads = (
        *("", "n", "Linear kappa", "Quadratic kappa", "Alpha, ordinal", "AC2, linear"),
        *("−1", "−0.5", "0", "+0.5", "+1"),
    )
    note = "The last five columns count cells by judge minus people."
    return Table(heads, rows, note)


def curve(cells: Sequence[Cell]) -> tuple[Table, list[tuple[str, int, float]]]:
    """How wide EMA's interval is at 50, 100, 200 and 400 samples."""
    points = learning_curve(cells)
    sizes = sorted({point.n for point in points})
    width = {(point.name, point.n): point for point in points}
    names = [*JUDGED, "overall"] if points else []
    rows = [(name, *(fixed(width[name, n].width, 3) for n in sizes)) for name in names]
    have = max((point.n for point in points if point.measured), default=0)
    note = "Width of EMA's 95% interval. "
    if points and have < max(sizes):
        note += "Sizes beyond the samples there are assume that further samples are alike. "
    note += "Four times as many samples halve it."
    drawn = [(p.name, p.n, p.width) for p in points if not math.isnan(p.width)]
    return Table(("", *(f"n = {n}" for n in sizes)), rows, note), drawn


def replacement(cells: Sequence[Cell]) -> tuple[Table, Replacement]:
    """The alternative-annotator test, annotator by annotator."""
    found = may_replace(cells)
    rows = [
        (
            *(storable(one.annotator), one.samples, fixed(one.judge_wins, 3)),
            *(fixed(one.person_wins, 3), UNDEFINED if math.isnan(one.p) else f"{one.p:.3g}"),
            "judge" if one.rejected else "not shown",
        )
        for one in found.annotators
    ]
    heads = ("Annotator left out", "Samples", "Judge wins", "Annotator wins", "p", "Better one")
    return Table(heads, rows, found.words()), found


def powered(store: "Store", selection: Selection, shared: Sequence[Cell]) -> Table:
    """The human mean of each agent and level, from few human and many judge scores.

    Args:
        store: The database.
        selection: Sides and filters.
        shared: The cells of ``load_shared``; those that the judge alone scored are read here.
    """
    cells = [*shared, *judge_alone(store, selection)]
    samples = {cell.sample for cell in cells}
    level = groups_of(store, samples, "level")
    agent = groups_of(store, samples, "agent")
    groups = {s: (agent.get(s, ["not named"])[0], level.get(s, ["no level"])[0]) for s in samples}
    rows = [
        (
            *one.group,
            interval_words(one.estimate),
            interval_words(one.people_alone),
            fixed(one.judge_alone, 3),
            one.labelled,
            one.unlabelled,
            one.note,
        )
        for one in powered_means(cells, groups)
    ]
    heads = ("Agent", "Level", "Powered mean", "People alone", "Judge alone", "Both", "Judge only")
    note = (
        "Prediction-powered: the judge's mean over all answers, corrected by how far it was off "
        "where people scored. Samples are clusters; the answers that people scored must be drawn "
        "like the others."
    )
    return Table((*heads, "Note"), rows, note)


def cross_judge(store: "Store", judges: Sequence[str], by: str = "level") -> Table:
    """Mean score of each agent under each judge, by level, and how alike judges rank agents.

    Args:
        store: The database.
        judges: Scorer names; the first one is compared with the others.
        by: Unused groups are left out; "level" or "" for all together.

    Source: paper table 6; only answers that all judges scored are taken, so that means compare.
    """
    scores = {judge: _by_cell(store, judge) for judge in judges}
    shared = set.intersection(*(set(found) for found in scores.values())) if scores else set()
    samples = {sample for sample, _ in shared}
    agent = groups_of(store, samples, "agent")
    level = groups_of(store, samples, "level") if by else {}
    means: dict[tuple[str, str], dict[str, list[float]]] = {}
    for key in shared:
        for name in agent.get(key[0], ()):
            cell = means.setdefault((name, level.get(key[0], ["all"])[0]), {})
            for judge in judges:
                cell.setdefault(judge, []).append(scores[judge][key])
    rows: list[tuple[Any, ...]] = []
    for group in sorted({place for _, place in means}):
        some = {name: cell for (name, place), cell in sorted(means.items()) if place == group}
        value = {n: [100 * sum(c[j]) / len(c[j]) for j in judges] for n, c in some.items()}
        rows += [
            (group, storable(name), *(fixed(v, 2) for v in value[name]), len(some[name][judges[0]]))
            for name in some
        ]
        columns = list(zip(*value.values(), strict=True))
        taus = [fixed(rank_agreement(columns[0], column), 3) for column in columns[1:]]
        rows.append((group, "Kendall's tau with the first judge", "", *taus, len(some)))
    heads = ("Level", "Agent", *(storable(judge.removeprefix("judge:")) for judge in judges), "n")
    note = (
        "Mean of the judged sub-dimensions x 100, over the cells that all these judges scored; "
        "tau is 1 where both judges rank the agents alike."
    )
    return Table(heads, rows, note)


def _by_cell(store: "Store", judge: str) -> dict[tuple[str, str], float]:
    cells = load(store, Selection(judge=judge))
    return {(c.sample, c.dimension): c.judge for c in cells if c.judge is not None}
