"""Which replans go into a batch: seeded random and stratified samples.

Every draw depends on the seed and on the keys alone, never on the order in which the database
gave them, so that a second person with the same data and seed gets the same batch.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from pararecover_core.errors import InputError

K = TypeVar("K")

PAPER_SIZE = 400
"""Replans that the paper draws for each judged sub-dimension.

Source: paper section 3.3.
"""


class Stratum(StrEnum):
    """What a sample can be stratified by."""

    LEVEL = "level"
    ERROR_TYPE = "error_type"
    AGENT = "agent"


class Allocation(StrEnum):
    """How a stratified sample is shared out."""

    PROPORTIONAL = "proportional"
    EQUAL = "equal"


class Candidate(msgspec.Struct, frozen=True):
    """A replan that can be drawn.

    Attributes:
        level: 1 or 2; 0 where the file did not say.
        error_type: Label of the newest round that has one, "" where there is none.
    """

    replan: str
    level: int = 0
    error_type: str = ""
    agent: str = ""


def draw(
    candidates: Collection[Candidate],
    size: int,
    seed: int | str,
    stratify: Sequence[Stratum] = (),
    allocation: Allocation = Allocation.PROPORTIONAL,
) -> list[str]:
    """Draw replans without replacement.

    Args:
        candidates: N replans in any order.
        size: How many to draw; all N where it is larger.
        seed: The same seed and candidates give the same sample in the same order.
        stratify: Strata are the combinations of these; none means a plain random sample.
        allocation: Shares of the strata: as in the candidates, or as equal as their sizes allow.

    Returns:
        min(size, N) keys in random order.

    Raises:
        InputError: ``size`` is below 1.
    """
    if size < 1:
        raise InputError("sample size", str(size), "1 or more", "Ask for at least one replan")
    rng = random.Random(f"draw:{seed}")
    if not stratify:
        return _draw_plain(sorted(candidate.replan for candidate in candidates), size, rng)
    strata: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for candidate in candidates:
        strata[_stratum(candidate, stratify)].append(candidate.replan)
    sizes = {stratum: len(strata[stratum]) for stratum in sorted(strata)}
    order = list(sizes)
    rng.shuffle(order)
    shares = allocate({stratum: sizes[stratum] for stratum in order}, size, allocation)
    drawn = [
        key for stratum in sizes for key in rng.sample(sorted(strata[stratum]), shares[stratum])
    ]
    rng.shuffle(drawn)
    return drawn


def _draw_plain(keys: Sequence[str], size: int, rng: random.Random) -> list[str]:
    """A random sample, in random order, of keys that are sorted."""
    return rng.sample(keys, min(size, len(keys)))


def _stratum(candidate: Candidate, stratify: Sequence[Stratum]) -> tuple[str, ...]:
    return tuple(_READ[by](candidate) for by in stratify)


_READ: dict[Stratum, Callable[[Candidate], str]] = {
    Stratum.LEVEL: lambda candidate: str(candidate.level),
    Stratum.ERROR_TYPE: lambda candidate: candidate.error_type,
    Stratum.AGENT: lambda candidate: candidate.agent,
}


def allocate(sizes: Mapping[K, int], total: int, allocation: Allocation) -> dict[K, int]:
    """Share out a sample over strata.

    Proportional shares are rounded by largest remainder; equal shares fill every stratum
    evenly until it is used up. Remainders that tie go to the strata in the given order, which
    the caller shuffles.

    Args:
        sizes: Stratum to its size, each >= 0.
        total: Size of the sample; cut to the sum of the sizes.
        allocation: Proportional or equal.

    Returns:
        Stratum to its share, at most its size; the shares add up to
        min(total, sum of the sizes).
    """
    population = sum(sizes.values())
    total = min(total, population)
    if allocation is Allocation.EQUAL:
        return _fill_evenly(sizes, total)
    parts = {stratum: divmod(total * size, max(population, 1)) for stratum, size in sizes.items()}
    shares = {stratum: whole for stratum, (whole, _) in parts.items()}
    left = total - sum(shares.values())
    for stratum in sorted(parts, key=lambda stratum: -parts[stratum][1])[:left]:
        shares[stratum] += 1
    return shares


def _fill_evenly(sizes: Mapping[K, int], total: int) -> dict[K, int]:
    shares = dict.fromkeys(sizes, 0)
    while total:
        open_strata = [stratum for stratum, size in sizes.items() if shares[stratum] < size]
        step = max(1, total // len(open_strata))
        for stratum in open_strata:
            given = min(step, sizes[stratum] - shares[stratum], total)
            shares[stratum] += given
            total -= given
    return shares


def draw_per_dimension(
    candidates: Collection[Candidate],
    dimensions: Sequence[str],
    seed: int | str,
    size: int = PAPER_SIZE,
) -> dict[str, tuple[str, ...]]:
    """A random sample of its own for each sub-dimension, as in the paper.

    Args:
        candidates: N replans.
        dimensions: The sub-dimensions, each drawn for by itself.
        seed: As in ``draw``; each sub-dimension gets its own stream of it.
        size: Replans for each sub-dimension; all N where it is larger.

    Returns:
        Replan to the sub-dimensions it was drawn for, in the order of ``dimensions``; the
        replans in random order.

    Source: paper section 3.3: for each judged dimension 400 instances are sampled.
    """
    drawn: dict[str, list[str]] = defaultdict(list)
    keys = sorted(candidate.replan for candidate in candidates)
    for dimension in dimensions:
        for key in _draw_plain(keys, size, random.Random(f"draw:{seed}:{dimension}")):
            drawn[key].append(dimension)
    order = sorted(drawn)
    random.Random(f"order:{seed}").shuffle(order)
    return {key: tuple(drawn[key]) for key in order}


def choose_shared(keys: Sequence[str], share: float, seed: int | str) -> frozenset[str]:
    """The items that several annotators score.

    Args:
        keys: N items.
        share: Share of them in [0, 1]; the count is rounded half up, and at least 1 where the
            share is above 0.
        seed: As in ``draw``.

    Returns:
        The chosen keys.

    Raises:
        InputError: ``share`` is outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise InputError("overlap", f"{share:g}", "a share from 0 to 1", "Write 20 % as 0.2")
    count = max(int(share * len(keys) + 0.5), 1 if share and keys else 0)
    return frozenset(random.Random(f"shared:{seed}").sample(sorted(keys), count))
