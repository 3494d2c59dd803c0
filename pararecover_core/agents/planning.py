"""The prompt and the answer of an agent as training text: what ``llm_agent`` asks and reads.

Source: paper section 2 (eq. 3: query, plan, observations; the thought comes before the plan).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from pararecover_core.agents.llm_agent import view_text
from pararecover_core.execute import View
from pararecover_core.prompt_files import agent_prompt
from pararecover_core.records import Tool, as_text

Message = dict[str, str]


def prompt_name() -> str:
    """Name of the prompt with its version; training files say which they were made with."""
    return agent_prompt("plan").name


def shown(view: View, *, with_tools: bool = True) -> str:
    """What the agent sees of a decision point, as one text.

    Args:
        view: Query, tools, plan and the last round's observations.
        with_tools: False lists no tools, for trainers that get them apart.
    """
    return view_text(view if with_tools else msgspec.structs.replace(view, tools=()))


def prompt_messages(
    view: View, *, with_tools: bool = True, demonstrations: Sequence[tuple[str, str]] = ()
) -> list[Message]:
    """The prompt as chat messages.

    Args:
        view: What the agent sees.
        with_tools: As in ``shown``.
        demonstrations: Pairs of what was shown and a good answer to it, given as earlier turns.
    """
    messages = [{"role": "system", "content": agent_prompt("plan").text}]
    for seen, answer in demonstrations:
        messages += {"role": "user", "content": seen}, {"role": "assistant", "content": answer}
    return [*messages, {"role": "user", "content": shown(view, with_tools=with_tools)}]


def answer_text(thought: str, plan: Any) -> str:
    """An answer in the form that the prompt asks for.

    Args:
        thought: The agent's thought.
        plan: Its plan as given: an object, or text.
    """
    said = as_text(plan).strip()
    return f"<thought>\n{thought.strip()}\n</thought>\n<plan>\n{said}\n</plan>"


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
