"""Kappa, alpha and AC2 against published figures and against the libraries that have them."""

import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pararecover_core.agreement import measure
from pararecover_core.agreement_chance import gwet, ordinal_alpha, weighted_kappa
from pararecover_core.pairing import Cell

# What irrCAC 0.4.4 gives for this table (linear, quadratic, no weights), ten digits.
TABLE = np.array([[30, 5, 2], [6, 40, 9], [1, 8, 99]], dtype=float)
GWET = {1: 0.8311677564, 2: 0.8762835581, None: 0.7792258662}
COHEN = {1: 0.7868472196, 2: 0.8334513053}


@pytest.mark.parametrize("power", [1, 2, None])
def test_ac2_is_that_of_irrcac(power):
    assert gwet(TABLE, power) == pytest.approx(GWET[power], abs=1e-10)


@pytest.mark.parametrize("power", [1, 2])
def test_kappa_is_that_of_irrcac(power):
    assert weighted_kappa(TABLE, power) == pytest.approx(COHEN[power], abs=1e-10)


def test_published_example_of_rare_negatives():
    # Gwet (2002), "Kappa statistic is not satisfactory", 118, 5, 2, 0 of 125 subjects:
    # kappa -0.023, AC1 0.941.
    square = np.array([[118, 5], [2, 0]], dtype=float)
    assert float(weighted_kappa(square)) == pytest.approx(-0.0234, abs=1e-4)
    assert float(gwet(square, None)) == pytest.approx(0.9408, abs=1e-4)


pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=60)


@given(pairs)
def test_libraries_agree(scores):
    square = np.zeros((3, 3))
    for one, other in scores:
        square[one, other] += 1
    one, other = zip(*scores, strict=True)
    if len({*one, *other}) < 2:
        assert math.isnan(ordinal_alpha(square))
        assert math.isnan(weighted_kappa(square, 2))
        return
    expected = krippendorff.alpha(
        reliability_data=[one, other], level_of_measurement="ordinal", value_domain=[0, 1, 2]
    )
    assert ordinal_alpha(square) == pytest.approx(expected, abs=1e-9)
    found = cohen_kappa_score(one, other, labels=[0, 1, 2], weights="quadratic")
    assert weighted_kappa(square, 2) == pytest.approx(found, abs=1e-9)


def test_every_figure_has_an_interval_and_signed_errors():
    rows = [(i / 2, j / 2) for i in range(3) for j in range(3) for _ in range(int(TABLE[i, j]))]
    cells = [Cell(f"s{n}", "D1", *row) for n, row in enumerate(rows)]
    found = measure(cells, dimensions=("D1",), resamples=400).dimensions[0]
    assert found.kappa_quadratic.value == pytest.approx(COHEN[2], abs=1e-10)
    assert found.ac2.value == pytest.approx(GWET[1], abs=1e-10)
    for estimate in (found.kappa_quadratic, found.alpha, found.ac2):
        assert estimate.low < estimate.value < estimate.high
    # judge minus human: -1: 1, -0.5: 6 + 8, 0: 169, 0.5: 5 + 9, 1: 2
    assert found.signed == (1, 14, 169, 14, 2)
    assert found.as_data()["signed"] == [1, 14, 169, 14, 2]
