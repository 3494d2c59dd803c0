"""Figures as text: rounded as people round, undefined in words."""

import math
from decimal import ROUND_HALF_UP, Decimal

UNDEFINED = "undefined"
_NOISE_DIGITS = 12


def fixed(value: float, digits: int = 4, *, sign: bool = False) -> str:
    """A figure with a fixed number of digits, ties rounded away from zero.

    Args:
        value: Any finite number, or NaN.
        digits: Digits after the point.
        sign: Whether to write a plus; a zero then has no sign.

    Returns:
        For example "0.6363" for 0.63625 (a plain format gives "0.6362", because the nearest
        binary number lies below the tie), "undefined" for NaN. No zero is negative.
    """
    if math.isnan(value):
        return UNDEFINED
    exact = Decimal(f"{value:.{_NOISE_DIGITS}f}")
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    if not rounded:
        return f"{abs(rounded)}"
    return f"{rounded:+}" if sign else f"{rounded}"
