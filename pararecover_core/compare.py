"""What a new version of a judge changed: cells fixed and broken, paired tests, differences.

"Better" is said only where the interval of the difference says so.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pararecover_core.agreement import Estimate, Interval, interval, resample_weights
from pararecover_core.pairing import CellKey
from pararecover_core.rubric import JUDGED

Floats = NDArray[np.float64]
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
SHUFFLES = 10_000
_EXACT_UP_TO = 12
"""Samples whose signs are all tried out; with more the signs are drawn."""


class Move(StrEnum):
    """What became of a cell."""

    FIXED = "fixed"
    BROKEN = "broken"
    SAME = "same"


class Verdict(StrEnum):
    """What may be said of a new version."""

    BETTER = "better"
    WORSE = "worse"
    UNCLEAR = "no clear change"
    UNDEFINED = "undefined: no cell was scored by both versions and by people"


class Changed(NamedTuple):
    """One cell under both versions; its move is fixed where only the new one is right."""

    sample: str
    dimension: str
    human: float
    before: float
    after: float

    @property
    def move(self) -> Move:
        """Fixed, broken or same."""
        was, now = self.before == self.human, self.after == self.human
        return Move.SAME if was == now else Move.FIXED if now else Move.BROKEN


class Paired(msgspec.Struct, frozen=True):
    """A new version against the one before, over the same cells.

    Attributes:
        name: Sub-dimension id, or "overall" (over cells).
        n: Cells that both versions and people scored.
        same: Cells right in both or wrong in both.
        ema: EMA of the new version minus EMA of the old one, with its interval.
        mae: The same of MAE; below 0 is better.
        p: Exact McNemar for one sub-dimension, a sign-flip test over samples for several.
        test: Which of the two.
    """

    name: str
    n: int
    samples: int
    fixed: int
    broken: int
    same: int
    ema: Estimate
    mae: Estimate
    ema_before: float
    ema_after: float
    mae_after: float
    p: float
    test: str

    @property
    def verdict(self) -> Verdict:
        """Better or worse only where the interval of the difference of EMA excludes 0."""
        if not self.n:
            return Verdict.UNDEFINED
        if self.ema.low > 0:
            return Verdict.BETTER
        return Verdict.WORSE if self.ema.high < 0 else Verdict.UNCLEAR


class Comparison(msgspec.Struct, frozen=True):
    """All that changed: by sub-dimension, overall, and cell by cell."""

    overall: Paired
    dimensions: tuple[Paired, ...]
    cells: tuple[Changed, ...]


def changes(
    human: Mapping[CellKey, float],
    before: Mapping[CellKey, float],
    after: Mapping[CellKey, float],
) -> list[Changed]:
    """The cells that both versions and people scored, in order of the keys."""
    return [
        Changed(*key, human[key], before[key], after[key])
        for key in sorted(human)
        if key in before and key in after
    ]


def compare(
    human: Mapping[CellKey, float],
    before: Mapping[CellKey, float],
    after: Mapping[CellKey, float],
    *,
    resamples: int = 2000,
    seed: int = 20260101,
    level: float = 0.95,
) -> Comparison:
    """Compare two versions of a judge on the same cells.

    Args:
        human: People's score by cell.
        before: The old version's score by cell.
        after: The new version's; cells that one of the three lacks are left out.
        resamples: Bootstrap resamples over samples.
        seed: Seed of resampling and of sign flips.
        level: Confidence level.
    """
    cells = changes(human, before, after)
    by_dimension: dict[str, list[Changed]] = {}
    for cell in cells:
        by_dimension.setdefault(cell.dimension, []).append(cell)
    every = tuple(
        _paired(name, by_dimension[name], level, resamples=resamples, seed=seed)
        for name in JUDGED
        if name in by_dimension
    )
    return Comparison(
        _paired("overall", cells, level, resamples=resamples, seed=seed), every, tuple(cells)
    )


def _paired(
    name: str, cells: Sequence[Changed], level: float, *, resamples: int, seed: int
) -> Paired:
    moves = [cell.move for cell in cells]
    fixed, broken = moves.count(Move.FIXED), moves.count(Move.BROKEN)
    samples = sorted({cell.sample for cell in cells})
    if not cells:
        none = Estimate(math.nan)
        nan = math.nan
        return Paired(name, 0, 0, 0, 0, 0, none, none, nan, nan, nan, nan, "no test")
    rows = {sample: row for row, sample in enumerate(samples)}
    table = np.zeros((len(samples), 3))  # cells, gain in matches, gain in error
    right_before = right_after = error_after = 0.0
    for cell in cells:
        was, now = cell.before == cell.human, cell.after == cell.human
        gain = abs(cell.after - cell.human) - abs(cell.before - cell.human)
        table[rows[cell.sample]] += (1, int(now) - int(was), gain)
        right_before, right_after = right_before + was, right_after + now
        error_after += abs(cell.after - cell.human)
    n = len(cells)
    ends = _intervals(table, resamples, seed, level)
    single = len(samples) == n
    p = mcnemar(fixed, broken) if single else sign_flip(table[:, 1].tolist(), seed=seed)
    return Paired(
        name,
        n,
        len(samples),
        fixed,
        broken,
        n - fixed - broken,
        Estimate(float(table[:, 1].sum() / n), *ends[0]),
        Estimate(float(table[:, 2].sum() / n), *ends[1]),
        right_before / n,
        right_after / n,
        error_after / n,
        p,
        "exact McNemar test" if single else "sign-flip test over samples",
    )


def _intervals(table: Floats, resamples: int, seed: int, level: float) -> list[Interval]:
    if len(table) < 2 or not resamples:
        return [Interval(math.nan, math.nan)] * 2
    sums = np.concatenate([w @ table for w in resample_weights(len(table), resamples, seed)])
    return [interval(sums[:, at] / sums[:, 0], level) for at in (1, 2)]


def mcnemar(fixed: int, broken: int) -> float:
    """P value of the exact McNemar test: are as many cells fixed as broken?

    Returns:
        In [0, 1]; 1 where no cell moved.
    """
    moved = fixed + broken
    return float(stats.binomtest(fixed, moved, 0.5).pvalue) if moved else 1.0


def sign_flip(gains: Sequence[float], *, shuffles: int = SHUFFLES, seed: int = 20260101) -> float:
    """P value of "the gains of samples are as often down as up", two-sided.

    Args:
        gains: One number a sample; those that are 0 have no say.
        shuffles: Random signs that are tried where there are too many samples for all.
        seed: Seed of the random signs.

    Returns:
        In (0, 1]; exact for up to 12 samples that moved.
    """
    moved = np.array([gain for gain in gains if gain])
    if not len(moved):
        return 1.0
    seen = abs(moved.sum()) - 1e-9
    if len(moved) <= _EXACT_UP_TO:
        signs = np.array(list(itertools.product((-1, 1), repeat=len(moved))))
        return float((abs(signs @ moved) >= seen).mean())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 2, size=(shuffles, len(moved)), dtype=np.int8) * 2.0 - 1.0
    return float((1 + (abs(drawn @ moved) >= seen).sum()) / (1 + shuffles))


def repeated_runs(prompt: str, texts: Iterable[str], *, words: int = 8) -> list[str]:
    """Runs of words that a prompt repeats from texts, longest matches first.

    Args:
        prompt: The prompt's text.
        texts: Texts of dev samples (queries, thoughts, observations).
        words: Length from which on a run counts.

    Returns:
        Each run once, as the prompt writes it; empty where nothing is repeated. Case and
        punctuation do not matter. Chinese text counts by character.
    """
    given = _words(prompt)
    keys = [word.casefold() for word in given]
    windows: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(keys) - words + 1):
        windows.setdefault(tuple(keys[at : at + words]), []).append(at)
    hit: set[int] = set()
    if windows:
        for text in texts:
            other = [word.casefold() for word in _words(text)]
            for at in range(len(other) - words + 1):
                for place in windows.get(tuple(other[at : at + words]), ()):
                    hit.update(range(place, place + words))
    runs: list[list[str]] = []
    for place in sorted(hit):
        if place - 1 not in hit:
            runs.append([])
        runs[-1].append(given[place])
    return sorted((" ".join(run) for run in runs), key=len, reverse=True)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)
