"""What the Annotate page shows of one item, as plain JSON data.

Two parts travel apart: the *content* of an item (query, plans, thought, observations, tools),
which never changes, and its *standing* (scores, notes, state), which does. The blind rule is
kept here: what an annotator must not see before the reveal is not in the data at all.

Source: paper section 2.1 (instance, thought, plans), 2.1.4 (sub-dimensions).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotations.claims import State, WorkItem, scorer_of
from annotations.run_figures import answer_is_right
from annotations.score_log import LogEntry
from pararecover_core.draw import pair
from pararecover_core.findings import result_state
from pararecover_core.literals import whole_number
from pararecover_core.mentions import segments
from pararecover_core.plan import RESPONSE, ROOT, Node, Parameters, Plan
from pararecover_core.records import Instance, Replan, Tool, ToolCall, Trajectory, as_text
from pararecover_core.rubric import Rubric
from pararecover_core.scores import replan_efficacy, total_rounds

__all__ = [
    "content",
    "efficacy_data",
    "full_text",
    "proposals",
    "rubric_data",
    "standing",
    "undo_stack",
]

SHORT, LONG = 600, 12_000
"""Characters that a cell and a body of text show before "show all"."""
MAX_ROWS = 200
"""Observations and tools that are listed."""
MANY_NODES = 400
"""Plans with more nodes than this travel with shorter texts."""

Data = dict[str, Any]
Text = str | Data


def content(instance: Instance, replan: Replan | None) -> Data:
    """Everything of an item that a blind annotator may see and that never changes.

    Args:
        instance: The instance.
        replan: The answer to score, None where there is none yet.

    Returns:
        JSON data: ``query``, ``level``, ``round``, ``before`` and ``after`` (pictures of
        ``draw.pair``), ``nodes``, ``thought`` (segments), ``observations``, ``tools``, ``s5``,
        ``proposals``. A text longer than it is shown is an object with ``text``,
        ``length`` and ``field``; ``full_text`` gives the rest.
    """
    after = replan.plan if replan else None
    before_picture, after_picture = pair(instance.plan, after, instance.observations)
    return {
        "key": replan.key if replan else instance.key,
        "instance": instance.key,
        "id": instance.id,
        "level": instance.level,
        "round": instance.plan.executed_rounds() + 1,
        "query": _cut(instance.query, LONG, "query"),
        "answer": replan is not None,
        "before": before_picture,
        "after": after_picture,
        "raw": _raw(replan),
        "nodes": _nodes(instance.plan, after),
        "thought": _thought(instance, replan),
        "observations": _observations(instance),
        "tools": _tools(instance.tools),
        "s5": _s5(after),
        "proposals": proposals(replan) if replan else {},
    }


def full_text(instance: Instance, replan: Replan | None, field: str) -> str:
    """The whole of a text that ``content`` cut.

    Args:
        instance: The instance.
        replan: Its answer, None where there is none.
        field: The name that stood beside the cut text.

    Returns:
        The text; "" where the field names nothing.
    """
    kind, _, rest = field.partition(":")
    at = whole_number(rest)
    if kind in ("result", "arguments") and at is not None:
        calls = instance.observations
        call = calls[at] if at < len(calls) else ToolCall("")
        return call.result if kind == "result" else as_text(call.arguments)
    if kind in ("before", "after"):
        plan = instance.plan if kind == "before" else replan.plan if replan else Plan()
        return _node_text(plan, rest)
    if kind == "tool" and at is not None and at < len(instance.tools):
        return as_text(instance.tools[at].given)
    texts = {"query": instance.query}
    if replan:
        texts |= {"thought": replan.thought, "raw": replan.raw or as_text(replan.plan.given)}
    return texts.get(field, "")


def proposals(replan: Replan) -> Data:
    """Scores that the rubric's edge cases give, for the annotator to confirm.

    Returns:
        Sub-dimension to ``[score, reason]``; {} for an answer with a thought and a plan that
        parses.

    Source: edge cases of the rubric.
    """
    found: Data = {}
    if not replan.plan.s5:
        reason = "the new plan does not parse"
        found |= {d: [0.0, reason] for d in ("S2", "S3", "S4", "E1", "E2", "E3", "E4")}
    if not replan.thought.strip():
        reason = "the answer has no thought"
        found |= {d: [0.0, reason] for d in ("S1", "D1", "D2", "D3", "D4", "D5")}
    return found


def rubric_data(rubric: Rubric) -> Data:
    """The rubric as the page shows it: groups, sub-dimensions, questions, anchors."""
    return {
        "version": rubric.version,
        "groups": [{"id": g.id, "name": g.name, "question": g.question} for g in rubric.groups],
        "dimensions": [
            {
                "id": d.id,
                "group": d.group,
                "name": d.name,
                "short": d.short,
                "question": d.question,
                "anchors": [d.anchors.one, d.anchors.half, d.anchors.zero],
                "judged": d.judged,
            }
            for d in rubric.dimensions
        ],
    }


def undo_stack(log: Iterable[LogEntry]) -> list[list[Any]]:
    """What undo would take back, oldest first.

    Args:
        log: One annotator's entries on one item, oldest first.

    Returns:
        ``[sub-dimension, value, note]`` as they were before each act that stands.
    """
    current: dict[str, tuple[float | None, str]] = {}
    stack: list[list[Any]] = []
    for entry in log:
        if entry.action == "undo":
            own = [at for at, one in enumerate(stack) if one[0] == entry.dimension]
            if own:
                del stack[own[-1]]
        else:
            stack.append([entry.dimension, *current.get(entry.dimension, (None, ""))])
        current[entry.dimension] = (entry.value, entry.note)
    return stack


def _cut(text: str, limit: int, field: str) -> Text:
    if len(text) <= limit:
        return text
    return {"text": text[:limit], "length": len(text), "field": field}


def _raw(replan: Replan | None) -> Text:
    """The answer's own text, where its plan cannot be drawn as a sound plan."""
    if replan is None or replan.plan.s5:
        return ""
    return _cut(replan.raw or as_text(replan.plan.given), LONG, "raw")


