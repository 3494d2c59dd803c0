"""Computed scores, against the paper's own figures and values derived by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.errors import InputError
from pararecover_core.plan import Plan
from pararecover_core.rubric import DIMENSIONS, JUDGED
from pararecover_core.scores import (
    aggregate,
    average,
    efficacy,
    replan_efficacy,
    tool_use_efficiency,
    total,
    total_rounds,
)

# Table 2: model, then SI, DR, ES, Avg on LEVEL-1, then the same on LEVEL-2.
TABLE_2 = """
GPT-4o,56.08,59.10,39.16,51.45,47.90,53.73,32.59,44.74
GPT-4o mini,49.91,46.20,29.83,41.98,44.85,40.41,25.45,36.90
GPT-5 nano,43.88,55.31,25.07,41.42,40.53,51.61,22.56,38.23
GPT-5.2,57.51,81.81,41.21,60.24,55.24,80.75,41.61,59.20
Claude Sonnet 4.6,69.12,74.36,50.27,64.58,65.84,71.22,48.63,61.90
Claude Opus 4.6,73.56,78.94,55.18,69.23,70.38,76.41,53.76,66.85
Gemini 3.1 flash,68.35,65.87,47.19,60.47,63.50,61.13,45.04,56.56
Gemini 3.1 pro,66.90,61.72,48.23,58.95,63.22,62.08,47.18,57.49
Qwen 3 8B,47.61,57.08,25.72,43.47,45.41,51.12,26.69,41.07
Qwen 3 32B,52.26,56.94,31.17,46.80,50.42,54.55,31.94,45.64
Qwen 3.5 9B,56.58,72.78,38.35,55.90,53.12,68.65,37.27,52.98
Qwen 3.5 122B-A10B,72.48,77.87,52.28,67.54,69.12,74.77,51.34,65.08
GLM 4.5 Air,62.46,61.03,42.62,55.37,58.43,59.33,41.67,53.14
GLM 4.6,66.20,55.91,47.80,56.64,63.42,52.68,48.47,54.86
DeepSeek-V4-flash,73.74,75.80,54.57,68.04,71.04,73.82,54.23,66.36
DeepSeek-V4-flash*,74.23,74.53,56.49,68.42,71.50,72.90,55.30,66.57
DeepSeek-V4-pro,74.30,72.35,58.21,68.29,71.47,71.10,57.03,66.50
"""
# Printed averages that their own columns do not give; the difference, printed minus computed.
DEVIATIONS = {
    ("GPT-5.2", 1): 0.06,
    ("Qwen 3 32B", 1): 0.01,
    ("Qwen 3.5 9B", 2): -0.03,
    ("DeepSeek-V4-pro", 2): -0.03,
}


def _plan(*tasks):
    return Plan.parse({"tasks": [dict(t, para={}) for t in tasks]})


def _chain(done, pending=1):
    """root, then `done` executed nodes in a row, then pending ones."""
    tasks = [{"id": "root", "name": "root", "dep": [], "status": True}]
    for number in range(1, done + pending + 1):
        before = "root" if number == 1 else str(number - 1)
        tasks.append({"id": str(number), "name": "t", "dep": [before], "status": number <= done})
    return _plan(*tasks)


def test_appendix_b_case():
    """6 optimal rounds, 18 actual ones: the paper prints 0.33."""
    score = efficacy(success=True, optimal=6, rounds=18)
    assert score == 6 / 18
    assert f"{score:.2f}" == "0.33"


def test_rounds_behind_and_after_the_plan_add_up():
    """Five rounds burnt and two more needed: T = 7, not 2."""
    assert total_rounds(_chain(5), 2) == 7
    score = replan_efficacy(_chain(5), success=True, rounds_after=2, optimal=4)
    assert score == pytest.approx(4 / 7)


def test_parallel_nodes_are_one_round():
    plan = _plan(
        {"id": "root", "name": "root", "dep": [], "status": True},
        {"id": "1", "name": "a", "dep": ["root"], "status": True},
        {"id": "2", "name": "b", "dep": ["root"], "status": True},
        {"id": "3", "name": "c", "dep": ["1", "2"], "status": False},
    )
    assert total_rounds(plan, 3) == 4  # {1, 2} ran in one round, then three more


def test_quicker_than_the_optimum_is_one():
    assert efficacy(success=True, optimal=6, rounds=4) == 1.0


def test_failure_unparsable_and_limit_are_zero():
    assert efficacy(success=False, optimal=6, rounds=6) == 0.0
    assert efficacy(success=False, optimal=None, rounds=0) == 0.0
    assert efficacy(success=True, optimal=6, rounds=40) == 0.0
    assert efficacy(success=True, optimal=6, rounds=39) == 6 / 39
    broken = Plan.parse("no plan at all")
    assert replan_efficacy(broken, success=True, rounds_after=3, optimal=3) == 0.0
    assert replan_efficacy(_chain(30), success=True, rounds_after=10, optimal=6) == 0.0


def test_unknown_optimum_is_undefined_not_zero():
    assert math.isnan(efficacy(success=True, optimal=None, rounds=3))
    assert math.isnan(tool_use_efficiency(success=True, optimal_calls=None, calls=3))


def test_impossible_counts_say_what_is_wrong():
    with pytest.raises(InputError, match="rounds T: got 0, expected a whole number, at least 1"):
        efficacy(success=True, optimal=6, rounds=0)
    with pytest.raises(InputError, match="optimal rounds G: got 0"):
        efficacy(success=True, optimal=0, rounds=5)
    with pytest.raises(InputError, match="rounds after the plan: got -1"):
        total_rounds(_chain(1), -1)
    with pytest.raises(InputError, match="needed calls C_gt: got True"):
        tool_use_efficiency(success=True, optimal_calls=True, calls=5)


def test_tool_use_efficiency():
    assert tool_use_efficiency(success=True, optimal_calls=8, calls=10) == 0.8
    assert tool_use_efficiency(success=True, optimal_calls=8, calls=6) == 1.0
    assert tool_use_efficiency(success=False, optimal_calls=8, calls=8) == 0.0


@given(st.integers(1, 60), st.integers(1, 60), st.booleans())
def test_efficacy_stays_in_range(optimal, rounds, success):
    assert 0.0 <= efficacy(success=success, optimal=optimal, rounds=rounds) <= 1.0


def test_table_2_averages():
    """Avg is the mean of SI, DR, ES in all rows but exactly four, where the paper slips."""
    deviations = {}
    for line in TABLE_2.strip().splitlines():
        model, *cells = line.split(",")
        figures = list(map(float, cells))
        for level, (si, dr, es, printed) in ((1, figures[:4]), (2, figures[4:])):
            off = round(printed - average(si, dr, es), 2)
            if off:
                deviations[model, level] = off
    assert deviations == DEVIATIONS


def test_aggregate_by_hand():
    scores = {"S1": 1, "S2": 0.5, "S3": 1, "S4": 0.5, "S5": 1}  # 4 / 5 = 80
    scores |= {"D1": 1, "D2": 1, "D3": 0.5, "D4": 0, "D5": 0}  # 2.5 / 5 = 50
    scores |= {"E1": 0, "E2": 0, "E3": 1, "E4": 0.5, "E5": 0.5}  # 2 / 5 = 40
    found = aggregate(scores)
    assert (found.si, found.dr, found.es) == pytest.approx((80, 50, 40))
    assert found.avg == pytest.approx(170 / 3)
    assert total(scores) == pytest.approx(8.5)


def test_a_missing_score_makes_its_group_undefined_and_no_other():
    scores = dict.fromkeys(JUDGED, 1.0) | {"S5": 1.0, "E5": None}
    found = aggregate(scores)
    assert (found.si, found.dr) == (100, 100)
    assert math.isnan(found.es)
    assert math.isnan(found.avg)
    assert math.isnan(total(scores))


def test_all_ones():
    scores = dict.fromkeys(DIMENSIONS, 1.0)
    assert total(scores) == 15
    assert aggregate(scores).avg == 100
