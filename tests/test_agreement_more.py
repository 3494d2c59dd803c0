"""Ceiling, alternative-annotator test, prediction-powered means, scales, groups, learning curve."""

import csv
import math
import random
from pathlib import Path

import numpy as np
import pytest

from pararecover_core.agreement_groups import (
    by_group,
    learning_curve,
    rank_agreement,
    scale_agreement,
)
from pararecover_core.agreement_means import powered_mean, powered_means, powered_table
from pararecover_core.agreement_people import NO_DOUBLE, ceiling, may_replace
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED


def cell(sample, people, judge=1.0, dimension="D1", human=None):
    named = tuple(zip("abcdefgh", people, strict=False))
    return Cell(sample, dimension, human, judge, people=named)


def test_ceiling_by_hand():
    # s1: 1, 1 equal; s2: 1, 0.5 apart by 0.5; s3 three people 0, 0, 1: pairs 1 equal, 2 apart by 1
    cells = [cell("s1", (1.0, 1.0)), cell("s2", (1.0, 0.5)), cell("s3", (0.0, 0.0, 1.0))]
    found = ceiling([*cells, cell("s4", (1.0,))], dimensions=("D1", "D2"), resamples=200)
    one = found["D1"]
    assert (one.cells, one.pairs, one.samples) == (3, 5, 3)
    assert (one.ema.value, one.mae.value) == pytest.approx((2 / 5, 2.5 / 5))
    assert one.ema.low <= one.ema.value <= one.ema.high
    assert math.isnan(found["D2"].ema.value)
    assert found["D2"].note == NO_DOUBLE
    assert found["overall"].ema.value == one.ema.value
    assert found["overall"].note == "mean over 1 of 2"


def test_ceiling_of_nobody():
    assert ceiling([cell("s", (1.0,))])["overall"].note == NO_DOUBLE


def test_people_who_always_agree_reach_one():
    cells = [cell(f"s{n}", (n % 3 / 2, n % 3 / 2)) for n in range(9)]
    found = ceiling(cells, resamples=100)["D1"]
    assert (found.ema.value, found.ema.low, found.alpha) == (1.0, 1.0, 1.0)


def test_a_judge_as_good_as_people_may_replace_one():
    rng = random.Random(3)

    def noisy(truth, right):
        return truth if rng.random() < right else rng.choice([0.0, 0.5, 1.0])

    truth = [rng.choice([0.0, 0.5, 1.0]) for _ in range(150)]
    good = [
        cell(f"s{n}", tuple(noisy(t, 0.7) for _ in range(3)), noisy(t, 0.95))
        for n, t in enumerate(truth)
    ]
    found = may_replace(good)
    assert (found.omega, found.passes, found.note) == (1.0, True, "")
    assert "epsilon 0.15, at least 150 samples" in found.words()
    poor = [
        Cell(c.sample, c.dimension, None, rng.choice([0.0, 0.5, 1.0]), people=c.people)
        for c in good
    ]
    assert may_replace(poor).omega == 0.0
    assert "may not replace" in may_replace(poor).words()


def test_one_annotator_by_hand():
    # Judge and c always score 1; a and b always 0. Against a: others b (0) and c (1): judge hits
    # 1/2, a hits 1/2: both "win" each time, the mean difference is 0 < 0.15, spread 0: p = 0.
    # Against c: others are 0 and 0: judge 0, c 0: the same. So omega is 1.
    found = may_replace([cell(f"s{n}", (0.0, 0.0, 1.0), 1.0) for n in range(40)])
    assert found.omega == 1.0
    assert [one.judge_wins for one in found.annotators] == [1.0, 1.0, 1.0]
    # A judge at 0.5 hits nobody; a and b hit one other, c nobody: omega is 1/3.
    found = may_replace([cell(f"s{n}", (0.0, 0.0, 1.0), 0.5) for n in range(40)])
    assert found.omega == pytest.approx(1 / 3)
    assert found.advantage == pytest.approx(1 / 3)


def test_too_few_people_is_said():
    assert (
        "2 annotators, where 3" in may_replace([cell(f"s{n}", (1.0, 1.0)) for n in range(5)]).note
    )
    nothing = may_replace([cell("s", (1.0,))])
    assert math.isnan(nothing.omega)
    assert "undefined" in nothing.words()


def test_powered_mean_by_hand():
    # A judge without spread among the others is not trusted: the mean of people alone.
    plain = powered_mean([0, 0.5, 1, 1], [1, 1, 1, 1], [1, 1])
    assert plain.value == pytest.approx(0.625)
    # var = 0.2291667 (n - 1), half = 1.959964 sqrt(0.2291667 / 4)
    assert plain.high - plain.value == pytest.approx(1.959964 * math.sqrt(0.22916667 / 4), rel=1e-6)
    assert math.isnan(powered_mean([1.0], [1.0], []).value)


def test_powered_intervals_hold_and_are_narrower():
    rng = np.random.default_rng(7)
    scale = np.array([0.0, 0.5, 1.0])
    inside, narrower, runs = 0, 0, 400
    for _ in range(runs):
        human = rng.choice(scale, size=1060, p=[0.3, 0.3, 0.4])
        judge = np.where(rng.random(1060) < 0.85, human, rng.choice(scale, size=1060))
        judge = np.minimum(1.0, judge + (rng.random(1060) < 0.2) * 0.5)  # a mild judge
        n = 60
        found = powered_mean(human[:n], judge[:n], judge[n:])
        inside += found.low <= 0.55 <= found.high
        alone = 2 * 1.96 * human[:n].std(ddof=1) / math.sqrt(n)
        narrower += found.high - found.low < alone
    assert 0.92 <= inside / runs <= 0.98
    assert narrower / runs > 0.95


