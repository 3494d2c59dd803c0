"""How far two scorers agree: EMA, MAE, means, bias, kappa and confusion, with intervals.

Scores are 0, 0.5 or 1, so every figure follows from nine counts: how often each pair of scores
occurred. The bootstrap resamples samples (replans), not cells, because the cells of one replan
are not independent: a resample is a weight for each sample, its counts one matrix product.

A figure that is undefined is NaN here; ``Figures.kappa_note`` says why in words.

Source: paper section 3.3 (eq. 5 and 6, table 5); intervals, kappa and coverage are ours.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pararecover_core import agreement_chance as chance
from pararecover_core.errors import AgreementError
from pararecover_core.pairing import Cell, Coverage
from pararecover_core.rubric import JUDGED, LEVELS

SCALE: tuple[float, ...] = tuple(sorted(LEVELS))
"""Rows and columns of a confusion matrix, in order: 0, 0.5, 1."""

MEASURES = (
    *("ema", "mae", "human_mean", "judge_mean", "difference"),
    *("kappa", "kappa_quadratic", "alpha", "ac2"),
)
"""The estimated figures of ``Figures``, in order."""

ONE_LABEL = "undefined: one label used"
NO_PAIRS = "undefined: no cell has both scores"

_CHUNK_CELLS = 1_000_000
_GAP = np.array([abs(h - j) for h in SCALE for j in SCALE])
_HUMAN = np.array([h for h in SCALE for _ in SCALE])
_JUDGE = np.array([j for _ in SCALE for j in SCALE])

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Both ends of an interval; NaN where there is none."""

    low: float
    high: float


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its interval; NaN where undefined."""

    value: float
    low: float = math.nan
    high: float = math.nan


class Figures(msgspec.Struct, frozen=True):
    """The agreement figures of one sub-dimension, or of several taken together.

    Attributes:
        name: Sub-dimension id, "overall" (mean over sub-dimensions) or "pooled" (over cells).
        n: Cells with both scores.
        samples: Samples with at least one such cell.
        ema: Exact match accuracy in [0, 1] (eq. 5).
        mae: Mean absolute error in [0, 1], in rubric points (eq. 6).
        difference: Judge mean minus human mean, in [-1, 1]; above 0 the judge is milder.
        kappa: Linearly weighted kappa, at most 1; 0 is chance.
        kappa_quadratic: The same with quadratic weights.
        alpha: Krippendorff's alpha, ordinal, at most 1; undefined where kappa is.
        ac2: Gwet's AC2 with linear weights, at most 1; steady where one score is rare.
        kappa_note: Why kappa is undefined, or over how many sub-dimensions it is a mean.
        confusion: Counts; rows human 0, 0.5, 1, columns judge 0, 0.5, 1.
    """

    name: str
    n: int
    samples: int
    ema: Estimate
    mae: Estimate
    human_mean: Estimate
    judge_mean: Estimate
    difference: Estimate
    kappa: Estimate
    kappa_quadratic: Estimate
    alpha: Estimate
    ac2: Estimate
    kappa_note: str
    confusion: tuple[tuple[int, int, int], ...]
    coverage: Coverage

    @property
    def signed(self) -> tuple[int, int, int, int, int]:
        """Cells by judge minus human: -1, -0.5, 0, 0.5, 1."""
        steps = [0] * 5
        for human, row in enumerate(self.confusion):
            for judge, count in enumerate(row):
                steps[judge - human + 2] += count
        return steps[0], steps[1], steps[2], steps[3], steps[4]

    def as_data(self) -> dict[str, Any]:
        """Flat JSON data: each figure under its name, its interval under _low and _high.

        Undefined figures are None.
        """
        data: dict[str, Any] = {"dimension": self.name, "n": self.n, "samples": self.samples}
        for name in MEASURES:
            estimate: Estimate = getattr(self, name)
            data[name] = _or_none(estimate.value)
            data[f"{name}_low"] = _or_none(estimate.low)
            data[f"{name}_high"] = _or_none(estimate.high)
        data["kappa_note"] = self.kappa_note
        data["signed"] = list(self.signed)
        data["confusion"] = [list(row) for row in self.confusion]
        data["coverage"] = msgspec.to_builtins(self.coverage) | {"cells": self.coverage.cells}
        return data


class Agreement(msgspec.Struct, frozen=True):
    """Figures by sub-dimension, their mean (table 5's Overall row), and pooled over cells."""

    dimensions: tuple[Figures, ...]
    overall: Figures
    pooled: Figures
    resamples: int
    seed: int
    level: float

    def as_data(self) -> dict[str, Any]:
        """JSON data: ``dimensions``, ``overall``, ``pooled`` and how the intervals were made."""
        return {
            "dimensions": [figures.as_data() for figures in self.dimensions],
            "overall": self.overall.as_data(),
            "pooled": self.pooled.as_data(),
            "interval": {
                "level": self.level,
                "resamples": self.resamples,
                "seed": self.seed,
                "method": "percentile bootstrap over samples",
            },
        }


def ema(judge: Sequence[float], human: Sequence[float]) -> float:
    """Exact match accuracy of judge scores against human scores.

    Args:
        judge: N scores, one per sample, each in {0, 0.5, 1}.
        human: N scores of the same samples in the same order.

    Returns:
        Share of equal scores in [0, 1]; 1 is perfect agreement.

    Raises:
        AgreementError: N is 0, the lengths differ, or a score is off the scale.

    Source: paper section 3.3, eq. (5).
    """
    return float(_measures(_counted("ema", judge, human))[0])


def mae(judge: Sequence[float], human: Sequence[float]) -> float:
    """Mean absolute error of judge scores against human scores.

    Args:
        judge: N scores, one per sample, each in {0, 0.5, 1}.
        human: N scores of the same samples in the same order.

    Returns:
        MAE in [0, 1], in rubric points; 0 is perfect agreement.

    Raises:
        AgreementError: N is 0, the lengths differ, or a score is off the scale.

    Source: paper section 3.3, eq. (6).
    """
    return float(_measures(_counted("mae", judge, human))[1])


def confusion(judge: Sequence[float], human: Sequence[float]) -> tuple[tuple[int, int, int], ...]:
    """How often each pair of scores occurred.

    Args:
        judge: N scores, one per sample, each in {0, 0.5, 1}.
        human: N scores of the same samples in the same order.

    Returns:
        Three rows (human 0, 0.5, 1) of three counts (judge 0, 0.5, 1); they add up to N.

    Raises:
        AgreementError: N is 0, the lengths differ, or a score is off the scale.
    """
    return _square(_counted("confusion", judge, human))


def weighted_kappa(judge: Sequence[float], human: Sequence[float]) -> float:
    """Linearly weighted kappa of judge scores against human scores.

    Args:
        judge: N scores, one per sample, each in {0, 0.5, 1}.
        human: N scores of the same samples in the same order.

    Returns:
        At most 1; 0 is what chance gives; NaN where both sides use one and the same label.

    Raises:
        AgreementError: N is 0, the lengths differ, or a score is off the scale.

    Source: Cohen (1968). The tests hold it to scikit-learn's ``cohen_kappa_score``; the app
    does without that package's two seconds and 80 MB.
    """
    return float(_measures(_counted("weighted kappa", judge, human))[5])


def measure(
    cells: Iterable[Cell],
    *,
    dimensions: Sequence[str] = JUDGED,
    resamples: int = 2000,
    seed: int = 20260101,
    level: float = 0.95,
    alone: Mapping[str, int] | None = None,
) -> Agreement:
    """All figures of two sides' scores, with intervals and coverage.

    Args:
        cells: N cells, at most one for each sample and sub-dimension.
        dimensions: Sub-dimensions to report, in order; cells of others are passed over.
        resamples: Bootstrap resamples; 0 leaves the intervals out (NaN).
        seed: Seed of the resampling.
        level: Confidence level of the intervals, in (0, 1).
        alone: More cells that the judge alone scored, by sub-dimension: coverage counts them.

    Returns:
        Figures for each sub-dimension, their mean over the sub-dimensions that have pairs
        (as table 5's Overall row), and the figures pooled over cells.

    Raises:
        AgreementError: A score is off the scale, or a cell occurs twice.

    Source: paper section 3.3, eq. (5) and (6), table 5.
    """
    table = _Table.of(cells, dimensions)
    table.alone = alone or {}
    counts = table.counts
    drawn = _resample(table.outcomes, resamples, seed)
    every = tuple(
        _figures(name, counts[place], drawn[:, place], table, level=level)
        for place, name in enumerate(dimensions)
    )
    pooled = _figures("pooled", counts.sum(0), drawn.sum(1), table, level=level)
    overall = _overall(every, pooled, drawn, level)
    return Agreement(every, overall, pooled, resamples, seed, level)


class _Table:
    """Cells as arrays: for each sample which of 9 outcomes each sub-dimension had."""

    def __init__(self, dimensions: Sequence[str]) -> None:
        self.cells: dict[str, list[Cell]] = {name: [] for name in dimensions}
        self.places = {name: place for place, name in enumerate(dimensions)}
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.samples: dict[str, int] = {}
        self.alone: Mapping[str, int] = {}

    @classmethod
    def of(cls, cells: Iterable[Cell], dimensions: Sequence[str]) -> "_Table":
        table = cls(dimensions)
        seen: set[tuple[str, str]] = set()
        for cell in cells:
            place = table.places.get(cell.dimension)
            if place is None:
                continue
            if (cell.sample, cell.dimension) in seen:
                where = f"{cell.sample}, {cell.dimension}"
                cure = "Name samples so that each row has a name of its own"
                raise AgreementError(where, "two cells", "one", cure)
            seen.add((cell.sample, cell.dimension))
            table._add(cell, place)
        return table

    def _add(self, cell: Cell, place: int) -> None:
        where = f"{cell.sample}, {cell.dimension}"
        human = None if cell.human is None else _code(cell.human, f"{where}, human score")
        judge = None if cell.judge is None else _code(cell.judge, f"{where}, judge score")
        self.cells[cell.dimension].append(cell)
        if human is not None and judge is not None:
            self.rows.append(self.samples.setdefault(cell.sample, len(self.samples)))
            self.columns.append(9 * place + 3 * human + judge)

    @property
    def outcomes(self) -> NDArray[np.float32]:
        """Samples x (9 x sub-dimensions), 1 where the sample has that pair of scores.

        Rows stand in an order of their own, so that a seed gives the same intervals in whatever
        order the samples came.
        """
        matrix = np.zeros((len(self.samples), 9 * len(self.places)), dtype=np.float32)
        matrix[self.rows, self.columns] = 1.0
        packed = np.packbits(matrix > 0, axis=1)
        return matrix[packed.view(f"S{packed.shape[1]}").ravel().argsort()]

    @property
    def counts(self) -> Floats:
        """Sub-dimensions x 9 counts of pairs."""
        width = 9 * len(self.places)
        columns = np.asarray(self.columns, dtype=np.intp)
        return np.bincount(columns, minlength=width).astype(float).reshape(-1, 9)

    def coverage_of(self, name: str) -> Coverage:
        """Coverage of a sub-dimension, or of all together."""
        names = [name] if name in self.cells else list(self.cells)
        return sum((self.coverage[each] for each in names), Coverage())

    def samples_of(self, name: str) -> int:
        """Samples with both scores in a sub-dimension, or in any."""
        return self.coverage[name].both if name in self.cells else len(self.samples)

    @cached_property
    def coverage(self) -> dict[str, Coverage]:
        """Coverage by sub-dimension."""
        return {
            name: Coverage.of(cells) + Coverage.by_judge_alone(self.alone.get(name, 0))
            for name, cells in self.cells.items()
        }


def _code(score: float, where: str) -> int:
    """0, 1 or 2 for 0, 0.5 or 1."""
    try:
        return SCALE.index(score)
    except ValueError:
        cure = "Correct the score, or leave the cell out"
        raise AgreementError(where, repr(score), "0, 0.5 or 1", cure) from None


def _counted(what: str, judge: Sequence[float], human: Sequence[float]) -> Floats:
    if len(human) == 0 or len(judge) != len(human):
        got = f"{len(judge)} judge and {len(human)} human scores"
        raise AgreementError(what, got, "N >= 1 of each", "Pair them by sample first")
    codes = [
        3 * _code(h, f"{what}, human score {place}") + _code(j, f"{what}, judge score {place}")
        for place, (h, j) in enumerate(zip(human, judge, strict=True), start=1)
    ]
    return np.bincount(codes, minlength=9).astype(float)


def _square(counts: Floats) -> tuple[tuple[int, int, int], ...]:
    values = [int(count) for count in counts]
    return tuple((values[at], values[at + 1], values[at + 2]) for at in (0, 3, 6))


def _measures(counts: Floats) -> Floats:
    """The figures of counts.

    Args:
        counts: ... x 9 counts, human score first, both rising.

    Returns:
        ... x 9 figures as ``MEASURES`` names them; NaN where undefined.
    """
    n = counts.sum(-1)
    human_sum, judge_sum = counts @ _HUMAN, counts @ _JUDGE
    with np.errstate(divide="ignore", invalid="ignore"):
        square = counts.reshape(*counts.shape[:-1], 3, 3)
        gaps = counts @ _GAP
        return np.stack(
            [
                counts[..., ::4].sum(-1) / n,
                gaps / n,
                human_sum / n,
                judge_sum / n,
                (judge_sum - human_sum) / n,
                chance.weighted_kappa(square),
                chance.weighted_kappa(square, power=2),
                chance.ordinal_alpha(square),
                chance.gwet(square),
            ],
            axis=-1,
        )


def _resample(outcomes: NDArray[np.float32], resamples: int, seed: int) -> Floats:
    """Counts of each resample of the samples: resamples x sub-dimensions x 9."""
    samples, width = outcomes.shape
    drawn = np.zeros((resamples, width))
    if samples < 2:
        return np.full((resamples, width // 9, 9), np.nan)
    start = 0
    for weights in resample_weights(samples, resamples, seed):
        drawn[start : start + len(weights)] = weights @ outcomes
        start += len(weights)
    return drawn.reshape(resamples, width // 9, 9)


def resample_weights(samples: int, resamples: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """How often each resample holds each sample, some resamples at a time.

    Yields:
        Tables of rows x ``samples``; each row adds up to ``samples``.
    """
    rng = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_CELLS // samples)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picks = rng.integers(0, samples, size=(rows, samples), dtype=np.int64)
        picks += np.arange(rows, dtype=np.int64)[:, None] * samples
        weights = np.bincount(picks.ravel(), minlength=rows * samples).reshape(rows, samples)
        yield weights.astype(np.float32)


def outcomes_of(cells: Iterable[Cell], dimensions: Sequence[str]) -> NDArray[np.float32]:
    """Samples x (9 x sub-dimensions), 1 where a sample has that pair of scores."""
    return _Table.of(cells, dimensions).outcomes


def interval(values: Floats, level: float) -> Interval:
    """Percentile interval of resampled figures; undefined resamples are left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(math.nan, math.nan)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _figures(name: str, counts: Floats, drawn: Floats, table: _Table, *, level: float) -> Figures:
    values = _measures(counts)
    intervals = [interval(column, level) for column in _measures(drawn).T]
    note = ""
    if math.isnan(values[5]):
        note = ONE_LABEL if counts.sum() else NO_PAIRS
    return Figures(
        name,
        int(counts.sum()),
        table.samples_of(name),
        **_estimates(values, intervals),
        kappa_note=note,
        confusion=_square(counts),
        coverage=table.coverage_of(name),
    )


def _estimates(values: Floats, intervals: Sequence[Interval]) -> dict[str, Estimate]:
    """Figures by name; an undefined figure, or one of a single sample, has no interval."""
    return {
        name: Estimate(float(value)) if math.isnan(value) else Estimate(float(value), *interval)
        for name, value, interval in zip(MEASURES, values, intervals, strict=True)
    }


def _overall(every: Sequence[Figures], pooled: Figures, drawn: Floats, level: float) -> Figures:
    """Mean of the figures over the sub-dimensions that have them, as table 5's Overall row."""
    values = np.array(
        [_mean([getattr(f, name).value for f in every]) for name in MEASURES], dtype=float
    )
    resampled = _measures(drawn)  # resamples x sub-dimensions x figures
    known = ~np.isnan(resampled)
    with np.errstate(invalid="ignore"):
        means = np.where(known, resampled, 0.0).sum(1) / known.sum(1)
    intervals = [interval(column, level) for column in means.T]
    defined = sum(not math.isnan(f.kappa.value) for f in every)
    note = f"mean over {defined} of {len(every)} sub-dimensions" if defined < len(every) else ""
    return Figures(
        "overall",
        pooled.n,
        pooled.samples,
        **_estimates(values, intervals),
        kappa_note=note if defined else pooled.kappa_note,
        confusion=pooled.confusion,
        coverage=pooled.coverage,
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
