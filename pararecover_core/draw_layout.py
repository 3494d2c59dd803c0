"""Places for the nodes of a plan: layers left to right, few crossings, no edge through a node.

Works on plain ids and edges, whatever their faults: cycles, self-loops and repeats have a place.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

NODE_HEIGHT = 38.0
ROW = 52.0
"""Distance of two rows of nodes, centre to centre."""
LANE = 32.5
"""Distance of a passing edge from the centre of a node above or below it."""
_PASSING = 13.0
_STEP = 6.5
GAP = 26.0
"""Free space between two columns."""
MARGIN_TOP = 30.0
MARGIN = 8.0
_SWEEPS = 4
_MOST_POINTS = 4_000

Edge = tuple[str, str]
Slot = str | tuple[str, str, int]
"""A node, or the point where an edge passes a layer."""


class Column(msgspec.Struct, frozen=True):
    """One layer on the canvas: its centre and the width of its widest node."""

    x: float
    w: float


class Layout(msgspec.Struct, frozen=True):
    """Where things stand.

    Attributes:
        layers: Layer of each node, from 0.
        y: Centre of each node.
        columns: One per layer, left to right, never overlapping.
        via: Points (layer, y) that an edge passes between its ends.
        backward: Edges that do not lead to a later layer: parts of a cycle.
        height: Height that holds everything; ``width`` likewise.
    """

    layers: dict[str, int]
    y: dict[str, float]
    columns: tuple[Column, ...]
    via: dict[Edge, tuple[tuple[int, float], ...]]
    backward: frozenset[Edge]
    width: float
    height: float


def layout(widths: Mapping[str, float], edges: Iterable[Edge], *, first: str = "") -> Layout:
    """Place nodes.

    Args:
        widths: Width of each node by id; the order is the order of the rows where nothing else
            decides.
        edges: (dependency, node) pairs between these ids; repeats are passed over.
        first: Id of a node that comes before all that depend on nothing, such as the root.

    Returns:
        The layout; the same input gives the same layout.
    """
    kept = [edge for edge in dict.fromkeys(edges) if edge[0] in widths and edge[1] in widths]
    layers = layers_of(widths, kept, first=first)
    backward = frozenset(edge for edge in kept if layers[edge[0]] >= layers[edge[1]])
    forward = [edge for edge in kept if edge not in backward]
    rows, links = _slots(widths, forward, layers)
    _order(rows, links)
    y = _heights(rows, links)
    columns = _columns(widths, layers)
    top = MARGIN_TOP + NODE_HEIGHT / 2 + (LANE if backward else 0.0)
    shift = top - min(y.values(), default=0.0)
    y = {slot: value + shift for slot, value in y.items()}
    return Layout(
        layers=layers,
        y={slot: value for slot, value in y.items() if isinstance(slot, str)},
        columns=columns,
        via=_via(forward, layers, y),
        backward=backward,
        width=(columns[-1].x + columns[-1].w / 2 + MARGIN) if columns else 2 * MARGIN,
        height=max(y.values(), default=0.0) + NODE_HEIGHT / 2 + MARGIN,
    )


def layers_of(ids: Iterable[str], edges: Sequence[Edge], *, first: str = "") -> dict[str, int]:
    """Layer of each node: one more than the largest among its dependencies, from 0.

    Args:
        ids: All nodes.
        edges: (dependency, node) pairs between them.
        first: A node in front of all that depend on nothing.

    Returns:
        A layer for every node. In a cycle the node that waits for least comes first.
    """
    needs: dict[str, set[str]] = {node: set() for node in ids}
    for dep, node in edges:
        if dep != node:
            needs[node].add(dep)
    if first in needs:
        needs[first] = set()
        for node, deps in needs.items():
            if not deps and node != first:
                deps.add(first)
    followers: dict[str, list[str]] = {}
    for node, deps in needs.items():
        for dep in deps:
            followers.setdefault(dep, []).append(node)
    waiting = {node: len(deps) for node, deps in needs.items()}
    placed: dict[str, int] = {}
    ready = [node for node, count in waiting.items() if not count]
    while len(placed) < len(needs):
        if not ready:
            left = [node for node in needs if node not in placed]
            ready = [min(left, key=lambda node: waiting[node])]
        following: list[str] = []
        for node in ready:
            placed[node] = 1 + max(
                (placed[dep] for dep in needs[node] if dep in placed), default=-1
            )
        for node in ready:
            for follower in followers.get(node, ()):
                waiting[follower] -= 1
                if not waiting[follower] and follower not in placed:
                    following.append(follower)
        ready = following
    return placed


def _slots(
    widths: Mapping[str, float], edges: Sequence[Edge], layers: Mapping[str, int]
) -> tuple[list[list[Slot]], list[tuple[Slot, Slot]]]:
    """Columns of nodes and passing points, and the links between neighbouring columns."""
    rows: list[list[Slot]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for node in widths:
        rows[layers[node]].append(node)
    links: list[tuple[Slot, Slot]] = []
    points = 0
    for dep, node in sorted(edges, key=lambda edge: layers[edge[1]] - layers[edge[0]]):
        span = layers[node] - layers[dep]
        points += span - 1
        if points > _MOST_POINTS:
            break
        last: Slot = dep
        for layer in range(layers[dep] + 1, layers[node]):
            slot: Slot = (dep, node, layer)
            rows[layer].append(slot)
            links.append((last, slot))
            last = slot
        links.append((last, node))
    return rows, links


def _neighbours(
    links: Sequence[tuple[Slot, Slot]],
) -> tuple[dict[Slot, list[Slot]], dict[Slot, list[Slot]]]:
    before: dict[Slot, list[Slot]] = {}
    after: dict[Slot, list[Slot]] = {}
    for left, right in links:
        before.setdefault(right, []).append(left)
        after.setdefault(left, []).append(right)
    return before, after


def _order(rows: list[list[Slot]], links: Sequence[tuple[Slot, Slot]]) -> None:
    """Sort each column by the mean place of its neighbours, forth and back (barycentre)."""
    before, after = _neighbours(links)
    best, best_crossings = [list(row) for row in rows], _crossings(rows, links)
    for sweep in range(_SWEEPS):
        if not best_crossings:
            break
        forth = sweep % 2 == 0
        near = before if forth else after
        span = range(1, len(rows)) if forth else range(len(rows) - 2, -1, -1)
        for index in span:
            _sort(rows[index], rows[index - 1 if forth else index + 1], near)
        crossings = _crossings(rows, links)
        if crossings < best_crossings:
            best, best_crossings = [list(row) for row in rows], crossings
    for row, kept in zip(rows, best, strict=True):
        row[:] = kept


def _sort(row: list[Slot], reference: list[Slot], near: Mapping[Slot, Sequence[Slot]]) -> None:
    place = {slot: index for index, slot in enumerate(reference)}
    scale = len(reference) / max(len(row), 1)
    rank: dict[Slot, float] = {}
    for index, slot in enumerate(row):
        known = [place[other] for other in near.get(slot, ()) if other in place]
        rank[slot] = sum(known) / len(known) if known else index * scale
    row.sort(key=rank.__getitem__)


def _crossings(rows: Sequence[Sequence[Slot]], links: Sequence[tuple[Slot, Slot]]) -> int:
    """How many links cross, counted pair of columns by pair of columns."""
    place = {slot: (layer, i) for layer, row in enumerate(rows) for i, slot in enumerate(row)}
    by_layer: dict[int, list[tuple[int, int]]] = {}
    for left, right in links:
        by_layer.setdefault(place[left][0], []).append((place[left][1], place[right][1]))
    return sum(_inversions(pairs) for pairs in by_layer.values())


def _inversions(pairs: list[tuple[int, int]]) -> int:
    """Pairs whose second numbers are in the wrong order, by a Fenwick tree."""
    size = max((right for _, right in pairs), default=0) + 1
    tree = [0] * (size + 1)
    count = 0
    for seen, (_, right) in enumerate(sorted(pairs)):
        not_larger, index = 0, right + 1
        while index:
            not_larger += tree[index]
            index &= index - 1
        count += seen - not_larger
        index = right + 1
        while index <= size:
            tree[index] += 1
            index += index & -index
    return count


def _heights(
    rows: Sequence[Sequence[Slot]], links: Sequence[tuple[Slot, Slot]]
) -> dict[Slot, float]:
    """Centre of every slot: near its neighbours, in order, never closer than allowed."""
    before, after = _neighbours(links)
    y: dict[Slot, float] = {}
    tallest = max((_offsets(row)[-1] for row in rows), default=0.0)
    for row in rows:
        offsets = _offsets(row)
        middle = (offsets[-1] - tallest) / 2
        y.update((slot, offset - middle) for slot, offset in zip(row, offsets, strict=True))
    for sweep in range(2 * _SWEEPS):
        span = rows if sweep % 2 == 0 else list(reversed(rows))
        for row in span:
            near = [(*before.get(s, ()), *after.get(s, ())) for s in row]
            wished = [
                sum(y[other] for other in others) / len(others) if others else y[slot]
                for slot, others in zip(row, near, strict=True)
            ]
            y.update(zip(row, _spread(wished, _offsets(row), tallest), strict=True))
    return _straightened(rows, before, after, y)


def _straightened(
    rows: Sequence[Sequence[Slot]],
    before: Mapping[Slot, Sequence[Slot]],
    after: Mapping[Slot, Sequence[Slot]],
    y: dict[Slot, float],
) -> dict[Slot, float]:
    """A slot with one neighbour on a side takes its height where there is room."""
    for row in rows:
        offsets = _offsets(row)
        for index, slot in enumerate(row):
            near = [s[0] for s in (before.get(slot, ()), after.get(slot, ())) if len(s) == 1]
            wished = next((y[s] for s in near), y[slot])
            low = y[row[index - 1]] + offsets[index] - offsets[index - 1] if index else -1e9
            last = index == len(row) - 1
            high = 1e9 if last else y[row[index + 1]] - offsets[index + 1] + offsets[index]
            if low <= wished <= high:
                y[slot] = wished
    return y


def _offsets(row: Sequence[Slot]) -> list[float]:
    """Least distance of each slot from the first of its column."""
    offsets: list[float] = []
    for index, slot in enumerate(row):
        if not index:
            offsets.append(0.0)
            continue
        nodes = isinstance(slot, str) + isinstance(row[index - 1], str)
        offsets.append(offsets[-1] + (_PASSING, LANE, ROW)[nodes])
    return offsets


def _spread(wished: Sequence[float], offsets: Sequence[float], tallest: float) -> list[float]:
    """The heights in [0, tallest] nearest to the wished ones that keep order and distances."""
    blocks: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=True):
        blocks.append((wish - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [((a * n + b * m) / (n + m), n + m)]
    most = tallest - offsets[-1]
    level = [
        min(max(round(mean / _STEP) * _STEP, 0.0), most)
        for mean, count in blocks
        for _ in range(count)
    ]
    return [mean + offset for mean, offset in zip(level, offsets, strict=True)]


def _columns(widths: Mapping[str, float], layers: Mapping[str, int]) -> tuple[Column, ...]:
    widest = [0.0] * (max(layers.values(), default=-1) + 1)
    for node, layer in layers.items():
        widest[layer] = max(widest[layer], widths[node])
    columns, left = [], MARGIN
    for width in widest:
        columns.append(Column(left + width / 2, width))
        left += width + GAP
    return tuple(columns)


def _via(
    edges: Sequence[Edge], layers: Mapping[str, int], y: Mapping[Slot, float]
) -> dict[Edge, tuple[tuple[int, float], ...]]:
    found = {}
    for dep, node in edges:
        points = [(layer, (dep, node, layer)) for layer in range(layers[dep] + 1, layers[node])]
        if points and points[0][1] in y:
            found[dep, node] = tuple((layer, y[slot]) for layer, slot in points if slot in y)
    return found
