"""Agents and environments by name for ``run`` and ``replan``, those that are models included."""

from functools import partial
from typing import NamedTuple

from pararecover_core.agents.choose import BUILT_IN, AgentFactory, agent_for
from pararecover_core.errors import InputError
from pararecover_core.runs import ENVIRONMENTS, EnvironmentFactory, EnvironmentKind

LLM = "llm"
"""The agent that is a model of the endpoint."""

AGENT_HELP = f"Who replans: {', '.join(BUILT_IN)}, or {LLM} with --model."
MODEL_HELP = "Model of --agent llm (else OPENAI_MODEL), at OPENAI_BASE_URL."


class Chosen(NamedTuple):
    """An agent.

    Attributes:
        name: What it is called in records.
        waits: Whether it waits for an endpoint.
    """

    factory: AgentFactory
    name: str
    waits: bool


def choose_agent(agent: str, model: str = "", few_shot: bool = False) -> Chosen:
    """What makes the agent of an instance.

    Raises:
        InputError: There is no agent of this name.
        ConfigError: It is a model, and no endpoint is set.
    """
    if agent == LLM:
        from pararecover_core.agents.llm_agent import llm_agent  # takes a moment to import
        from pararecover_core.completions import endpoint_from_environment

        made = llm_agent(endpoint_from_environment(model).model, few_shot)
        return Chosen(made, made.name, True)
    if agent not in BUILT_IN:
        expected = f"one of {', '.join((*BUILT_IN, LLM))}"
        raise InputError("--agent", repr(agent), expected, "Correct the name")
    if model or few_shot:
        flag = "--model" if model else "--few-shot"
        raise InputError(flag, f"agent {agent}", f"--agent {LLM}", f"Leave {flag} out")
    return Chosen(partial(agent_for, agent), agent, False)


def choose_environment(
    env: EnvironmentKind, model: str, failure_rate: float, seed: int
) -> EnvironmentFactory:
    """What makes the environment of an instance.

    Raises:
        InputError: Calls are to fail in an environment that does not do that.
        ConfigError: A model plays the tools, and no endpoint is set.
    """
    if env is not EnvironmentKind.SIMULATED:
        if failure_rate:
            got, cure = f"--env {env}", "Leave it out, or say --env simulated"
            raise InputError("--failure-rate", got, "--env simulated", cure)
        return ENVIRONMENTS[env]
    from pararecover_core.completions import endpoint_from_environment
    from pararecover_core.simulated import simulated

    named = endpoint_from_environment(model).model
    return simulated(named, failure_rate=failure_rate, seed=seed)
