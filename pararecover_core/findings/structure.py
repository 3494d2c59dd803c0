"""Dependencies against data: what a call uses, what it waits for, and what nobody waits for."""

import re
from collections.abc import Iterator

from pararecover_core.findings.model import Certainty, Finding
from pararecover_core.findings.scene import Scene, without_retry
from pararecover_core.plan import RESPONSE, ROOT, Node
from pararecover_core.references import Reference
from pararecover_core.taxonomy import ErrorType

_SCALAR = re.compile(r'"([^"\\]{3,60})"|(?<![\w.])(\d{2,}(?:\.\d+)?)(?![\w.])')
_READ = 20_000
"""Characters of values and results that are searched for what they share."""
_COMMON = frozenset({"true", "false", "null", "none"})


def dependencies(scene: Scene) -> Iterator[Finding]:
    """Findings about the edges of a plan."""
    for node in scene.calls:
        if node.id == ROOT:
            continue
        yield from _unbound(scene, node)
        if not node.done or node.id in scene.failed:
            yield from _edges(scene, node)
    yield from _left_out(scene)


def _unbound(scene: Scene, node: Node) -> Iterator[Finding]:
    """A node without dependencies, or with one that does not exist."""
    by_id = scene.plan.by_id
    if not node.dependencies and ROOT in by_id and len(scene.calls) > 1:
        yield Finding(
            ErrorType.DEPENDENCE_NULL,
            "no dependency",
            node.id,
            f"Node {node.id} depends on no node, not even on the root.",
            certainty=Certainty.LIKELY if node.done else Certainty.CERTAIN,
            suggestion=", ".join(dict.fromkeys(r.node for r in scene.references[node.id])),
        )
    if node.done:
        return
    for dep in node.dependencies:
        if dep not in by_id:
            yield Finding(
                ErrorType.DEPENDENCE_ERROR,
                "dependency that does not exist",
                node.id,
                f"Node {node.id} depends on node {dep}, which is not in the plan.",
            )
        elif dep == node.id:
            yield Finding(
                ErrorType.DEPENDENCE_ERROR,
                "cycle",
                node.id,
                f"Node {node.id} depends on itself.",
            )


def _edges(scene: Scene, node: Node) -> Iterator[Finding]:
    references = {
        r.node: r for r in scene.references[node.id] if r.node != ROOT and r.node != node.id
    }
    unbound = [r for r in references.values() if r.node not in node.dependencies]
    idle = _idle(scene, node, set(references))
    for reference in unbound:
        yield from _missing_edge(scene, node, reference, idle)
    wrong = any(not scene.waits_for(node.id, r.node) for r in unbound)
    for dep in [] if wrong else idle:
        sure = scene.explicit and bool(references or scene.plan.by_id[dep].calls_tool)
        yield Finding(
            ErrorType.SERIAL_ERROR,
            "dependency without data",
            node.id,
            f"Node {node.id} waits for node {dep} but uses nothing that it gives; "
            "they could run in parallel.",
            certainty=Certainty.LIKELY if sure else Certainty.POSSIBLE,
            suggestion=dep,
        )
    yield from _retry_beside(scene, node)
    yield from _too_early(scene, node)


def _missing_edge(
    scene: Scene, node: Node, reference: Reference, idle: list[str]
) -> Iterator[Finding]:
    """A reference to a node that is not a dependency."""
    used = reference.node
    source = scene.plan.by_id.get(used)
    uses = f"Node {node.id} uses the output of node {used}"
    if source is None:
        yield from _absent(scene, node, reference)
        return
    sure = Certainty.LIKELY if reference.sure else Certainty.POSSIBLE
    if scene.waits_for(node.id, used) or (source.done and not scene.explicit):
        yield Finding(
            ErrorType.DEPENDENCE_NULL,
            "indirect dependency",
            node.id,
            f"{uses}, but does not depend on it directly.",
            reference.path,
            certainty=Certainty.POSSIBLE,
            suggestion=used,
        )
        return
    others = [dep for dep in node.dependencies if dep != ROOT]
    beside = set(source.dependencies or (ROOT,)) <= set(node.dependencies)
    was_ready = source.done and not node.done and node.id not in scene.failed
    if node.dependencies and (was_ready or (others and not beside)):
        yield Finding(
            ErrorType.DEPENDENCE_ERROR,
            "wrong dependency",
            node.id,
            f"{uses}, but depends on {_listed(idle or others)} and not on it.",
            reference.path,
            certainty=sure,
            suggestion=used,
        )
    elif node.dependencies:
        yield Finding(
            ErrorType.PARALLELISM_ERROR,
            "wrongly parallel",
            node.id,
            f"{uses}, but does not wait for it, so the two may run in parallel.",
            reference.path,
            certainty=sure,
            suggestion=used,
        )
    if node.dependencies and not scene.explicit:
        yield Finding(
            ErrorType.DEPENDENCE_NULL,
            "missing dependency",
            node.id,
            f"{uses}, but node {used} is not among its dependencies.",
            reference.path,
            certainty=Certainty.POSSIBLE,
            suggestion=used,
        )


