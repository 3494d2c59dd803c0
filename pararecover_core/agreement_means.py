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
        note: Why it is undefined, or over how many sub-dimensions; "" for neither.
    """

    group: tuple[str, ...]
    estimate: Estimate
    people_alone: Estimate
    judge_alone: float
    labelled: int
    unlabelled: int
    note: str = ""


class _Part(msgspec.Struct):
    """One sub-dimension of a group: means, and what each sample adds to them."""

    mean: float
    plain: float
    judge: float
    pull: dict[str, float]
    plain_pull: dict[str, float]


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
    part = _part(_Numbered(human, judge, judge_only))
    if part is None:
        return Estimate(math.nan)
    return _estimate([part.mean], [part.pull], level)


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
    found: dict[tuple[str, ...], dict[str, list[Cell]]] = {}
    for cell in cells:
        group = groups.get(cell.sample)
        if group is not None and cell.judge is not None and cell.dimension in dimensions:
            found.setdefault(group, {}).setdefault(cell.dimension, []).append(cell)
    return [_group(group, found[group], level) for group in sorted(found)]


def _group(
    group: tuple[str, ...], by_dimension: Mapping[str, Sequence[Cell]], level: float
) -> PoweredMean:
    every = [cell for cells in by_dimension.values() for cell in cells]
    labelled = sum(cell.human is not None for cell in every)
    parts = [part for cells in by_dimension.values() if (part := _part(_Named(cells))) is not None]
    judge = float(np.mean([cell.judge for cell in every]))
    if not parts:
        none = Estimate(math.nan)
        why = "undefined: fewer than two samples have both scores"
        return PoweredMean(group, none, none, judge, labelled, len(every) - labelled, why)
    missing = len(by_dimension) - len(parts)
    return PoweredMean(
        group,
        _estimate([p.mean for p in parts], [p.pull for p in parts], level),
        _estimate([p.plain for p in parts], [p.plain_pull for p in parts], level),
        float(np.mean([p.judge for p in parts])),
        labelled,
        len(every) - labelled,
        f"mean over {len(parts)} of {len(by_dimension)} sub-dimensions" if missing else "",
    )


class _Numbered:
    """Scores without names."""

    def __init__(
        self, human: Sequence[float], judge: Sequence[float], judge_only: Sequence[float]
    ) -> None:
        self.human, self.judge = np.asarray(human, float), np.asarray(judge, float)
        self.judge_only = np.asarray(judge_only, float)
        self.names = [str(n) for n in range(len(human))]
        self.names_only = [f"u{n}" for n in range(len(judge_only))]


class _Named(_Numbered):
    """Scores of cells, named by their samples."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        both = [cell for cell in cells if cell.human is not None]
        alone = [cell for cell in cells if cell.human is None]
        super().__init__(
            [c.human or 0.0 for c in both],
            [c.judge or 0.0 for c in both],
            [c.judge or 0.0 for c in alone],
        )
        self.names = [cell.sample for cell in both]
        self.names_only = [cell.sample for cell in alone]


def _part(scores: _Numbered) -> _Part | None:
    human, judge, only = scores.human, scores.judge, scores.judge_only
    n, more = len(human), len(only)
    if n < 2:
        return None
    trust = _trust(human, judge, only)
    rest = human - trust * judge
    mean = float(rest.mean() + (trust * only.mean() if more else trust * judge.mean()))
    pull = dict(zip(scores.names, _pulls(rest if more else human), strict=True))
    if more:
        pull |= dict(zip(scores.names_only, _pulls(trust * only), strict=True))
    plain_pull = dict(zip(scores.names, _pulls(human), strict=True))
    every = np.concatenate([judge, only])
    return _Part(mean, float(human.mean()), float(every.mean()), pull, plain_pull)


def _trust(human: Floats, judge: Floats, only: Floats) -> float:
    """How much of the judge to use, in [0, 1]: what makes the interval narrowest."""
    n, more = len(human), len(only)
    spread = float(np.concatenate([judge, only]).var())
    if not more or spread == 0:
        return 0.0
    shared = float(np.cov(human, judge, ddof=1)[0, 1])
    return min(1.0, max(0.0, shared / ((1 + n / more) * spread)))


def _pulls(values: Floats) -> list[float]:
    """What each value adds to the mean, with the small-sample correction."""
    n = len(values)
    if n < 2:
        return [0.0] * n
    scale = math.sqrt(n / (n - 1)) / n
    return [float(one) for one in (values - values.mean()) * scale]


def _estimate(
    means: Sequence[float], pulls: Sequence[Mapping[str, float]], level: float
) -> Estimate:
    """The mean of means; the pulls of one sample add up before they are squared."""
    total: dict[str, float] = {}
    for part in pulls:
        for name, pull in part.items():
            total[name] = total.get(name, 0.0) + pull / len(pulls)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(
        math.fsum(pull * pull for pull in total.values())
    )
    mean = math.fsum(means) / len(means)
    return Estimate(mean, mean - half, mean + half)
