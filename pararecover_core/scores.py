"""Scores that are computed: E5, the aggregates SI, DR, ES and Avg, totals, judge-free metrics.

What is undefined (a sub-dimension without a score, an unknown optimum, an empty sample) is NaN,
never 0. Nothing is rounded here.

Source: paper section 2.1.4 (eq. 4), tables 2 and 8, appendices B and H.
"""

import math
from collections.abc import Mapping
from statistics import fmean

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.plan import Plan
from pararecover_core.rubric import Rubric, sde_rubric

ROUND_LIMIT = 40
"""Rounds after which a run has failed (appendix H)."""


class Aggregate(msgspec.Struct, frozen=True):
    """SI, DR, ES and their mean, each in [0, 100]; NaN where a sub-dimension has no score."""

    si: float
    dr: float
    es: float
    avg: float


def efficacy(*, success: bool, optimal: int | None, rounds: int, limit: int = ROUND_LIMIT) -> float:
    """E5, problem-solving efficacy: S * min(1, G / T).

    Args:
        success: S, whether the run reached a completed response.
        optimal: G, the optimal number of rounds, at least 1; None where it is unknown.
        rounds: T, rounds behind the scored plan plus rounds run after it (``total_rounds``).
        limit: Rounds at which a run counts as failed.

    Returns:
        A number in [0, 1]; 1 is as quick as the optimum. 0 for a failure and for a run that
        reaches the limit. NaN where a successful run has no known optimum.

    Raises:
        InputError: ``optimal`` or ``rounds`` cannot be a number of rounds.

    Source: paper section 2.1.4, eq. (4); the limit from appendix H.
    """
    _check_count("rounds T", rounds, 1 if success else 0)
    if optimal is not None:
        _check_count("optimal rounds G", optimal, 1)
    if not success or rounds >= limit:
        return 0.0
    return math.nan if optimal is None else min(1.0, optimal / rounds)


BROKEN_OFF = frozenset({"cancelled", "endpoint not available"})
"""Outcomes of runs that say nothing about their agent; values of ``execute.OutcomeKind``."""


def run_efficacy(
    *,
    success: bool,
    correct: bool | None,
    outcome: str,
    optimal: int | None,
    rounds: int,
    limit: int = ROUND_LIMIT,
) -> float:
    """E5 of a whole run.

    Args:
        success: Whether a completed response was reached.
        correct: Whether its answer is right, None where the truth is not known: S of eq. (4) is
            this where it is known, else ``success``.
        outcome: How the run ended; one that was broken off has no E5.
        optimal: Optimal rounds of the task; None or less than 1 where unknown.
        rounds: T, all rounds of the run and behind it.
        limit: Rounds at which a run counts as failed.

    Returns:
        As ``efficacy``; NaN for a run that was broken off.

    Source: paper section 2.1.4 (eq. 4); that S means a right answer is our reading of
    "successfully completed", which the paper cannot check.
    """
    if outcome in BROKEN_OFF:
        return math.nan
    return efficacy(
        success=success if correct is None else correct,
        optimal=optimal if optimal and optimal > 0 else None,
        rounds=max(rounds, 1),
        limit=limit,
    )


def total_rounds(plan: Plan, rounds_after: int) -> int:
    """T of eq. (4): rounds that lie behind a plan plus the rounds that were run after it.

    Args:
        plan: The plan that is scored; the rounds behind it are counted from its executed nodes.
        rounds_after: Rounds run from this plan on, at least 0.

    Returns:
        T >= 0.

    Raises:
        InputError: ``rounds_after`` is negative.

    Source: our reading of eq. (4), "the actual number of rounds required to complete the task
    after substituting the current plan into the subsequent workflow".
    """
    _check_count("rounds after the plan", rounds_after, 0)
    return plan.executed_rounds() + rounds_after


def replan_efficacy(
    plan: Plan,
    *,
    success: bool,
    rounds_after: int,
    optimal: int | None,
    limit: int = ROUND_LIMIT,
) -> float:
    """E5 of a replan, from the plan and what running it gave.

    Args:
        plan: The new plan; one that does not parse (S5 = 0) scores 0.
        success: Whether the run from this plan reached a completed response.
        rounds_after: Rounds run from this plan on.
        optimal: Optimal rounds of the whole task, None where unknown.
        limit: Rounds at which a run counts as failed.

    Returns:
        As ``efficacy``.

    Raises:
        InputError: A count cannot be a number of rounds.

    Source: paper section 2.1.4, eq. (4).
    """
    if not plan.s5:
        return 0.0
    rounds = total_rounds(plan, rounds_after)
    return efficacy(success=success, optimal=optimal, rounds=rounds, limit=limit)


def tool_use_efficiency(*, success: bool, optimal_calls: int | None, calls: int) -> float:
    """Tool-use efficiency: S * min(1, C_gt / C), E5's form applied to calls.

    Args:
        success: S, whether the run reached a completed response.
        optimal_calls: C_gt, calls that the task needs, at least 1; None where unknown.
        calls: C, tool calls issued over the whole trajectory.

    Returns:
        A number in [0, 1]; 1 is no call too many; NaN where a successful run has no known C_gt.

    Raises:
        InputError: A count cannot be a number of calls.

    Source: our reading; the paper names the metric (table 8) and does not define it.
    """
    _check_count("calls C", calls, 1 if success else 0)
    if optimal_calls is not None:
        _check_count("needed calls C_gt", optimal_calls, 1)
    if not success:
        return 0.0
    return math.nan if optimal_calls is None else min(1.0, optimal_calls / calls)


def total(scores: Mapping[str, float | None], *, rubric: Rubric | None = None) -> float:
    """Sum of all sub-dimensions of one replan.

    Args:
        scores: Sub-dimension id to score in [0, 1]; None or absent is no score.
        rubric: The rubric; the paper's 15 sub-dimensions by default.

    Returns:
        A number from 0 to 15 (the number of sub-dimensions); NaN where one has no score.

    Source: paper appendix G (the total that selects training data).
    """
    chosen = rubric or sde_rubric()
    return math.fsum(_value(scores, d.id) for d in chosen.dimensions)


def aggregate(scores: Mapping[str, float | None], *, rubric: Rubric | None = None) -> Aggregate:
    """SI, DR, ES and Avg of one replan, or of sub-dimension means over many.

    Args:
        scores: Sub-dimension id to score, or mean score, in [0, 1].
        rubric: The rubric; the paper's by default.

    Returns:
        Plain means of five sub-dimensions times 100, and the mean of the three.

    Source: paper table 2; the plain mean is our reading, its Avg columns confirm it.
    """
    chosen = rubric or sde_rubric()
    means = {
        group.code: 100.0
        * fmean(_value(scores, d.id) for d in chosen.dimensions if d.group == group.id)
        for group in chosen.groups
    }
    si, dr, es = means["SI"], means["DR"], means["ES"]
    return Aggregate(si, dr, es, average(si, dr, es))


def average(si: float, dr: float, es: float) -> float:
    """Avg: the plain mean of SI, DR and ES (paper table 2)."""
    return fmean((si, dr, es))


def _value(scores: Mapping[str, float | None], dimension: str) -> float:
    value = scores.get(dimension)
    return math.nan if value is None else float(value)


def _check_count(what: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            what, repr(value), f"a whole number, at least {least}", "Check the record's counts"
        )
