"""Pictures of plans: what stands where, in which state, and what changed.

A picture is plain JSON data; ``ui/assets/plan.js`` paints it. Before and after share one layout,
so that a node stands in the same place in both.

Source: paper section 2 (frontier, eq. 2); layers and difference marks are our design.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pararecover_core.draw_fold import FOLD, Drawn, Scene, scene
from pararecover_core.draw_layout import NODE_HEIGHT, Layout, layout
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, FieldChange, Node, Parameters, Plan
from pararecover_core.records import ToolCall
from pararecover_core.results import result_state

Role = Literal["before", "after", "single"]
Picture = dict[str, Any]

NAME_LENGTH = 16
"""Characters of a tool name that a node shows."""
_SUB_LENGTH = 22
_ID_LENGTH = 9
_TIP_LENGTH = 200
_RAW_LENGTH = 20_000
_NODE_WIDTH, _PILL_HEIGHT = 110.0, 26.0
_BARE = re.compile(r"(?!true$|false$|null$|[\d.+-]+$)[\w$@./:+-]+|\d+-\d+-\d+")
_BAD = frozenset({"error", "timeout", "empty"})


class Change(msgspec.Struct, frozen=True):
    """What happened between two plans, by node id, and how the calls of the round ended."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: Mapping[str, tuple[FieldChange, ...]] = {}
    newly_done: frozenset[str] = frozenset()
    reopened: frozenset[str] = frozenset()
    edges_added: frozenset[tuple[str, str]] = frozenset()
    edges_removed: frozenset[tuple[str, str]] = frozenset()
    results: Mapping[str, tuple[str, str]] = {}

    def failed(self, node: str) -> bool:
        """Whether a call of the node came back as an error, a time-out or nothing."""
        return self.results.get(node, ("", ""))[0] in _BAD


def picture(
    plan: Plan,
    *,
    before: Plan | None = None,
    after: Plan | None = None,
    observations: Sequence[ToolCall] = (),
    role: Role = "single",
    selected: str | None = None,
) -> Picture:
    """What to paint for one plan.

    Args:
        plan: The plan to draw: ``before`` or ``after`` where a role says so.
        before: The plan of the round before, None where there is none.
        after: The plan that answered it, None where there is none.
        observations: What the round between the two gave; ``node`` ties each to a node.
        role: Which of the two is drawn; "single" draws one plan without comparing.
        selected: Id of the node that is chosen at first.

    Returns:
        JSON data: ``nodes`` (key unique, id as the plan has it, title, sub, state, badges,
        x, y, w, h, shape, layer, tip, say), ``edges`` (from, to, mark, origin, via), ``columns``,
        ``bands`` (x0, x1, caption), ``width``, ``height``, ``alt``, ``counts``, ``fault``,
        ``note``, ``legend`` (of inferred edges: origin, words), ``raw`` (the given text where no
        node could be read) and ``selected``.
    """
    change = _change(before, after, observations)
    staged = scene(
        [p for p in (before, after) if p is not None] or [plan],
        keep={*change.results, *change.added, *change.removed, *change.changed, selected or ""},
        settled=_settled(before or plan, after or plan),
    )
    widths = {item.key: _size(item)[0] for item in staged.drawn.values()}
    first = next((k for k, item in staged.drawn.items() if item.id == ROOT), "")
    placed = layout(widths, staged.edges, first=first)
    return _painted(plan, staged, placed, change, role, selected)


def pair(
    before: Plan, after: Plan | None, observations: Sequence[ToolCall] = (), **options: Any
) -> tuple[Picture, Picture | None]:
    """Both pictures of a replan, in the same places; the second is None without an answer."""
    common = {"before": before, "after": after, "observations": observations, **options}
    first = picture(before, role="before", **common)
    return first, None if after is None else picture(after, role="after", **common)


def _settled(before: Plan, after: Plan) -> frozenset[str]:
    """Ids of nodes that are executed in both plans."""
    return frozenset(
        node.id for node in before.by_id.values() if node.done and _done(after, node.id)
    )


def _done(plan: Plan, node_id: str) -> bool:
    node = plan.by_id.get(node_id)
    return node is not None and node.done


def _change(before: Plan | None, after: Plan | None, calls: Iterable[ToolCall]) -> Change:
    results: dict[str, tuple[str, str]] = {}
    for call in calls:
        state = result_state(call.result).value
        if call.node and (call.node not in results or state in _BAD):
            results[call.node] = (state, call.result)
    if before is None or after is None or not after.nodes:
        return Change(results=results)
    found = before.difference(after)
    redesigned = {node: found.changed[node] for node in found.redesigned()}
    return Change(
        added=frozenset(found.added),
        removed=frozenset(found.removed),
        changed=redesigned,
        newly_done=frozenset(found.newly_done),
        reopened=frozenset(found.reopened),
        edges_added=frozenset(found.edges_added),
        edges_removed=frozenset(found.edges_removed),
        results=results,
    )


