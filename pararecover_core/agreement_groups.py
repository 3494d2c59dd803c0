"""Agreement beyond the cell: of SI, DR, ES and the total, by group, and over more samples."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from scipy import stats

from pararecover_core.agreement import (
    Agreement,
    Estimate,
    Interval,
    interval,
    measure,
    outcomes_of,
    resample_weights,
)
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED, sde_rubric

SIZES = (50, 100, 200, 400)
"""Numbers of samples whose interval the learning curve shows."""


class ScaleAgreement(msgspec.Struct, frozen=True):
    """Agreement on a sum of sub-dimensions, over samples that both sides scored whole.

    Attributes:
        name: SI, DR, ES (judged sub-dimensions alone, mean x 100) or Total (sum of all 13).
        n: Samples with all of its sub-dimensions scored by both.
        partial: Samples with some of them.
        top: The largest possible value: 100, or 13.
        difference: Judge minus human, in its own unit.
        mae: Mean absolute difference.
        tau: Kendall's rank correlation (tau-b) of the samples; NaN where one side never varies.
        note: Why figures are undefined, "" where none is.
    """

    name: str
    n: int
    partial: int
    top: float
    human_mean: float
    judge_mean: float
    difference: Estimate
    mae: Estimate
    tau: float
    note: str = ""


def scale_agreement(
    cells: Iterable[Cell], *, resamples: int = 2000, seed: int = 20260101, level: float = 0.95
) -> list[ScaleAgreement]:
    """Agreement of SI, DR, ES and the total, with intervals by a bootstrap over samples."""
    both: dict[str, dict[str, tuple[float, float]]] = {}
    for cell in cells:
        if cell.human is not None and cell.judge is not None:
            both.setdefault(cell.sample, {})[cell.dimension] = (cell.human, cell.judge)
    rubric = sde_rubric()
    scales = [
        (group.code, [d.id for d in rubric.judged if d.group == group.id], 100.0)
        for group in rubric.groups
    ]
    scales.append(("Total", list(JUDGED), float(len(JUDGED))))
    return [
        _scale(name, names, top, both, resamples=resamples, seed=seed, level=level)
        for name, names, top in scales
    ]


def _scale(
    name: str,
    dimensions: Sequence[str],
    top: float,
    both: Mapping[str, Mapping[str, tuple[float, float]]],
    *,
    resamples: int,
    seed: int,
    level: float,
) -> ScaleAgreement:
    rows = [
        [sum([s[d][side] for d in dimensions]) / len(dimensions) for side in (0, 1)]
        for _, s in sorted(both.items())
        if all(d in s for d in dimensions)
    ]
    partial = sum(any(d in s for d in dimensions) for s in both.values()) - len(rows)
    if not rows:
        none = Estimate(math.nan)
        why = "undefined: no sample has all its sub-dimensions scored by both"
        return ScaleAgreement(name, 0, partial, top, math.nan, math.nan, none, none, math.nan, why)
    human, judge = top * np.array(rows).T
    apart = np.stack([judge - human, np.abs(judge - human)], axis=1)
    spread = (
        np.concatenate([w @ apart for w in resample_weights(len(rows), resamples, seed)])
        / len(rows)
        if len(rows) > 1 and resamples
        else np.full((0, 2), np.nan)
    )
    difference, error = apart.mean(0)
    tau = rank_agreement(human.tolist(), judge.tolist())
    return ScaleAgreement(
        name,
        len(rows),
        partial,
        top,
        float(human.mean()),
        float(judge.mean()),
        Estimate(float(difference), *interval(spread[:, 0], level)),
        Estimate(float(error), *interval(spread[:, 1], level)),
        tau,
        "rank agreement is undefined: one side never varies" if math.isnan(tau) else "",
    )


def rank_agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b of two rankings.

    Args:
        one: N figures, for example one for each agent.
        other: N figures of the same in the same order.

    Returns:
        From -1 (reversed) to 1 (the same order); NaN for N < 2 or where one side never varies.

    Source: paper section 3.3, table 6 ("ranking remains unchanged"); the coefficient is ours.
    """
    if len(one) < 2 or len(set(one)) < 2 or len(set(other)) < 2:
        return math.nan
    return float(stats.kendalltau(one, other).statistic)


def by_group(
    cells: Iterable[Cell],
    groups: Mapping[str, Sequence[str]],
    *,
    resamples: int = 500,
    seed: int = 20260101,
) -> dict[str, Agreement]:
    """Figures of each group of samples.

    Args:
        cells: As ``measure``.
        groups: Sample to the groups it is in (an instance may have several error types).
        resamples: Bootstrap resamples.
        seed: Seed of the resampling.

    Returns:
        Group to its figures, in order of the names.
    """
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        for group in groups.get(cell.sample, ()):
            found.setdefault(group, []).append(cell)
    return {group: measure(found[group], resamples=resamples, seed=seed) for group in sorted(found)}


class CurvePoint(msgspec.Struct, frozen=True):
    """How wide the interval of EMA is, or would be, with so many samples.

    Attributes:
        name: Sub-dimension id or "overall".
        n: Samples.
        width: Upper minus lower end, in [0, 1]; NaN where undefined.
        measured: Whether there are that many samples already; else an extrapolation from those
            there are.
    """

    name: str
    n: int
    width: float
    measured: bool


def learning_curve(
    cells: Iterable[Cell],
    *,
    sizes: Sequence[int] = SIZES,
    dimensions: Sequence[str] = JUDGED,
    resamples: int = 300,
    seed: int = 20260101,
    level: float = 0.95,
) -> list[CurvePoint]:
    """How many samples are worth scoring: the width of EMA's interval at each size.

    Each size draws that many samples, with replacement, from those that there are; for more than
    there are the curve assumes that further samples are alike.
    """
    outcomes = outcomes_of(cells, dimensions)
    samples = len(outcomes)
    if samples < 2:
        return []
    points = []
    for size in sizes:
        rng = np.random.default_rng((seed, size))
        weights = rng.multinomial(size, np.full(samples, 1 / samples), size=resamples)
        counts = (weights.astype(np.float32) @ outcomes).reshape(resamples, len(dimensions), 9)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = counts[..., ::4].sum(-1) / counts.sum(-1)
        known = ~np.isnan(shares)
        with np.errstate(invalid="ignore"):
            overall = np.where(known, shares, 0.0).sum(1) / known.sum(1)
        points += [
            CurvePoint(name, size, _width(interval(column, level)), size <= samples)
            for name, column in zip((*dimensions, "overall"), (*shares.T, overall), strict=True)
        ]
    return points


def _width(found: Interval) -> float:
    return found.high - found.low
