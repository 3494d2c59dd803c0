"""Scores of many replans as columns, and their means with cluster-bootstrap intervals.

The bootstrap resamples queries, not replans: answers to the same task are not independent.

Source: paper section 3.1 (table 2); the intervals and the paired test are ours.
"""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pararecover_core.rubric import DIMENSIONS, JUDGED, sde_rubric

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
GROUPS: tuple[str, ...] = tuple(group.code for group in sde_rubric().groups)
"""SI, DR, ES: in the order of the rubric."""
MEASURES = (*GROUPS, "Avg")
_MEMBERS = {
    group.code: [DIMENSIONS.index(d.id) for d in sde_rubric().dimensions if d.group == group.id]
    for group in sde_rubric().groups
}
RESAMPLES, SEED = 500, 20260101


class Scored(msgspec.Struct, frozen=True):
    """N replans by one scorer, as columns.

    Attributes:
        agents: Names of the agents; ``agent`` holds places in it.
        agent, level, cluster, instance: Of each replan; ``cluster`` numbers its query.
        errors: Bits of the error types in any round of the instance.
        values: N x 15 scores in [0, 1] in the order of the rubric, NaN where there is none.
        passed: 1 or 0 by whether the run reached its response, NaN where there is no run.
        scorer: Whose scores.
    """

    agents: tuple[str, ...]
    agent: Whole
    level: Whole
    cluster: Whole
    instance: Whole
    errors: Whole
    values: Floats
    passed: Floats
    scorer: str = ""

    def where(self, mask: npt.NDArray[np.bool_]) -> "Scored":
        """Those replans alone."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[mask]
            for name in ("agent", "level", "cluster", "instance", "errors", "values", "passed")
        }
        return msgspec.structs.replace(self, **columns)


class Means(NamedTuple):
    """Means of G groups.

    Attributes:
        value: G x 4: SI, DR, ES, Avg in [0, 100]; NaN where undefined.
        low, high: Their 95% intervals, G x 4.
        n: G x 4 replans with a score in it.
        lacking: For each group, ids of sub-dimensions without any score while a judged one has.
        passed: G x 3: pass@1 in [0, 100] with its interval; ``runs`` counts them.
    """

    value: Floats
    low: Floats
    high: Floats
    n: Whole
    lacking: list[tuple[str, ...]]
    passed: Floats
    runs: Whole


def aggregates(means: Floats) -> Floats:
    """SI, DR, ES and Avg in [0, 100] of sub-dimension means (... x 15).

    A group is the mean of the sub-dimensions that have scores; ``Means.lacking`` names the others.
    S5 and E5, which are computed, count once a judged one of their group has a score.
    """
    known = ~np.isnan(means)
    zero = np.where(known, means, 0.0)
    found = []
    for code in GROUPS:
        members, judged = _MEMBERS[code], known[..., _judged(code)].any(-1)
        n = np.where(judged, known[..., members].sum(-1), np.nan)
        found.append(100.0 * zero[..., members].sum(-1) / n)
    return np.stack([*found, np.mean(found, axis=0)], axis=-1)


def _judged(code: str) -> list[int]:
    """Places of the judged sub-dimensions of a group."""
    return [place for place in _MEMBERS[code] if DIMENSIONS[place] in JUDGED]


def group_means(
    scored: Scored,
    groups: Whole,
    count: int,
    *,
    rows: Whole | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Means:
    """Means of groups of replans.

    Args:
        scored: The scores.
        groups: Group of each row, from 0; -1 for none.
        count: Number of groups.
        rows: Place in ``scored`` of each row where a replan may stand in several groups.
        resamples: Bootstrap resamples of queries; 0 leaves intervals out.
        seed: Seed of the resampling.
    """
    places = np.arange(len(scored.agent)) if rows is None else rows
    kept = groups >= 0
    places, groups = places[kept], groups[kept]
    names, cluster = np.unique(scored.cluster[places], return_inverse=True)
    columns = np.concatenate([scored.values[places], scored.passed[places, None]], axis=1)
    sums, counts = _sums(columns, cluster, groups, (len(names), count))
    total, n = sums.sum(0), counts.sum(0)
    means = _ratio(total, n)
    value = aggregates(means[:, :-1])
    low = np.full((count, 4), np.nan)
    high = low.copy()
    passed = np.full((count, 3), np.nan)
    passed[:, 0] = 100.0 * means[:, -1]
    if resamples and len(names) > 1:
        drawn = _resampled(sums, counts, resamples, seed)
        low, high = _ends(aggregates(drawn[..., :-1]))
        passed[:, 1], passed[:, 2] = _ends(100.0 * drawn[..., -1])
        few = np.count_nonzero((counts[..., :-1] > 0).any(-1), axis=0) < 2
        low[few], high[few] = np.nan, np.nan
    return Means(value, low, high, _n(n), _lacking(n), passed, n[:, -1].astype(np.int64))


def _sums(
    columns: Floats, cluster: Whole, groups: Whole, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Sums and counts by cluster, group and column."""
    place = cluster * shape[1] + groups
    size = shape[0] * shape[1]
    sums = np.empty((size, columns.shape[1]), np.float32)
    counts = np.empty_like(sums)
    for column in range(columns.shape[1]):
        known = ~np.isnan(columns[:, column])
        sums[:, column] = np.bincount(place[known], columns[known, column], size)
        counts[:, column] = np.bincount(place[known], minlength=size)
    full = (*shape, columns.shape[1])
    return sums.reshape(full), counts.reshape(full)


