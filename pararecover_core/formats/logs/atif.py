"""ATIF: steps with their calls and, in the same step, what came back. A round is a step."""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.conversation import assembled
from pararecover_core.formats.logs.messages import Message, Result, expanded, read_call
from pararecover_core.formats.logs.run import Run, obj, objects, result_text, txt

NAME = "atif"


def recognise(value: Any) -> bool:
    """A trajectory with a version of ATIF."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("steps"), list)
        and (txt(value.get("schema_version")).upper().startswith("ATIF"))
    )


def runs(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of one trajectory."""
    agent = obj(value.get("agent"))
    yield assembled(
        (message for step in objects(value["steps"]) for message in _messages(step)),
        NAME,
        id=txt(value.get("session_id") or value.get("trajectory_id")),
        agent=txt(agent.get("model_name") or agent.get("name")),
        tools=agent.get("tool_definitions"),
    )


def _messages(step: Mapping[str, Any]) -> Iterator[Message]:
    source = txt(step.get("source"))
    text = result_text(step.get("message"))
    if source != "agent":
        yield Message("system" if source == "system" else "user", text)
        return
    calls = expanded(read_call(call) for call in objects(step.get("tool_calls")))
    yield Message("assistant", text, txt(step.get("reasoning_content")), calls)
    for one in objects(obj(step.get("observation")).get("results")):
        id_ = txt(one.get("source_call_id"))
        if id_ or calls:
            yield Message("tool", results=[Result(result_text(one.get("content")), id_)])