def _s5(plan: Plan | None) -> Data | None:
    if plan is None:
        return None
    return {"value": plan.s5, "reason": plan.fault or "ids are unique, no cycle"}


def efficacy_data(instance: Instance, replan: Replan, trajectory: Trajectory) -> Data:
    """E5 of a replan from a run of the same agent, with its reason.

    Returns:
        ``value`` in [0, 1], None where the optimal rounds are unknown; ``reason``.

    Source: paper section 2.1.4, eq. (4).
    """
    after, optimal = _rounds_after(instance, replan, trajectory), instance.round_gt
    correct = answer_is_right(trajectory)
    success = trajectory.success if correct is None else correct
    value = replan_efficacy(replan.plan, success=success, rounds_after=after, optimal=optimal)
    if math.isnan(value):
        return {"value": None, "reason": "optimal rounds unknown"}
    if not success or not replan.plan.s5:
        failed = "its answer is not right" if trajectory.success else "the run failed"
        return {"value": value, "reason": failed if replan.plan.s5 else "no sound plan"}
    return {"value": value, "reason": f"min(1, {optimal} / {total_rounds(replan.plan, after)})"}


def _rounds_after(instance: Instance, replan: Replan, trajectory: Trajectory) -> int:
    """Rounds that were run from the replan on: the round with its plan and those behind it."""
    rounds = trajectory.rounds
    for at, item in enumerate(rounds):
        if item.plan.nodes and item.plan.nodes == replan.plan.nodes:
            return len(rounds) - at
    starts = bool(rounds) and rounds[0].plan.nodes == instance.plan.nodes
    return len(rounds) - 1 if starts else len(rounds)


