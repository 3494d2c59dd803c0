"""The round loop: run a plan's frontier, show the agent what came back, take its new plan.

Source: paper section 2 (frontier, observations, eq. 3) and appendix H (40 rounds).
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from pararecover_core.literals import MAX_DEPTH, is_deep
from pararecover_core.plan import RESPONSE, ROOT, Node, Parameters, Plan
from pararecover_core.records import (
    Instance,
    Replan,
    Round,
    Tool,
    ToolCall,
    Trajectory,
    as_text,
    content_key,
    replan_key,
)

ROUND_LIMIT = 40
"""Rounds after which a run counts as failed (appendix H)."""

ANSWER_LIMIT = 2_000_000
"""Characters of an agent's answer beyond which it is not read."""


_SHOWN = 1_000
"""Characters of a thought that are kept where an answer is not."""


class Reply(msgspec.Struct, frozen=True):
    """What an agent answers: its thought and its new plan as it gave them."""

    thought: str
    plan: Any
    raw: str = ""
    usage: dict[str, Any] = {}


class View(msgspec.Struct, frozen=True):
    """What an agent sees (the arguments of eq. 3, with the query and the tool list)."""

    query: str
    tools: tuple[Tool, ...]
    plan: Plan
    observations: tuple[ToolCall, ...]


class Agent(Protocol):
    """Anything that replans."""

    name: str

    def replan(self, view: View) -> Reply:
        """The thought and the new plan for what is seen."""


class Environment(Protocol):
    """Anything that runs calls."""

    def observe(self, plan: Plan, frontier: Sequence[str]) -> tuple[ToolCall, ...]:
        """Run the calls of these nodes side by side; one observation a node that calls a tool."""


class OutcomeKind(StrEnum):
    """How a run ended."""

    RESPONSE = "response"
    ROUND_LIMIT = "round limit"
    STUCK = "stuck"
    UNPARSABLE = "unparsable"
    NO_PLAN = "no plan"
    TOO_LONG = "too long"
    EDITED_EXECUTED = "edited executed nodes"
    AGENT_ERROR = "agent error"
    UNAVAILABLE = "endpoint not available"
    CANCELLED = "cancelled"


class AgentError(Exception):
    """An agent could not answer; the run ends with this recorded."""


class UnavailableError(AgentError):
    """An endpoint did not answer, which is nobody's fault: the run ends and counts for nothing."""


def replan(instance: Instance, agent: Agent) -> Replan:
    """One answer of an agent to an instance: what is judged.

    Raises:
        AgentError: The agent could not answer, or not in a form that can be kept.
    """
    view = View(instance.query, instance.tools, instance.plan, instance.observations)
    reply = ask(agent, view)
    if is_deep(reply.plan):
        raise AgentError(f"the agent's plan is nested deeper than {MAX_DEPTH} levels")
    if max(len(as_text(reply.plan)), len(reply.raw), len(reply.thought)) > ANSWER_LIMIT:
        raise AgentError(f"the agent's answer is longer than {ANSWER_LIMIT:,} characters")
    plan = Plan.parse(reply.plan)
    key = replan_key(
        instance=instance.key,
        agent=agent.name,
        thought=reply.thought,
        plan=as_text(reply.plan),
        raw=reply.raw,
    )
    return Replan(key, instance.key, agent.name, reply.thought, plan, reply.raw, reply.usage)


def run(
    instance: Instance,
    agent: Agent,
    environment: Environment,
    *,
    first: Replan | None = None,
    round_limit: int = ROUND_LIMIT,
    cancelled: Callable[[], bool] = lambda: False,
) -> Trajectory:
    """Carry an instance to its end: the answer goes into the rest of the workflow.

    Args:
        instance: Where the run starts.
        agent: Who replans each round.
        environment: What runs the calls.
        first: An answer that was already given; it is put into the workflow first.
        round_limit: Rounds, those behind the first answer included, after which the run fails.
        cancelled: Asked before every round.

    Returns:
        The trajectory: round 1 is the instance itself; its ``extra`` holds ``rounds`` (T of
        eq. 4: rounds behind the first answer and after it), ``calls`` (tool calls over the
        whole trajectory), ``answers`` (plans that the agent gave) and ``invalid`` (those of them
        that do not parse). Success means that the response was reached within the limit.

    Source: paper section 2.1.4 (E5) and appendix H.
    """
    rounds = [Round(instance.plan, instance.observations)]
    outcome, count = _carry_on(
        rounds, instance, agent, environment, first, round_limit=round_limit, cancelled=cancelled
    )
    return Trajectory(
        key=content_key(instance.key, agent.name, *(as_text(r.plan.given) for r in rounds)),
        instance=instance.key,
        agent=agent.name,
        rounds=tuple(rounds),
        success=outcome is OutcomeKind.RESPONSE,
        outcome=outcome.value,
        extra={
            "rounds": count,
            "calls": _calls(rounds),
            "answers": len(rounds) - 1,
            "invalid": sum(1 - each.plan.s5 for each in rounds[1:]),
        },
    )


