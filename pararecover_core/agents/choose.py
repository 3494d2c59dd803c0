"""Agents by name."""

from collections.abc import Callable

import msgspec

from pararecover_core.agents.builtin import Ignore, Rebuild, Retry
from pararecover_core.agents.oracle import Oracle
from pararecover_core.agents.patch import Patch
from pararecover_core.errors import InputError
from pararecover_core.execute import Agent
from pararecover_core.records import Instance
from pararecover_core.sandbox.compose import Recipe, Task

AgentFactory = Callable[[Instance], Agent]
"""Makes the agent that answers to one instance."""


def task_of(instance: Instance) -> Task:
    """The task behind an instance of the sandbox.

    Raises:
        InputError: The instance does not come from the sandbox.
    """
    made = instance.extra.get("sandbox")
    try:
        return msgspec.convert(made["task"], Recipe).task()  # type: ignore[index]
    except (TypeError, KeyError, msgspec.ValidationError):
        got = f"instance {instance.id or instance.key} without a sandbox task"
        cure = "Choose another agent, or instances that `pararecover generate` made"
        raise InputError("agent oracle", got, "one whose truth is known", cure) from None


BUILT_IN: dict[str, AgentFactory] = {
    "oracle": lambda instance: Oracle(task_of(instance)),
    "patch": lambda _: Patch(),
    "retry": lambda _: Retry(),
    "rebuild": lambda _: Rebuild(),
    "ignore": lambda _: Ignore(),
}
"""Offline agents by name."""


def agent_for(name: str, instance: Instance) -> Agent:
    """A built-in agent for one instance.

    Raises:
        InputError: There is none of this name, or it needs a truth that is not known.
    """
    if name not in BUILT_IN:
        raise InputError("agent", repr(name), f"one of {', '.join(BUILT_IN)}", "Correct the name")
    return BUILT_IN[name](instance)
