"""A list of messages as a run: who called what, and which result belongs to which call."""

from collections.abc import Iterable, Sequence
from typing import Any

from pararecover_core.formats.logs.messages import Message, Result, parse
from pararecover_core.formats.logs.run import Call, Run, Turn, joined, objects, result_text
from pararecover_core.literals import loads


def run_of(given: Sequence[Any], form: str, **fields: Any) -> Run:
    """The run that messages tell.

    Args:
        given: Messages in any dialect of ``messages``, in order.
        form: Name of the format.
        fields: What else is known of the run.
    """
    return assembled((parse(item) for item in objects(given)), form, **fields)


def assembled(messages: Iterable[Message], form: str, **fields: Any) -> Run:
    """The run that understood messages tell."""
    told = _Telling()
    for message in messages:
        told.take(message)
    return told.run(form, **fields)


class _Telling:
    """Follows a conversation: the turns so far, and what was said since the last of them."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.said: list[str] = []
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.last_id = ""
        self.lane: list[dict[str, Any]] = []
        self.lane_ids: set[str] = set()
        self.strays = 0

    def take(self, message: Message) -> None:
        for result in message.results:
            self._returned(result)
        if message.role == "assistant":
            self._spoke(message)
        elif message.calls:  # calls of a simulated user: not the agent's
            self._other(message)
        elif message.role == "user" and message.text.strip():
            self.said.append(message.text)
            self.last_id = ""

    def _spoke(self, message: Message) -> None:
        if message.foreign:
            self._other(message)
            return
        if message.calls and message.id and message.id == self.last_id and self.turns:
            self.turns[-1].calls += message.calls  # one message, logged block by block
            return
        self.thinking.append(message.thinking)
        self.texts.append(message.text)
        if message.calls:
            thought = joined(*self.thinking, *self.texts)
            self.turns.append(Turn(message.calls, thought, joined(*self.said)))
            self.said, self.texts, self.thinking = [], [], []
            self.last_id = message.id

    def _other(self, message: Message) -> None:
        for call in message.calls:
            self.lane.append({"name": call.name, "arguments": call.arguments})
            self.lane_ids.add(call.id)

    def _returned(self, result: Result) -> None:
        self.last_id = ""
        waiting = self._waiting(result)
        if waiting:
            settle(waiting, result)
        elif result.id not in self.lane_ids or not result.id:
            self.strays += 1

    def _waiting(self, result: Result) -> list[Call]:
        """The calls that a result answers: of the newest turn that has such calls open."""
        for turn in reversed(self.turns[-_LOOK_BACK:]):
            still = [call for call in turn.calls if call.result is None]
            if result.id:
                found = [c for c in still if c.id == result.id][:1]
                found = found or [c for c in still if c.group and c.group == result.id]
                found = found or [c for c in still if not c.id and c.name == result.name][:1]
            else:
                named = [call for call in still if call.name == result.name]
                found = (named or ([] if result.name else still))[:1]
            if found:
                return found
        return []

    def run(self, form: str, **fields: Any) -> Run:
        text, extra = joined(*self.texts), dict(fields.pop("extra", {}))
        if self.lane:
            extra["user_calls"] = self.lane
        if self.strays:
            extra["results_without_a_call"] = self.strays
        return Run(
            form,
            self.turns,
            text if text else None,
            joined(*self.thinking),
            said=joined(*self.said),
            extra=extra,
            **fields,
        )


_LOOK_BACK = 50
"""Turns within which a late result is still looked for."""


def settle(calls: Sequence[Call], result: Result) -> None:
    """Give calls their result; one text for a batch is shared out where it shows its parts."""
    for call, text in zip(calls, _shares(result.text, len(calls)), strict=True):
        call.result, call.failed = text, result.failed


def _shares(text: str, count: int) -> list[str]:
    """A batch's result as one text a call: a list or paragraphs of that number, else whole."""
    if count == 1:
        return [text]
    try:
        value = loads(text)
    except ValueError:
        value = None
    if isinstance(value, list) and len(value) == count:
        return [result_text(item) for item in value]
    parts = text.split("\n\n")
    return parts if len(parts) == count else [text] * count
