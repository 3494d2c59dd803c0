"""Plans: a DAG of nodes, read from every dialect that files use, kept as given.

Source: paper section 2 (eq. 1 and 2); the dialects are those of the published files.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
import networkx as nx

from pararecover_core.literals import MAX_DEPTH, is_deep, loads

ROOT, RESPONSE = "root", "response"
"""Ids of the two nodes that stand for the query and for the final answer."""

_DONE_WORDS = frozenset(
    {"true", "1", "done", "completed", "complete", "success", "finished", "yes"}
)
_FENCE = re.compile(r"```[a-zA-Z]*+\s*+(.*?)(?:```|\Z)", re.S)
_PLAN_TAG = re.compile(r"<plan>(.*?)(?:</plan>|\Z)", re.S | re.I)
_KEY = r"\s*+([A-Za-z_][\w\-]*+)\s*+(?:=|:\s)"  # possessive: linear on any input
_PAIR_START = re.compile(rf"{_KEY}\s*+")
_PAIR_END = re.compile(rf",(?={_KEY})")
_QUOTED = re.compile(rf"('[^']*+'|\"[^\"]*+\")\s*+(?:\Z|,(?={_KEY}))")
_LONGEST_PAIRS = 10_000


class Parameters(msgspec.Struct, frozen=True):
    """The values of a call: by name, and those that were given without one, in order."""

    named: dict[str, Any] = {}
    positional: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.named or self.positional)


_NO_PARAMETERS = Parameters()


class Node(msgspec.Struct, frozen=True):
    """A task of a plan.

    ``done`` means that it was executed, not that it succeeded (paper notes: a failed call marks
    its node done and the failure stands in its text).
    """

    id: str
    name: str = ""
    parameters: Parameters = Parameters()
    description: str = ""
    dependencies: tuple[str, ...] = ()
    done: bool = False
    given: Any = None

    @property
    def calls_tool(self) -> bool:
        """Whether the node names something to call (root and response usually do not)."""
        return bool(self.name) and self.name not in (ROOT, RESPONSE)


class FieldChange(msgspec.Struct, frozen=True):
    """One field of a node before and after."""

    field: str
    before: Any
    after: Any


class PlanDifference(msgspec.Struct, frozen=True):
    """What one plan changed of another, by node id.

    ``changed`` covers name, parameters, dependencies and description of nodes in both plans;
    status is apart, in ``newly_done`` and ``reopened``. A node is ``unchanged`` when none of
    these differ.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: dict[str, tuple[FieldChange, ...]] = {}
    newly_done: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    edges_added: tuple[tuple[str, str], ...] = ()
    edges_removed: tuple[tuple[str, str], ...] = ()

    def redesigned(self) -> tuple[str, ...]:
        """Nodes whose call or dependencies changed (a new description alone is a note)."""
        return tuple(
            node
            for node, changes in self.changed.items()
            if any(change.field != "description" for change in changes)
        )


