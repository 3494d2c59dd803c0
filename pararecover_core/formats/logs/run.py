"""What every reader of logs makes of a file: a run of turns, each with its calls and results.

A turn is one message of the assistant (or one step of the agent) that calls tools. What a dialect
leaves open is left empty here; ``build`` turns a run into plans, rounds and records.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pararecover_core.literals import dumps, loads
from pararecover_core.records import as_text


class Call(msgspec.Struct):
    """One call of a tool.

    Attributes:
        id: As the log gives it; it may repeat within a run and be empty.
        arguments: An object where one could be read, else as given.
        result: What came back; None where the log holds no result.
        failed: Whether the log itself says that the call failed.
        group: Id of the batch that the call was part of, "" where it stands alone.
        needs: Ids, in the same run, of calls that this one waits for as the log gives them; None
            where the log says nothing.
    """

    name: str
    arguments: Any = None
    id: str = ""
    result: str | None = None
    failed: bool = False
    group: str = ""
    needs: tuple[str, ...] | None = None


class Turn(msgspec.Struct):
    """One message of the assistant that calls tools.

    Attributes:
        thought: Text and reasoning before the calls.
        said: What the user said since the turn before.
    """

    calls: list[Call]
    thought: str = ""
    said: str = ""


class Run(msgspec.Struct):
    """One run of an agent.

    Attributes:
        form: Name of the format that it was read from.
        answer: The final answer; None where the log ends without one.
        said: What the user said after the last turn.
        planned: Whether the turns are a plan that nothing has run yet.
        success: Whether it succeeded as the log says; None where the log does not say.
        tools: The listed tools as given.
    """

    form: str
    turns: list[Turn] = []
    answer: str | None = None
    answer_thought: str = ""
    id: str = ""
    query_id: str = ""
    agent: str = ""
    query: str = ""
    said: str = ""
    tools: Any = None
    planned: bool = False
    success: bool | None = None
    extra: dict[str, Any] = {}


def obj(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, or the object in its JSON text, else an empty one."""
    value = unpacked(value)
    return value if isinstance(value, Mapping) else {}


def seq(value: Any) -> list[Any]:
    """The value where it is a list, or the list in its JSON text, else an empty one."""
    value = unpacked(value)
    return value if isinstance(value, list) else []


def txt(value: Any) -> str:
    """The value where it is text or a number, else ""."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return as_text(value)
    return ""


def unpacked(value: Any) -> Any:
    """What a JSON text holds, where the value is the text of a list or an object; else itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def arguments_of(value: Any) -> Any:
    """Arguments as an object where they can be read as one, else as given; None for nothing.

    Models write broken JSON now and then: that text is kept, since it may be the error itself.
    """
    if isinstance(value, str):
        value = unpacked(value) if value.strip() else None
    return value


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; everything else in it is passed over."""
    return (item for item in seq(value) if isinstance(item, Mapping))


def result_text(value: Any) -> str:
    """A result as text: the texts of content blocks together, anything else as JSON."""
    if isinstance(value, list) and value and all(is_block(item) for item in value):
        return "\n".join(block_text(item) for item in value)
    if is_block(value):
        return block_text(value)
    return as_text(value)


def is_block(value: Any) -> bool:
    """Whether a value is a content block that holds text, or a picture or the like."""
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        return False
    return isinstance(value.get("text"), str) or value["type"] in _MEDIA


_MEDIA = frozenset(
    {"image", "image_url", "input_image", "document", "audio", "file", "input_audio"}
)


def block_text(block: Mapping[str, Any]) -> str:
    """The text of a content block; a picture or a file is only named."""
    text = block.get("text")
    return text if isinstance(text, str) else f"({block.get('type')})"


def error_text(value: Any) -> str:
    """What an error says: its message where it is an object."""
    if isinstance(value, Mapping):
        kind, message = txt(value.get("type")), txt(value.get("message"))
        return ": ".join(part for part in (kind, message) if part) or dumps(value)
    return as_text(value)


def joined(*texts: str) -> str:
    """The texts that are not blank, a blank line between them."""
    return "\n\n".join(text.strip() for text in texts if text.strip())
