"""BUTTON: calls, results and the tool list stand as tagged text inside the messages.

There are no ids: results belong to calls by place and name. A sentence of the system message says
whether calls run side by side; it is kept as ``mode``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.conversation import assembled
from pararecover_core.formats.logs.messages import Message, Result, parse, read_call
from pararecover_core.formats.logs.openai import chat_fields
from pararecover_core.formats.logs.run import Run, arguments_of, obj, objects, result_text, seq, txt
from pararecover_core.records import as_text

NAME = "button"
_TOOL = re.compile(r"<tools?>(.*?)(?:</tools?>|\Z)", re.S)
_CALL = re.compile(r"<call>(.*?)(?:</call>|\Z)", re.S)
_MARKS = re.compile(r"</?(?:thought|final)>")
_ONE_BY_ONE = re.compile(
    r"one (?:tool |function )?call at a time|not (?:in )?parallel|only one", re.I
)


def recognise(value: Any) -> bool:
    """A conversation with ``<call>`` in what the assistant says, and no other kind of call."""
    messages = _given(value)
    said = [m for m in messages if txt(m.get("role")) in ("assistant", "gpt")]
    return any(isinstance(m.get("content"), str) and "<call>" in m["content"] for m in said) and (
        not any("tool_calls" in m for m in said)
    )


def _given(value: Any) -> list[Mapping[str, Any]]:
    given = value.get("messages") if isinstance(value, Mapping) else value
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []


def runs(value: Any) -> Iterator[Run]:
    """The run of one conversation."""
    given = _given(value)
    system = "\n".join(txt(m.get("content")) for m in given if txt(m.get("role"))[:6] == "system")
    tools = "".join(_TOOL.findall(system)[:1]).strip()
    fields = chat_fields(value) if isinstance(value, Mapping) else {}
    fields["tools"] = fields.get("tools") or arguments_of(tools)
    rest = _TOOL.sub("", system)
    fields["extra"] = {"mode": "one by one" if _ONE_BY_ONE.search(rest) else "parallel"}
    yield assembled(_messages(given), NAME, **fields)


def _messages(given: list[Mapping[str, Any]]) -> Iterator[Message]:
    for item in given:
        message = parse(item)
        text = txt(item.get("content"))
        if message.role == "assistant":
            for body in _CALL.findall(text):
                message.calls += [read_call(call) for call in _objects(body)]
            message.text = _MARKS.sub("", _CALL.sub("", text)).strip()
        elif message.role == "tool":
            message.results = list(_results(text))
        yield message


def _objects(text: str) -> list[Mapping[str, Any]]:
    text = text.strip()
    return [obj(text)] if text.startswith("{") else list(objects(text))


def _results(text: str) -> Iterator[Result]:
    """One result a call, in their order; text that is no list is one result."""
    found = _objects(text) if seq(text) or obj(text) else []
    if not found or not all("name" in item for item in found):
        yield Result(text)
        return
    for item in found:
        given = item.get("results", item.get("result"))
        yield Result(result_text(given) if given != {} else as_text(given), name=txt(item["name"]))