def _painted(
    plan: Plan,
    staged: Scene,
    placed: Layout,
    change: Change,
    role: Role,
    selected: str | None,
) -> Picture:
    drawn = (_node(plan, item, staged, placed, change, role) for item in staged.drawn.values())
    nodes = [node for node in drawn if node]
    shown = {node["key"]: node for node in nodes}
    counts = _counts(plan, change)
    edges = _edges(plan, staged, placed, change, role, shown)
    return {
        "role": role,
        "nodes": nodes,
        "edges": edges,
        "columns": [{"x": column.x, "w": column.w} for column in placed.columns],
        "bands": _bands(plan, placed, staged, change, role, shown),
        "width": placed.width,
        "height": placed.height,
        "counts": counts,
        "alt": _alt(plan, nodes, counts, role),
        "fault": plan.fault,
        "note": staged.note,
        "legend": _legend(edges),
        "raw": "" if plan.nodes else _raw(plan.given),
        "selected": selected,
    }


def _raw(given: Any) -> str:
    if given is None:
        return ""
    return (given if isinstance(given, str) else dumps(given))[:_RAW_LENGTH]


def _size(item: Drawn) -> tuple[float, float]:
    if item.id in (ROOT, RESPONSE) or item.kind == "missing":
        label = item.id[:NAME_LENGTH]
        return max(36.0, 16 + 6.2 * len(label)), _PILL_HEIGHT
    return (84.0 if item.kind == FOLD else _NODE_WIDTH), NODE_HEIGHT


def _node(
    plan: Plan, item: Drawn, staged: Scene, placed: Layout, change: Change, role: Role
) -> dict[str, Any]:
    node = staged.node(plan, item)
    state, badges = _state(plan, item, node, change, role)
    if state == "absent":
        return {}
    width, height = _size(item)
    layer = placed.layers[item.key]
    shown = node or item.node
    pill = item.id in (ROOT, RESPONSE) or item.kind == "missing"
    shape = "pill" if pill else "octagon" if state == "failed" else "box"
    title, sub = _labels(item, shown, state, change, role)
    return {
        "key": item.key,
        "id": item.id,
        "ids": list(item.ids),
        "label": "" if pill or item.kind == FOLD else cut(item.id, _ID_LENGTH),
        "title": title,
        "sub": sub,
        "state": state,
        "badges": badges,
        "x": placed.columns[layer].x,
        "y": placed.y[item.key],
        "w": width,
        "h": height,
        "shape": shape,
        "kind": item.kind,
        "layer": layer,
        "tip": _tip(item, shown, state, badges, change),
        "say": _say(item, shown, state, badges),
    }


def _state(
    plan: Plan, item: Drawn, node: Node | None, change: Change, role: Role
) -> tuple[str, list[str]]:
    """The look of a node and its badges, the weightiest first."""
    if item.kind == "missing":
        used = any(item.id in other.dependencies for other in plan.nodes)
        return ("missing", []) if used else ("absent", [])
    if item.kind == FOLD:
        return "done", ["done"]
    if node is None:
        return ("ghost", []) if role == "after" and item.id in change.removed else ("absent", [])
    badges = _badges(node, change, role)
    if role == "before" and node.id in change.removed and "failed" not in badges:
        return "removed", badges
    looks = {"failed": "failed", "added": "added", "changed": "changed", "new": "new"}
    state = next((looks[badge] for badge in badges if badge in looks), "")
    return state or ("done" if node.done else "pending"), badges


def _badges(node: Node, change: Change, role: Role) -> list[str]:
    found = ["failed"] if change.failed(node.id) else []
    if role == "before" and node.id in change.removed:
        found.append("removed")
    if role == "after":
        found += ["added"] if node.id in change.added else []
        found += ["changed"] if node.id in change.changed or node.id in change.reopened else []
        found += ["new"] if node.id in change.newly_done else []
    if node.done and node.id != ROOT and not found:
        found.append("done")
    return found


