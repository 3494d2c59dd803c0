"""What is wrong with a round of a sandbox task, by comparison with its ground truth.

Written from the definitions of table 12, apart from the injectors: it labels runs that went wrong
by themselves.

Source: paper appendix C, table 12.
"""

import re
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Node, Plan
from pararecover_core.records import ToolCall
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.compose import Task
from pararecover_core.sandbox.registry import tools, value_fault
from pararecover_core.sandbox.steps import Link, Step, step_id
from pararecover_core.taxonomy import ErrorType

_COPY = re.compile(r"_(?:again|retry|fix).*$")
_REFERENCE = re.compile(r'"\$([^".]+)')
_E = ErrorType


class Fault(NamedTuple):
    """One error of a round: its type, the node and parameter at fault, one sentence."""

    error_type: ErrorType
    node: str
    parameter: str
    reason: str


def home_of(node_id: str) -> str:
    """The id that a copy was made of: "3" for "3_retry_2"."""
    return _COPY.sub("", node_id)


def faults(task: Task, plan: Plan, observations: Sequence[ToolCall]) -> list[Fault]:
    """The errors in a round's pending nodes and in what its calls gave.

    Args:
        task: The task with its optimal plan, ids "1" to "N".
        plan: The plan whose frontier was run; copies of a node carry its id and a suffix.
        observations: What the calls gave.
    """
    found = [f for node in plan.by_id.values() if not node.done for f in _node(task, plan, node)]
    homes = {home_of(node_id) for node_id in plan.by_id}
    for index, step in enumerate(task.steps):
        if str(index + 1) not in homes:
            reason = f"the plan lacks the call of '{step.tool}', which the task needs."
            found.append(Fault(_E.TOOLCALL_MISSING, str(index + 1), "", reason))
    return [*found, *_returns(observations)]


def _returns(observations: Sequence[ToolCall]) -> Iterator[Fault]:
    for seen in observations:
        state = result_state(seen.result)
        if state is ResultState.TIMEOUT:
            yield Fault(_E.TIMEOUT_ERROR, seen.node, "", "the call timed out.")
        elif state is ResultState.EMPTY:
            yield Fault(_E.NULL_ERROR, seen.node, "", "the call returned nothing.")


def _node(task: Task, plan: Plan, node: Node) -> Iterator[Fault]:
    if not node.calls_tool or node.id in (ROOT, RESPONSE):
        return
    home = home_of(node.id)
    if not home.isdecimal() or int(home) > len(task.steps):
        yield Fault(_E.TOOLCALL_REDUNDANCY, node.id, "", "the task does not need this call.")
        return
    step = task.steps[int(home) - 1]
    yield from _call(node, step)
    yield from _edges(plan, node, {step_id(needed) for needed in step.needs})


def _call(node: Node, step: Step) -> Iterator[Fault]:
    if node.name != step.tool:
        if node.name in tools():
            reason = f"the step needs '{step.tool}', but the plan calls '{node.name}'."
            yield Fault(_E.TOOL_SELECT_ERROR, node.id, "", reason)
        else:
            reason = f"the tool '{node.name}' is not in the tool list; '{step.tool}' is meant."
            yield Fault(_E.TOOL_NAME_ERROR, node.id, "", reason)
        return
    tool, given = tools()[step.tool], node.parameters.named
    unknown = [name for name in given if name not in tool.inputs]
    for name in unknown:
        reason = f"the parameter '{name}' is not defined for the tool."
        yield Fault(_E.PARAMETER_ERROR, node.id, name, reason)
    missing = [name for name in tool.required if name not in given]
    for name in missing[len(unknown) :]:
        yield Fault(
            _E.PARAMETER_MISSING, node.id, name, f"the required parameter '{name}' is missing."
        )
    for name, value in given.items():
        if name in tool.inputs and not _is_right(step.arguments.get(name), value):
            yield from _value(node, name, value)


def _is_right(wanted: Any, value: Any) -> bool:
    """Whether a value is the wanted literal, or a reference where one is wanted."""
    refers = isinstance(value, str) and value.startswith("$")
    return refers if isinstance(wanted, Link) else bool(value == wanted)


def _value(node: Node, name: str, value: Any) -> Iterator[Fault]:
    fault = value_fault(tools()[node.name], name, value)
    if " must be " in fault:
        yield Fault(_E.TYPE_ERROR, node.id, name, fault)
    elif fault:
        yield Fault(_E.PARAMETER_INVALID, node.id, name, fault)


def used_nodes(node: Node) -> set[str]:
    """Ids that the values of a call refer to."""
    return set(_REFERENCE.findall(dumps(node.parameters.named)))


def _edges(plan: Plan, node: Node, needs: Set[str]) -> Iterator[Fault]:
    """Faults of a node's dependencies; ``needs`` are the nodes whose output its step uses."""
    told = used_nodes(node)
    used = told & set(plan.by_id)
    waited = set(node.dependencies) - {ROOT}
    lacking, idle = sorted(used - waited), sorted(waited - used)
    if told > used:
        idle = []  # it waits for what stood before a call that is missing
    idle = [dep for dep in idle if home_of(dep) not in needs]  # its value was lost, not its need
    idle = [dep for dep in idle if home_of(dep) != home_of(node.id)]  # a retry follows its try
    if not node.dependencies:
        yield Fault(_E.DEPENDENCE_NULL, node.id, "", "it has no dependencies.")
    elif lacking and idle:
        reason = f"it uses the output of node {lacking[0]}, but depends on node {idle[0]}."
        yield Fault(_E.DEPENDENCE_ERROR, node.id, "", reason)
    elif lacking:
        reason = f"it needs the output of node {lacking[0]}, but runs beside it."
        yield Fault(_E.PARALLELISM_ERROR, node.id, "", reason)
    elif idle and not _is_copy(node):
        reason = f"it waits for node {idle[0]} without using its output."
        yield Fault(_E.SERIAL_ERROR, node.id, "", reason)


def _is_copy(node: Node) -> bool:
    return home_of(node.id) != node.id
