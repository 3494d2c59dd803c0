"""A trace as a run: calls of the model and of tools in time, the history repeated by each.

Spans of OTel GenAI and OpenInference and runs of LangSmith and Langfuse all come down to this. A
parent span contains its children; it says nothing about which call waits for which.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pararecover_core.formats.logs.conversation import assembled
from pararecover_core.formats.logs.messages import Message, Result, parse
from pararecover_core.formats.logs.run import Call, Run, arguments_of, txt, unpacked


class Event(msgspec.Struct):
    """One call of the model or of a tool.

    Attributes:
        tool: Whether a tool was called; else the model was.
        start: Sorts events in time.
        inputs: Messages that the model got: the whole history as a rule.
        outputs: Messages that it gave.
        id: Of the tool's call, "" where the trace does not say.
    """

    tool: bool
    start: str
    inputs: list[Message] = []
    outputs: list[Message] = []
    name: str = ""
    id: str = ""
    arguments: Any = None
    result: str | None = None
    failed: bool = False
    agent: str = ""
    tools: Any = None


def run_of(events: Iterable[Event], form: str, **fields: Any) -> Run:
    """The run that the events of one trace tell."""
    ordered = sorted(events, key=lambda event: _time_key(event.start))
    models = [event for event in ordered if not event.tool]
    fields.setdefault("agent", next((e.agent for e in models if e.agent), ""))
    fields.setdefault("tools", next((e.tools for e in models if e.tools), None))
    history = _History()
    if any(message.calls for e in models for message in (*e.outputs, *e.inputs)):
        for event in ordered:
            history.take(event)
        return assembled(history.close(), form, **fields)
    return assembled(_without_content(ordered), form, **fields)


def _time_key(start: str) -> tuple[int, str]:
    """Numbers of nanoseconds by size, ISO times as they are."""
    return (int(start), "") if start.isdecimal() and len(start) < 30 else (0, start)


def _without_content(events: Iterable[Event]) -> Iterator[Message]:
    """Where the trace kept no messages: the tools called between two calls of the model."""
    turn: list[Event] = []
    for event in [*events, Event(False, "")]:
        if event.tool:
            turn.append(event)
            continue
        if turn:
            calls = [Call(e.name, e.arguments, f"#{at}") for at, e in enumerate(turn)]
            yield Message("assistant", calls=calls)
            results = [
                Result(e.result, f"#{at}", failed=e.failed)
                for at, e in enumerate(turn)
                if e.result is not None
            ]
            yield Message("tool", results=results)
            turn = []
        for message in (*event.inputs[-1:], *event.outputs):
            if message.role in ("user", "assistant"):
                yield message


class _History:
    """Puts a conversation together from pieces that repeat one another."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open: dict[str, Call] = {}
        self.seen: set[str] = set()
        self.heard: set[tuple[str, str]] = set()
        self.ran: list[Event] = []

    def take(self, event: Event) -> None:
        if event.tool:
            self.ran.append(event)
            return
        for message in event.inputs:
            self._repeated(message)
        self._run_tools()
        for message in event.outputs:
            self._output(message)

    def close(self) -> list[Message]:
        self._run_tools()
        return self.messages

    def _repeated(self, message: Message) -> None:
        """A message of the history: only what was not there yet is new."""
        results = [one for one in message.results if not one.id or one.id in self.open]
        for result in results:
            self._answer(result)
        fresh = [call for call in message.calls if call.id and call.id not in self.seen]
        if fresh:
            self._output(msgspec.structs.replace(message, role="assistant", calls=fresh))
        elif message.role in ("user", "system") and not message.results:
            self._hear(message)

    def _hear(self, message: Message) -> None:
        if (message.role, message.text) not in self.heard:
            self.heard.add((message.role, message.text))
            self.messages.append(message)

    def _answer(self, result: Result) -> None:
        """Give an open call its result; what its own span says of a failure counts too."""
        if not result.id:
            result.id = next((i for i, c in self.open.items() if c.name == result.name), "")
        if result.id not in self.open:
            return
        del self.open[result.id]
        spans = [event for event in self.ran if event.id == result.id]
        result.failed = result.failed or any(event.failed for event in spans)
        self.messages.append(Message("tool", results=[result]))

    def _output(self, message: Message) -> None:
        for at, call in enumerate(message.calls):
            call.id = call.id or f"#{len(self.messages)}.{at}"
            self.seen.add(call.id)
            self.open[call.id] = call
        if message.calls or not self._repeats(message):
            self.messages.append(message)

    def _repeats(self, message: Message) -> bool:
        last = self.messages[-1] if self.messages else Message("")
        return (last.role, last.text) == (message.role, message.text)

    def _run_tools(self) -> None:
        """Results that only the tools' own spans hold."""
        for event in self.ran:
            id_ = event.id or self._match(event)
            if id_ in self.open and event.result is not None:
                del self.open[id_]
                result = Result(event.result, id_, failed=event.failed)
                self.messages.append(Message("tool", results=[result]))
        self.ran = []

    def _match(self, event: Event) -> str:
        """The open call of a tool's span that names none: same arguments first, else same name."""
        named = {id_: call for id_, call in self.open.items() if call.name == event.name}
        same = (id_ for id_, call in named.items() if call.arguments == event.arguments)
        return next(same, next(iter(named), ""))


def messages_in(value: Any) -> list[Message]:
    """The messages in an input or output of any framework; [] where there are none."""
    return [parse(item) for item in _raw(value)]


def _raw(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, str):
        inner = unpacked(value)
        return [] if isinstance(inner, str) else _raw(inner)
    if isinstance(value, list):
        if value and isinstance(value[0], list):  # LangChain batches
            return _raw(value[0])
        return [_bare(item) for item in value if isinstance(item, Mapping)]
    if not isinstance(value, Mapping):
        return []
    for name in ("messages", "input", "choices", "generations", "message", "output"):
        inner = value.get(name)
        if isinstance(inner, list | Mapping) and inner:
            return _raw(inner)
    return [_bare(value)] if any(name in value for name in _MESSAGE) else []


_MESSAGE = ("role", "content", "tool_calls", "kwargs", "parts")


def _bare(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message out of a choice or a generation."""
    inner = item.get("message")
    return inner if isinstance(inner, Mapping) else item


def as_assistant(messages: Iterable[Message]) -> list[Message]:
    """What a model gave, told as the assistant's own whatever role stands there."""
    return [msgspec.structs.replace(message, role="assistant") for message in messages]


def given_by(value: Any) -> list[Message]:
    """The assistant's messages in the output of a model; text alone is one."""
    inner = unpacked(value)
    alone = [parse({"content": inner})] if isinstance(inner, str) and inner.strip() else []
    return as_assistant(messages_in(value) or alone)


def tool_arguments(value: Any) -> Any:
    """Arguments that a tool's span kept: under ``input`` where it wrapped them."""
    given = arguments_of(value)
    if isinstance(given, Mapping) and set(given) == {"input"}:
        return arguments_of(given["input"])
    return given


def by_trace(events: Iterable[tuple[str, Event]]) -> dict[str, list[Event]]:
    """Events by the trace that they are of, in the order of the traces."""
    found: dict[str, list[Event]] = {}
    for trace, event in events:
        found.setdefault(txt(trace), []).append(event)
    return found
