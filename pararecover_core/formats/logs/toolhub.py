"""UnifiedToolHub: messages of the role ``tool_call`` whose calls say what they depend on."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.conversation import assembled
from pararecover_core.formats.logs.messages import Message, Result, parse
from pararecover_core.formats.logs.openai import chat_fields
from pararecover_core.formats.logs.run import Call, Run, objects, result_text, seq, txt, unpacked
from pararecover_core.literals import dumps

NAME = "unifiedtoolhub"
_CALLS = ("tool_call", "tool_call_ground_truth")
_LINK = re.compile(r"<link>\s*([^<>\s]{1,200}?)(?:\.[A-Za-z_][^<>]{0,200})?\s*</link>")


def recognise(value: Any) -> bool:
    """A conversation with messages of the role ``tool_call``."""
    given = value.get("messages") if isinstance(value, Mapping) else value
    return isinstance(given, list) and any(
        isinstance(item, Mapping) and item.get("role") in _CALLS for item in given
    )


def runs(value: Any) -> Iterator[Run]:
    """The run of one conversation."""
    fields = chat_fields(value) if isinstance(value, Mapping) else {}
    given = list(objects(value.get("messages") if isinstance(value, Mapping) else value))
    listed = [unpacked(m.get("content")) for m in given if m.get("role") == "candidate_tools"]
    if listed and not fields.get("tools"):
        fields["tools"] = listed[0]
    yield assembled(_messages(given), NAME, **fields)


def _messages(given: list[Mapping[str, Any]]) -> Iterator[Message]:
    count: dict[str, int] = {}
    for item in given:
        role, content = txt(item.get("role")), unpacked(item.get("content"))
        if role in _CALLS:
            yield Message("assistant", calls=[_call(call, count) for call in objects(content)])
        elif role.startswith("tool_response"):
            yield Message("tool", results=list(_results(content)))
        elif role != "candidate_tools":
            yield parse(item)


def _call(item: Mapping[str, Any], count: dict[str, int]) -> Call:
    """A call; its id is its name with a number from 0, counted over the conversation."""
    name, parameters = txt(item.get("name")), item.get("parameters", item.get("arguments"))
    number = count[name] = count.get(name, -1) + 1
    given = [txt(need) for need in seq(item.get("depend_on"))]
    linked = _LINK.findall(dumps(parameters)) if isinstance(parameters, Mapping) else []
    needs = tuple(dict.fromkeys([*given, *linked]))
    says = "depend_on" in item or bool(linked)
    id_ = txt(item.get("id")) or f"{name}.{number}"
    return Call(name, unpacked(parameters), id_, needs=needs if says else None)


def _results(content: Any) -> Iterator[Result]:
    if isinstance(content, Mapping):
        for id_, given in content.items():
            yield Result(result_text(given), str(id_), str(id_).rpartition(".")[0])
    else:
        yield Result(result_text(content))
