"""One message of a chat log in any dialect: its role, its texts, its calls, its results.

OpenAI, Anthropic, LangChain, Inspect, tau2-bench, OTel GenAI and ShareGPT differ in how a call
and a result are written; each shape is told by its own fields, so that a log may mix them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pararecover_core.formats.logs.run import (
    Call,
    arguments_of,
    block_text,
    error_text,
    is_block,
    joined,
    obj,
    objects,
    result_text,
    seq,
    txt,
    unpacked,
)

_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "gpt": "assistant",
    "assistant": "assistant", "function": "tool", "observation": "tool", "tool_response": "tool",
    "systems": "system", "developer": "system", "function_call": "assistant",
    "HumanMessage": "user", "AIMessage": "assistant", "ToolMessage": "tool",
    "AIMessageChunk": "assistant", "SystemMessage": "system",
}  # fmt: skip
_BATCHES = frozenset({"batch_tool", "batch", "multi_tool_use.parallel", "parallel"})


class Result(msgspec.Struct):
    """What came back for a call; ``id`` and ``name`` are "" where the log does not say."""

    text: str
    id: str = ""
    name: str = ""
    failed: bool = False


class Message(msgspec.Struct):
    """One message, understood.

    Attributes:
        role: "system", "user", "assistant", "tool" or as given.
        id: The message's own id: parts of one message share it.
        foreign: Whether its calls are not the agent's own but those of a simulated user.
    """

    role: str
    text: str = ""
    thinking: str = ""
    calls: list[Call] = []
    results: list[Result] = []
    id: str = ""
    foreign: bool = False


def is_message(value: Any) -> bool:
    """Whether a value looks like a message of a chat."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str):
        return any(key in value for key in _HOLDS)
    if isinstance(value.get("from"), str):
        return "value" in value
    kind = value.get("type")
    return isinstance(kind, str) and kind in _ROLES and ("content" in value or "data" in value)


_HOLDS = ("content", "tool_calls", "function_call", "parts", "tool_call_id", "contents")


def is_conversation(value: Any) -> bool:
    """Whether a value is a list of messages, its first ones looked at."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value[:3]))


def parse(given: Mapping[str, Any]) -> Message:
    """Understand a message; what it has beyond the known is passed over."""
    given = _flat(given)
    role = txt(given.get("role") or given.get("from") or given.get("type"))
    message = Message(_ROLES.get(role, role), id=txt(given.get("id")))
    content = given.get("content", given.get("parts", given.get("value", given.get("contents"))))
    if role == "function_call" and "from" in given:
        message.calls += _sharegpt_calls(content)
        return message
    if message.role == "tool":
        message.results.append(_result(given, content, message))
        message.results = [one for one in message.results if one is not None]
        return message
    if isinstance(content, str):
        message.text = content
    else:
        _blocks(content, message)
    for name in ("reasoning_content", "reasoning", "thinking"):
        message.thinking = message.thinking or txt(given.get(name))
    calls = given.get("tool_calls") or obj(given.get("additional_kwargs")).get("tool_calls")
    known = {call.id for call in message.calls if call.id}  # LangChain says each call twice
    for item in objects(calls):
        call = read_call(item)
        if not (call.id and call.id in known):
            message.calls.append(call)
        message.foreign = message.foreign or item.get("requestor") == "user"
    legacy = given.get("function_call")
    if isinstance(legacy, Mapping) and legacy.get("name"):
        message.calls.append(read_call(legacy))
    message.calls = expanded(message.calls)
    return message


def _flat(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without the wrapping that LangChain puts around it."""
    inner = given.get("kwargs") if "lc" in given else given.get("data")
    if isinstance(inner, Mapping) and "content" in inner:
        kind = inner.get("type") or given.get("type")
        names = given.get("id")
        if isinstance(names, list) and names:
            kind = inner.get("type") or names[-1]
        return {"type": kind, **inner}
    return given