def _nodes(before: Plan, after: Plan | None) -> Data:
    plans = {"before": before, **({"after": after} if after else {})}
    limit = SHORT if max(len(p.nodes) for p in plans.values()) <= MANY_NODES else 80
    return {
        side: [_node(node, side, limit) for node in plan.by_id.values()]
        for side, plan in plans.items()
    }


def _node(node: Node, side: str, limit: int) -> Data:
    field = f"{side}:{node.id}"
    data: Data = {
        "id": node.id,
        "name": node.name,
        "parameters": _parameters(node.parameters, limit, field),
        "needs": list(node.dependencies),
        "done": node.done,
    }
    if node.description:
        data["description"] = _cut(node.description, limit, f"{field}:")
    return data


def _parameters(values: Parameters, limit: int, field: str) -> list[list[Text]]:
    named = [
        [name, _cut(_literal(value), limit, f"{field}:{name}")]
        for name, value in values.named.items()
    ]
    loose = [
        ["", _cut(_literal(value), limit, f"{field}:#{at}")]
        for at, value in enumerate(values.positional)
    ]
    return [*named, *loose][:MAX_ROWS]


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else "null" if value is None else as_text(value)


def _node_text(plan: Plan, field: str) -> str:
    """``ID:`` is a node's description, ``ID:NAME`` and ``ID:#N`` one of its parameters."""
    node_id, _, name = field.rpartition(":")
    if (node := plan.by_id.get(node_id)) is None:
        return ""
    if not name:
        return node.description
    if name in node.parameters.named:
        return _literal(node.parameters.named[name])
    loose = node.parameters.positional
    at = whole_number(name[1:]) if name[:1] == "#" else None
    return _literal(loose[at]) if at is not None and at < len(loose) else ""


def _thought(instance: Instance, replan: Replan | None) -> Data:
    if replan is None:
        return {"segments": [], "length": 0}
    text = replan.thought[:LONG]
    plans = (instance.plan, replan.plan)
    ids = {node for plan in plans for node in plan.by_id}
    tools = {tool.name for tool in instance.tools} | {
        node.name for plan in plans for node in plan.nodes if node.calls_tool
    }
    found = segments(text, nodes=ids, tools=tools - {ROOT, RESPONSE})
    return {
        "segments": [list(s) if s.kind else s.text for s in found],
        "length": len(replan.thought),
        "field": "thought",
    }


def _observations(instance: Instance) -> Data:
    calls = instance.observations
    rows = [_call(at, call) for at, call in enumerate(calls[:MAX_ROWS])]
    return {"rows": rows, "total": len(calls)}


def _call(at: int, call: ToolCall) -> Data:
    return {
        "node": call.node,
        "tool": call.name,
        "arguments": _cut(as_text(call.arguments), SHORT, f"arguments:{at}"),
        "result": _cut(call.result, SHORT, f"result:{at}"),
        "state": str(result_state(call.result)),
    }


def _tools(tools: Sequence[Tool]) -> Data:
    return {"rows": [_tool(at, t) for at, t in enumerate(tools[:MAX_ROWS])], "total": len(tools)}


def _tool(at: int, tool: Tool) -> Data:
    return {
        "name": tool.name,
        "description": _cut(tool.description, SHORT, f"tool:{at}"),
        "parameters": [
            {
                "name": str(name),
                "type": _type(schema),
                "required": name in tool.required,
                "description": _cut(_described(schema), 300, f"tool:{at}"),
            }
            for name, schema in list(tool.parameters.items())[:MAX_ROWS]
        ],
    }


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return str(schema)[:60] if isinstance(schema, str) else ""
    kind = schema.get("type", "")
    text = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "")
    items = schema.get("items")
    if text == "array" and isinstance(items, Mapping) and items.get("type"):
        text = f"array of {items['type']}"
    return text[:60]


