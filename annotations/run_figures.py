"""E5 of stored runs, by one rule for rows and for records.

Source: ``scores.run_efficacy``.
"""

import sqlite3

from pararecover_core.records import Trajectory
from pararecover_core.scores import ROUND_LIMIT, run_efficacy

RUN_FIGURES = (
    "t.success, t.outcome, t.correct, t.taken, t.round_limit, t.rounds, "
    "i.executed_rounds, i.round_gt"
)
"""Columns of a trajectory ``t`` and its instance ``i`` that ``stored_efficacy`` reads."""


def stored_efficacy(row: sqlite3.Row) -> float:
    """E5 of a run from ``RUN_FIGURES``: in [0, 1], NaN where it is not known."""
    taken = row["taken"] or row["rounds"] + (row["executed_rounds"] or 0)
    return run_efficacy(
        success=bool(row["success"]),
        correct=None if row["correct"] is None else bool(row["correct"]),
        outcome=row["outcome"],
        optimal=row["round_gt"],
        rounds=taken,
        limit=row["round_limit"] or ROUND_LIMIT,
    )


def trajectory_efficacy(run: Trajectory, optimal: int | None, rounds: int) -> float:
    """E5 of a run that is at hand.

    Args:
        run: The run.
        optimal: Optimal rounds of its task, None where unknown.
        rounds: T where the run does not count its rounds itself.

    Returns:
        In [0, 1], NaN where it is not known.
    """
    return run_efficacy(
        success=run.success,
        correct=answer_is_right(run),
        outcome=run.outcome,
        optimal=optimal,
        rounds=rounds_taken(run) or rounds,
        limit=own_limit(run) or ROUND_LIMIT,
    )


def answer_is_right(run: Trajectory) -> bool | None:
    """Whether the answer of a run is right, None where the truth is not known."""
    correct = run.extra.get("correct")
    return correct if isinstance(correct, bool) else None


def rounds_taken(run: Trajectory) -> int | None:
    """Rounds as the run counts them, None where it does not."""
    return _count(run, "rounds")


def own_limit(run: Trajectory) -> int | None:
    """Rounds at which a run would have failed, None where it does not say."""
    return _count(run, "round_limit")


def _count(run: Trajectory, name: str) -> int | None:
    given = run.extra.get(name)
    return given if type(given) is int and 0 < given < 2**31 else None