def read_call(item: Mapping[str, Any]) -> Call:
    """A call in any shape: under ``function``, flat, or with the function's name as a text."""
    inner = item.get("function")
    body = inner if isinstance(inner, Mapping) else item
    name = body.get("name") or (inner if isinstance(inner, str) else "")
    name = name or item.get("function_name") or item.get("tool_name")
    for field in ("arguments", "args", "input", "parameters", "kwargs"):
        if field in body:
            arguments = body[field]
            break
    else:
        arguments = None
    id_ = txt(item.get("id") or item.get("call_id") or item.get("tool_call_id"))
    return Call(txt(name).strip(), arguments_of(arguments), id_)


def expanded(calls: Iterable[Call]) -> list[Call]:
    """The calls, those that were hidden inside one batch call written out."""
    found = []
    for call in calls:
        inner = seq(_invocations(call)) if call.name in _BATCHES else []
        parts = [read_call(_named(item)) for item in inner if isinstance(item, Mapping)]
        if not parts:
            found.append(call)
        for number, part in enumerate(parts, start=1):
            part.group, part.id = call.id or call.name, part.id or f"{call.id}#{number}"
            found.append(part)
    return found


def _invocations(call: Call) -> Any:
    arguments = obj(call.arguments)
    names = ("invocations", "tool_uses", "calls", "tool_calls")
    return next((arguments[name] for name in names if name in arguments), None)


def _named(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An invocation; ``recipient_name`` ("functions.search") is the name of some."""
    recipient = txt(item.get("recipient_name"))
    return {**item, "name": recipient.rpartition(".")[2]} if recipient else item


def _sharegpt_calls(content: Any) -> list[Call]:
    value = unpacked(content)
    items = value if isinstance(value, list) else [value]
    return [read_call(item) for item in items if isinstance(item, Mapping)]


def _result(given: Mapping[str, Any], content: Any, message: Message) -> Any:
    """The result of a message of the role "tool"; None where blocks of it hold the results."""
    if isinstance(content, list) and any(_is_result_block(item) for item in content):
        _blocks(content, message)
        return None
    error = given.get("error")
    text = result_text(content)
    failed = error is True or given.get("status") == "error" or given.get("is_error") is True
    if isinstance(error, Mapping) or (isinstance(error, str) and error):
        failed, text = True, joined(error_text(error), text)
    id_ = given.get("tool_call_id") or given.get("call_id") or given.get("id")
    name = given.get("name") or given.get("function") or given.get("tool_name")
    return Result(text, txt(id_), txt(name), failed)


def _is_result_block(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in (
        "tool_result", "tool_call_response", "function_response",
    )  # fmt: skip


def _blocks(content: Any, message: Message) -> None:
    """Content blocks or parts: texts, reasoning, calls and results."""
    for block in [content] if isinstance(content, Mapping) else seq(content):
        if isinstance(block, str):
            message.text = joined(message.text, block)
        elif isinstance(block, Mapping):
            _block(block, message)


def _block(block: Mapping[str, Any], message: Message) -> None:
    kind = txt(block.get("type"))
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        text = block.get("thinking") or block.get("reasoning") or block.get("content")
        message.thinking = joined(message.thinking, txt(text) or txt(block.get("text")))
    elif kind in ("tool_use", "tool_call", "server_tool_use", "function_call"):
        message.calls.append(read_call(block))
    elif _is_result_block(block):
        fields = ("content", "response", "result", "output")
        given = next((block[name] for name in fields if name in block), None)
        id_ = txt(block.get("tool_use_id") or block.get("id") or block.get("call_id"))
        failed = block.get("is_error") is True
        message.results.append(Result(result_text(given), id_, txt(block.get("name")), failed))
    elif kind in ("text", "input_text", "output_text", "") or is_block(block):
        text = block.get("text", block.get("content"))
        message.text = joined(message.text, text if isinstance(text, str) else block_text(block))
