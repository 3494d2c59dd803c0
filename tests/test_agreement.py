"""Agreement figures, against table 5, scikit-learn and values derived by hand."""

import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pararecover_core.agreement import (
    ONE_LABEL,
    confusion,
    ema,
    mae,
    measure,
    weighted_kappa,
)
from pararecover_core.errors import AgreementError
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED
from tests.agreement_data import HALF_DIGIT, OVERALL, TABLE_5, N, scores_of

PAIRS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
    max_size=60,
)


def _cells(dimension, pairs, sample="r"):
    return [
        Cell(f"{sample}{place}", dimension, human, judge)
        for place, (human, judge) in enumerate(pairs)
    ]


# Six samples: human 1 1 .5 .5 0 0, judge 1 .5 .5 0 0 1.
HUMAN = [1, 1, 0.5, 0.5, 0, 0]
JUDGE = [1, 0.5, 0.5, 0, 0, 1]


def test_ema_and_mae_by_hand():
    assert ema(JUDGE, HUMAN) == 3 / 6  # samples 1, 3, 5
    assert mae(JUDGE, HUMAN) == pytest.approx((0.5 + 0.5 + 1) / 6)


def test_confusion_has_people_in_rows():
    assert confusion(JUDGE, HUMAN) == ((1, 0, 1), (1, 1, 0), (0, 1, 1))


def test_kappa_by_hand():
    """Observed gaps 2 / 6; by chance (margins 2 2 2 each): 9 pairs at 1/9, gaps 0 .5 1 ..: 4/9."""
    assert weighted_kappa(JUDGE, HUMAN) == pytest.approx(1 - (2 / 6) / (4 / 9))


def test_figures_by_hand():
    found = measure(_cells("D3", zip(HUMAN, JUDGE, strict=True)), dimensions=("D3",), seed=1)
    figures = found.dimensions[0]
    assert (figures.name, figures.n, figures.samples) == ("D3", 6, 6)
    assert figures.human_mean.value == 0.5
    assert figures.judge_mean.value == 0.5
    assert figures.difference.value == 0.0
    assert figures.ema.low <= 0.5 <= figures.ema.high
    assert found.overall.ema == figures.ema


def test_wrong_input_says_what_to_do():
    with pytest.raises(AgreementError, match=r"mae: got 0 judge and 0 human scores, expected N"):
        mae([], [])
    with pytest.raises(AgreementError, match="got 1 judge and 2 human scores"):
        ema([1], [1, 0])
    with pytest.raises(AgreementError, match=r"ema, judge score 2: got 0.75, expected 0, 0.5 or 1"):
        ema([1, 0.75], [1, 0])
    with pytest.raises(AgreementError, match=r"ema, human score 1: got nan"):
        ema([1], [math.nan])
    with pytest.raises(AgreementError, match=r"r0, D1: got two cells, expected one"):
        measure(_cells("D1", [(1, 1)]) * 2)
    with pytest.raises(AgreementError, match=r"r0, D1, judge score: got 2"):
        measure(_cells("D1", [(1, 2)]))


@given(PAIRS)
def test_ranges_and_symmetry(pairs):
    human, judge = zip(*pairs, strict=True)
    assert 0 <= ema(judge, human) <= 1
    assert 0 <= mae(judge, human) <= 1
    assert mae(judge, human) == mae(human, judge)
    assert ema(judge, human) == ema(human, judge)
    assert (1 - ema(judge, human)) / 2 <= mae(judge, human) + 1e-12


@given(PAIRS)
def test_confusion_adds_up(pairs):
    human, judge = zip(*pairs, strict=True)
    square = confusion(judge, human)
    assert sum(map(sum, square)) == len(pairs)
    assert confusion(human, judge) == tuple(zip(*square, strict=True))


@settings(deadline=None)
@given(PAIRS)
def test_kappa_is_that_of_scikit_learn(pairs):
    human, judge = zip(*pairs, strict=True)
    found = weighted_kappa(judge, human)
    if len(set(human) | set(judge)) == 1:
        assert math.isnan(found)
        return
    codes = [[int(2 * score) for score in side] for side in (human, judge)]
    expected = cohen_kappa_score(*codes, labels=[0, 1, 2], weights="linear")
    assert found == pytest.approx(expected, abs=1e-12)


def test_kappa_is_undefined_in_words():
    found = measure(_cells("S1", [(1, 1)] * 4), dimensions=("S1", "S2"))
    one, none = found.dimensions
    assert one.ema.value == 1
    assert math.isnan(one.kappa.value)
    assert one.kappa_note == ONE_LABEL == "undefined: one label used"
    assert none.kappa_note == "undefined: no cell has both scores"
    assert math.isnan(none.ema.value)
    assert found.overall.ema.value == 1.0  # the mean passes over what has no pairs
    assert one.as_data()["kappa"] is None


def test_two_labels_that_never_meet_are_kappa_zero():
    """People use only 1, the judge only 0: chance gives the same, so kappa is 0, not undefined."""
    assert weighted_kappa([0, 0], [1, 1]) == 0.0


