"""The planning prompt and the form of an answer: the same text in training and when an agent runs.

Source: paper section 2 (eq. 3: query, plan, observations; the thought comes before the plan).
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pararecover_core.execute import View
from pararecover_core.literals import dumps
from pararecover_core.records import Tool, as_text

VERSION = "plan-1"
"""Name of the prompt; a change of its text or of what is shown gets a new one."""

Message = dict[str, str]


@cache
def instructions() -> str:
    """What the agent is told to do."""
    path = files("pararecover_core").joinpath("agents", "prompts", "plan.md")
    return path.read_text(encoding="utf-8").strip()


def shown(view: View, *, with_tools: bool = True) -> str:
    """What the agent sees of a decision point, as one text.

    Args:
        view: Query, tools, plan and the last round's observations.
        with_tools: False leaves the tools out, for endpoints and trainers that get them apart.
    """
    calls = [
        {"node": call.node, "name": call.name, "arguments": call.arguments, "result": call.result}
        for call in view.observations
    ]
    parts = [("Request", view.query), ("Plan", as_text(view.plan.given))]
    parts.append(("Results of the last round", dumps(calls) if calls else "none"))
    if with_tools:
        parts.insert(1, ("Tools", dumps([tool_data(tool) for tool in view.tools])))
    return "\n\n".join(f"# {title}\n{text.strip()}" for title, text in parts)


def prompt_messages(
    view: View, *, with_tools: bool = True, demonstrations: Sequence[tuple[str, str]] = ()
) -> list[Message]:
    """The prompt as chat messages.

    Args:
        view: What the agent sees.
        with_tools: As in ``shown``.
        demonstrations: Pairs of what was shown and a good answer to it, given as earlier turns.
    """
    messages = [{"role": "system", "content": instructions()}]
    for seen, answer in demonstrations:
        messages += {"role": "user", "content": seen}, {"role": "assistant", "content": answer}
    return [*messages, {"role": "user", "content": shown(view, with_tools=with_tools)}]


def answer_text(thought: str, plan: Any) -> str:
    """An answer in the form that the prompt asks for.

    Args:
        thought: The agent's thought.
        plan: Its plan as given: an object, or text.
    """
    return f"<thought>{thought.strip()}</thought>\n{as_text(plan).strip()}"


def tool_data(tool: Tool) -> Any:
    """A tool as it was given, else in the dialect of the published files."""
    if tool.given is not None:
        return tool.given
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "required": list(tool.required),
    }


def tool_schema(tool: Tool) -> dict[str, Any]:
    """A tool as a JSON schema, the form that chat endpoints and trainers take."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {
                "type": "object",
                "properties": tool.parameters,
                "required": list(tool.required),
            },
        },
    }
