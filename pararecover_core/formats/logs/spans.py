"""Spans of OpenTelemetry: GenAI conventions and OpenInference (Phoenix), from any exporter.

OTLP JSON, one span a record, and rows of a dataframe (``attributes.`` in front of every name) are
told apart by their own fields; attributes may be flat, nested, or JSON in a text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.messages import Message, parse
from pararecover_core.formats.logs.run import Run, obj, objects, result_text, seq, txt, unpacked
from pararecover_core.formats.logs.trace import (
    Event,
    as_assistant,
    by_trace,
    given_by,
    messages_in,
    run_of,
    tool_arguments,
)

NAME = "spans"
_MODEL = frozenset({"chat", "text_completion", "generate_content", "LLM"})
_TOOL = frozenset({"execute_tool", "TOOL"})
_DEEPEST = 30


def is_otlp(value: Any) -> bool:
    """OTLP JSON."""
    return isinstance(value, Mapping) and isinstance(value.get("resourceSpans"), list)


def is_span(value: Any) -> bool:
    """One span with attributes that we know."""
    if not isinstance(value, Mapping):
        return False
    if "attributes" in value:
        has_trace = any(name in value for name in ("context", "traceId", "trace_id"))
        return has_trace and isinstance(value["attributes"], list | Mapping | str)
    return any(name.startswith("attributes.") for name in value if isinstance(name, str))


def otlp(value: Mapping[str, Any]) -> Iterator[Run]:
    """The runs of an OTLP export, one a trace."""
    yield from runs(list(_spans(value)))


def _spans(value: Mapping[str, Any]) -> Iterator[Any]:
    for resource in objects(value["resourceSpans"]):
        for scope in objects(resource.get("scopeSpans")):
            yield from objects(scope.get("spans"))


def runs(values: list[Any]) -> Iterator[Run]:
    """The runs of spans, one a trace; OTLP exports among them are opened."""
    spans: list[Any] = []
    for value in objects(values):
        spans += _spans(value) if is_otlp(value) else [value]
    found = by_trace((_trace(span), event) for span in spans for event in _event(span))
    for trace, events in found.items():
        yield run_of(events, NAME, id=trace)


def _trace(span: Mapping[str, Any]) -> str:
    context = obj(span.get("context"))
    names = ("traceId", "trace_id", "context.trace_id")
    return txt(context.get("trace_id")) or next((txt(span[n]) for n in names if n in span), "")


def _event(span: Mapping[str, Any]) -> Iterator[Event]:
    """The event of a span, none where it is neither a model's nor a tool's."""
    flat = _attributes(span)
    deep = _nested(flat)
    kind = flat.get("openinference.span.kind") or span.get("span_kind")
    kind = txt(flat.get("gen_ai.operation.name")) or txt(kind)
    names = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
    start = next((txt(span[name]) for name in names if txt(span.get(name))), "")
    if kind in _TOOL:
        yield _tool(span, flat, start)
    elif kind in _MODEL or "gen_ai.output.messages" in flat:
        before, after = _genai(span, flat)
        llm = obj(deep.get("llm"))
        before = before or _inference(llm.get("input_messages"))
        after = after or as_assistant(_inference(llm.get("output_messages")))
        model = flat.get("gen_ai.response.model") or flat.get("gen_ai.request.model")
        yield Event(
            False,
            start,
            before or messages_in(flat.get("input.value")),
            after or given_by(flat.get("output.value")),
            agent=txt(flat.get("gen_ai.agent.name") or model or flat.get("llm.model_name")),
            tools=seq(flat.get("gen_ai.tool.definitions")) or _listed(llm.get("tools")),
        )


def _listed(tools: Any) -> list[Any]:
    """The tools that an OpenInference span lists, each a JSON text of its own."""
    given = (obj(item.get("tool") or item).get("json_schema") for item in objects(tools))
    return [tool for tool in map(unpacked, given) if isinstance(tool, Mapping)]


def _tool(span: Mapping[str, Any], flat: Mapping[str, Any], start: str) -> Event:
    given = flat.get("gen_ai.tool.call.arguments", flat.get("input.value"))
    given = flat.get("tool.parameters") if given is None else given
    result = flat.get("gen_ai.tool.call.result", flat.get("output.value"))
    failure = _failure(span)
    if result is None and failure is not None:
        result = failure
    id_ = flat.get("gen_ai.tool.call.id") or flat.get("tool_call.id") or flat.get("tool.id")
    return Event(
        True,
        start,
        name=txt(flat.get("gen_ai.tool.name") or flat.get("tool.name") or span.get("name")),
        id=txt(id_),
        arguments=tool_arguments(given),
        result=None if result is None else result_text(unpacked_text(result)),
        failed=failure is not None,
    )


def unpacked_text(value: Any) -> Any:
    """Content blocks that stand as JSON in a text, else the value as it is."""
    inner = unpacked(value)
    return inner if isinstance(inner, list) and result_text(inner) != value else value


def _failure(span: Mapping[str, Any]) -> str | None:
    """What a span's status says went wrong; None where nothing did."""
    status = span.get("status")
    code = obj(status).get("code", obj(status).get("status_code")) or span.get("status_code")
    if txt(code).upper() not in ("ERROR", "STATUS_CODE_ERROR", "2", "STATUSCODE.ERROR"):
        return None
    message = obj(status).get("message", obj(status).get("description"))
    return txt(message or span.get("status_message")) or "Error"


