"""People against people: the ceiling of agreement, and whether a judge may replace an annotator.

Both rest on cells that two or more people scored (``Cell.people``).
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

import krippendorff
import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pararecover_core.agreement import SCALE, Estimate, interval, resample_weights
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED

EPSILON = 0.15
"""Advantage that a judge gets for its price: 0.2 against experts, 0.15 skilled annotators, 0.1
crowd workers (Calderon et al., 2025)."""

LEVEL_OF_TEST = 0.05
PASSES = 0.5
"""Winning rate from which on a judge may replace an annotator."""

FEWEST_PEOPLE = 3
FEWEST_SAMPLES = 30

Floats = NDArray[np.float64]


class Ceiling(msgspec.Struct, frozen=True):
    """How far people agree with one another.

    Attributes:
        name: Sub-dimension id, or "overall" (mean over the sub-dimensions).
        cells: Cells that two or more people scored.
        pairs: Pairs of people's scores on them.
        samples: Samples with such a cell.
        ema: Share of equal pairs; comparable to a judge's EMA.
        mae: Mean difference of pairs.
        alpha: Krippendorff's alpha, ordinal, over all of them; NaN where one score was used alone.
        note: Why a figure is undefined, "" where none is.
    """

    name: str
    cells: int
    pairs: int
    samples: int
    ema: Estimate
    mae: Estimate
    alpha: float
    note: str = ""


NO_DOUBLE = "undefined: no cell was scored by two people"


def ceiling(
    cells: Iterable[Cell],
    *,
    dimensions: Sequence[str] = JUDGED,
    resamples: int = 2000,
    seed: int = 20260101,
    level: float = 0.95,
) -> dict[str, Ceiling]:
    """Agreement of people with people, with intervals by a bootstrap over samples.

    Args:
        cells: N cells; those that fewer than two people scored are passed over.
        dimensions: Sub-dimensions to report.
        resamples: Bootstrap resamples; 0 for none.
        seed: Seed of the resampling.
        level: Confidence level.

    Returns:
        By sub-dimension, and "overall": the mean over the sub-dimensions that have pairs.
    """
    double = [c for c in cells if len(c.people) > 1 and c.dimension in set(dimensions)]
    rows = {name: place for place, name in enumerate(sorted({c.sample for c in double}))}
    table = np.zeros((len(rows), len(dimensions), 3))  # pairs, equal pairs, differences
    columns = {name: place for place, name in enumerate(dimensions)}
    for cell in double:
        for (_, one), (_, other) in itertools.combinations(cell.people, 2):
            table[rows[cell.sample], columns[cell.dimension]] += (1, one == other, abs(one - other))
    drawn = _sums(table, resamples, seed)
    found = {
        name: _ceiling(name, [c for c in double if c.dimension == name], table, drawn, place, level)
        for name, place in columns.items()
    }
    found["overall"] = _overall(found, double, table, drawn, level)
    return found


def _sums(table: Floats, resamples: int, seed: int) -> Floats:
    samples = len(table)
    if samples < 2 or not resamples:
        return np.full((0, *table.shape[1:]), np.nan)
    flat = table.reshape(samples, -1)
    parts = [weights @ flat for weights in resample_weights(samples, resamples, seed)]
    return np.concatenate(parts).reshape(-1, *table.shape[1:])


def _shares(sums: Floats) -> Floats:
    """EMA and MAE of (..., 3) sums."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[..., 1:] / sums[..., :1]


def _ceiling(
    name: str, cells: Sequence[Cell], table: Floats, drawn: Floats, place: int, level: float
) -> Ceiling:
    if not cells:
        nothing = Estimate(math.nan)
        return Ceiling(name, 0, 0, 0, nothing, nothing, math.nan, NO_DOUBLE)
    ema, mae = _shares(table[:, place].sum(0))
    spread = _shares(drawn[:, place])
    return Ceiling(
        name,
        len(cells),
        int(table[:, place, 0].sum()),
        len({cell.sample for cell in cells}),
        Estimate(float(ema), *interval(spread[:, 0], level)),
        Estimate(float(mae), *interval(spread[:, 1], level)),
        people_alpha(cells),
    )


def _overall(
    found: Mapping[str, Ceiling], double: Sequence[Cell], table: Floats, drawn: Floats, level: float
) -> Ceiling:
    known = [one for one in found.values() if one.cells]
    if not known:
        return msgspec.structs.replace(next(iter(found.values())), name="overall", note=NO_DOUBLE)
    with np.errstate(invalid="ignore"):
        shares = _shares(drawn)
        defined = ~np.isnan(shares)
        means = np.where(defined, shares, 0.0).sum(1) / defined.sum(1)
    alphas = [one.alpha for one in known if not math.isnan(one.alpha)]
    return Ceiling(
        "overall",
        len(double),
        sum(one.pairs for one in known),
        len(table),
        Estimate(fmean(one.ema.value for one in known), *interval(means[:, 0], level)),
        Estimate(fmean(one.mae.value for one in known), *interval(means[:, 1], level)),
        fmean(alphas) if alphas else math.nan,
        "" if len(known) == len(found) else f"mean over {len(known)} of {len(found)}",
    )