def _listed(ids: list[str]) -> str:
    return f"node {', '.join(ids)}" if ids else "the root alone"


def _absent(scene: Scene, node: Node, reference: Reference) -> Iterator[Finding]:
    """A reference to a node that the plan does not hold: a call was lost, or the id is wrong."""
    sure = Certainty.LIKELY if reference.sure else Certainty.POSSIBLE
    message = f"Node {node.id} uses the output of node {reference.node}, which is not in the plan"
    yield Finding(
        ErrorType.TOOLCALL_MISSING,
        "reference to a missing node",
        node.id,
        f"{message}: its call is missing.",
        reference.path,
        certainty=sure,
        suggestion=reference.node,
    )
    if not scene.explicit:
        yield Finding(
            ErrorType.DEPENDENCE_ERROR,
            "reference to a missing node",
            node.id,
            f"{message}: the id may be wrong.",
            reference.path,
            certainty=Certainty.POSSIBLE,
        )


def _idle(scene: Scene, node: Node, used: set[str]) -> list[str]:
    """Dependencies whose output a call does not use, as far as values show."""
    return [
        dep
        for dep in node.dependencies
        if dep not in used
        and dep not in (ROOT, RESPONSE, node.id)
        and dep in scene.plan.by_id
        and scene.plan.by_id[dep].calls_tool
        and not _same_call(node, scene.plan.by_id[dep])
        and (scene.explicit or not _shares_value(scene, node.id, dep))
    ]


def _same_call(node: Node, other: Node) -> bool:
    return without_retry(node.name) == without_retry(other.name) and (
        node.parameters == other.parameters or without_retry(node.id) == without_retry(other.id)
    )


def _shares_value(scene: Scene, node: str, dep: str) -> bool:
    """Whether a value of a call occurs in the result of another one, and not in the query."""
    there = scene.result_of.get(dep) or scene.noted.get(dep, "")
    if not there:
        return False
    there, here = there[:_READ], scene.texts[node][:_READ]
    for match in _SCALAR.finditer(here):
        value = match[1] or match[2]
        folded = value.casefold()
        if folded in _COMMON or folded in scene.asked or f'"{value}":' in here:
            continue
        if value in there:
            return True
    return False


def _too_early(scene: Scene, node: Node) -> Iterator[Finding]:
    """A failed call whose parameter another call of the same round gave."""
    if node.id not in scene.states or node.id not in scene.failed:
        return
    for name, value in node.parameters.named.items():
        if len(name) < 4 or not isinstance(value, str):
            continue
        for other, result in scene.result_of.items():
            given = f'"{name}"' in result or f"'{name}'" in result
            if given and other not in scene.failed and value not in result:
                if other == node.id or scene.waits_for(node.id, other):
                    continue
                yield Finding(
                    ErrorType.PARALLELISM_ERROR,
                    "needs what ran beside it",
                    node.id,
                    f"Node {node.id} failed, and its '{name}' came from node {other} in the same "
                    "round: it should have waited.",
                    name,
                    certainty=Certainty.LIKELY,
                    suggestion=other,
                )
                return


def _retry_beside(scene: Scene, node: Node) -> Iterator[Finding]:
    """A second try that does not wait for the first."""
    base = without_retry(node.id)
    first = base if base != node.id and base in scene.plan.by_id else ""
    if not first and without_retry(node.name) != node.name:
        plain = without_retry(node.name)
        first = next((n.id for n in scene.calls if n.name == plain and n.id != node.id), "")
    if not first or scene.plan.by_id[first].done:
        return
    if not scene.waits_for(node.id, first):
        yield Finding(
            ErrorType.PARALLELISM_ERROR,
            "retry beside its first try",
            node.id,
            f"Node {node.id} tries node {first} again without waiting for it.",
            certainty=Certainty.LIKELY,
            suggestion=first,
        )


def _left_out(scene: Scene) -> Iterator[Finding]:
    """Calls whose output neither another node nor the response waits for."""
    response = scene.plan.by_id.get(RESPONSE)
    if response is None or not response.dependencies:
        return
    waited = {dep for node in scene.plan.by_id.values() for dep in node.dependencies}
    waited |= {r.node for found in scene.references.values() for r in found}
    for node in scene.calls:
        idle = node.id not in waited and node.id not in (ROOT, RESPONSE)
        if idle and not (node.done and node.id in scene.failed):
            yield Finding(
                ErrorType.DEPENDENCE_ERROR,
                "nobody waits for it",
                node.id,
                f"No node waits for node {node.id}, not even the response.",
                certainty=Certainty.POSSIBLE if node.done else Certainty.LIKELY,
            )