class Plan(msgspec.Struct, frozen=True, dict=True):
    """A plan as given and as understood.

    Attributes:
        given: The text or object that the file or agent gave; None where there was none.
        nodes: The nodes in their given order; ids may repeat or be empty in a broken plan.
        fault: Why the plan does not parse (S5 = 0), or "" (S5 = 1).
    """

    given: Any = None
    nodes: tuple[Node, ...] = ()
    fault: str = ""

    @classmethod
    def parse(cls, given: Any) -> "Plan":
        """Understand a plan; never raises.

        Args:
            given: JSON or Python-literal text (also in a code fence, in ``<plan>`` tags or with
                text around), an object with ``tasks``, a list of tasks, or None.

        Returns:
            The plan. What could not be understood has ``fault`` set and as many nodes as could
            be read.
        """
        if not isinstance(given, str) and is_deep(given):
            return cls(given, (), f"nested deeper than {MAX_DEPTH} levels")
        tasks, fault = _tasks(given)
        if not isinstance(tasks, list):
            return cls(given, (), fault or "no list of tasks")
        nodes = []
        for index, task in enumerate(tasks, start=1):
            if isinstance(task, dict):
                node, problem = _node(task)
                nodes.append(node)
                if problem and not fault:
                    fault = f"task {index}: {problem}"
            else:
                fault = fault or f"task {index} is {_kind(task)}, not an object"
        kept = tuple(nodes)
        return cls(given, kept, fault or graph_fault(kept))

    @property
    def s5(self) -> int:
        """S5, topological parsability: 1 or 0 (paper section 2.1.4)."""
        return 0 if self.fault else 1

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """Nodes by id; the first one where an id repeats."""
        found: dict[str, Node] = {}
        for node in self.nodes:
            found.setdefault(node.id, node)
        return found

    @cached_property
    def graph(self) -> "nx.DiGraph[str]":
        """Dependencies as edges (dependency, node); ids that name no node are left out."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.by_id)
        for node in self.nodes:
            graph.add_edges_from((dep, node.id) for dep in node.dependencies if dep in self.by_id)
        return graph

    def dependencies(self, node_id: str) -> frozenset[str]:
        """The prerequisite set Dep(v) of a node (eq. 1), as given: may name missing nodes."""
        node = self.by_id.get(node_id)
        return frozenset(node.dependencies) if node else frozenset()

    def frontier(self) -> tuple[str, ...]:
        """Pending nodes whose dependencies are all done (eq. 2), in given order.

        A dependency on an id that does not exist is never satisfied.
        """
        done = {node.id for node in self.by_id.values() if node.done}
        return tuple(
            node.id
            for node in self.by_id.values()
            if not node.done and all(dep in done for dep in node.dependencies)
        )

    @cached_property
    def layers(self) -> dict[str, int]:
        """Layer of each node: 0 for the root, else 1 + the largest layer among dependencies.

        Missing dependencies and the root's own are passed over, so that a node without any is in
        layer 1; nodes in or behind a cycle have no layer.
        """
        return _layers(self.by_id.values())

    def executed_rounds(self) -> int:
        """Rounds that lie behind the plan: peels of executed nodes in dependency order.

        The root is no round; dependencies on nodes that were not executed are passed over.

        Returns:
            R >= 0.

        Source: our reading of eq. 4 (how T counts the rounds before the plan).
        """
        done = [node for node in self.by_id.values() if node.done and node.id != ROOT]
        return max(_layers(done).values(), default=0)

    def impact(self, node_id: str) -> frozenset[str]:
        """Ids that a fault in a node can reach: its descendants, without the node itself."""
        if node_id not in self.by_id:
            return frozenset()
        return frozenset(nx.descendants(self.graph, node_id)) - {node_id}

    def ancestors(self, node_id: str) -> frozenset[str]:
        """Ids that a node waits for, directly or through others."""
        if node_id not in self.by_id:
            return frozenset()
        return frozenset(nx.ancestors(self.graph, node_id)) - {node_id}

    def difference(self, after: "Plan") -> PlanDifference:
        """What ``after`` changed of this plan, matched by node id."""
        return _difference(self, after)


def graph_fault(nodes: Iterable[Node]) -> str:
    """The first reason why nodes are no executable DAG, or "" where they are one.

    Checked in this order: there is a node, ids are non-empty and unique, dependencies exist,
    no cycle.

    Source: paper section 2.1.4 (S5) and our decision on what parses.
    """
    dependencies: dict[str, tuple[str, ...]] = {}
    in_order = True  # as long as dependencies stand before their nodes, there is no cycle
    for node in nodes:
        if not node.id:
            return "a node has no id"
        if node.id in dependencies:
            return f"two nodes have the id {node.id}"
        in_order = in_order and dependencies.keys() >= set(node.dependencies)
        dependencies[node.id] = node.dependencies
    if not dependencies:
        return "the list of tasks is empty"
    return "" if in_order else _missing_or_cyclic(dependencies)


def _missing_or_cyclic(dependencies: Mapping[str, tuple[str, ...]]) -> str:
    for node_id, needed in dependencies.items():
        for dep in needed:
            if dep not in dependencies:
                return f"node {node_id} depends on {dep or 'an empty id'}, which does not exist"
    placed = _topological(dependencies)
    if len(placed) < len(dependencies):
        stuck = [node_id for node_id in dependencies if node_id not in placed]
        return f"a cycle through node {', '.join(stuck[:5])}"
    return ""


def _topological(dependencies: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Layer (from 0) of every node that can be ordered; iterative, so depth is no limit."""
    waiting = {node: len(set(needed)) for node, needed in dependencies.items()}
    followers: dict[str, list[str]] = {}
    for node, needed in dependencies.items():
        for dep in set(needed):
            followers.setdefault(dep, []).append(node)
    placed: dict[str, int] = {}
    ready, layer = [node for node, count in waiting.items() if not count], 0
    while ready:
        following: list[str] = []
        for node in ready:
            placed[node] = layer
            for follower in followers.get(node, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    following.append(follower)
        ready, layer = following, layer + 1
    return placed


def _layers(nodes: Iterable[Node]) -> dict[str, int]:
    kept = {node.id: node for node in nodes}
    root = {ROOT: 0} if kept.pop(ROOT, None) else {}
    placed = _topological(
        {node.id: [dep for dep in node.dependencies if dep in kept] for node in kept.values()}
    )
    return root | {node: layer + 1 for node, layer in placed.items()}


def _difference(before: Plan, after: Plan) -> PlanDifference:
    changed: dict[str, tuple[FieldChange, ...]] = {}
    newly_done, reopened, unchanged = [], [], []
    for node_id, new in after.by_id.items():
        old = before.by_id.get(node_id)
        if old is None:
            continue
        changes = tuple(
            FieldChange(field, was, now)
            for field, was, now in (
                ("name", old.name, new.name),
                ("parameters", old.parameters, new.parameters),
                ("dependencies", sorted(set(old.dependencies)), sorted(set(new.dependencies))),
                ("description", old.description, new.description),
            )
            if was != now
        )
        if changes:
            changed[node_id] = changes
        if new.done and not old.done:
            newly_done.append(node_id)
        elif old.done and not new.done:
            reopened.append(node_id)
        elif not changes:
            unchanged.append(node_id)
    was_edges, is_edges = set(before.graph.edges), set(after.graph.edges)
    return PlanDifference(
        added=tuple(node for node in after.by_id if node not in before.by_id),
        removed=tuple(node for node in before.by_id if node not in after.by_id),
        changed=changed,
        newly_done=tuple(newly_done),
        reopened=tuple(reopened),
        unchanged=tuple(unchanged),
        edges_added=tuple(sorted(is_edges - was_edges)),
        edges_removed=tuple(sorted(was_edges - is_edges)),
    )


def _tasks(given: Any) -> tuple[Any, str]:
    """The list of tasks inside what was given, and why there is none."""
    value, fault = given, ""
    for _ in range(4):  # text in a wrapper in text: published files nest up to three deep
        if isinstance(value, str):
            value, fault = _read_text(value)
        elif isinstance(value, dict):
            if "tasks" in value:
                value = value["tasks"]
            elif "original_plan" in value:
                value = value["original_plan"]
            elif "id" in value and ("dep" in value or "name" in value):
                return [value], fault
            else:
                return None, "no list of tasks under 'tasks'"
        else:
            break
    if value is None:
        return None, fault or "no plan was given"
    if not isinstance(value, list):
        return None, fault or f"'tasks' is {_kind(value)}, not a list"
    return value, fault


def _read_text(text: str) -> tuple[Any, str]:
    text = text.strip().lstrip("\ufeff")
    if not text:
        return None, "the plan is empty"
    reason = ""
    for candidate in _candidates(text):
        try:
            return loads(candidate), ""
        except ValueError as error:
            reason = reason or f"not JSON: {error}"
    return None, reason


def _candidates(text: str) -> Iterable[str]:
    """The whole text, then the parts of it that may be the plan."""
    yield text
    for pattern in (_PLAN_TAG, _FENCE):
        for match in pattern.finditer(text):
            yield match.group(1)
    start, end = text.find("{"), text.rfind("}")
    if 0 < start < end or 0 <= start < end < len(text) - 1:
        yield text[start : end + 1]


def _node(task: dict[str, Any]) -> tuple[Node, str]:
    """The node of a task, and why the task breaks S5 by its form alone ("" where it does not)."""
    get = task.get
    para, description, dependencies = get("para"), get("desc"), get("dep")
    if para is None:
        para = get("parameters", get("arguments"))
    if description is None:
        description = get("description")
    if dependencies is None:
        dependencies = get("dependencies", get("deps"))
    fault = ""
    if not isinstance(dependencies, list | tuple):
        fault = f"its 'dep' is {_kind(dependencies)}, not a list of node ids"
    node = Node(
        text_of(get("id")),
        text_of(get("name")),
        parameters(para),
        text_of(description),
        _dependency_ids(dependencies),
        is_done(get("status")),
        task,
    )
    return node, fault


def text_of(value: Any) -> str:
    """A value as text: null is "", 3 and 3.0 are "3", text is stripped."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    try:
        return str(value)
    except ValueError:  # a whole number of more than 4,300 digits
        return hex(value)


def is_done(status: Any) -> bool:
    """Whether a status means executed: true, 1, "true", "done", ... in any case."""
    if status is True or status is False:
        return bool(status)
    if isinstance(status, str):
        return status.strip().casefold() in _DONE_WORDS
    return isinstance(status, int | float) and status == 1


def _dependency_ids(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(map(text_of, value))
    text = text_of(value)
    if text.startswith("["):
        try:
            return _dependency_ids(loads(text))
        except ValueError:
            pass
    return tuple(part.strip() for part in re.split(r"[,;，；]", text) if part.strip())


def parameters(value: Any) -> Parameters:
    """Understand the parameters of a call in any seen form; never raises.

    Args:
        value: An object; a list of objects, JSON texts, ``key=value`` or ``key: value`` texts and
            bare values; a text of one of these kinds; or None.

    Returns:
        Named and positional values. Values from ``key=value`` texts stay text.
    """
    if isinstance(value, dict):
        return Parameters(value) if value else _NO_PARAMETERS
    if not value and value != 0:
        return Parameters()
    items = value if isinstance(value, list | tuple) else [value]
    named: dict[str, Any] = {}
    positional: list[Any] = []
    for item in items:
        found = _named_values(item)
        if found is None or any(key in named for key in found):
            positional.append(item)
        else:
            named.update(found)
    return Parameters(named, tuple(positional))


def _named_values(item: Any) -> dict[str, Any] | None:
    if isinstance(item, dict):
        return dict(item)
    if not isinstance(item, str):
        return None
    text = item.strip()
    if text.startswith("{"):
        try:
            value = loads(text)
        except ValueError:
            return None
        return dict(value) if isinstance(value, dict) else None
    return _pairs(text)


def _pairs(text: str) -> dict[str, Any] | None:
    """``a=1, b='x'`` or ``a: 1, b: 2`` as named texts; None for any other text."""
    if len(text) > _LONGEST_PAIRS:
        return None
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        key = _PAIR_START.match(text, at)
        if key is None:
            return None
        quoted = _QUOTED.match(text, key.end())
        if quoted:
            found[key[1]], at = quoted[1][1:-1], quoted.end()
            continue
        end = _PAIR_END.search(text, key.end())
        value = text[key.end() : end.start() if end else len(text)]
        found[key[1]], at = _unquoted(value.strip()), end.end() if end else len(text)
    return found or None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _kind(value: Any) -> str:
    names = {str: "text", int: "a number", float: "a number", bool: "a boolean", dict: "an object"}
    names |= {list: "a list", tuple: "a list"}
    return "missing" if value is None else names.get(type(value), "no JSON")
