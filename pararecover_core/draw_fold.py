"""What of one or two plans is drawn: all nodes of both, long finished parts folded into one.

Ids may repeat, be empty or name nothing: each drawn node has a key of its own.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from pararecover_core.plan import RESPONSE, ROOT, Node, Plan

FOLD = "fold"
FOLD_ABOVE = 40
"""Plans with more nodes have their finished chains folded."""
MOST_DRAWN = 200
"""Nodes that are drawn at most."""

Edge = tuple[str, str]


class Drawn(msgspec.Struct, frozen=True):
    """A node of the drawing.

    Attributes:
        key: Unique in the drawing.
        id: The plan's id; that of the first node in a fold.
        kind: "node", "fold" (executed nodes drawn as one), "missing" (a dependency that names
            no node) or "twin" (a further node with an id that is taken).
        ids: The plan ids that it stands for.
    """

    key: str
    id: str
    kind: str = "node"
    ids: tuple[str, ...] = ()
    node: Node | None = None
    turn: int = 0


class Scene(msgspec.Struct, frozen=True):
    """All that is drawn of one or two plans: the same for both."""

    drawn: dict[str, Drawn]
    edges: tuple[Edge, ...]
    per_plan: tuple[tuple[Plan, frozenset[Edge], dict[str, Node]], ...]
    note: str = ""

    def node(self, plan: Plan, item: Drawn) -> Node | None:
        """The plan's own node at a place of the drawing, None where it has none."""
        for known, _, nodes in self.per_plan:
            if known is plan:
                return nodes.get(item.key)
        return item.node

    def edges_of(self, plan: Plan) -> frozenset[Edge]:
        """The edges, by key, that a plan has."""
        for known, edges, _ in self.per_plan:
            if known is plan:
                return edges
        return frozenset(self.edges)


def scene(plans: Sequence[Plan], *, keep: Collection[str], settled: Collection[str]) -> Scene:
    """Choose what is drawn.

    Args:
        plans: One plan, or before and after.
        keep: Ids that are never folded: what ran, changed or is selected.
        settled: Ids that are executed in all plans: what may be folded.

    Returns:
        Nodes and edges of all plans together, each node once.
    """
    keyed = [_keyed(plan) for plan in plans]
    drawn: dict[str, Drawn] = {}
    for nodes in keyed:
        for key, node in nodes.items():
            kind = "node" if key == node.id else "twin"
            drawn.setdefault(key, Drawn(key, node.id, kind, (node.id,), node))
    edge_sets = []
    for nodes in keyed:
        edges: dict[Edge, None] = {}
        for key, node in nodes.items():
            for dep in node.dependencies:
                if dep not in drawn:
                    drawn[dep] = Drawn(dep, dep, "missing", (dep,))
                edges[dep, key] = None
        edge_sets.append(edges)
    edges_all = list(dict.fromkeys(edge for edges in edge_sets for edge in edges))
    drawn, places, note = _reduced(drawn, edges_all, set(keep), set(settled))
    moved = [_moved(edges, places) for edges in edge_sets]
    return Scene(
        drawn=drawn,
        edges=tuple(_moved(edges_all, places)),
        per_plan=tuple(
            (plan, frozenset(edges), {key: node for key, node in nodes.items() if key in drawn})
            for plan, edges, nodes in zip(plans, moved, keyed, strict=True)
        ),
        note=note,
    )


def _keyed(plan: Plan) -> dict[str, Node]:
    """Nodes by drawing key: the id, with a number behind it where it is taken or empty."""
    nodes: dict[str, Node] = {}
    for index, node in enumerate(plan.nodes):
        taken = node.id in nodes or not node.id
        nodes[f"{node.id}\x1f{index}" if taken else node.id] = node
    return nodes