def people_alpha(cells: Iterable[Cell]) -> float:
    """Krippendorff's alpha, ordinal, of all people on these cells; gaps are allowed.

    Returns:
        At most 1; NaN where fewer than two categories or no pair occur.
    """
    kept = [cell for cell in cells if len(cell.people) > 1]
    used = {score for cell in kept for _, score in cell.people}
    if len(used) < 2:
        return math.nan
    counts = np.zeros((len(kept), len(SCALE)))
    for row, cell in enumerate(kept):
        for _, score in cell.people:
            counts[row, SCALE.index(score)] += 1
    alpha = krippendorff.alpha(
        value_counts=counts, value_domain=list(SCALE), level_of_measurement="ordinal"
    )
    return float(alpha)


class OneAnnotator(msgspec.Struct, frozen=True):
    """A judge against one annotator, with the others as the reference.

    Attributes:
        samples: Samples that this annotator and another one scored, the judge too.
        judge_wins: Share of them, in [0, 1], where the judge is at least as close to the others.
        person_wins: Share where the annotator is.
        p: Of the test that the judge is worse by ``epsilon`` or more.
        rejected: Whether that is refused after Benjamini and Yekutieli's correction.
    """

    annotator: str
    samples: int
    judge_wins: float
    person_wins: float
    p: float
    rejected: bool


class Replacement(msgspec.Struct, frozen=True):
    """Whether a judge may replace an annotator.

    Attributes:
        omega: Winning rate: share of annotators over whom the judge wins; NaN without a test.
        advantage: Mean of ``judge_wins`` over annotators.
        note: Why there is no figure, or why to read it with care; "" for neither.
    """

    omega: float
    advantage: float
    epsilon: float
    level: float
    annotators: tuple[OneAnnotator, ...]
    note: str = ""

    @property
    def passes(self) -> bool:
        """Whether the winning rate reaches one half."""
        return self.omega >= PASSES

    def words(self) -> str:
        """The result in a sentence, with epsilon and n."""
        if math.isnan(self.omega):
            return f"Alternative-annotator test: {self.note}."
        n = min(one.samples for one in self.annotators)
        verdict = "may replace an annotator" if self.passes else "may not replace an annotator"
        care = f" Read with care: {self.note}." if self.note else ""
        return (
            f"The judge {verdict}: winning rate {self.omega:.2f} over {len(self.annotators)} "
            f"annotators, epsilon {self.epsilon:g}, at least {n:,} samples each.{care}"
        )


def may_replace(
    cells: Iterable[Cell], *, epsilon: float = EPSILON, level: float = LEVEL_OF_TEST
) -> Replacement:
    """The alternative-annotator test: leave one annotator out and compare the judge with them.

    On each sample, judge and annotator are compared by the share of the other annotators' scores
    that they hit; all cells of one sample count as one observation.

    Args:
        cells: N cells with the judge's score and people's.
        epsilon: Advantage of the judge, in [0, 1).
        level: False discovery rate of the Benjamini-Yekutieli correction.

    Source: Calderon, Reichart and Dror, "The alternative annotator test for LLM-as-a-judge"
    (ACL 2025); exact match as the score of alignment.
    """
    scored = [c for c in cells if c.judge is not None and len(c.people) > 1]
    names = sorted({name for cell in scored for name, _ in cell.people})
    raw = [_against(name, scored, epsilon) for name in names]
    known = [one for one in raw if not math.isnan(one.p)]
    if not known:
        why = "undefined: no annotator shares two samples with another one and the judge"
        return Replacement(math.nan, math.nan, epsilon, level, tuple(raw), why)
    adjusted = stats.false_discovery_control([one.p for one in known], method="by")
    tested = tuple(
        msgspec.structs.replace(one, rejected=bool(p <= level))
        for one, p in zip(known, adjusted, strict=True)
    )
    return Replacement(
        fmean(one.rejected for one in tested),
        fmean(one.judge_wins for one in tested),
        epsilon,
        level,
        tested,
        _care(tested),
    )


def _care(tested: Sequence[OneAnnotator]) -> str:
    if len(tested) < FEWEST_PEOPLE:
        return f"{len(tested)} annotators, where {FEWEST_PEOPLE} or more are asked for"
    fewest = min(one.samples for one in tested)
    return (
        f"{fewest} samples, where {FEWEST_SAMPLES} or more are" if fewest < FEWEST_SAMPLES else ""
    )


def _against(name: str, cells: Sequence[Cell], epsilon: float) -> OneAnnotator:
    wins: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        own = dict(cell.people).get(name)
        others = [score for who, score in cell.people if who != name]
        if own is None or not others:
            continue
        judge, person = others.count(cell.judge or 0.0), others.count(own)
        wins.setdefault(cell.sample, []).append((float(judge >= person), float(person >= judge)))
    pairs = [
        (sum(j for j, _ in row) / len(row), sum(p for _, p in row) / len(row))
        for row in wins.values()
    ]
    if len(pairs) < 2:
        return OneAnnotator(name, len(pairs), math.nan, math.nan, math.nan, False)
    judge_wins, person_wins = fmean(j for j, _ in pairs), fmean(p for _, p in pairs)
    p = _one_sided([person - judge for judge, person in pairs], epsilon)
    return OneAnnotator(name, len(pairs), judge_wins, person_wins, p, False)


def _one_sided(differences: Sequence[float], epsilon: float) -> float:
    """The p value of "the mean difference is epsilon or more", by the paired t test."""
    mean, spread = fmean(differences), stdev(differences)
    if spread == 0:
        return 0.0 if mean < epsilon else 1.0
    statistic = (mean - epsilon) / (spread / math.sqrt(len(differences)))
    return float(stats.t.cdf(statistic, len(differences) - 1))
