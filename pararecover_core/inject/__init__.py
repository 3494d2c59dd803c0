"""Error injection: 14 injectors, each proven real by execution, and the two levels.

LEVEL-1 puts one error into the most recent round; LEVEL-2 lets it propagate and adds further
errors downstream, two or three rounds in all.

Source: paper sections 2.1.2 and 2.1.3, table 12 (the definitions that the injectors follow).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from pararecover_core.agents.advance import advanced
from pararecover_core.inject import call_errors, plan_errors
from pararecover_core.inject.call_errors import EMPTY_TEXTS, TIMEOUT_TEXTS
from pararecover_core.inject.course import Course, course
from pararecover_core.inject.model import Change, Injection, Injector, Scene, State
from pararecover_core.literals import dumps
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Source, ToolCall, instance_key
from pararecover_core.sandbox.compose import Task
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.sandbox.registry import tools
from pararecover_core.taxonomy import ErrorType

__all__ = [
    "INJECTORS",
    "RETURNS",
    "Change",
    "Course",
    "Injection",
    "Injector",
    "Scene",
    "State",
    "advance",
    "course",
    "inject",
    "make_instance",
    "sandbox_instance",
    "start",
]

_TRIES = 8
"""Changes of one type that are tried in one round."""
_DRAWS = 4
"""Ways to spread the errors over a task's rounds that are tried."""

_E = ErrorType
INJECTORS: dict[ErrorType, Injector] = {
    _E.DEPENDENCE_ERROR: plan_errors.dependence_error,
    _E.DEPENDENCE_NULL: plan_errors.dependence_null,
    _E.PARALLELISM_ERROR: plan_errors.parallelism_error,
    _E.SERIAL_ERROR: plan_errors.serial_error,
    _E.PARAMETER_ERROR: call_errors.parameter_error,
    _E.PARAMETER_INVALID: call_errors.parameter_invalid,
    _E.PARAMETER_MISSING: call_errors.parameter_missing,
    _E.TYPE_ERROR: call_errors.type_error,
    _E.NULL_ERROR: call_errors.returned(_E.NULL_ERROR, EMPTY_TEXTS, "returned nothing"),
    _E.TIMEOUT_ERROR: call_errors.returned(_E.TIMEOUT_ERROR, TIMEOUT_TEXTS, "timed out"),
    _E.TOOL_NAME_ERROR: call_errors.tool_name_error,
    _E.TOOL_SELECT_ERROR: call_errors.tool_select_error,
    _E.TOOLCALL_MISSING: plan_errors.toolcall_missing,
    _E.TOOLCALL_REDUNDANCY: plan_errors.toolcall_redundancy,
}

RETURNS = frozenset({_E.NULL_ERROR, _E.TIMEOUT_ERROR})
"""Errors in what a tool returns; all others are in the plan."""


def observe(plan: Plan, returns: dict[str, str]) -> tuple[ToolCall, ...]:
    """Run the frontier; some calls give another text."""
    seen = SandboxEnvironment(plan).observe(plan, plan.frontier())
    return tuple(
        msgspec.structs.replace(call, result=returns[call.node]) if call.node in returns else call
        for call in seen
    )


def inject(
    state: State,
    error_type: ErrorType,
    task: Task,
    draw: Draw,
    earlier: Sequence[Injection] = (),
) -> tuple[State, Change] | None:
    """Put one error into the plan or the tool return of a round, and prove that it is real.

    Args:
        state: The workflow whose frontier was just run.
        error_type: The type of the error.
        task: The task behind it.
        draw: Where choices come from.
        earlier: Errors of the rounds before; they are left as they are.

    Returns:
        The faulty state with its new observations, and what was changed; None where no change
        of this type makes a difference: without repair it must fail a call, cost a round or a
        call, or change the answer (a lost return must change the answer), and it must not take
        the cost of an earlier error away.
    """
    before = course(state)
    scene = Scene(state.plan, task, before.failed, [each.node for each in earlier])
    for _ in range(_TRIES):
        changed = INJECTORS[error_type](scene, draw)
        if changed is None:
            return None
        if changed.plan.fault:
            continue
        faulty = State(changed.plan, observe(changed.plan, changed.returns), state.round)
        after = course(faulty)
        lost = error_type in RETURNS
        real = after.answer != before.answer if lost else after.is_worse_than(before)
        if real and _stand(earlier, before, after):
            injection = msgspec.structs.replace(changed.injection, round=state.round)
            return faulty, changed._replace(injection=injection)
    return None


def _stand(earlier: Sequence[Injection], before: Course, after: Course) -> bool:
    """Whether the errors of earlier rounds still cost what they did before another one came."""
    waited = any(each.error_type is _E.SERIAL_ERROR for each in earlier)
    return set(before.failed) <= set(after.failed) and (not waited or after.rounds >= before.rounds)


