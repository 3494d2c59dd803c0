"""Records: tools, observations, rounds, instances, replans, trajectories and scores.

All are immutable and go to JSON and back without loss. A plan travels as it was given and is
understood again when it is read.

Source: paper section 2 (instance, round, thought), section 2.1.4 (scores).
"""

import hashlib
from collections.abc import Mapping, Sequence, Set
from enum import StrEnum
from typing import Any

import msgspec

from pararecover_core.literals import dumps, loads
from pararecover_core.plan import Node, Parameters, Plan, parameters, text_of

KEY_LENGTH = 12
"""Hex digits of a content key: 48 bits, so that a million records collide with p < 0.002."""

_MANY = 200
"""Nodes of one name up to which a call is compared with each of them."""


class Source(StrEnum):
    """Where an instance comes from."""

    ROLLOUT = "rollout"
    AUGMENTED = "augmented"
    SANDBOX = "sandbox"
    UNKNOWN = "unknown"


class Tool(msgspec.Struct, frozen=True):
    """A listed tool.

    Attributes:
        parameters: Parameter name to its schema ({"type": ..., "description": ..., ...}).
        required: Names of required parameters.
        given: The tool as the file gave it.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    given: Any = None


class ToolCall(msgspec.Struct, frozen=True):
    """A call that was made and what came back: an observation.

    Attributes:
        arguments: As given: usually an object, seen also as a list or text.
        result: What came back, as text.
        node: Id of the plan node that made the call, "" where none could be matched.
    """

    name: str
    arguments: Any = None
    result: str = ""
    node: str = ""


class Round(msgspec.Struct, frozen=True):
    """One round: the plan at its start, what running its frontier gave, the agent's thought."""

    plan: Plan
    observations: tuple[ToolCall, ...] = ()
    thought: str = ""


class Instance(msgspec.Struct, frozen=True):
    """One benchmark item: a plan with a fault, and what its last round gave.

    Attributes:
        key: Stable content key (``instance_key``).
        id: The id that the file gave, "" where none.
        level: 1 or 2; 0 where the file does not say.
        tags: Error labels, one a round where there are rounds, in the paper's spelling or as
            given where they are none of the 14 types.
        round_gt: Optimal number of rounds, None where not given.
        funcall_times_gt: Optimal number of calls, None where not given.
        extra: Whatever else the file had.
    """

    key: str
    id: str
    query_id: str
    level: int
    source: Source
    query: str
    tools: tuple[Tool, ...]
    plan: Plan
    observations: tuple[ToolCall, ...]
    tags: tuple[str, ...] = ()
    error_reason: str = ""
    round_gt: int | None = None
    funcall_times_gt: int | None = None
    extra: dict[str, Any] = {}


class Replan(msgspec.Struct, frozen=True):
    """One agent's answer to one instance: what is scored.

    Attributes:
        key: Stable content key (``replan_key``).
        instance: Key of the instance.
        agent: Name of the agent or model.
        raw: The agent's whole text, "" where only its parts are known.
        usage: Token counts as the endpoint reported them, {} where unknown.
    """

    key: str
    instance: str
    agent: str
    thought: str
    plan: Plan
    raw: str = ""
    usage: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class Trajectory(msgspec.Struct, frozen=True):
    """A run from an instance to its end.

    Attributes:
        key: Stable content key.
        instance: Key of the instance it starts from.
        rounds: N rounds, N >= 1, in order.
        success: Whether a completed response was reached within the round limit.
        outcome: How it ended, in a word: "response", "round limit", "unparsable", ...
    """

    key: str
    instance: str
    agent: str
    rounds: tuple[Round, ...]
    success: bool
    outcome: str = ""
    extra: dict[str, Any] = {}


class Score(msgspec.Struct, frozen=True):
    """One score of one sub-dimension of one replan by one scorer.

    Attributes:
        replan: Key of the replan.
        scorer: ``human:NAME``, ``judge:MODEL@PROMPT`` or ``program``.
        value: 1, 0.5 or 0 (E5: any number in [0, 1]); None for a withdrawn score.
        note: The annotator's note or the judge's reason.
        at: Time in ISO 8601, UTC, "" where unknown.
        rubric: Rubric version the scorer read, "" where unknown.
    """

    replan: str
    dimension: str
    scorer: str
    value: float | None
    note: str = ""
    at: str = ""
    rubric: str = ""
    extra: dict[str, Any] = {}


