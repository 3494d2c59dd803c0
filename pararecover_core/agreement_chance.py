"""Chance-corrected agreement of two scorers, from square tables of counts.

All functions take tables (..., k, k), rows one scorer, columns the other, categories in order, and
give one figure a table: a whole bootstrap is one call. NaN where a figure is undefined.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def weighted_kappa(square: Floats, power: int = 1) -> Floats:
    """Cohen's weighted kappa.

    Args:
        square: Counts, (..., k, k).
        power: 1 for linear weights, 2 for quadratic ones.

    Returns:
        At most 1; 0 is what chance gives; NaN where both use one and the same category.

    Source: Cohen (1968).
    """
    k = square.shape[-1]
    cost = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float) ** power
    n = square.sum((-1, -2))
    rows, columns = square.sum(-1), square.sum(-2)
    expected = np.einsum("...i,...j,ij->...", rows, columns, cost)
    observed = np.einsum("...ij,ij->...", square, cost)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 - np.where(expected > 0, n * observed / expected, np.nan)


def ordinal_alpha(square: Floats) -> Floats:
    """Krippendorff's alpha, ordinal, of two scorers who both scored every unit.

    Args:
        square: Counts, (..., k, k).

    Returns:
        At most 1; 0 is what chance gives; NaN where one category was used alone.

    Source: Krippendorff (2011), "Computing Krippendorff's alpha-reliability". The tests hold it
    to the package ``krippendorff``, which takes one table at a time.
    """
    coincidence = square + np.swapaxes(square, -1, -2)
    totals = coincidence.sum(-1)  # how often each category was used
    middle = np.cumsum(totals, -1) - totals / 2
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    n = totals.sum(-1)
    observed = (coincidence * distance).sum((-1, -2))
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum((-1, -2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 - np.where(expected > 0, (n - 1) * observed / expected, np.nan)


def gwet(square: Floats, power: int | None = 1) -> Floats:
    """Gwet's AC2 of two scorers, which does not fall when one category is rare.

    Args:
        square: Counts, (..., k, k).
        power: 1 for linear weights, 2 for quadratic ones, None for none (then it is AC1).

    Returns:
        At most 1; 0 is what chance gives; NaN for an empty table.

    Source: Gwet, "Handbook of Inter-Rater Reliability" (4th ed., 2014), chapter 5. Package irrCAC
    has it too, but pins an old numpy; the tests hold this to its figures.
    """
    k = square.shape[-1]
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    weights = np.eye(k) if power is None else 1.0 - apart**power
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = square / square.sum((-1, -2), keepdims=True)
        used = (shares.sum(-1) + shares.sum(-2)) / 2
        chance = weights.sum() / (k * (k - 1)) * (used * (1 - used)).sum(-1)
        observed = np.einsum("...ij,ij->...", shares, weights)
        return np.asarray((observed - chance) / (1 - chance))
