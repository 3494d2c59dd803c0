"""Instances from runs that went wrong by themselves: a weak agent, a clean start, bad luck.

Nothing is injected into a finished run: the agent slips while it plans, tools fail now and then,
and what went wrong is read off the rounds by comparison with the ground truth.

Source: paper sections 2.1.2 and 2.1.3 (real rollouts); the agents are ours.
"""

from collections.abc import Sequence

import msgspec

from pararecover_core.agents.builtin import Ignore, Rebuild, Retry
from pararecover_core.execute import Agent, Reply, View, run
from pararecover_core.findings import instance_findings
from pararecover_core.inject import INJECTORS, RETURNS, course, sandbox_instance, start
from pararecover_core.inject.call_errors import EMPTY_TEXTS, TIMEOUT_TEXTS
from pararecover_core.inject.model import Injection, Scene, State
from pararecover_core.plan import Plan
from pararecover_core.proof import is_real
from pararecover_core.records import Instance, Round, Source, ToolCall
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.compose import Task
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.taxonomy import ErrorType
from pararecover_core.truth import Fault, faults

SLIP_RATE = 0.45
"""How often a weak agent errs when it plans."""
FAILURE_RATE = 0.05
"""How often a call times out or gives nothing."""
ROUND_LIMIT = 12
_PLANNED = [kind for kind in ErrorType if kind not in RETURNS]


class Slip:
    """A weak agent: another one that errs now and then when it plans.

    Args:
        inner: How it reacts to what it sees.
        task: The task that it plans.
        draw: When and how it errs.
        rate: Share of its plans with an error, in [0, 1].
    """

    def __init__(self, inner: Agent, task: Task, draw: Draw, rate: float = SLIP_RATE) -> None:
        self.inner, self.task, self.draw, self.rate = inner, task, draw, rate
        self.name = f"slip-{inner.name}"

    def replan(self, view: View) -> Reply:
        """The inner agent's plan, sometimes with one of the planning errors in a pending node."""
        reply = self.inner.replan(view)
        if not self.draw.chance(self.rate):
            return reply
        plan = Plan.parse(reply.plan)
        changed = INJECTORS[self.draw.choice(_PLANNED)](Scene(plan, self.task), self.draw)
        listed = changed is not None and set(changed.tools) <= set(self.task.tools)
        if changed is None or changed.plan.fault or not listed:
            return reply
        return msgspec.structs.replace(reply, plan=changed.plan.given)


class Flaky:
    """The sandbox on a bad line: some calls time out or come back empty.

    Args:
        plan: The plan that a run starts with.
        draw: Which calls fail.
        rate: Share of calls that do, in [0, 1].
    """

    def __init__(self, plan: Plan, draw: Draw, rate: float = FAILURE_RATE) -> None:
        self.sandbox, self.draw, self.rate = SandboxEnvironment(plan), draw, rate

    def observe(self, plan: Plan, frontier: Sequence[str]) -> tuple[ToolCall, ...]:
        """Run the frontier's calls; see ``Environment``."""
        return tuple(map(self._lost, self.sandbox.observe(plan, frontier)))

    def _lost(self, seen: ToolCall) -> ToolCall:
        if result_state(seen.result) is not ResultState.OK or not self.draw.chance(self.rate):
            return seen  # a call that failed anyway has nothing to lose
        self.sandbox.values.pop(seen.node, None)
        texts = self.draw.choice((TIMEOUT_TEXTS, EMPTY_TEXTS))
        return msgspec.structs.replace(seen, result=self.draw.choice(texts))


def rollout(task: Task, *, level: int, seed: str, number: int, query_id: str) -> Instance | None:
    """An instance from one run of a weak agent on a task.

    Args:
        task: The task, begun without a fault.
        level: 1: the run's first faulty round; 2: a round by which two or three went wrong.
        seed: What agent, slips and failures depend on.
        number: The instance's id in its file.
        query_id: The id that all instances of this task share.

    Returns:
        The instance, or None where the run did not go wrong in that way.
    """
    draw = Draw("rollout", seed)
    reactions: tuple[Agent, ...] = (Ignore(), Ignore(), Retry(), Rebuild())
    agent = Slip(draw.choice(reactions), task, draw)
    plan = task.plan()
    begin = Instance("", "", "", 0, Source.ROLLOUT, task.query, (), plan, ())
    trajectory = run(begin, agent, Flaky(plan, draw), round_limit=ROUND_LIMIT)
    chosen = _chosen(task, trajectory.rounds[1:], level)
    if chosen is None:
        return None
    state, found = chosen
    injections = [
        Injection(f.error_type, f.node, f.parameter, "slip", _sentence(state.plan, f), number)
        for number, f in found
    ]
    made = sandbox_instance(
        task, state, injections, number=number, query_id=query_id, rollout=agent.name
    )
    return _confirmed(made)


def _chosen(
    task: Task, rounds: Sequence[Round], level: int
) -> tuple[State, list[tuple[int, Fault]]] | None:
    """The round to stop at, and one new fault of each faulty round up to there.

    Each is proven: mended, the rest of the run would have gone better.
    """
    known: set[tuple[ErrorType, str, str]] = set()
    found: list[tuple[int, Fault]] = []
    for number, each in enumerate(rounds, start=1):
        if each.plan.fault or not each.observations:
            return None
        state = State(each.plan, each.observations, number)
        now = faults(task, each.plan, each.observations)
        new = [f for f in now if _name(f) not in known and is_real(task, state, f)]
        known.update(map(_name, new))
        if not new:
            continue
        found.append((number, new[0]))
        if level == 1 or len(found) == 3 or (len(found) == 2 and number % 2):
            stand = _stand(state.plan, [f for _, f in found], set(map(_name, now)))
            return (state, found) if stand and _went_wrong(task, state) else None
    return None


def _stand(plan: Plan, found: Sequence[Fault], now: set[tuple[ErrorType, str, str]]) -> bool:
    """Whether each fault has run its course or is still there: no later plan took it away."""
    return all(
        _name(fault) in now or (fault.node in plan.by_id and plan.by_id[fault.node].done)
        for fault in found
    )


def _name(fault: Fault) -> tuple[ErrorType, str, str]:
    return fault.error_type, fault.node, fault.parameter


def _went_wrong(task: Task, state: State) -> bool:
    """Whether a run that only goes on from here ends worse than the clean one."""
    clean, now = course(start(task)), course(state)
    rounds = now._replace(rounds=now.rounds + state.round - 1)
    return rounds.is_worse_than(clean)


def _sentence(plan: Plan, fault: Fault) -> str:
    node = plan.by_id.get(fault.node)
    name = f" ({node.name})" if node else ""
    return f"Node {fault.node}{name}: {fault.reason}"


def _confirmed(instance: Instance) -> Instance:
    """The instance, with the error types that the findings name as well."""
    found = {f.error_type.value for f in instance_findings(instance) if f.error_type}
    agreed = [tag for tag in instance.tags if tag in found]
    made = {**instance.extra["sandbox"], "found": agreed}
    return msgspec.structs.replace(instance, extra={**instance.extra, "sandbox": made})
