"""The environment that answers calls from recorded observations."""

from collections.abc import Iterable, Sequence
from typing import Any

from pararecover_core.findings.scene import result_in
from pararecover_core.literals import dumps
from pararecover_core.plan import Node, Plan, parameters
from pararecover_core.records import Instance, ToolCall

NOT_RECORDED = "Error: this call was not recorded"
"""How the observation of an unknown call begins."""


class ReplayEnvironment:
    """Gives each call what the same call gave when it was recorded.

    A call is the same where tool and arguments agree; of several such recordings the one of the
    same node counts, else the last one.

    Args:
        recorded: N observations, arguments as they were sent or as the plan wrote them.
    """

    def __init__(self, recorded: Iterable[ToolCall]) -> None:
        self._by_node: dict[tuple[str, str, str], str] = {}
        self._by_call: dict[tuple[str, str], str] = {}
        for seen in recorded:
            self._keep(seen.node, seen.name, seen.arguments, seen.result)

    def _keep(self, node: str, name: str, arguments: Any, result: str) -> None:
        call = name, _values(arguments)
        self._by_node[node, *call] = result
        self._by_call[call] = result

    @classmethod
    def of_instance(cls, instance: Instance) -> "ReplayEnvironment":
        """What an instance shows: its observations, and results noted on executed nodes."""
        made = cls(instance.observations)
        made.learn(instance.plan, instance.observations)
        return made

    def learn(self, plan: Plan, observations: Sequence[ToolCall]) -> None:
        """Know the calls of a plan as it writes them, with references not yet replaced."""
        results = {seen.node: seen.result for seen in observations if seen.node}
        for node in plan.by_id.values():
            noted = result_in(node.description) if node.done else None
            result = results.get(node.id, noted)
            if node.calls_tool and result is not None:
                self._keep(node.id, node.name, _as_planned(node), result)

    def observe(self, plan: Plan, frontier: Sequence[str]) -> tuple[ToolCall, ...]:
        """Look the frontier's calls up; see ``Environment``."""
        nodes = [plan.by_id[node_id] for node_id in frontier]
        return tuple(self._recorded(node) for node in nodes if node.calls_tool)

    def _recorded(self, node: Node) -> ToolCall:
        arguments = _as_planned(node)
        call = node.name, _values(arguments)
        found = self._by_node.get((node.id, *call), self._by_call.get(call))
        if found is None:
            found = f"{NOT_RECORDED}: {node.name} with {dumps(arguments)}."
        return ToolCall(node.name, arguments, found, node.id)


def _as_planned(node: Node) -> Any:
    return node.parameters.named or list(node.parameters.positional)


def _values(arguments: Any) -> str:
    """Arguments as text, the same for the same values in any order of names."""
    given = parameters(arguments)
    return dumps([sorted(given.named.items()), list(given.positional)])
