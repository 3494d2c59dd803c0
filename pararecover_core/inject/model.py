"""What an injection is, and what injectors look at."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from pararecover_core.agents.advance import Draft
from pararecover_core.literals import dumps
from pararecover_core.plan import Node, Plan
from pararecover_core.records import ToolCall
from pararecover_core.sandbox.compose import Task
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.registry import SandboxTool, tools, value_fault
from pararecover_core.taxonomy import ErrorType


class Injection(msgspec.Struct, frozen=True):
    """An error that was put in.

    Attributes:
        node: Id of the faulty node; for a missing call, of the node that was taken out.
        parameter: The parameter at fault, "" where it is not about one.
        change: What was changed, in a few words.
        reason: The error in one sentence.
        round: The round that carries it, from 1.
    """

    error_type: ErrorType
    node: str
    parameter: str
    change: str
    reason: str
    round: int = 0


class State(NamedTuple):
    """A workflow between two rounds: the plan whose frontier has just been run."""

    plan: Plan
    observations: tuple[ToolCall, ...]
    round: int


class Change(NamedTuple):
    """A faulty plan or return, not yet proven real.

    Attributes:
        plan: The plan with the fault, or as it was.
        returns: Node id to the text that its call gives instead of its result.
        tools: Tools that must be listed for the fault to be a choice.
    """

    plan: Plan
    injection: Injection
    returns: dict[str, str] = {}  # noqa: RUF012
    tools: tuple[str, ...] = ()


class Scene:
    """What an injector looks at: a plan, its task, and the calls that fail anyway.

    Args:
        plan: A plan that parses, its frontier just run.
        task: The task behind it.
        doomed: Nodes that fail as the plan stands: a further error there would change nothing.
        marked: Nodes that carry an error of an earlier round: another one would hide it.
    """

    def __init__(
        self,
        plan: Plan,
        task: Task,
        doomed: Collection[str] = (),
        marked: Collection[str] = (),
    ) -> None:
        self.plan, self.task, self.doomed = plan, task, frozenset(doomed)
        self.marked = frozenset(marked)

    @cached_property
    def pending(self) -> list[Node]:
        """Pending calls that would succeed, those of the frontier first."""
        frontier = set(self.plan.frontier())
        found = [n for n in self.plan.nodes if not n.done and n.calls_tool]
        found = [n for n in found if n.id not in self.doomed | self.marked]
        return sorted(found, key=lambda n: n.id not in frontier)

    @cached_property
    def waits(self) -> dict[str, set[str]]:
        """What each node waits for, directly or through others."""
        found: dict[str, set[str]] = {}
        for node in sorted(self.plan.by_id.values(), key=lambda n: self.layer(n.id)):
            direct = set(node.dependencies)
            found[node.id] = direct.union(*(found.get(dep, ()) for dep in direct))
        return found

    def layer(self, node_id: str) -> int:
        """Layer of a node, 0 for the root."""
        return self.plan.layers.get(node_id, 0)

    @cached_property
    def heights(self) -> dict[str, int]:
        """Nodes on the longest way from each node to the end, itself included."""
        found: dict[str, int] = {}
        for node in sorted(self.plan.by_id.values(), key=lambda n: -self.layer(n.id)):
            mine = found.setdefault(node.id, 1)
            for dep in node.dependencies:
                found[dep] = max(found.get(dep, 1), mine + 1)
        return found


Injector = Callable[[Scene, Draw], Change | None]


def pick(draw: Draw, nodes: Sequence[Node]) -> Node | None:
    """A node, with a lean to the front, where the frontier is."""
    if not nodes:
        return None
    return nodes[min(draw.integer(0, len(nodes) - 1), draw.integer(0, len(nodes) - 1))]


def legal_tool(found: Node) -> SandboxTool | None:
    """The tool of a call that carries no error yet, as far as its literal values show."""
    made, values = tools().get(found.name), found.parameters.named
    if made is None or not set(made.required) <= set(values) <= set(made.inputs):
        return None
    literal = {k: v for k, v in values.items() if not (isinstance(v, str) and v.startswith("$"))}
    return None if any(value_fault(made, k, v) for k, v in literal.items()) else made


def edit(plan: Plan, node_id: str, **fields: Any) -> Plan:
    """The plan with some fields of one node given anew."""
    draft = Draft(plan)
    draft[node_id].update(fields)
    return Plan.parse(draft.given())


def data_needs(found: Node) -> set[str]:
    """Dependencies that the values of a call refer to."""
    text = dumps(found.parameters.named)
    return {dep for dep in found.dependencies if f'"${dep}.' in text or f'"${dep}"' in text}


def change(plan: Plan, kind: ErrorType, found: Node, what: str, why: str, par: str = "") -> Change:
    """A change of one node's plan, its reason written as one sentence."""
    reason = f"Node {found.id} ({found.name}): {why}"
    return Change(plan, Injection(kind, found.id, par, what, reason))
