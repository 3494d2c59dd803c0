"""LangSmith runs and Langfuse observations: traces whose inputs are the framework's own."""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.run import Run, obj, objects, result_text, txt, unpacked
from pararecover_core.formats.logs.trace import (
    Event,
    by_trace,
    given_by,
    messages_in,
    run_of,
    tool_arguments,
)

LANGSMITH, LANGFUSE = "langsmith", "langfuse"
_TOOL_TYPES = frozenset({"TOOL", "RETRIEVER"})


def is_run(value: Any) -> bool:
    """One run of LangSmith."""
    return isinstance(value, Mapping) and "run_type" in value and "inputs" in value


def langsmith(values: list[Any]) -> Iterator[Run]:
    """The runs of agents, one a trace."""
    pairs = ((_trace(run), event) for run in objects(values) for event in _run(run))
    for trace, events in by_trace(pairs).items():
        yield run_of(events, LANGSMITH, id=trace)


def _trace(run: Mapping[str, Any]) -> str:
    return txt(run.get("trace_id")) or txt(run.get("dotted_order")).split(".")[0]


def _run(run: Mapping[str, Any]) -> Iterator[Event]:
    kind = txt(run.get("run_type"))
    start = txt(run.get("dotted_order")).rpartition(".")[2] or txt(run.get("start_time"))
    error = txt(run.get("error"))
    if kind in ("tool", "retriever"):
        output = run.get("outputs")
        yield _tool(txt(run.get("name")), run.get("inputs"), output, start, error)
    elif kind == "llm":
        metadata = obj(obj(run.get("extra")).get("metadata"))
        yield Event(
            False,
            start,
            messages_in(run.get("inputs")),
            given_by(run.get("outputs")),
            agent=txt(metadata.get("ls_model_name")),
            tools=obj(obj(run.get("extra")).get("invocation_params")).get("tools"),
        )


def _tool(name: str, given: Any, output: Any, start: str, error: str) -> Event:
    """A tool's event; its output may be a message that names the call."""
    inner = unpacked(output)
    if isinstance(inner, Mapping) and set(inner) == {"output"}:
        inner = inner["output"]
    message = obj(inner)
    message = obj(message.get("kwargs")) or message
    id_ = txt(message.get("tool_call_id"))
    content = message.get("content") if id_ else inner if inner is not output else output
    arguments = tool_arguments(given)
    result = None if content is None else result_text(content)
    failed = bool(error) or message.get("status") == "error"
    return Event(
        True,
        start,
        name=name,
        id=id_,
        arguments=arguments,
        result=error if error and not result else result,
        failed=failed,
    )


def is_export(value: Any) -> bool:
    """A trace of Langfuse with its observations."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("observations"), list)
        and (
            "trace" in value or any("traceId" in one for one in objects(value["observations"][:3]))
        )
    )


def is_observation(value: Any) -> bool:
    """One observation of Langfuse."""
    return isinstance(value, Mapping) and "traceId" in value and isinstance(value.get("type"), str)


def langfuse_export(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of one trace."""
    trace = obj(value.get("trace")) or value
    events = [event for one in objects(value["observations"]) for event in _observation(one)]
    fields: dict[str, Any] = {"id": txt(trace.get("id"))}
    yield run_of(events, LANGFUSE, **fields)


def langfuse(values: list[Any]) -> Iterator[Run]:
    """The runs of observations, one a trace."""
    pairs = ((txt(o.get("traceId")), event) for o in objects(values) for event in _observation(o))
    for trace, events in by_trace(pairs).items():
        yield run_of(events, LANGFUSE, id=trace)


def _observation(one: Mapping[str, Any]) -> Iterator[Event]:
    kind, start = txt(one.get("type")).upper(), txt(one.get("startTime"))
    error = ""
    if one.get("level") == "ERROR":
        error = txt(one.get("statusMessage")) or "Error"
    if kind == "GENERATION":
        yield Event(
            False,
            start,
            messages_in(one.get("input")),
            given_by(one.get("output")),
            agent=txt(one.get("model")),
            tools=obj(one.get("input")).get("tools"),
        )
    elif kind in _TOOL_TYPES or (kind == "SPAN" and _is_tool_message(one.get("output"))):
        yield _tool(txt(one.get("name")), one.get("input"), one.get("output"), start, error)


def _is_tool_message(output: Any) -> bool:
    """Older traces log tools as spans; their output is a message that names the call."""
    message = obj(output)
    return bool((obj(message.get("kwargs")) or message).get("tool_call_id"))
