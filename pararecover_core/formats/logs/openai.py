"""OpenAI: chat messages with parallel ``tool_calls``, the legacy call, and the Responses API."""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs import conversation
from pararecover_core.formats.logs.messages import (
    Message,
    Result,
    is_message,
    parse,
    read_call,
)
from pararecover_core.formats.logs.run import Run, obj, objects, result_text, seq, txt

CHAT, RESPONSES = "openai chat", "openai responses"
_ITEMS = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
)


def is_responses(value: Any) -> bool:
    """A logged request with its response, or the list of items of a conversation."""
    if isinstance(value, Mapping):
        return any(_has_items(value.get(name)) for name in ("input", "output", "items"))
    return _has_items(value)


def _has_items(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, Mapping) and item.get("type") in _ITEMS for item in value
    )


def is_part(value: Any) -> bool:
    """One message, or one item of the Responses API, that stands by itself."""
    if is_message(value):
        return True
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind == "reasoning" or (kind in _ITEMS and "call_id" in value)


def responses(value: Any) -> Iterator[Run]:
    """The run of a list of items, or of a request and its response together."""
    if isinstance(value, Mapping):
        fields = _fields(value)
        before, after = value.get("input"), value.get("output")
        items = [{"role": "user", "content": before}] if isinstance(before, str) else seq(before)
        items = [*items, *seq(value.get("items")), *seq(after)]
    else:
        fields, items = {}, value
    yield conversation.assembled(_messages(items), RESPONSES, **fields)


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": txt(value.get("id")),
        "agent": txt(value.get("model") or value.get("agent")),
        "tools": value.get("tools"),
    }


def _messages(items: Any) -> Iterator[Message]:
    """Items as messages: consecutive calls before the first output are one turn."""
    gathered = Message("assistant")
    for item in objects(items):
        kind = txt(item.get("type"))
        if kind in ("function_call", "custom_tool_call"):
            gathered.calls.append(_call(item))
        elif kind == "reasoning":
            parts = objects(item.get("summary") or item.get("content"))
            texts = [gathered.thinking, *(txt(part.get("text")) for part in parts)]
            gathered.thinking = "\n\n".join(text for text in texts if text)
        elif kind in _ITEMS:
            yield gathered
            gathered = Message("assistant")
            yield Message("tool", results=[_output(item)])
        elif kind in ("message", "") and item.get("role"):
            message = parse(item)
            if message.role == "assistant" and not gathered.calls:
                gathered.text = "\n\n".join(filter(None, (gathered.text, message.text)))
            else:
                yield gathered
                gathered = Message("assistant")
                yield message
    yield gathered


def _call(item: Mapping[str, Any]) -> Any:
    call = read_call(item)
    call.id = txt(item.get("call_id")) or call.id
    return call


def _output(item: Mapping[str, Any]) -> Result:
    failed = item.get("status") in ("failed", "incomplete")
    return Result(result_text(item.get("output")), txt(item.get("call_id")), failed=failed)


def chat(value: Any) -> Iterator[Run]:
    """The run of a list of messages, or of a record with ``messages`` and perhaps the answer."""
    if not isinstance(value, Mapping):
        yield conversation.run_of(value, CHAT)
        return
    yield conversation.run_of(whole(value), CHAT, **chat_fields(value))


def whole(value: Mapping[str, Any]) -> list[Any]:
    """The messages of a record, with the answer that a logged response holds."""
    given = seq(value.get("messages") or value.get("conversations") or value.get("conversation"))
    response = obj(value.get("response")) or value
    choices = [choice.get("message") for choice in objects(response.get("choices"))][:1]
    if not choices and response is not value and "content" in response:
        choices = [{"role": "assistant", **response}]
    return [*given, *(choice for choice in choices if isinstance(choice, Mapping))]


def chat_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says about its run besides the messages."""
    request, response = obj(value.get("request")), obj(value.get("response"))
    names = ("id", "task_id", "conversation_id", "session_id", "uuid")
    model = value.get("model") or value.get("agent") or request.get("model")
    return {
        "id": next((txt(value[name]) for name in names if txt(value.get(name))), ""),
        "agent": txt(model or response.get("model")),
        "tools": value.get("tools") or value.get("functions") or request.get("tools"),
    }