def _ratio(total: npt.NDArray[Any], n: npt.NDArray[Any]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = total.astype(np.float64) / np.where(n > 0, n, np.nan)
    return found


def _weights(clusters: int, resamples: int, seed: int) -> npt.NDArray[np.float32]:
    """How often each cluster stands in each resample."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, clusters, size=(resamples, clusters))
    picks += np.arange(resamples)[:, None] * clusters
    counted = np.bincount(picks.ravel(), minlength=resamples * clusters)
    return counted.reshape(resamples, clusters).astype(np.float32)


def _resampled(
    sums: npt.NDArray[np.float32], counts: npt.NDArray[np.float32], resamples: int, seed: int
) -> Floats:
    weights = _weights(len(sums), resamples, seed)
    shape = (resamples, *sums.shape[1:])
    flat = len(sums), -1
    used = counts.reshape(flat).any(0)
    top = np.zeros((resamples, used.size), np.float32)
    bottom = np.zeros_like(top)
    top[:, used] = weights @ sums.reshape(flat)[:, used]
    bottom[:, used] = weights @ counts.reshape(flat)[:, used]
    return _ratio(top, bottom).reshape(shape)


def _ends(drawn: Floats) -> tuple[Floats, Floats]:
    """Percentile ends over the first axis; NaN where every resample is."""
    every = np.isnan(drawn).all(0)
    kept = np.where(every, 0.0, drawn)
    low, high = np.nanpercentile(kept, [2.5, 97.5], axis=0)
    low, high = np.where(every, np.nan, low), np.where(every, np.nan, high)
    return low, high


def _n(counts: npt.NDArray[Any]) -> Whole:
    """Replans behind SI, DR, ES and Avg of each group."""
    parts = [counts[:, _judged(code)].max(-1) for code in GROUPS]
    return np.stack([*parts, np.min(parts, axis=0)], axis=-1).astype(np.int64)


def _lacking(counts: npt.NDArray[Any]) -> list[tuple[str, ...]]:
    found = []
    for row in counts[:, : len(DIMENSIONS)]:
        missing = tuple(name for name, n in zip(DIMENSIONS, row, strict=True) if not n)
        found.append(() if set(missing) >= set(JUDGED) else missing)
    return found


class PairedTest(NamedTuple):
    """Two agents on the same instances: the mean difference in points, its interval, p, n."""

    difference: float
    low: float
    high: float
    p: float
    n: int


def paired_test(
    scored: Scored, one: int, other: int, level: int, *, resamples: int = 2000, seed: int = SEED
) -> PairedTest:
    """Whether one agent's Avg differs from another's on the instances that both answered.

    Args:
        scored: The scores.
        one: Place of an agent in ``scored.agents``.
        other: Place of the other one; the difference is one minus other.
        level: Only this level; 0 for all.
        resamples: Resamples of queries, and flips of their signs.
        seed: Seed of both.

    Returns:
        NaN where no instance has both.

    Source: ours; a sign-flip test over queries.
    """
    means = [_by_instance(scored, agent, level) for agent in (one, other)]
    shared = sorted(set(means[0]) & set(means[1]))
    if not shared:
        return PairedTest(math.nan, math.nan, math.nan, math.nan, 0)
    gaps = np.array([means[0][key][0] - means[1][key][0] for key in shared])
    _, cluster = np.unique([means[0][key][1] for key in shared], return_inverse=True)
    sums = np.bincount(cluster, gaps)
    counts = np.bincount(cluster).astype(float)
    found = float(gaps.mean())
    if len(sums) < 2:
        return PairedTest(found, math.nan, math.nan, math.nan, len(shared))
    weights = _weights(len(sums), resamples, seed).astype(np.float64)
    low, high = np.percentile((weights @ sums) / (weights @ counts), [2.5, 97.5])
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(resamples, len(sums)))
    flipped = np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9
    p = (1 + np.count_nonzero(flipped)) / (resamples + 1)
    return PairedTest(found, float(low), float(high), float(p), len(shared))


def _by_instance(scored: Scored, agent: int, level: int) -> dict[int, tuple[float, int]]:
    """Avg of each instance's answer (the mean of several) and its cluster."""
    mask = scored.agent == agent
    if level:
        mask &= scored.level == level
    average = aggregates(scored.values[mask])[:, 3]
    found: dict[int, list[float]] = {}
    clusters: dict[int, int] = {}
    columns = (scored.instance[mask].tolist(), average.tolist(), scored.cluster[mask].tolist())
    for instance, value, cluster in zip(*columns, strict=True):
        if not math.isnan(value):
            found.setdefault(instance, []).append(value)
            clusters[instance] = cluster
    return {key: (sum(v) / len(v), clusters[key]) for key, v in found.items()}
