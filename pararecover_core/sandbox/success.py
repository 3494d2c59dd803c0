"""Success on results: does the final answer hold the facts that the task asks for?"""

from collections.abc import Iterable, Sequence
from typing import Any

from pararecover_core.plan import RESPONSE, Plan, text_of
from pararecover_core.records import Round, ToolCall
from pararecover_core.sandbox.environment import noted_result, result_value

Fact = tuple[str, Any]
"""A tool and the result that it gave."""


def facts(plan: Plan, rounds: Iterable[Round]) -> list[Fact]:
    """What the answer of a plan can rest on: results of nodes that the response waits for.

    Args:
        plan: The last plan of a run.
        rounds: The run's rounds: their observations tell results that no node notes.

    Returns:
        One fact for each executed ancestor of the response whose call succeeded.
    """
    seen: dict[str, ToolCall] = {
        call.node: call for each in rounds for call in each.observations if call.node
    }
    behind = plan.ancestors(RESPONSE)
    found = []
    for node in plan.nodes:
        if node.id not in behind or not node.calls_tool:
            continue
        text = seen[node.id].result if node.id in seen else noted_result(node.description)
        value = result_value(text)
        if value is not None:
            found.append((node.name, value))
    return found


def reached_goals(found: Sequence[Fact], goals: Sequence[Fact]) -> bool:
    """Whether every goal is among the facts (``correct``: ours; the paper's is ``reached``)."""
    return all(goal in found for goal in goals)


def correct(rounds: Sequence[Round], goals: Sequence[Sequence[Any]]) -> bool:
    """Whether a run's answer holds every goal fact of its instance.

    Args:
        rounds: The run's rounds, N >= 1; the last plan's response is the answer.
        goals: The instance's goal facts, each a tool and its result.
    """
    found = facts(rounds[-1].plan, rounds)
    return reached_goals(found, [(text_of(tool), value) for tool, value in goals])
