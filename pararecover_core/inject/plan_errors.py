"""Errors in the plan's edges and calls: dependencies, needless and missing calls.

Source: paper appendix C, table 12.
"""

from collections.abc import Iterable

from pararecover_core.agents.advance import Draft
from pararecover_core.inject.model import (
    Change,
    Injection,
    Scene,
    change,
    data_needs,
    edit,
    legal_tool,
    pick,
)
from pararecover_core.plan import RESPONSE, ROOT, Node, Plan
from pararecover_core.sandbox.compose import node
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.environment import RESULT_MARK
from pararecover_core.taxonomy import ErrorType


def dependence_error(scene: Scene, draw: Draw) -> Change | None:
    """A pending node depends on another node than the one whose output it uses.

    Not on one that the right node itself waits for: the two would only be wrongly parallel.
    """
    places = [
        (found, right, other)
        for found, right in _needs(scene)
        for other in (n.id for n in scene.plan.nodes)
        if other not in (found.id, right, ROOT, RESPONSE, *found.dependencies)
        and found.id not in scene.waits[other]
        and other not in scene.plan.by_id[right].dependencies
        and _layer_with(scene, found, right, [other]) <= scene.layer(right)
    ]
    if not places:
        return None
    found, right, other = draw.choice(places)
    return _rewired(scene.plan, found, right, other)


def _needs(scene: Scene) -> list[tuple[Node, str]]:
    """Pending calls with a node whose output they use and that is still to run."""
    return [
        (found, right)
        for found in scene.pending
        for right in sorted(data_needs(found))
        if not scene.plan.by_id[right].done
    ]


def _layer_with(scene: Scene, found: Node, without: str, others: Iterable[str]) -> int:
    """The layer that a node would be in with one dependency given up for others."""
    kept = [dep for dep in found.dependencies if dep != without]
    return 1 + max(map(scene.layer, [*kept, *others]), default=0)


def _rewired(plan: Plan, found: Node, right: str, other: str) -> Change:
    dependencies = [other if dep == right else dep for dep in found.dependencies]
    return change(
        edit(plan, found.id, dep=dependencies), ErrorType.DEPENDENCE_ERROR, found,
        f"dependency {right} -> {other}",
        f"it should depend on node {right}, whose output it uses, but depends on node {other}.",
    )  # fmt: skip


def dependence_null(scene: Scene, draw: Draw) -> Change | None:
    """A pending node lacks its dependencies."""
    found = pick(draw, list({n.id: n for n, _ in _needs(scene)}.values()))
    if found is None:
        return None
    was = ", ".join(found.dependencies)
    return change(
        edit(scene.plan, found.id, dep=[]), ErrorType.DEPENDENCE_NULL, found,
        f"dependencies {was} -> none",
        f"it has no dependencies, though it uses the output of node {was}.",
    )  # fmt: skip


def parallelism_error(scene: Scene, draw: Draw) -> Change | None:
    """A pending node is arranged beside the one whose output it uses."""
    pairs = [
        (found, first)
        for found, first in _needs(scene)
        if _layer_with(scene, found, first, scene.plan.by_id[first].dependencies)
        <= scene.layer(first)
    ]
    if not pairs:
        return None
    found, first = draw.choice(pairs)
    dependencies = [dep for dep in found.dependencies if dep != first]
    beside = scene.plan.by_id[first].dependencies
    dependencies += [dep for dep in beside if dep not in dependencies]
    return change(
        edit(scene.plan, found.id, dep=dependencies), ErrorType.PARALLELISM_ERROR, found,
        f"parallel to {first}",
        f"it needs the output of node {first}, but is arranged in parallel with it.",
    )  # fmt: skip


def serial_error(scene: Scene, draw: Draw) -> Change | None:
    """A pending node waits for one that it does not need, and a round is lost."""
    waits, last = scene.waits, max(map(scene.layer, scene.plan.by_id))
    waiting = [n for n in scene.plan.nodes if not n.done and n.calls_tool]
    pairs = [
        (n, other.id)
        for n in waiting
        if n.id not in scene.marked
        for other in waiting
        if other.id != n.id
        and other.id not in waits[n.id]
        and n.id not in waits[other.id]
        and scene.layer(other.id) + scene.heights[n.id] > last
    ]
    if not pairs:
        return None
    found, other = draw.choice(pairs)
    dependencies = [dep for dep in found.dependencies if dep != ROOT] + [other]
    return change(
        edit(scene.plan, found.id, dep=dependencies), ErrorType.SERIAL_ERROR, found,
        f"needless dependency on {other}",
        f"it depends on node {other} without using its output; the two could run in parallel.",
    )  # fmt: skip


def toolcall_missing(scene: Scene, draw: Draw) -> Change | None:
    """A call that the task needs is not in the plan."""
    found = pick(draw, scene.pending)
    if found is None or len(scene.pending) < 2:
        return None
    draft = Draft(scene.plan)
    draft.remove(found.id)
    for each in draft.pending():
        if found.id in (each.get("dep") or []):
            kept = [dep for dep in each["dep"] if dep != found.id]
            each["dep"] = list(dict.fromkeys([*kept, *found.dependencies]))
    return change(
        Plan.parse(draft.given()), ErrorType.TOOLCALL_MISSING, found, "call taken out",
        f"the plan lacks the call of '{found.name}', which the task needs.",
    )  # fmt: skip


def toolcall_redundancy(scene: Scene, draw: Draw) -> Change | None:
    """A call that the task does not need: one that is there already, once more."""
    plan = scene.plan
    called = [n for n in plan.nodes if legal_tool(n) and n.id not in scene.doomed]
    source = pick(draw, [n for n in called if n.done] or called)
    user = pick(draw, [n for n in plan.nodes if not n.done and n.id != ROOT])
    if source is None or user is None or source.id == user.id:
        return None
    draft = Draft(plan)
    taken = [int(n.id) for n in plan.nodes if n.id.isdecimal()]
    new_id = str(max([*taken, len(scene.task.steps)]) + 1)
    dependencies = list(source.dependencies) or [ROOT]
    words = source.description.partition(RESULT_MARK)[0]
    para = dict(source.parameters.named)
    draft.insert(node(new_id, source.name, para, words, dependencies))
    if user.id not in scene.waits[source.id]:
        others = [dep for dep in draft[user.id].get("dep") or [] if dep != ROOT]
        draft[user.id]["dep"] = [*others, new_id]
    injection = Injection(
        ErrorType.TOOLCALL_REDUNDANCY, new_id, "", f"repeats node {source.id}",
        f"Node {new_id} ({source.name}): it repeats the call of node {source.id}; "
        "the task does not need it.",
    )  # fmt: skip
    return Change(Plan.parse(draft.given()), injection)