def advance(state: State) -> State | None:
    """One more round by an agent that only goes on; None when nothing but the response is left."""
    plan = Plan.parse(advanced(state.plan, state.observations).given())
    if not any(plan.by_id[node_id].calls_tool for node_id in plan.frontier()):
        return None
    return State(plan, observe(plan, {}), state.round + 1)


def start(task: Task) -> State:
    """The first round of the optimal plan, run without a fault."""
    plan = task.plan()
    return State(plan, observe(plan, {}), 1)


def make_instance(
    task: Task, types: Sequence[ErrorType], *, seed: str, number: int, query_id: str
) -> Instance | None:
    """A LEVEL-1 instance (one type) or a LEVEL-2 instance (two or three types, in order).

    Args:
        task: The task that goes wrong.
        types: N error types, one a round, 1 <= N <= 3.
        seed: What the choices depend on.
        number: The instance's id in its file.
        query_id: The id that all instances of this task share.

    Returns:
        The instance, or None where the task has no place for these errors.
    """
    room = max(task.layers) - len(types)
    if room < 0:
        return None
    first = start(task)
    for number_of_draw in range(_DRAWS):
        draw = Draw("inject", seed, number_of_draw, *types)
        early = min(draw.integer(0, room), draw.integer(0, room))
        made = _errors(task, types, first, early if len(types) > 1 else draw.integer(0, room), draw)
        if made is not None:
            state, changes = made
            return sandbox_instance(
                task,
                state,
                [c.injection for c in changes],
                extra_tools=[name for c in changes for name in c.tools],
                number=number,
                query_id=query_id,
            )
    return None


def _errors(
    task: Task, types: Sequence[ErrorType], first: State, good_rounds: int, draw: Draw
) -> tuple[State, list[Change]] | None:
    """Good rounds, then one error a round, each carried on by an agent that only goes on."""
    state: State | None = first
    for _ in range(good_rounds):
        state = advance(state) if state else None
    changes: list[Change] = []
    for index, error_type in enumerate(types):
        if index:
            state = advance(state) if state else None
        earlier = [each.injection for each in changes]
        made = inject(state, error_type, task, draw, earlier) if state else None
        if made is None:
            return None
        state, changed = made
        changes.append(changed)
    assert state is not None
    return state, changes


def sandbox_instance(
    task: Task,
    state: State,
    injections: Sequence[Injection],
    *,
    number: int,
    query_id: str,
    extra_tools: Sequence[str] = (),
    rollout: str = "",
) -> Instance:
    """A state of a task's workflow as a benchmark item.

    Args:
        task: The task; its recipe and goal facts go into ``extra["sandbox"]``.
        state: The faulty workflow.
        injections: N errors, one a round, in order; N = 1 is LEVEL-1.
        number: The instance's id in its file.
        query_id: The id that all instances of this task share.
        extra_tools: Tools to list beside the task's own.
        rollout: Name of the agent whose run went wrong; "" for injected errors.
    """
    level = 1 if len(injections) == 1 else 2
    source = Source.ROLLOUT if rollout else Source.SANDBOX
    plan, calls = dumps(state.plan.given), [as_call(c) for c in state.observations]
    goals = [[task.steps[goal].tool, task.results[goal]] for goal in task.goals]
    listed = _listed(task, extra_tools)
    about = {
        "task": msgspec.to_builtins(task.recipe),
        "goals": goals,
        "injections": [msgspec.to_builtins(i) for i in injections],
        **({"agent": rollout} if rollout else {}),
    }
    return Instance(
        key=instance_key(
            id=str(number), query_id=query_id, level=level, source=source,
            query=task.query, plan=plan, calls=calls,
        ),
        id=str(number),
        query_id=query_id,
        level=level,
        source=source,
        query=task.query,
        tools=tuple(tools()[name].record() for name in listed),
        plan=msgspec.structs.replace(state.plan, given=plan),
        observations=state.observations,
        tags=tuple(i.error_type.value for i in injections),
        error_reason=" ".join(i.reason for i in injections),
        round_gt=task.rounds,
        funcall_times_gt=task.calls,
        extra={"sandbox": about},
    )  # fmt: skip


def _listed(task: Task, extra: Sequence[str]) -> list[str]:
    """The task's tools with further ones in between, in an order that the task's seed gives."""
    listed = list(task.tools)
    draw = Draw("listed", task.recipe.seed)
    for name in dict.fromkeys(extra):
        if name not in listed:
            listed.insert(draw.integer(0, len(listed)), name)
    return listed


def as_call(call: ToolCall) -> dict[str, Any]:
    """An observation as the published files write it."""
    return {"name": call.name, "arguments": call.arguments, "results": call.result}