def _genai(span: Mapping[str, Any], flat: Mapping[str, Any]) -> tuple[list[Message], list[Message]]:
    """Messages in the GenAI attributes, else in events of older emitters."""
    before = [parse(item) for item in objects(flat.get("gen_ai.input.messages"))]
    after = [parse(item) for item in objects(flat.get("gen_ai.output.messages"))]
    if before or after:
        return before, as_assistant(after)
    events = [*objects(span.get("events")), *objects(flat.get("events"))]
    for event in events:
        name = txt(event.get("name") or event.get("event.name"))
        body = {**event, **_pairs(event.get("attributes")), **obj(event.get("body"))}
        if name == "gen_ai.choice":
            message = obj(body.get("message")) or body
            after.append(parse({**message, "role": "assistant"}))
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            before.append(parse({**body, "role": name.split(".")[1]}))
    return before, after


def _inference(value: Any) -> list[Message]:
    """Messages of OpenInference: ``message.tool_calls[].tool_call`` and the like."""
    found = []
    for item in objects(value):
        message = dict(obj(item.get("message")) or item)
        calls = [obj(call.get("tool_call")) or call for call in objects(message.get("tool_calls"))]
        message["tool_calls"] = calls
        contents = [obj(c.get("message_content")) or c for c in objects(message.get("contents"))]
        message["content"] = message.get("content") or contents or ""
        if message.get("tool_call_id"):
            message["role"] = "tool"
        found.append(parse(message))
    return found


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span by their dotted names."""
    if "attributes" in span:
        return _flattened(_pairs(span["attributes"]))
    prefix = "attributes."
    rows = {k[len(prefix) :]: v for k, v in span.items() if k.startswith(prefix) and v is not None}
    return _flattened(rows)


def _flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested objects as dotted names too; lists and texts stay what they are."""
    found: dict[str, Any] = {}
    waiting = [("", values, 0)]
    while waiting:
        prefix, inner, depth = waiting.pop()
        for name, value in inner.items():
            found[f"{prefix}{name}"] = value
            if isinstance(value, Mapping) and depth < _DEEPEST:
                waiting.append((f"{prefix}{name}.", value, depth + 1))
    return found


def _pairs(value: Any) -> dict[str, Any]:
    """Attributes as an object, from OTLP's list of keys and typed values too."""
    value = unpacked(value)
    if isinstance(value, Mapping):
        return dict(value)
    return {txt(item.get("key")): _typed(item.get("value")) for item in objects(value)}


def _typed(value: Any, depth: int = 0) -> Any:
    """A value of OTLP without the name of its type."""
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return value
    if "arrayValue" in value:
        inner = objects(obj(value["arrayValue"]).get("values"))
        return [_typed(item, depth + 1) for item in inner]
    if "kvlistValue" in value:
        inner = objects(obj(value["kvlistValue"]).get("values"))
        return {txt(item.get("key")): _typed(item.get("value"), depth + 1) for item in inner}
    return next(iter(value.values()), None)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names under ``llm.`` as objects and lists: ``a.0.b`` is {"a": [{"b": ...}]}."""
    tree: dict[str, Any] = {}
    for name in sorted(flat):
        if name.startswith("llm.") and not isinstance(flat[name], Mapping):
            _put(tree, name.split(".")[:_DEEPEST], flat[name])
    return {name: _listed_up(value) for name, value in tree.items()}


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            inner = tree[part] = {}
        tree = inner
    tree[path[-1]] = value


def _listed_up(value: Any, depth: int = 0) -> Any:
    """Objects whose names are all numbers as lists; names with dots inside lists taken apart."""
    if depth > 2 * _DEEPEST:
        return value
    if isinstance(value, list):
        return [_listed_up(item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    tree: dict[str, Any] = {}
    for name, inner in value.items():
        _put(tree, str(name).split(".")[:_DEEPEST], inner)
    found = {name: _listed_up(inner, depth + 1) for name, inner in tree.items()}
    if found and all(name.isdecimal() and len(name) < 9 for name in found):
        return [found[name] for name in sorted(found, key=int)]
    return found