def _moved(edges: Iterable[Edge], places: dict[str, str]) -> list[Edge]:
    """Edges between what is drawn; those inside a fold or to the undrawn are dropped."""
    found: dict[Edge, None] = {}
    for dep, node in edges:
        start, end = places.get(dep), places.get(node)
        if start is None or end is None or (start == end and dep != node):
            continue
        found[start, end] = None
    return list(found)


def _reduced(
    drawn: dict[str, Drawn], edges: Sequence[Edge], keep: set[str], settled: set[str]
) -> tuple[dict[str, Drawn], dict[str, str], str]:
    """Fold and cap; returns what is drawn, the place of every key, and what to tell."""
    places = {key: key for key in drawn}
    if len(drawn) <= FOLD_ABOVE:
        return drawn, places, ""
    loose = {
        key
        for key, item in drawn.items()
        if item.kind == "node" and key in settled and key not in keep | {ROOT, RESPONSE}
    }
    groups = _chains(loose, edges)
    if len(drawn) - sum(len(group) - 1 for group in groups) > FOLD_ABOVE:
        groups = _finished(loose, edges) or groups
    for group in groups:
        places.update((key, group[0]) for key in group)
    folds = {group[0]: group for group in groups}
    kept: dict[str, Drawn] = {}
    for key, item in drawn.items():
        if key in folds:
            kept[key] = Drawn(key, key, FOLD, tuple(folds[key]), item.node)
        elif places[key] == key:
            kept[key] = item
    if len(kept) <= MOST_DRAWN:
        return kept, places, ""
    return _capped(kept, places, edges, keep)


def _chains(loose: set[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Runs of at least two nodes with one way in and one way out between them."""
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for dep, node in edges:
        after.setdefault(dep, set()).add(node)
        before.setdefault(node, set()).add(dep)

    def following(key: str) -> str | None:
        ends = after.get(key, set())
        end = next(iter(ends)) if len(ends) == 1 else None
        return end if end in loose and end != key and len(before[end]) == 1 else None

    inner = {end for key in loose if (end := following(key))}
    chains = []
    for key in sorted(loose - inner):
        chain, end = [key], following(key)
        while end is not None:
            chain.append(end)
            end = following(end)
        if len(chain) > 1:
            chains.append(chain)
    return chains


def _finished(loose: set[str], edges: Sequence[Edge]) -> list[list[str]]:
    """The executed nodes that wait for nothing but each other and the root, as one group."""
    before: dict[str, set[str]] = {}
    for dep, node in edges:
        if dep != ROOT:
            before.setdefault(node, set()).add(dep)
    after: dict[str, list[str]] = {}
    waiting = {}
    for key in loose:
        needs = before.get(key, set())
        waiting[key] = len(needs)
        for dep in needs:
            after.setdefault(dep, []).append(key)
    ready = sorted(key for key, count in waiting.items() if not count)
    closed: list[str] = []
    while ready:
        key = ready.pop()
        closed.append(key)
        for end in after.get(key, ()):
            waiting[end] -= 1
            if not waiting[end]:
                ready.append(end)
    return [closed] if len(closed) > 1 else []


def _capped(
    kept: dict[str, Drawn], places: dict[str, str], edges: Sequence[Edge], keep: set[str]
) -> tuple[dict[str, Drawn], dict[str, str], str]:
    """The most telling nodes: ends, what changed, their neighbours, then the first ones."""
    near: dict[str, None] = {}
    for dep, node in edges:
        if dep in keep or node in keep:
            near.update(dict.fromkeys((places[dep], places[node])))
    wanted = [
        *(key for key in (ROOT, RESPONSE) if key in kept),
        *(key for key in kept if key in keep),
        *near,
        *kept,
    ]
    chosen = set(list(dict.fromkeys(wanted))[:MOST_DRAWN])
    left = sum(len(item.ids) for key, item in kept.items() if key not in chosen)
    drawn = {key: item for key, item in kept.items() if key in chosen}
    return (
        drawn,
        {key: place for key, place in places.items() if place in chosen},
        f"{left:,} more nodes are not drawn",
    )