def test_powered_means_by_group_take_samples_as_clusters():
    cells, groups = [], {}
    for n in range(40):
        groups[f"s{n}"] = ("agent-a", "1")
        value = float(n % 2)
        for (
            name
        ) in JUDGED:  # all 13 cells of a sample say the same: no more than one sample's worth
            human = value if n < 20 else None
            cells.append(Cell(f"s{n}", name, human, value))
    (found,) = powered_means(cells, groups)
    one = powered_mean(
        [n % 2 for n in range(20)], [n % 2 for n in range(20)], [n % 2 for n in range(20)]
    )
    assert (found.labelled, found.unlabelled) == (260, 260)
    assert found.estimate.value == pytest.approx(0.5)
    assert found.estimate.high - found.estimate.low == pytest.approx(one.high - one.low)
    (few,) = powered_means([Cell("s1", "D1", 1.0, 1.0)], groups)
    assert "fewer than two" in few.note


def test_powered_means_of_half_a_million_cells_are_those_of_their_groups():
    rng = np.random.default_rng(3)
    judge = rng.choice([0.0, 0.5, 1.0], size=(40_000, 13))
    human = np.full_like(judge, np.nan)
    human[:800] = np.where(rng.random((800, 13)) < 0.8, judge[:800], 0.0)
    judge[5::7, 4] = np.nan
    groups = [(f"agent-{n % 4}", str(1 + n % 2)) for n in range(40_000)]
    found = powered_table(human, judge, groups)
    assert [(one.group, one.samples) for one in found] == [
        ((f"agent-{n}", str(1 + n % 2)), 10_000) for n in range(4)
    ]
    some = [n for n in range(40_000) if n % 4 == 2]
    (alone,) = powered_table(human[some], judge[some], [groups[n] for n in some])
    assert alone == found[2]
    # the judge is 0.1 too mild: 0.8 x 0.5 + 0.2 x 0 = 0.4 is what people give
    assert found[0].estimate.low < 0.4 < found[0].estimate.high
    assert found[0].judge_alone == pytest.approx(0.5, abs=0.01)


def test_scales_by_hand():
    def sample(name, human, judge, dimensions=JUDGED):
        return [Cell(name, d, human, judge) for d in dimensions]

    cells = sample("a", 1.0, 0.5) + sample("b", 0.0, 0.0) + sample("c", 1.0, 1.0, ("D1", "D2"))
    found = {one.name: one for one in scale_agreement(cells, resamples=100)}
    assert (found["SI"].n, found["SI"].mae.value) == (2, 25.0)  # (50 + 0) / 2
    assert (found["DR"].n, found["DR"].partial) == (2, 1)
    assert (found["Total"].human_mean, found["Total"].judge_mean) == (6.5, 3.25)
    assert found["Total"].difference.value == -3.25
    assert found["Total"].tau == 1.0
    assert "undefined" in scale_agreement([])[0].note


def test_groups_and_curve():
    rng = random.Random(5)
    cells = [
        Cell(f"s{n}", d, 1.0, 1.0 if rng.random() < 0.8 else 0.0)
        for n in range(100)
        for d in ("D1", "D2")
    ]
    groups = {f"s{n}": ["odd" if n % 2 else "even", "all"] for n in range(100)}
    found = by_group(cells, groups, resamples=50)
    assert [(name, one.overall.samples) for name, one in found.items()] == [
        ("all", 100), ("even", 50), ("odd", 50),
    ]  # fmt: skip
    curve = learning_curve(cells, dimensions=("D1", "D2"), resamples=800)
    widths = {p.n: p for p in curve if p.name == "D1"}
    assert [widths[n].measured for n in (50, 100, 200, 400)] == [True, True, False, False]
    # binomial: 2 * 1.96 * sqrt(0.8 * 0.2 / n), 0.157 at 100 samples; half as wide at 400
    assert widths[100].width == pytest.approx(0.157, abs=0.03)
    assert widths[400].width / widths[100].width == pytest.approx(0.5, abs=0.08)
    assert learning_curve([]) == []


def test_rank_agreement_of_two_judges():
    assert rank_agreement([1, 2, 3], [1, 2, 3]) == 1
    assert rank_agreement([1, 2, 3], [3, 2, 1]) == -1
    assert math.isnan(rank_agreement([1, 1], [1, 2]))


def test_published_ranking():
    # Table 6: LEVEL-1 keeps its ranking under the second judge; LEVEL-2 swaps the two models in
    # second and third place: one of ten pairs is discordant, tau = (9 - 1) / 10.
    first = [51.45, 69.23, 43.47, 68.04, 68.29]
    second = [52.31, 69.20, 43.76, 68.47, 68.87]
    assert rank_agreement(first, second) == pytest.approx(1.0)


def test_published_table_6():
    path = Path(__file__).parents[2] / "shared" / "paper" / "tables" / "table06_cross_judge.csv"
    if not path.is_file():
        pytest.skip("the paper's tables are not here")
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    column = {name: [float(row[name]) for row in rows] for name in rows[0] if name != "model"}
    assert rank_agreement(column["L1_deepseek"], column["L1_gpt-4o"]) == pytest.approx(1.0)
    assert 0 < rank_agreement(column["L2_deepseek"], column["L2_gpt-4o"]) < 1
