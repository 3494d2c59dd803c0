"""Anthropic Messages: ``tool_use`` blocks and ``tool_result`` blocks; also logs a line a message.

A batch tool that hides several calls in one is written out by ``messages.expanded``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.conversation import run_of
from pararecover_core.formats.logs.messages import is_message
from pararecover_core.formats.logs.openai import chat_fields, whole
from pararecover_core.formats.logs.run import Run, objects, txt

NAME = "anthropic messages"
_BLOCKS = ("tool_use", "tool_result", "server_tool_use")


def recognise(value: Any) -> bool:
    """A conversation with blocks of calls in it."""
    if isinstance(value, Mapping):
        value = value.get("messages")
    if not isinstance(value, list) or not all(map(is_message, value[:3])):
        return False
    return any(_has_blocks(item) for item in value if isinstance(item, Mapping))


def _has_blocks(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and block.get("type") in _BLOCKS for block in content
    )


def runs(value: Any) -> Iterator[Run]:
    """The run of one conversation, or of a request with its response."""
    if isinstance(value, Mapping):
        yield run_of(whole(value), NAME, **chat_fields(value))
    else:
        yield run_of(value, NAME)


def is_line(value: Any) -> bool:
    """A line of a session log: a message with the name of its session around it."""
    return (
        isinstance(value, Mapping)
        and is_message(value.get("message"))
        and any(txt(value.get(name)) for name in _SESSION)
    )


_SESSION = ("sessionId", "session_id")


def sessions(values: list[Any]) -> Iterator[Run]:
    """One run a session; what side agents did is kept apart from the main one."""
    found: dict[tuple[str, bool], list[Any]] = {}
    for value in objects(values):
        session = next(txt(value[name]) for name in _SESSION if txt(value.get(name)))
        found.setdefault((session, value.get("isSidechain") is True), []).append(value["message"])
    for (session, side), messages in found.items():
        agent = next((txt(m.get("model")) for m in messages if txt(m.get("model"))), "")
        yield run_of(messages, NAME, id=session + (" side" if side else ""), agent=agent)