def _described(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    parts = [as_text(schema.get("description"))]
    if isinstance(schema.get("enum"), list):
        parts.append("one of " + ", ".join(as_text(value) for value in schema["enum"]))
    if schema.get("default") is not None:
        parts.append(f"default {as_text(schema['default'])}")
    return "; ".join(part for part in parts if part)


def standing(
    work: WorkItem,
    annotator: str,
    log: Iterable[LogEntry],
    *,
    replan: Replan,
    instance: Instance,
    e5: Data | None = None,
    gold: Mapping[str, tuple[float | None, str]] | None = None,
) -> Data:
    """Where an item stands for an annotator; blind to what ``work.shown`` does not open.

    Args:
        work: The item as the queue has it.
        annotator: Who looks.
        log: The whole score log of the replan, oldest first.
        replan: The replan, for the agent's name.
        instance: Its instance, for tags.
        e5: E5 with its reason, where it may be shown.
        gold: Adjudicated values and reasons.

    Returns:
        JSON data: ``scores`` (sub-dimension to value, note, revision, at), ``undo``, ``note``,
        ``state``, ``can_score``, ``shown``, ``revealed`` (None while anything is hidden).
    """
    entries = list(log)
    mine = [entry for entry in entries if entry.scorer == scorer_of(annotator)]
    submitted = work.state is State.SUBMITTED
    return {
        "batch": work.batch,
        "batch_name": work.batch_name,
        "position": work.position,
        "total": work.total,
        "level": instance.level,
        "round": instance.plan.executed_rounds() + 1,
        "dimensions": list(work.dimensions),
        "slots": work.slots,
        "state": str(work.state),
        "can_score": work.can_score or (submitted and work.slot > 0),
        "why": "" if work.slot else "Others score this item; to look at only",
        "note": work.note,
        "submitted_at": work.submitted_at,
        "revealed_at": work.revealed_at,
        "shown": {"blind": work.shown.blind, "can_reveal": work.shown.can_reveal},
        "scores": {
            entry.dimension: {
                "value": entry.value,
                "note": entry.note,
                "revision": entry.revision,
                "at": entry.at,
            }
            for entry in mine
        },
        "undo": undo_stack(mine),
        "e5": e5,
        "revealed": _revealed(work, annotator, entries, replan, instance, gold or {}),
    }


def _revealed(
    work: WorkItem,
    annotator: str,
    entries: Iterable[LogEntry],
    replan: Replan,
    instance: Instance,
    gold: Mapping[str, tuple[float | None, str]],
) -> Data | None:
    shown = work.shown
    if not (shown.agent or shown.judge or shown.tags or shown.others):
        return None
    scores: dict[str, dict[str, list[Any]]] = {}
    for entry in entries:
        kind, _, _ = entry.scorer.partition(":")
        allowed = {"judge": shown.judge, "human": shown.others}.get(kind, False)
        if allowed and entry.scorer != scorer_of(annotator):
            scores.setdefault(entry.scorer, {})[entry.dimension] = [entry.value, entry.note]
    if shown.others and gold:
        scores["gold:adjudicated"] = {d: [value, note] for d, (value, note) in gold.items()}
    order = sorted(scores, key=lambda scorer: ("jhg".find(scorer[0]), scorer))
    return {
        "agent": replan.agent if shown.agent else "",
        "tags": [tag for tag in dict.fromkeys(instance.tags) if tag] if shown.tags else [],
        "reason": instance.error_reason if shown.tags else "",
        "scorers": [
            {"name": _scorer_name(scorer), "scores": scores[scorer]}
            for scorer in order
            if any(value is not None for value, _ in scores[scorer].values())
        ],
    }


def _scorer_name(scorer: str) -> str:
    """``judge:gpt@v2`` is shown as "gpt", ``human:Ana`` as "Ana"."""
    name = scorer.partition(":")[2]
    return name.partition("@")[0] if scorer.startswith("judge:") else name
