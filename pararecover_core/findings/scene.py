"""What the checks look at: a plan, its tools, its observations, and what follows from them."""

import re
from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from rapidfuzz import fuzz

from pararecover_core.findings.calls import tools_by_name
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Node, Plan
from pararecover_core.records import Tool, ToolCall
from pararecover_core.references import Reference, ReferenceReader
from pararecover_core.results import ResultState, result_state

_MARKER = re.compile(
    r"(?:(?:previous |execution |tool (?:call |return )?|call )?results?(?: is| are)?"
    r"|returned result"
    r"|tool call successful, returned result|执行结果|返回结果|调用结果|工具结果|获取结果|结果)"
    r"\s*(?:为|是)?\s*[:：]\s*",
    re.I,
)
_BAD_TAIL = re.compile(
    r"(?:^|(?<=[.。!！;；,，\s]))(?:timeout ?error|error|timed out|request timed out|timeout|错误"
    r"|超时错误"
    r"|调用失败|工具调用失败|执行失败|调用超时|执行超时)\s*[:：\-(（.。].*",
    re.I | re.S,
)
_STEPS = 500_000
"""Most steps along dependencies in one plan: half a second."""
_COMPARED = 2_000
_ALIKE = 50.0
"""Likeness in percent of the values from which a call counts as a second try of another."""
_RETRY = re.compile(r"[_\-]?(?:re[_\-]?try|retry|fixed|fix|again|v2|new)(?:[_\-]?\d+)?$", re.I)


def result_in(description: str) -> str | None:
    """The result that a description of an executed node carries at its end, None where none.

    Args:
        description: Such as "Fetch the page. Execution result: Error: not found".
    """
    found = None
    for match in _MARKER.finditer(description):
        found = match
        if match.start() > 0:
            break
    if found:
        return description[found.end() :]
    tail = _BAD_TAIL.search(description)
    return tail[0] if tail else None


@lru_cache(maxsize=8192)
def without_retry(name: str) -> str:
    """A name or id without its mark of a second try: ``2_retry`` is ``2``."""
    match = _RETRY.search(name[-24:])
    return (name[: len(name) - len(match[0])] if match else name) or name


class Scene:
    """A plan between two rounds.

    Args:
        plan: The plan whose frontier was run.
        tools: The listed tools.
        observations: What the calls of the round gave, tied to nodes.
        query: The user's request.
    """

    def __init__(
        self, plan: Plan, tools: Sequence[Tool], observations: Sequence[ToolCall], query: str
    ) -> None:
        self.plan, self.tools, self.query = plan, tuple(tools), query
        self.observations = tuple(observations)
        self.by_name = tools_by_name(tools)
        self.reader = ReferenceReader(plan)
        self.seen = tuple((call, result_state(call.result)) for call in observations)
        self.states = {call.node: state for call, state in self.seen if call.node}
        self._waits: dict[tuple[str, str], bool] = {}
        self._steps_left = _STEPS
        self.result_of = {c.node: c.result for c in self.observations if c.node}

    @cached_property
    def calls(self) -> tuple[Node, ...]:
        """Nodes that call a tool, a root or response that names a listed tool among them."""
        return tuple(
            node
            for node in self.plan.by_id.values()
            if (node.calls_tool and node.id not in (ROOT, RESPONSE))
            or (node.id in (ROOT, RESPONSE) and node.name in self.by_name)
        )

    @cached_property
    def references(self) -> dict[str, tuple[Reference, ...]]:
        """The references in the parameters of each call."""
        return {node.id: self.reader.of_node(node.id) for node in self.calls}

    @cached_property
    def noted(self) -> dict[str, str]:
        """Results that descriptions carry, by node."""
        found = {}
        for node in self.calls:
            if node.id not in self.result_of:
                text = result_in(node.description)
                if text is not None and (text.strip() or node.done):
                    found[node.id] = text
        return found

    @cached_property
    def retried(self) -> frozenset[str]:
        """Executed calls that a later call of the same tool tries again."""
        again = set()
        by_tool: dict[str, list[Node]] = {}
        for node in self.calls:
            base = without_retry(node.id)
            if base != node.id and base in self.plan.by_id:
                again.add(base)
            before = by_tool.setdefault(without_retry(node.name), [])
            again |= {n.id for n in before[-8:] if n.done and self._alike(n.id, node.id)}
            before.append(node)
        return frozenset(again)

    def _alike(self, first: str, second: str) -> bool:
        """Whether a later call tries an earlier one again: half of its values are the same.

        A call that uses the earlier one's output follows it and is no second try.
        """
        if any(reference.node == first for reference in self.references[second]):
            return False
        one, other = self._value_texts(first), self._value_texts(second)
        most = max(len(one), len(other))
        if most <= 1:
            there, here = self.texts[first][:_COMPARED], self.texts[second][:_COMPARED]
            return fuzz.ratio(there, here) >= _ALIKE
        return 2 * len(one & other) >= most

    def _value_texts(self, node_id: str) -> frozenset[str]:
        values = self.plan.by_id[node_id].parameters
        return frozenset(dumps(v) for v in (*values.named.values(), *values.positional))

    def waits_for(self, node_id: str, other: str) -> bool:
        """Whether a node waits for another one, directly or through others.

        In a plan so large that the search would take seconds, the answer is yes: nothing is said
        about dependencies that nobody followed up.
        """
        asked = (node_id, other)
        if asked not in self._waits:
            self._waits[asked] = self._search(node_id, other)
        return self._waits[asked]

    def _search(self, node_id: str, other: str) -> bool:
        seen, waiting = {node_id}, deque([node_id])
        while waiting and self._steps_left:
            self._steps_left -= 1
            node = self.plan.by_id.get(waiting.popleft())
            for dep in node.dependencies if node else ():
                if dep == other:
                    return True
                if dep not in seen:
                    seen.add(dep)
                    waiting.append(dep)
        return bool(waiting)

    @cached_property
    def failed(self) -> dict[str, ResultState]:
        """Calls whose result, observed or noted, shows a failure, with the kind of failure."""
        found: dict[str, ResultState] = {
            n: s for n, s in self.states.items() if s is not ResultState.OK
        }
        for node_id, text in self.noted.items():
            state = result_state(text)
            if state is not ResultState.OK:
                found.setdefault(node_id, state)
        return found

    @cached_property
    def judged(self) -> tuple[Node, ...]:
        """Calls whose plan counts: pending ones, and executed ones that failed unrepaired."""
        return tuple(
            node
            for node in self.calls
            if not node.done or (node.id in self.failed and node.id not in self.retried)
        )

    @cached_property
    def explicit(self) -> bool:
        """Whether this plan writes references as ``$ID``, so that a missing one says something."""
        return any(
            reference.text.startswith("$")
            for found in self.references.values()
            for reference in found
        )

    @cached_property
    def asked(self) -> str:
        """The query in lower case: values that stand in it come from no node."""
        return self.query.casefold()

    @cached_property
    def texts(self) -> dict[str, str]:
        """Parameters of each call as one text, for the search of shared values."""
        return {node.id: dumps(_plain(node)) for node in self.calls}


def _plain(node: Node) -> Any:
    return [node.parameters.named, list(node.parameters.positional)]
