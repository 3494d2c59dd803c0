"""Prediction-powered means: what people would say of an agent, from few people and many judgements.

The judge's mean over all samples is corrected by how far the judge was off where people scored.

Source: Angelopoulos et al., "Prediction-powered inference" (Science, 2023), and its power-tuned
form PPI++ (2023). Package ppi-python has both, with statsmodels and numba behind; the sum over
sub-dimensions with samples as clusters is ours.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from pararecover_core.agreement import Estimate
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED

Floats = NDArray[np.float64]


class PoweredMean(msgspec.Struct, frozen=True):
    """A human mean in [0, 1], estimated with the judge's help.

    Attributes:
        group: For example ("agent-a", "1"): agent and level.
        estimate: The mean, its interval around it; NaN where undefined.
        people_alone: The mean of people's scores alone, with its interval.
        judge_alone: The mean of the judge's scores; biased as the judge is.
        labelled: Cells with both scores.
        unlabelled: Cells with the judge's alone.
        samples: Samples that the judge scored.
        note: Why it is undefined, or over how many sub-dimensions; "" for neither.
    """

    group: tuple[str, ...]
    estimate: Estimate
    people_alone: Estimate
    judge_alone: float
    labelled: int
    unlabelled: int
    samples: int
    note: str = ""


class _Part(msgspec.Struct):
    """One sub-dimension of a group: means, and what each sample adds to them (0: nothing)."""

    mean: float
    plain: float
    judge: float
    pull: Floats
    plain_pull: Floats


def powered_mean(
    human: Sequence[float],
    judge: Sequence[float],
    judge_only: Sequence[float],
    *,
    level: float = 0.95,
) -> Estimate:
    """The human mean of all samples, from n that both scored and N that the judge alone scored.

    Args:
        human: n scores of people.
        judge: The judge's n scores of the same samples.
        judge_only: The judge's N scores of other samples drawn alike.
        level: Confidence level.

    Returns:
        The estimate with a normal interval; NaN for n < 2.
    """
    both = np.concatenate([np.asarray(human, float), np.full(len(judge_only), np.nan)])
    every = np.concatenate([np.asarray(judge, float), np.asarray(judge_only, float)])
    part = _part(both, every)
    if part is None:
        return Estimate(math.nan)
    return _estimate([part.mean], part.pull, level)


def powered_means(
    cells: Iterable[Cell],
    groups: Mapping[str, tuple[str, ...]],
    *,
    dimensions: Sequence[str] = JUDGED,
    level: float = 0.95,
) -> list[PoweredMean]:
    """The human mean over the sub-dimensions, for each group of samples.

    Args:
        cells: Cells with both scores, or the judge's alone; others are passed over.
        groups: Sample to its group; samples without one are passed over.
        dimensions: Sub-dimensions to average over.
        level: Confidence level.

    Returns:
        One row a group, in order of the groups' names. A sub-dimension counts where two or more
        samples have both scores; samples are clusters, so that the cells of one are not taken
        for independent.
    """
    place = {name: at for at, name in enumerate(dimensions)}
    kept = [c for c in cells if c.sample in groups and c.judge is not None and c.dimension in place]
    rows: dict[str, int] = {}
    for cell in kept:
        rows.setdefault(cell.sample, len(rows))
    human, judge = (np.full((len(rows), len(place)), np.nan) for _ in range(2))
    for cell in kept:
        at = rows[cell.sample], place[cell.dimension]
        judge[at] = cell.judge
        if cell.human is not None:
            human[at] = cell.human
    return powered_table(human, judge, [groups[sample] for sample in rows], level=level)


def powered_table(
    human: Floats,
    judge: Floats,
    groups: Sequence[tuple[str, ...]],
    *,
    level: float = 0.95,
) -> list[PoweredMean]:
    """As ``powered_means``, of scores that stand in tables already.

    Args:
        human: Samples x sub-dimensions, in [0, 1]; NaN where people gave no score.
        judge: The judge's, of the same shape.
        groups: The group of each sample.
        level: Confidence level.
    """
    rows: dict[tuple[str, ...], list[int]] = {}
    for row in np.flatnonzero(~np.isnan(judge).all(axis=1)).tolist():
        rows.setdefault(groups[row], []).append(row)
    return [_group(group, human[rows[group]], judge[rows[group]], level) for group in sorted(rows)]


def _group(group: tuple[str, ...], human: Floats, judge: Floats, level: float) -> PoweredMean:
    scored = ~np.isnan(judge)
    labelled = int((scored & ~np.isnan(human)).sum())
    unlabelled = int(scored.sum()) - labelled
    asked = np.flatnonzero(scored.any(axis=0))
    parts = [part for d in asked if (part := _part(human[:, d], judge[:, d])) is not None]
    samples = len(judge)
    if not parts:
        none = Estimate(math.nan)
        why = "undefined: fewer than two samples have both scores"
        mean = float(judge[scored].mean())
        return PoweredMean(group, none, none, mean, labelled, unlabelled, samples, why)
    missing = len(asked) - len(parts)
    return PoweredMean(
        group,
        _estimate([p.mean for p in parts], _together([p.pull for p in parts]), level),
        _estimate([p.plain for p in parts], _together([p.plain_pull for p in parts]), level),
        float(np.mean([p.judge for p in parts])),
        labelled,
        unlabelled,
        samples,
        f"mean over {len(parts)} of {len(asked)} sub-dimensions" if missing else "",
    )


def _part(human: Floats, judge: Floats) -> _Part | None:
    """One sub-dimension; None where fewer than two samples have both scores."""
    scored = ~np.isnan(judge)
    both, alone = scored & ~np.isnan(human), scored & np.isnan(human)
    people, said, only = human[both], judge[both], judge[alone]
    if len(people) < 2:
        return None
    trust = _trust(people, said, only)
    rest = people - trust * said
    pull, plain_pull = np.zeros(len(judge)), np.zeros(len(judge))
    plain_pull[both] = _pulls(people)
    pull[both] = _pulls(rest) if len(only) else plain_pull[both]
    pull[alone] = _pulls(trust * only)
    mean = float(rest.mean() + trust * (only if len(only) else said).mean())
    return _Part(mean, float(people.mean()), float(judge[scored].mean()), pull, plain_pull)


def _trust(human: Floats, judge: Floats, only: Floats) -> float:
    """How much of the judge to use, in [0, 1]: what makes the interval narrowest."""
    n, more = len(human), len(only)
    spread = float(np.concatenate([judge, only]).var())
    if not more or spread == 0:
        return 0.0
    shared = float(np.cov(human, judge, ddof=1)[0, 1])
    return min(1.0, max(0.0, shared / ((1 + n / more) * spread)))


def _pulls(values: Floats) -> Floats:
    """What each value adds to the mean, with the small-sample correction."""
    n = len(values)
    if n < 2:
        return np.zeros(n)
    found: Floats = (values - values.mean()) * (math.sqrt(n / (n - 1)) / n)
    return found


def _together(pulls: Sequence[Floats]) -> Floats:
    """The pulls of one sample add up before they are squared."""
    found: Floats = np.sum(pulls, axis=0) / len(pulls)
    return found


def _estimate(means: Sequence[float], pull: Floats, level: float) -> Estimate:
    """The mean of means with a normal interval."""
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(float(pull @ pull))
    mean = math.fsum(means) / len(means)
    return Estimate(mean, mean - half, mean + half)