def _carry_on(
    rounds: list[Round],
    instance: Instance,
    agent: Agent,
    environment: Environment,
    first: Replan | None,
    *,
    round_limit: int,
    cancelled: Callable[[], bool],
) -> tuple[OutcomeKind, int]:
    """Add rounds to the one that is there until the run ends: how it ended, and T of eq. 4."""
    plan, observations, behind, executed = instance.plan, instance.observations, 0, 0
    while behind + executed < round_limit:
        if cancelled():
            return OutcomeKind.CANCELLED, behind + executed
        step = _next_plan(instance, agent, first, plan, observations)
        first = None
        if isinstance(step, _Ended):
            rounds.append(Round(step.plan, (), step.thought))
            return step.kind, behind + executed
        if len(rounds) == 1:
            behind = step.plan.executed_rounds()
        plan = step.plan
        try:
            ended, observations = _advance(plan, environment)
        except UnavailableError as error:
            rounds.append(Round(plan, (), str(error)))
            return OutcomeKind.UNAVAILABLE, behind + executed
        executed += ended is not OutcomeKind.STUCK
        rounds.append(Round(plan, observations, step.thought))
        if ended:
            return ended, behind + executed
    return OutcomeKind.ROUND_LIMIT, behind + executed


class _Step(msgspec.Struct, frozen=True):
    plan: Plan
    thought: str


class _Ended(msgspec.Struct, frozen=True):
    kind: OutcomeKind
    plan: Plan
    thought: str


def _next_plan(
    instance: Instance,
    agent: Agent,
    first: Replan | None,
    before: Plan,
    observations: tuple[ToolCall, ...],
) -> _Step | _Ended:
    if first is None:
        try:
            reply = ask(agent, View(instance.query, instance.tools, before, observations))
        except UnavailableError as error:
            return _Ended(OutcomeKind.UNAVAILABLE, Plan(), str(error))
        except AgentError as error:
            return _Ended(OutcomeKind.AGENT_ERROR, Plan(), str(error))
        given, thought = reply.plan, reply.thought
        if is_deep(given):
            kept = Plan(fault=f"nested deeper than {MAX_DEPTH} levels")  # the plan itself is not
            return _Ended(OutcomeKind.UNPARSABLE, kept, thought[:_SHOWN])
        if max(len(as_text(given)), len(reply.raw), len(thought)) > ANSWER_LIMIT:
            return _Ended(OutcomeKind.TOO_LONG, Plan(), thought[:_SHOWN])
        plan = Plan.parse(given)
    else:
        plan, given, thought = first.plan, first.plan.given, first.thought
    if given is None or given == "":
        return _Ended(OutcomeKind.NO_PLAN, plan, thought)
    if plan.fault:
        return _Ended(OutcomeKind.UNPARSABLE, plan, thought)
    if edited_executed(before, plan):
        return _Ended(OutcomeKind.EDITED_EXECUTED, plan, thought)
    return _Step(plan, thought)


def ask(agent: Agent, view: View) -> Reply:
    """An agent's answer, whatever kind of code it is.

    Raises:
        AgentError: It raised something, or gave no ``Reply`` with a thought that is text.
    """
    try:
        reply = agent.replan(view)
    except AgentError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: it may end its run, not ours
        raise AgentError(f"{type(error).__name__}: {error}"[:_SHOWN]) from error
    if not isinstance(reply, Reply) or not isinstance(reply.thought, str):
        raise AgentError(f"the agent gave {type(reply).__name__}, not a reply with a thought")
    if not isinstance(reply.raw, str) or not isinstance(reply.usage, dict):
        raise AgentError("the agent gave a reply whose raw is no text, or whose usage is no object")
    return reply


def edited_executed(before: Plan, after: Plan) -> tuple[str, ...]:
    """Executed nodes that a new plan dropped, reopened, or gave another call or dependencies."""
    edited = []
    for node in before.by_id.values():
        if not node.done or node.id == ROOT:
            continue
        new = after.by_id.get(node.id)
        if new is None or not new.done or _call_of(new) != _call_of(node):
            edited.append(node.id)
    return tuple(edited)


def _call_of(node: Node) -> tuple[str, Parameters, frozenset[str]]:
    return node.name, node.parameters, frozenset(node.dependencies)


def _advance(
    plan: Plan, environment: Environment
) -> tuple[OutcomeKind | None, tuple[ToolCall, ...]]:
    """Run the frontier; how the run ends with it, if it does."""
    response = plan.by_id.get(RESPONSE)
    if response is not None and response.done:
        return OutcomeKind.RESPONSE, ()
    frontier = plan.frontier()
    if not frontier:
        return OutcomeKind.STUCK, ()
    observations = environment.observe(plan, frontier)
    return (OutcomeKind.RESPONSE if RESPONSE in frontier else None), observations


def _calls(rounds: Sequence[Round]) -> int:
    """Tool calls of a trajectory: those behind its first plan, and those of every round."""
    start = rounds[0].plan
    behind = sum(node.done and node.calls_tool for node in start.by_id.values())
    return behind + sum(len(each.observations) for each in rounds)