def content_key(*parts: str) -> str:
    """A key of ``KEY_LENGTH`` hex digits that depends on the parts alone."""
    pieces: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        pieces += len(data).to_bytes(8, "big"), data
    return hashlib.blake2b(b"".join(pieces), digest_size=KEY_LENGTH // 2).hexdigest()


def as_text(value: Any) -> str:
    """What was given, as one text: text as it is, None as "", else compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def instance_key(
    *, id: str, query_id: str, level: int, source: str, query: str, plan: Any, calls: Any
) -> str:
    """The key of an instance: the same content has the same key in every file."""
    return content_key(
        id, query_id, str(level), source, query.strip(), as_text(plan), as_text(calls)
    )


def replan_key(*, instance: str, agent: str, thought: str, plan: Any, raw: str = "") -> str:
    """The key of a replan: the same answer of the same agent has the same key."""
    return content_key(instance, agent, thought, as_text(plan), raw)


def parse_tools(given: Any) -> tuple[Tool, ...]:
    """Understand a tool list in any seen form.

    Args:
        given: A list of tools, or its JSON or Python-literal text. A tool may wrap its schema in
            ``function`` or its parameters in ``{"type": "object", "properties": ...}``.

    Returns:
        N tools, names may repeat.

    Raises:
        ValueError: The text is neither JSON nor a Python literal, or holds no list of objects.
    """
    value = loads(given) if isinstance(given, str) and given.strip() else given
    if value is None or value == "":
        return ()
    if isinstance(value, dict):
        value = value.get("tools", [value])
    if not isinstance(value, list | tuple):
        raise ValueError("the tool list is not a list")
    return tuple([_tool(item) for item in value])


def _tool(item: Any) -> Tool:
    if isinstance(item, str):
        return Tool(item.strip(), given=item)
    if not isinstance(item, dict):
        raise ValueError(f"a tool is {type(item).__name__}, not an object")
    inner = item.get("function")
    body = inner if isinstance(inner, dict) else item
    schema = body.get("parameters") or body.get("input_schema") or {}
    required = body.get("required")
    if not isinstance(schema, dict):
        schema = {}
    elif schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        required = schema.get("required") if required is None else required
        schema = schema["properties"]
    return Tool(
        text_of(body.get("name")),
        as_text(body.get("description")),
        schema,
        tuple(map(text_of, required)) if isinstance(required, list | tuple) else (),
        item,
    )


def parse_calls(given: Any) -> tuple[ToolCall, ...]:
    """Understand observations in any seen form.

    Args:
        given: A list of ``{name, arguments, results}``, or its JSON or Python-literal text.

    Returns:
        N calls, not yet matched to nodes.

    Raises:
        ValueError: The text is neither JSON nor a Python literal, or holds no list of objects.
    """
    value = loads(given) if isinstance(given, str) and given.strip() else given
    if value is None or value == "":
        return ()
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list | tuple):
        raise ValueError("the observations are not a list")
    return tuple([_call(item) for item in value])


def _call(item: Any) -> ToolCall:
    if not isinstance(item, dict):
        raise ValueError(f"an observation is {type(item).__name__}, not an object")
    return ToolCall(
        as_text(item.get("name")).strip(),
        item.get("arguments", item.get("parameters")),
        as_text(item.get("results", item.get("result"))),
        text_of(item.get("node")),
    )


def match_calls(plan: Plan, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Tie observations to the plan's nodes by name and arguments.

    A call goes to the node of that name whose parameters are most alike; pending nodes of the
    frontier come first, then executed ones, and no node is taken twice while another fits.

    Args:
        plan: The plan whose frontier was run.
        calls: N observations; a ``node`` that is already set and exists is kept.

    Returns:
        The same N observations in order, with ``node`` set where one was found.
    """
    if not calls:
        return ()
    by_name: dict[str, list[Node]] = {}
    for node in plan.by_id.values():
        if node.name:
            by_name.setdefault(node.name, []).append(node)
    frontier, taken = set(plan.frontier()), set[str]()
    matched = []
    for call in calls:
        if not (call.node and call.node in plan.by_id):
            candidates = by_name.get(call.name, ())
            node_id = _best(candidates, call, frontier, taken)
            call = ToolCall(call.name, call.arguments, call.result, node_id)
        taken.add(call.node)
        matched.append(call)
    return tuple(matched)


def _best(candidates: Sequence[Node], call: ToolCall, frontier: Set[str], taken: Set[str]) -> str:
    """The node of a call among those of its name, "" where there is none."""
    if len(candidates) < 2:
        return candidates[0].id if candidates else ""
    if len(candidates) > _MANY:  # alike by the hundred: their order says as much
        free = (node.id for node in candidates if node.id not in taken)
        return next((node_id for node_id in free if node_id in frontier), candidates[0].id)
    wanted = parameters(call.arguments)

    def rank(node: Node) -> tuple[bool, float, bool]:
        likeness = _likeness(node.parameters, wanted) + (2.0 if node.id in frontier else 0.0)
        return node.id not in taken, likeness, not node.done

    return max(candidates, key=rank).id


def _likeness(node: Parameters, call: Parameters) -> float:
    """Share of values that agree, in [0, 1]; 1 where both are empty."""
    names = set(node.named) | set(call.named)
    if not names:
        return 1.0 if node.positional == call.positional else 0.0
    missing = object()
    same: int = sum(
        node.named.get(name, missing) == call.named.get(name, missing) for name in names
    )
    return same / len(names)


Record = Instance | Replan | Trajectory | Score
KINDS: dict[str, type[Any]] = {
    "instance": Instance,
    "replan": Replan,
    "trajectory": Trajectory,
    "score": Score,
}
"""What the field ``kind`` of a written record may be."""

_FIELDS = {cls: msgspec.structs.fields(cls) for cls in KINDS.values()}


def to_data(record: Record) -> dict[str, Any]:
    """A record as plain JSON data with its ``kind``; plans and tools as they were given.

    Empty fields are left out, a plan that was given as an empty text is not.
    """
    kind = next(name for name, cls in KINDS.items() if isinstance(record, cls))
    data = {"kind": kind, **{f: _plain(getattr(record, f)) for f in record.__struct_fields__}}
    return {
        name: value
        for name, value in data.items()
        if value is not None and (name == "plan" or value not in ("", {}, []))
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Plan):
        return value.given
    if isinstance(value, Tool):
        return _plain_tool(value) if value.given is None else value.given
    if isinstance(value, Round | ToolCall):
        return {f: _plain(getattr(value, f)) for f in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _plain_tool(tool: Tool) -> dict[str, Any]:
    """A tool that was made and not read, in the form of the published files."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "required": list(tool.required),
    }


def from_data(data: Mapping[str, Any]) -> Record:
    """The record that ``to_data`` wrote.

    Raises:
        ValueError: The data is no record; the message says which field.
    """
    values = dict(data)
    kind = values.pop("kind", None)
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    fields = cls.__struct_fields__
    unknown = set(values).difference(fields)
    if unknown:
        raise ValueError(f"unknown fields {', '.join(sorted(map(str, unknown)))}")
    if "plan" in fields:
        values["plan"] = Plan.parse(values.get("plan"))
    if cls is Instance:
        values["tools"] = parse_tools(values.get("tools"))
        values["observations"] = _calls_from(values.get("observations"))
    if cls is Trajectory:
        values["rounds"] = _rounds_from(values.get("rounds"))
    for name, default in _LEFT_OUT.items():
        if name in fields:
            values.setdefault(name, default)
    record: Record = cls(**_checked(cls, values))
    return record


_LEFT_OUT: dict[str, Any] = {
    "thought": "", "id": "", "query_id": "", "query": "", "level": 0, "agent": "", "value": None,
    "source": Source.UNKNOWN,
}  # fmt: skip
_BUILT = ("plan", "tools", "observations", "rounds")


def _checked(cls: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values in their fields' types.

    Raises:
        ValueError: A value has another type, or a field is missing.
    """
    checked = {}
    for field in _FIELDS[cls]:
        name = field.name
        if name not in values:
            if field.required:
                raise ValueError(f"{name}: missing")
            continue
        if name in _BUILT:
            checked[name] = values[name]
            continue
        try:
            checked[name] = msgspec.convert(values[name], field.type, strict=True)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}: {error}") from error
    return checked


def _calls_from(value: Any) -> tuple[ToolCall, ...]:
    """Observations as ``to_data`` wrote them: matched already, results as they are."""
    return tuple(
        ToolCall(
            as_text(item.get("name")),
            item.get("arguments"),
            as_text(item.get("result")),
            as_text(item.get("node")),
        )
        for item in _objects(value, "observations")
    )


def _rounds_from(value: Any) -> tuple[Round, ...]:
    return tuple(
        Round(
            Plan.parse(item.get("plan")),
            _calls_from(item.get("observations")),
            as_text(item.get("thought")),
        )
        for item in _objects(value, "rounds")
    )


def _objects(value: Any, field: str) -> list[Mapping[str, Any]]:
    """A list of objects.

    Raises:
        ValueError: It is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(v, Mapping) for v in value):
        raise ValueError(f"{field}: not a list of objects")
    return list(value)
