"""What a new version changed: moves, paired tests, verdicts, repeated words."""

import math
import random

import pytest

from pararecover_core.compare import Move, Verdict, compare, mcnemar, repeated_runs, sign_flip


def test_moves_and_figures_by_hand():
    human = {("a", "D1"): 1.0, ("b", "D1"): 0.5, ("c", "D1"): 0.0, ("d", "D1"): 1.0}
    before = {("a", "D1"): 0.0, ("b", "D1"): 0.5, ("c", "D1"): 0.0, ("x", "D1"): 1.0}
    after = {("a", "D1"): 1.0, ("b", "D1"): 1.0, ("c", "D1"): 0.0, ("d", "D1"): 1.0}
    found = compare(human, before, after, resamples=200)
    assert [(c.sample, c.move) for c in found.cells] == [
        ("a", Move.FIXED), ("b", Move.BROKEN), ("c", Move.SAME),
    ]  # fmt: skip
    one = found.overall
    assert (one.n, one.fixed, one.broken, one.same, one.p) == (3, 1, 1, 1, 1.0)
    # EMA 2/3 both times; MAE 1/3 before, 0.5/3 after
    assert one.ema.value == 0
    assert one.mae.value == pytest.approx(-0.5 / 3)
    assert (one.ema_before, one.ema_after, one.mae_after) == pytest.approx((2 / 3, 2 / 3, 0.5 / 3))
    assert one.verdict is Verdict.UNCLEAR
    assert one.test == "exact McNemar test"


def test_mcnemar_by_hand():
    # 9 fixed, 1 broken: 2 * (1 + 10) / 2 ** 10
    assert mcnemar(9, 1) == pytest.approx(22 / 1024)
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == pytest.approx(2 / 32)


def test_sign_flip_is_exact_for_few_and_close_for_many():
    assert sign_flip([1, 1, 1, 0]) == pytest.approx(2 / 8)
    # samples that moved by one cell each: the test is McNemar's
    assert sign_flip([1] * 30 + [-1] * 12) == pytest.approx(mcnemar(30, 12), abs=0.005)
    assert sign_flip([]) == 1.0


def test_better_is_only_said_where_the_interval_says_so():
    rng = random.Random(2)
    human = {(f"s{n}", "D1"): 1.0 for n in range(200)}
    before = {key: 1.0 if rng.random() < 0.7 else 0.0 for key in human}
    after = {key: 1.0 if before[key] or rng.random() < 0.5 else 0.0 for key in human}
    assert compare(human, before, after).overall.verdict is Verdict.BETTER
    assert compare(human, after, before).overall.verdict is Verdict.WORSE
    moved = {key: before[(f"s{199 - int(key[0][1:])}", "D1")] for key in human}
    assert compare(human, before, moved).overall.verdict is Verdict.UNCLEAR
    assert compare(human, {}, after).overall.verdict is Verdict.UNDEFINED
    assert math.isnan(compare(human, {}, after).overall.p)


def test_cells_of_one_sample_are_not_taken_for_independent():
    human = {(f"s{n}", d): 1.0 for n in range(6) for d in ("D1", "D2", "D3", "D4", "D5")}
    before = dict.fromkeys(human, 0.0)
    after = {key: 1.0 if key[0] in ("s0", "s1", "s2") else 0.0 for key in human}
    found = compare(human, before, after)
    assert found.overall.fixed == 15
    assert found.overall.p == pytest.approx(2 / 8)  # three samples moved, not fifteen cells
    assert found.overall.test == "sign-flip test over samples"


def test_repeated_words():
    sample = "Book two seats on the night train from Lyon to Turin, please."
    prompt = "Rule: book two seats on the NIGHT train - from Lyon, to Turin. Then stop."
    assert repeated_runs(prompt, [sample]) == [
        "book two seats on the NIGHT train from Lyon to Turin"
    ]
    assert repeated_runs("book two seats on the night train", [sample]) == []  # seven words
    assert repeated_runs("请在明天上午九点之前订好票", ["请在明天上午九点之前订好票"])
    assert repeated_runs("", [sample]) == repeated_runs("x", []) == []
