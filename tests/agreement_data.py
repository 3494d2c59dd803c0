"""Scores built to have given agreement figures, for tests of agreement."""

from collections.abc import Iterator

# Table 5 of the paper: EMA, MAE, human mean, judge mean of 400 samples each.
TABLE_5 = {
    "D1": ("0.8225", "0.1062", "0.6363", "0.6700"),
    "D2": ("0.8125", "0.1100", "0.5550", "0.5725"),
    "D3": ("0.8275", "0.1100", "0.5725", "0.5775"),
    "D4": ("0.8250", "0.1162", "0.5300", "0.5688"),
    "D5": ("0.8100", "0.0950", "0.3250", "0.3950"),
    "E1": ("0.8125", "0.1150", "0.4475", "0.4625"),
    "E2": ("0.8025", "0.0988", "0.2350", "0.2463"),
    "E3": ("0.7950", "0.1088", "0.4238", "0.3925"),
    "E4": ("0.7925", "0.1338", "0.4963", "0.5100"),
    "S1": ("0.8275", "0.1075", "0.5125", "0.5150"),
    "S2": ("0.7875", "0.1425", "0.4750", "0.4725"),
    "S3": ("0.7875", "0.1562", "0.4938", "0.4775"),
    "S4": ("0.7850", "0.1700", "0.4538", "0.3963"),
}
OVERALL = ("0.8067", "0.1208", "0.4736", "0.4813")
N = 400
HALF_DIGIT = 0.00005 + 1e-12
"""How far a figure may be from its four printed digits."""


def scores_of(figures: tuple[str, str, str, str], n: int = N) -> list[tuple[float, float]]:
    """n pairs (human, judge) with these figures, each within half of the fourth digit.

    With d pairs equal, a one step apart and b two steps apart: d = n EMA, a / 2 + b = n MAE.
    The means then fix the signs of the steps and the levels of the equal pairs.
    """
    ema, mae, human, judge = (_half_steps(text, n) for text in figures)
    equal, (gaps, human_sum, judge_sum) = ema // 2, (mae, human, judge)
    two = gaps - (n - equal)
    one = n - equal - two
    for counts in _candidates(equal, one, two, human_sum, judge_sum):
        return [pair for pair, times in counts.items() for _ in range(times)]
    raise ValueError(f"no {n} pairs have the figures {figures}")


def _half_steps(text: str, n: int) -> int:
    """The sum over n samples, in half points, whose mean prints as this figure.

    With 400 samples many of the table's figures are ties in the fifth digit, which the table
    rounds both ways (0.10625 is printed 0.1062, 0.63625 is printed 0.6363).
    """
    found = round(float(text) * n * 2)
    if abs(found / 2 / n - float(text)) > HALF_DIGIT:
        raise ValueError(f"no mean of {n} scores prints as {text}")
    return found


def _candidates(
    equal: int, one: int, two: int, human: int, judge: int
) -> Iterator[dict[tuple[float, float], int]]:
    """Counts of the nine pairs; sums are in half points."""
    for up_two in sorted(range(two + 1), key=lambda up: abs(2 * up - two)):
        net = judge - human - 2 * (2 * up_two - two)  # steps up minus steps down still to make
        if (one + net) % 2 or not 0 <= (one + net) // 2 <= one:
            continue
        up, down = (one + net) // 2, (one - net) // 2
        low_up, low_down = up // 2, down // 2  # half of the steps between 0 and 0.5
        off = (up - low_up) + low_down + 2 * (down - low_down) + 2 * (two - up_two)
        rest = human - off  # half points that the equal pairs must hold
        if 0 <= rest <= 2 * equal:
            ones = max(rest - equal, min(rest // 2, rest * 2 // 5))
            halves = rest - 2 * ones
            yield {
                (0.0, 0.0): equal - ones - halves,
                (0.5, 0.5): halves,
                (1.0, 1.0): ones,
                (0.0, 0.5): low_up,
                (0.5, 1.0): up - low_up,
                (0.5, 0.0): low_down,
                (1.0, 0.5): down - low_down,
                (0.0, 1.0): up_two,
                (1.0, 0.0): two - up_two,
            }
