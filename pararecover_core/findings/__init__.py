"""Program evidence: where in plan, tools and observations each error type shows.

Pending calls are judged for the faults of their plan; executed ones for what their result shows.
The definitions are those of the paper's table 12, whatever a file's own label says.

Source: paper section 2.1.2, appendix C (table 12); how each type is looked for is ours.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pararecover_core.findings.calls import check_call, unknown_tool
from pararecover_core.findings.model import Certainty, Finding, Where
from pararecover_core.findings.observed import observed
from pararecover_core.findings.purpose import purpose
from pararecover_core.findings.scene import Scene
from pararecover_core.findings.structure import dependencies
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Tool, ToolCall
from pararecover_core.results import ResultState, result_state

__all__ = [
    "Certainty",
    "Finding",
    "ResultState",
    "Where",
    "every_finding",
    "findings_of",
    "instance_findings",
    "result_state",
]

_MESSAGE = 500
"""Longest message: names and ids come from files and may be of any length."""
LIMIT = 8
"""Most findings of one record; the most certain ones of each type come first."""


def instance_findings(instance: Instance) -> tuple[Finding, ...]:
    """The findings of one instance; see ``findings_of``."""
    return findings_of(instance.plan, instance.tools, instance.observations, query=instance.query)


def findings_of(
    plan: Plan,
    tools: Sequence[Tool],
    observations: Sequence[ToolCall],
    *,
    query: str = "",
    limit: int = LIMIT,
) -> tuple[Finding, ...]:
    """What is wrong with a plan and its last round, as far as a program can tell.

    Args:
        plan: The plan whose frontier was run; it may be broken.
        tools: The listed tools; with none, tool names and parameters are not judged.
        observations: What the calls of the round gave, tied to nodes (``match_calls``).
        query: The user's request, for tools that nothing calls.
        limit: Most findings to return, at least 1.

    Returns:
        At most ``limit`` findings: repeats folded into one, the first of each error type by
        certainty, then the rest by certainty. None where nothing was found.
    """
    return _ranked(_folded(every_finding(plan, tools, observations, query=query)), limit)


def every_finding(
    plan: Plan, tools: Sequence[Tool], observations: Sequence[ToolCall], *, query: str = ""
) -> list[Finding]:
    """All findings, one a node, neither folded nor ranked: for those who repair each one.

    Args and findings as in ``findings_of``.
    """
    return list(_weighed(list(_all(Scene(plan, tools, observations, query)))))


def _all(scene: Scene) -> Iterator[Finding]:
    names = list(scene.by_name)
    yield from observed(scene)
    for node in scene.judged:
        if names and node.name not in scene.by_name:
            yield unknown_tool(node, names)
        elif names:
            yield from check_call(node, scene.by_name[node.name], scene.reader)
    yield from dependencies(scene)
    yield from purpose(scene)


_SIDE_EFFECTS = frozenset({"dependency without data", "nobody waits for it"})
"""What another fault of the same node brings about: an edge whose value was lost, and the like."""


def _weighed(found: list[Finding]) -> Iterator[Finding]:
    """Findings that another one explains are taken back to possible, or left out."""
    sure = [f for f in found if f.certainty is not Certainty.POSSIBLE and f.error_type]
    main = {f.node for f in sure if f.rule not in _SIDE_EFFECTS}
    for finding in found:
        if finding.rule in _SIDE_EFFECTS and {finding.node, finding.suggestion} & main:
            yield msgspec.structs.replace(finding, certainty=Certainty.POSSIBLE)
        elif finding.error_type is not None or finding.node not in main:
            yield finding


def _folded(found: Iterable[Finding]) -> list[Finding]:
    """One finding per error type and rule, with all its nodes; the most certain one speaks."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        kind = finding.error_type.value if finding.error_type else ""
        groups.setdefault((kind, finding.rule, finding.where), []).append(finding)
    return [_one(group) for group in groups.values()]


def _one(group: list[Finding]) -> Finding:
    first = min(group, key=lambda finding: finding.certainty.rank)
    nodes = tuple(dict.fromkeys([first.node, *(finding.node for finding in group)]))
    nodes = tuple(node for node in nodes if node)
    message = first.message
    if len(message) > _MESSAGE:
        message = message[: _MESSAGE - 3] + "..."
    if len(nodes) > 1:
        rest = nodes[1:]
        shown = ", ".join(rest[:6]) + (f" and {len(rest) - 6} more" if len(rest) > 6 else "")
        message += f" The same holds for node{'s' if len(rest) > 1 else ''} {shown}."
    return msgspec.structs.replace(first, nodes=nodes, message=message)


def _ranked(found: list[Finding], limit: int) -> tuple[Finding, ...]:
    """The best finding of each type by certainty, then further ones that are no mere hints."""
    found.sort(key=lambda finding: finding.certainty.rank)
    seen: set[object] = set()
    best, further = [], []
    for finding in found:
        if finding.error_type in seen:
            if finding.certainty is not Certainty.POSSIBLE:
                further.append(finding)
        else:
            seen.add(finding.error_type)
            best.append(finding)
    kept = sorted([*best, *further], key=lambda finding: finding.certainty.rank)
    return tuple(kept[:limit])