def cut(text: str, length: int) -> str:
    """A text on one line, at most ``length`` characters, with an ellipsis where cut."""
    line = " ".join(text[: 4 * length + 80].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _labels(
    item: Drawn, node: Node | None, state: str, change: Change, role: Role
) -> tuple[str, str]:
    if item.kind == FOLD:
        return f"{len(item.ids)} done", _span(item.ids)
    if node is None or item.id in (ROOT, RESPONSE):
        return cut(item.id, NAME_LENGTH), ""
    title = cut(node.name or node.description, NAME_LENGTH)
    if role == "after" and node.id in change.reopened:
        return title, "no longer done"
    if role == "after" and node.id in change.changed:
        return title, _changed_text(node, change.changed[node.id])
    ran_well = node.id in change.results and not change.failed(node.id)
    if role == "after" and node.id in change.newly_done and ran_well:
        return title, cut(change.results[node.id][1], _SUB_LENGTH)
    return title, cut(parameter_text(node.parameters), _SUB_LENGTH)


def _span(ids: Sequence[str]) -> str:
    return cut(f"{ids[0]} to {ids[-1]}" if len(ids) > 3 else ", ".join(ids), _SUB_LENGTH)


def _changed_text(node: Node, changes: Iterable[FieldChange]) -> str:
    """The second line of a changed node: the new value of what changed first."""
    by_field = {change.field: change for change in changes}
    if "parameters" in by_field:
        before = by_field["parameters"].before
        moved = {
            name: value
            for name, value in node.parameters.named.items()
            if name not in before.named or before.named[name] != value
        }
        gone = [name for name in before.named if name not in node.parameters.named]
        if moved:
            return cut(parameter_text(Parameters(moved)), _SUB_LENGTH)
        if gone:
            return cut(f"no {gone[0]}", _SUB_LENGTH)
        return cut(parameter_text(node.parameters) or "no parameters", _SUB_LENGTH)
    if "name" in by_field:
        return cut(f"was {by_field['name'].before}", _SUB_LENGTH)
    return cut("needs " + (", ".join(node.dependencies) or "nothing"), _SUB_LENGTH)


def parameter_text(values: Parameters) -> str:
    """Parameters on one line: ``city="Lleida", days=3``."""
    named = [f"{name}={_value(value)}" for name, value in list(values.named.items())[:8]]
    return ", ".join([*named, *map(_value, values.positional[:8])])


def _value(value: Any) -> str:
    """A value as JSON; text without quotes where nothing else could be meant."""
    if isinstance(value, str) and _BARE.fullmatch(value[:_TIP_LENGTH]):
        return value[:_TIP_LENGTH]
    return dumps(value[:_TIP_LENGTH] if isinstance(value, str) else value)[: 2 * _TIP_LENGTH]


_STATE_WORDS = {
    "failed": "failed",
    "added": "added",
    "changed": "changed",
    "removed": "removed",
    "new": "newly done",
    "done": "done",
    "ghost": "removed",
    "missing": "does not exist",
    "pending": "pending",
}


def _words(state: str, badges: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(_STATE_WORDS[word] for word in (badges or [state])))


def _tip(item: Drawn, node: Node | None, state: str, badges: Sequence[str], change: Change) -> str:
    if item.kind == FOLD:
        return f"{len(item.ids)} executed nodes: " + cut(", ".join(item.ids), _TIP_LENGTH)
    if node is None:
        return f"{cut(item.id, 60)}: a dependency that names no node"
    lines = [f"{cut(node.id, 60) or '(no id)'} {cut(node.name, 80)}".strip()]
    lines.append(_words(state, badges))
    lines += [
        f"{cut(str(name), 40)} = {cut(_value(value), _TIP_LENGTH)}"
        for name, value in list(node.parameters.named.items())[:12]
    ]
    lines += [cut(_value(value), _TIP_LENGTH) for value in node.parameters.positional[:6]]
    if node.dependencies:
        lines.append("needs " + cut(_needs(node), 160))
    if node.id in change.results:
        word, text = change.results[node.id]
        lines.append(f"{word}: {cut(text, _TIP_LENGTH)}")
    if node.description:
        lines.append(cut(node.description, _TIP_LENGTH))
    return "\n".join(lines)


def _say(item: Drawn, node: Node | None, state: str, badges: Sequence[str]) -> str:
    """A node in one sentence, for a screen reader."""
    if item.kind == FOLD or node is None:
        return f"{cut(item.id, 40)}: {_words(state, badges)}"
    name = f" {cut(node.name, 60)}" if node.name and node.name != node.id else ""
    needs = cut(_needs(node), 160)
    said = f"{cut(node.id, 40) or 'no id'}{name}: {_words(state, badges)}"
    return said + (f", needs {needs}" if needs else "")


_ORIGINS = {
    "given": "given in the log",
    "values": "inferred from values",
    "order": "inferred from order",
}
"""Where a dependency comes from, as the legend says it."""


def _origins(node: Node | None) -> Mapping[str, str]:
    """Origin of the dependencies of a node that was read from a log, by id; {} for any other."""
    given = node.given if node is not None else None
    found = given.get("edge_origin") if isinstance(given, Mapping) else None
    if not isinstance(found, Mapping):
        return {}
    return {
        dep: origin
        for dep, origin in found.items()
        if isinstance(origin, str) and origin in _ORIGINS
    }


def _needs(node: Node) -> str:
    """The dependencies of a node, those that were inferred with how."""
    words = {"values": " (quoted)", "order": " (order)"}
    origins = _origins(node)
    return ", ".join(dep + words.get(origins.get(dep, ""), "") for dep in node.dependencies)


def _legend(edges: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """What the lines mean, as origin and words, where some dependencies were inferred."""
    present = {edge["origin"] for edge in edges}
    if not present & {"values", "order"}:
        return []
    return [[origin, words] for origin, words in _ORIGINS.items() if origin in present]


def _edges(
    plan: Plan,
    staged: Scene,
    placed: Layout,
    change: Change,
    role: Role,
    shown: Mapping[str, Any],
) -> list[dict[str, Any]]:
    drawn = []
    present = staged.edges_of(plan)
    for dep, node in staged.edges:
        if (dep, node) not in present or dep not in shown or node not in shown:
            continue
        ids = (shown[dep]["id"], shown[node]["id"])
        mark = ""
        if (dep, node) in placed.backward:
            mark = "cycle"
        elif shown[dep]["kind"] == "missing":
            mark = "broken"
        elif role == "before" and ids in change.edges_removed:
            mark = "removed"
        elif role == "after" and ids in change.edges_added:
            mark = "added"
        via = placed.via.get((dep, node), ())
        points = [{"layer": at, "x": placed.columns[at].x, "y": y} for at, y in via]
        own = staged.node(plan, staged.drawn[node])
        origin = _origins(own).get(shown[dep]["id"], "")
        drawn.append({"from": dep, "to": node, "mark": mark, "origin": origin, "via": points})
    return drawn


def _bands(
    plan: Plan,
    placed: Layout,
    staged: Scene,
    change: Change,
    role: Role,
    shown: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Layers that ran in this round (before) or run next (after, single)."""
    if role == "before":
        called = [plan.by_id[node] for node in change.results if node in plan.by_id]
        fresh = [node.id for node in called if not node.done]
        ids: Collection[str] = fresh or [node.id for node in called] or plan.frontier()
        caption = "ran this round" if change.results else "runs next"
    else:
        ids, caption = plan.frontier(), "runs next"
    wanted = set(ids)
    layers = sorted({placed.layers[key] for key, n in shown.items() if n["id"] in wanted})
    bands: list[dict[str, Any]] = []
    for layer in layers:
        column = placed.columns[layer]
        x0, x1 = column.x - column.w / 2 - 6, column.x + column.w / 2 + 6
        if bands and bands[-1]["layers"][1] == layer - 1:
            bands[-1].update(x1=x1, layers=[bands[-1]["layers"][0], layer])
        else:
            bands.append({"x0": x0, "x1": x1, "caption": caption, "layers": [layer, layer]})
    return bands


def _counts(plan: Plan, change: Change) -> dict[str, int]:
    return {
        "nodes": len(plan.nodes),
        "added": len(change.added),
        "removed": len(change.removed),
        "changed": len({*change.changed, *change.reopened}),
        "newly_done": len(change.newly_done),
        "failed": sum(change.failed(node) for node in change.results),
    }


def _alt(
    plan: Plan, nodes: Sequence[Mapping[str, Any]], counts: Mapping[str, int], role: Role
) -> str:
    """The picture in words."""
    head = {"before": "Plan before", "after": "Plan after", "single": "Plan"}[role]
    if not nodes:
        return f"{head}: no nodes could be read."
    layers = len({node["layer"] for node in nodes})
    parts = [f"{head}: {counts['nodes']} nodes in {layers} layers"]
    for state in ("failed", "added", "removed", "changed", "newly_done"):
        if counts[state]:
            parts.append(f"{counts[state]} {state.replace('_', ' ')}")
    following = cut(", ".join(plan.frontier()), 80)
    parts.append(f"runs next: {following or 'nothing'}")
    return "; ".join(parts) + "." + (f" Fault: {cut(plan.fault, 160)}." if plan.fault else "")