def test_overall_is_the_mean_over_sub_dimensions_and_pooled_is_not():
    """D1: 4 of 4 equal; D2: 0 of 1 equal. Overall 0.5, pooled 4 of 5."""
    cells = _cells("D1", [(1, 1)] * 4) + _cells("D2", [(1, 0)])
    found = measure(cells, dimensions=("D1", "D2"))
    assert found.overall.ema.value == 0.5
    assert found.pooled.ema.value == 0.8
    assert (found.overall.n, found.pooled.n) == (5, 5)


def test_coverage_counts_what_is_left_out():
    cells = [
        Cell("a", "D1", 1, 1),
        Cell("b", "D1", 1, None, judge_gap="unparsable"),
        Cell("c", "D1", None, 0, human_gap="people disagree, not adjudicated"),
        Cell("d", "D1", None, None, human_gap="no human score", judge_gap="unparsable"),
        Cell("e", "D2", None, 0.5),
    ]
    found = measure(cells, dimensions=("D1", "D2"))
    coverage = found.dimensions[0].coverage
    assert (coverage.both, coverage.only_human, coverage.only_judge, coverage.neither) == (
        1,
        1,
        1,
        1,
    )
    assert coverage.judge_gaps == {"unparsable": 2}
    assert coverage.human_gaps == {"people disagree, not adjudicated": 1, "no human score": 1}
    assert found.overall.coverage.cells == 5
    assert found.overall.coverage.only_judge == 2
    assert found.dimensions[0].coverage.by_people == 3


def test_bootstrap_resamples_samples_not_cells():
    """13 identical cells in each of 20 samples carry the information of one sub-dimension.

    The pooled interval must be as wide as that of one sub-dimension alone; resampling cells
    would make it narrower by the root of 13.
    """
    rng = random.Random(3)
    outcomes = [(1.0, rng.choice([1.0, 0.0])) for _ in range(20)]
    found = measure([cell for name in JUDGED for cell in _cells(name, outcomes)])
    one, pooled = found.dimensions[0].ema, found.pooled.ema
    assert pooled.value == one.value
    assert (pooled.low, pooled.high) == (one.low, one.high)
    assert found.overall.ema == one


def test_interval_of_a_share_is_near_the_binomial_one():
    """80 of 100: the standard error is sqrt(.8 * .2 / 100) = 0.04, so about 0.72 to 0.88."""
    found = measure(_cells("D1", [(1, 1)] * 80 + [(1, 0)] * 20), dimensions=("D1",))
    assert found.overall.ema.low == pytest.approx(0.72, abs=0.02)
    assert found.overall.ema.high == pytest.approx(0.88, abs=0.02)


def test_same_seed_same_interval():
    rng = random.Random(1)
    pairs = [(rng.choice([0, 0.5, 1]), rng.choice([0, 0.5, 1])) for _ in range(211)]
    cells = _cells("D1", pairs)
    one, same, other = (measure(cells, dimensions=("D1",), seed=seed) for seed in (4, 4, 5))
    assert one == same
    assert one.overall.ema != other.overall.ema


def test_order_of_rows_does_not_move_the_intervals():
    rng = random.Random(2)
    cells = [
        Cell(f"r{at}", name, rng.choice([0, 0.5, 1]), rng.choice([0, 0.5, 1]))
        for at in range(50)
        for name in ("D1", "S2")
        if rng.random() < 0.8
    ]
    first = measure(cells, dimensions=("D1", "S2"))
    rng.shuffle(cells)
    assert measure(cells, dimensions=("D1", "S2")) == first


def test_one_sample_has_no_interval():
    found = measure(_cells("D1", [(1, 0.5)]), dimensions=("D1",))
    assert found.overall.mae.value == 0.5
    assert math.isnan(found.overall.mae.low)
    assert found.overall.as_data()["mae_low"] is None


def test_no_cells_at_all():
    found = measure([])
    assert found.overall.n == 0
    assert math.isnan(found.overall.ema.value)
    assert found.overall.as_data()["ema"] is None
    assert len(found.dimensions) == 13


def _assert_prints(figures, row):
    found = (figures.ema, figures.mae, figures.human_mean, figures.judge_mean)
    for estimate, text in zip(found, row, strict=True):
        assert abs(estimate.value - float(text)) <= HALF_DIGIT


@pytest.mark.parametrize("dimension", TABLE_5)
def test_table_5_rows(dimension):
    pairs = scores_of(TABLE_5[dimension])
    assert len(pairs) == N
    figures = measure(_cells(dimension, pairs), dimensions=(dimension,), resamples=0).dimensions[0]
    _assert_prints(figures, TABLE_5[dimension])


def test_table_5_overall_row_is_the_mean_of_its_rows():
    means = [sum(float(row[at]) for row in TABLE_5.values()) / 13 for at in range(4)]
    assert tuple(f"{mean:.4f}" for mean in means) == OVERALL
    cells = [cell for name, row in TABLE_5.items() for cell in _cells(name, scores_of(row))]
    overall = measure(cells, resamples=0).overall
    _assert_prints(overall, OVERALL)


def test_figures_of_13_by_400_come_at_once():
    cells = [cell for name, row in TABLE_5.items() for cell in _cells(name, scores_of(row))]
    start = time.process_time()
    measure(cells, resamples=2000)
    assert time.process_time() - start < 1.0
