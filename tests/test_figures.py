import math

import pytest

from pararecover_core.figures import fixed


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.63625, 4, "0.6363"),  # 509 / 800; format() gives 0.6362
        (0.56875, 4, "0.5688"),
        (0.10875, 4, "0.1088"),
        (0.8067307692, 4, "0.8067"),
        (1.0, 3, "1.000"),
        (-0.03125, 4, "-0.0313"),
        (0.1 + 0.2, 1, "0.3"),
        (math.nan, 4, "undefined"),
        (-1e-15, 4, "0.0000"),
    ],
)
def test_fixed(value, digits, text):
    assert fixed(value, digits) == text


def test_sign():
    assert fixed(0.005, 3, sign=True) == "+0.005"
    assert fixed(-0.0295, 3, sign=True) == "-0.030"
    assert fixed(0.0, 3, sign=True) == "0.000"
