"""The environment that runs plans on the sandbox tools."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pararecover_core.literals import dumps, loads
from pararecover_core.plan import Node, Plan
from pararecover_core.records import ToolCall
from pararecover_core.sandbox.registry import Outcome, call

RESULT_MARK = " Execution result: "
"""Stands between a node's description and the result that was noted on it."""

_REFERENCE = re.compile(r"\$([A-Za-z0-9_.\-]*[A-Za-z0-9_\-])")


class UnresolvedError(Exception):
    """A value refers to a result that is not there."""


def with_result(description: str, result: str) -> str:
    """A node's description with its result noted, as the published files do."""
    return f"{description.partition(RESULT_MARK)[0]}{RESULT_MARK}{result}"


def noted_result(description: str) -> str:
    """The result noted on a node, "" where none is."""
    return description.partition(RESULT_MARK)[2]


def result_value(text: str) -> dict[str, Any] | None:
    """What a successful call gave, from its observation; None for any other text."""
    if not text.startswith("{"):
        return None
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value and "error" not in value else None


class SandboxEnvironment:
    """Runs calls; remembers the value behind every successful one by node id.

    Args:
        start: The plan whose noted results are known from the beginning.

    Attributes:
        values: Node id to what its call gave.
    """

    def __init__(self, start: Plan) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        for node in start.nodes:
            if node.done:
                self._remember(node.id, noted_result(node.description))

    def _remember(self, node_id: str, text: str) -> None:
        value = result_value(text)
        if value is not None:
            self.values[node_id] = value

    def learn(self, observations: Sequence[ToolCall]) -> None:
        """Take over results that were observed elsewhere."""
        for seen in observations:
            if seen.node:
                self._remember(seen.node, seen.result)

    def observe(self, plan: Plan, frontier: Sequence[str]) -> tuple[ToolCall, ...]:
        """Run the frontier's calls on what was known before the round; see ``Environment``."""
        nodes = [plan.by_id[node_id] for node_id in frontier]
        ran = [(node, *self._call(node)) for node in nodes if node.calls_tool]
        for node, _, outcome in ran:
            if outcome.value is not None:
                self.values[node.id] = outcome.value
        return tuple(
            ToolCall(node.name, arguments, outcome.text, node.id)
            for node, arguments, outcome in ran
        )

    def _call(self, node: Node) -> tuple[Any, Outcome]:
        if node.parameters.positional:
            given = list(node.parameters.positional)
            return given, call(node.name, given)
        try:
            arguments = {name: self._resolve(v) for name, v in node.parameters.named.items()}
        except UnresolvedError as error:
            return node.parameters.named, Outcome(f"Error: {error}", None)
        return arguments, call(node.name, arguments)

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._resolve(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._resolve(inner) for inner in value]
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        return self._look_up(value, match[1]) if match else value

    def _look_up(self, reference: str, target: str) -> Any:
        node_id, field = target, ""
        if node_id not in self.values:
            node_id, _, field = target.rpartition(".")
        known = self.values.get(node_id)
        if known is None:
            raise UnresolvedError(
                f"{reference} refers to a result that is not there: "
                f"node {node_id or target} has not been executed or has failed."
            )
        if not field:
            return known if len(known) != 1 else next(iter(known.values()))
        if field not in known:
            raise UnresolvedError(
                f"{reference} refers to a field that node {node_id} does not have; "
                f"it has {dumps(list(known))}."
            )
        return known[field]
