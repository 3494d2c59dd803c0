"""Error injection: 14 injectors, each proven real by execution, and the two levels.

LEVEL-1 puts one error into the most recent round; LEVEL-2 lets it propagate and adds further
errors downstream, two or three rounds in all.

Source: paper sections 2.1.2 and 2.1.3, table 12 (the definitions that the injectors follow).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from pararecover_core.agents.advance import Draft, advanced
from pararecover_core.agents.builtin import Ignore
from pararecover_core.execute import ROUND_LIMIT, Environment, run
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Node, Plan, text_of
from pararecover_core.records import Instance, Source, ToolCall, instance_key
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.compose import Task, node
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.sandbox.kinds import Kind
from pararecover_core.sandbox.registry import SandboxTool, tools
from pararecover_core.sandbox.success import facts, reached_goals
from pararecover_core.taxonomy import ErrorType

TIMEOUT_TEXTS = (
    "Error: request timed out after 30 seconds.",
    "Timeout Error: the service did not answer within 30 seconds.",
    '{"error": "timeout", "message": "no answer after 30 s"}',
)
EMPTY_TEXTS = ("", "[]", "{}", "null")
_TRIES = 12


class Injection(msgspec.Struct, frozen=True):
    """An error that was put in.

    Attributes:
        node: Id of the faulty node; for a missing call, of the node that was taken out.
        parameter: The parameter at fault, "" where it is not about one.
        change: What was changed, in a few words.
        reason: The error in one sentence.
        round: The round that carries it, from 1.
    """

    error_type: ErrorType
    node: str
    parameter: str
    change: str
    reason: str
    round: int = 0


class State(NamedTuple):
    """A workflow between two rounds: the plan whose frontier has just been run."""

    plan: Plan
    observations: tuple[ToolCall, ...]
    round: int


class _Change(NamedTuple):
    plan: Plan
    injection: Injection
    returns: dict[str, str] = {}  # noqa: RUF012 - node id to the text its call gives instead


_Injector = Callable[[Plan, Task, Draw], _Change | None]


def _pending(plan: Plan, *, tools_only: bool = True) -> list[Node]:
    """Pending calls, those of the frontier first."""
    frontier = set(plan.frontier())
    found = [n for n in plan.nodes if not n.done and (n.calls_tool or not tools_only)]
    return sorted(found, key=lambda n: n.id not in frontier)


def _pick(draw: Draw, nodes: Sequence[Node]) -> Node | None:
    """A node, with a lean to the front, where the frontier is."""
    if not nodes:
        return None
    return nodes[min(draw.integer(0, len(nodes) - 1), draw.integer(0, len(nodes) - 1))]


def _legal_tool(found: Node) -> SandboxTool | None:
    made = tools().get(found.name)
    legal = made and not (set(found.parameters.named) - set(made.inputs))
    return made if legal else None


def _edit(plan: Plan, node_id: str, **fields: Any) -> Plan:
    draft = Draft(plan)
    draft[node_id].update(fields)
    return Plan.parse(draft.given())


def _data_needs(found: Node) -> set[str]:
    """Nodes that the values of a call refer to."""
    text = dumps(found.parameters.named)
    return {dep for dep in found.dependencies if f'"${dep}.' in text or f'"${dep}"' in text}


def _change(
    plan: Plan, kind: ErrorType, found: Node, what: str, why: str, par: str = ""
) -> _Change:
    reason = f"Node {found.id} ({found.name}): {why}"
    return _Change(plan, Injection(kind, found.id, par, what, reason))


def _dependence_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _data_needs(n)])
    if found is None:
        return None
    right = draw.choice(sorted(_data_needs(found)))
    behind = plan.impact(found.id) | {found.id, right, RESPONSE}
    wrong = [n.id for n in plan.nodes if n.id not in behind and n.id not in found.dependencies]
    if not wrong:
        return None
    other = draw.choice(wrong)
    dependencies = [other if dep == right else dep for dep in found.dependencies]
    return _change(
        _edit(plan, found.id, dep=dependencies), ErrorType.DEPENDENCE_ERROR, found,
        f"dependency {right} -> {other}",
        f"it should depend on node {right}, whose output it uses, but depends on node {other}.",
    )  # fmt: skip


def _dependence_null(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _data_needs(n)])
    if found is None:
        return None
    was = ", ".join(found.dependencies)
    return _change(
        _edit(plan, found.id, dep=[]), ErrorType.DEPENDENCE_NULL, found,
        f"dependencies {was} -> none",
        f"it has no dependencies, though it uses the output of node {was}.",
    )  # fmt: skip


def _parallelism_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    pairs = [
        (n, dep)
        for n in _pending(plan)
        for dep in sorted(_data_needs(n))
        if not plan.by_id[dep].done
    ]
    if not pairs:
        return None
    found, first = draw.choice(pairs)
    dependencies = [dep for dep in found.dependencies if dep != first]
    dependencies += [dep for dep in plan.by_id[first].dependencies if dep not in dependencies]
    return _change(
        _edit(plan, found.id, dep=dependencies), ErrorType.PARALLELISM_ERROR, found,
        f"parallel to {first}",
        f"it needs the output of node {first}, but is arranged in parallel with it.",
    )  # fmt: skip


def _serial_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    pairs = [
        (n, other.id)
        for n in _pending(plan)
        for other in _pending(plan)
        if other.id not in plan.ancestors(n.id) | plan.impact(n.id) | {n.id}
    ]
    if not pairs:
        return None
    found, other = draw.choice(pairs)
    dependencies = [dep for dep in found.dependencies if dep != ROOT] + [other]
    return _change(
        _edit(plan, found.id, dep=dependencies), ErrorType.SERIAL_ERROR, found,
        f"needless dependency on {other}",
        f"it depends on node {other} without using its output; the two could run in parallel.",
    )  # fmt: skip


_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda name: name.replace("_", "-") if "_" in name else f"{name}_value",
    lambda name: (
        "".join(p.capitalize() if i else p for i, p in enumerate(name.split("_")))
        if "_" in name
        else f"{name}Param"
    ),
    lambda name: f"input_{name}",
    lambda name: f"{name}s",
)


def _parameter_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if n.parameters.named and _legal_tool(n)])
    if found is None:
        return None
    right = draw.choice(sorted(found.parameters.named))
    wrong = draw.choice(_SPELLINGS)(right)
    para = {wrong if k == right else k: v for k, v in found.parameters.named.items()}
    return _change(
        _edit(plan, found.id, para=para), ErrorType.PARAMETER_ERROR, found,
        f"{right} -> {wrong}",
        f"the parameter '{wrong}' is not defined for the tool; it should be '{right}'.", wrong,
    )  # fmt: skip


def _parameter_missing(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _legal_tool(n) and n.parameters.named])
    if found is None:
        return None
    required = [p for p in tools()[found.name].required if p in found.parameters.named]
    if not required:
        return None
    gone = draw.choice(required)
    para = {k: v for k, v in found.parameters.named.items() if k != gone}
    return _change(
        _edit(plan, found.id, para=para), ErrorType.PARAMETER_MISSING, found, f"without {gone}",
        f"the required parameter '{gone}' is missing.", gone,
    )  # fmt: skip


def _wrong_type(kind: Kind, value: Any, draw: Draw) -> Any:
    if kind.json_type == "number":
        text = f"{value:g}" if isinstance(value, int | float) else str(draw.integer(2, 99))
        return draw.choice([text, [float(text)]])
    if kind.json_type == "string":
        number = draw.integer(100, 999)
        return draw.choice([number, [str(value)], {"value": str(value)}])
    return draw.choice(["item one, item two", 3])


def _type_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _legal_tool(n) and n.parameters.named])
    if found is None:
        return None
    parameter = draw.choice(sorted(found.parameters.named))
    kind = tools()[found.name].inputs[parameter].kind
    value = _wrong_type(kind, found.parameters.named[parameter], draw)
    para = {**found.parameters.named, parameter: value}
    return _change(
        _edit(plan, found.id, para=para), ErrorType.TYPE_ERROR, found,
        f"{parameter} = {dumps(value)}",
        f"the parameter '{parameter}' must be {kind.json_type}, but is {dumps(value)}.", parameter,
    )  # fmt: skip


_BAD_TEXTS = ("unknown", "n/a", "none_selected")


def _bad_value(kind: Kind, draw: Draw) -> Any:
    """A value of the right type that the kind does not allow; None where it allows all."""
    candidates: list[Any] = []
    if kind.json_type == "number":
        candidates = [-draw.integer(1, 90), 0, 10**9]
    elif kind.json_type == "string":
        bad_date = f"2026-02-{draw.integer(30, 32)}"
        candidates = [bad_date, "25:61", "Atlantis", "XX-00000A", "someone(at)example", ""]
        candidates = [draw.choice(_BAD_TEXTS), *candidates]
        near = {
            "date": bad_date,
            "time": "25:61",
            "city": "Atlantis",
            "email": "someone(at)example",
        }
        candidates.insert(0, near.get(kind.name, "XX-00000A"))
    elif kind.json_type == "array":
        candidates = [[]]
    return next((value for value in candidates if kind.check(value)), None)


def _parameter_invalid(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _legal_tool(n) and n.parameters.named])
    if found is None:
        return None
    for parameter in draw.sample(sorted(found.parameters.named), len(found.parameters.named)):
        kind = tools()[found.name].inputs[parameter].kind
        value = _bad_value(kind, draw)
        if value is not None:
            para = {**found.parameters.named, parameter: value}
            return _change(
                _edit(plan, found.id, para=para), ErrorType.PARAMETER_INVALID, found,
                f"{parameter} = {dumps(value)}",
                f"the value {dumps(value)} of '{parameter}' is invalid; "
                f"expected {kind.check(value)}.", parameter,
            )  # fmt: skip
    return None


def _misspelt(name: str, draw: Draw) -> str:
    parts = name.split("_")
    forms = [
        "".join(p.capitalize() if i else p for i, p in enumerate(parts)),
        "_".join(reversed(parts)),
        name[:-1] if len(name) > 4 else f"{name}x",
        f"{name}_tool",
        name[:2] + name[3] + name[2] + name[4:],
    ]
    legal = [form for form in forms if form not in tools()]
    return draw.choice(legal)


def _tool_name_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if n.name in tools()])
    if found is None:
        return None
    wrong = _misspelt(found.name, draw)
    return _change(
        _edit(plan, found.id, name=wrong), ErrorType.TOOL_NAME_ERROR, found,
        f"{found.name} -> {wrong}",
        f"the tool '{wrong}' is not in the tool list; it should be '{found.name}'.",
    )  # fmt: skip


def _tool_select_error(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, [n for n in _pending(plan) if _legal_tool(n) and n.parameters.named])
    if found is None:
        return None
    right = tools()[found.name]
    for name in draw.sample(task.tools, len(task.tools)):
        para = _mapped(found, right, tools()[name]) if name != found.name else None
        if para is not None:
            return _change(
                _edit(plan, found.id, name=name, para=para), ErrorType.TOOL_SELECT_ERROR, found,
                f"{found.name} -> {name}",
                f"the step needs '{found.name}', but the plan calls '{name}'.",
            )  # fmt: skip
    return None


def _mapped(found: Node, right: SandboxTool, other: SandboxTool) -> dict[str, Any] | None:
    """The values of a call under another tool's parameter names; None where kinds differ."""
    waiting = dict(found.parameters.named)
    para = {}
    for name in other.required:
        kind = other.inputs[name].kind
        match = next((k for k in waiting if right.inputs[k].kind.name == kind.name), None)
        if match is None:
            return None
        para[name] = waiting.pop(match)
    return para or None


def _toolcall_missing(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    found = _pick(draw, _pending(plan))
    if found is None or len(_pending(plan)) < 2:
        return None
    draft = Draft(plan)
    draft.remove(found.id)
    for each in draft.pending():
        if found.id in (each.get("dep") or []):
            kept = [dep for dep in each["dep"] if dep != found.id]
            each["dep"] = list(dict.fromkeys([*kept, *found.dependencies]))
    return _change(
        Plan.parse(draft.given()), ErrorType.TOOLCALL_MISSING, found, "call taken out",
        f"the plan lacks the call of '{found.name}', which the task needs.",
    )  # fmt: skip


def _toolcall_redundancy(plan: Plan, task: Task, draw: Draw) -> _Change | None:
    called = [n for n in plan.nodes if n.calls_tool and n.name in tools()]
    source = _pick(draw, [n for n in called if n.done] or called)
    user = _pick(draw, [n for n in _pending(plan, tools_only=False) if n.id not in (ROOT,)])
    if source is None or user is None or source.id == user.id:
        return None
    draft = Draft(plan)
    taken = [int(n.id) for n in plan.nodes if n.id.isdecimal()]
    new_id = str(max(taken, default=0) + 1)
    dependencies = list(source.dependencies) or [ROOT]
    draft.insert(
        node(
            new_id, source.name, dict(source.parameters.named), f"Call {source.name}.", dependencies
        )
    )
    if user.id not in plan.ancestors(source.id):
        waiting = [dep for dep in draft[user.id].get("dep") or [] if dep != ROOT]
        draft[user.id]["dep"] = [*waiting, new_id]
    changed = Plan.parse(draft.given())
    injection = Injection(
        ErrorType.TOOLCALL_REDUNDANCY, new_id, "", f"repeats node {source.id}",
        f"Node {new_id} ({source.name}): it repeats the call of node {source.id}; "
        "the task does not need it.",
    )  # fmt: skip
    return _Change(changed, injection)


def _return(kind: ErrorType, texts: tuple[str, ...], what: str) -> _Injector:
    def inject(plan: Plan, task: Task, draw: Draw) -> _Change | None:
        frontier = [plan.by_id[i] for i in plan.frontier() if plan.by_id[i].calls_tool]
        if not frontier:
            return None
        found, text = draw.choice(frontier), draw.choice(texts)
        reason = f"Node {found.id} ({found.name}): the call {what}."
        injection = Injection(kind, found.id, "", f"returned {text!r}", reason)
        return _Change(plan, injection, {found.id: text})

    return inject


INJECTORS: dict[ErrorType, _Injector] = {
    ErrorType.DEPENDENCE_ERROR: _dependence_error,
    ErrorType.DEPENDENCE_NULL: _dependence_null,
    ErrorType.PARALLELISM_ERROR: _parallelism_error,
    ErrorType.SERIAL_ERROR: _serial_error,
    ErrorType.PARAMETER_ERROR: _parameter_error,
    ErrorType.PARAMETER_INVALID: _parameter_invalid,
    ErrorType.PARAMETER_MISSING: _parameter_missing,
    ErrorType.TYPE_ERROR: _type_error,
    ErrorType.NULL_ERROR: _return(ErrorType.NULL_ERROR, EMPTY_TEXTS, "returned nothing"),
    ErrorType.TIMEOUT_ERROR: _return(ErrorType.TIMEOUT_ERROR, TIMEOUT_TEXTS, "timed out"),
    ErrorType.TOOL_NAME_ERROR: _tool_name_error,
    ErrorType.TOOL_SELECT_ERROR: _tool_select_error,
    ErrorType.TOOLCALL_MISSING: _toolcall_missing,
    ErrorType.TOOLCALL_REDUNDANCY: _toolcall_redundancy,
}


class Course(NamedTuple):
    """How a workflow ends when nobody repairs it: what an injection is measured by."""

    failed: int
    rounds: int
    calls: int
    facts: tuple[str, ...]
    reached: bool


def course(state: State, environment: Environment) -> Course:
    """Carry a state on with an agent that only goes on.

    Args:
        state: The workflow.
        environment: It must know the results behind the plan; it is used up.

    Returns:
        Failed calls, rounds and calls from here on, and the facts of the answer.
    """
    start = Instance("", "", "", 0, Source.SANDBOX, "", (), state.plan, state.observations)
    trajectory = run(start, Ignore(), environment, round_limit=ROUND_LIMIT)
    failed = sum(
        result_state(seen.result) is not ResultState.OK
        for each in trajectory.rounds
        for seen in each.observations
    )
    found = facts(trajectory.rounds[-1].plan, trajectory.rounds)
    return Course(
        failed,
        int(trajectory.extra["rounds"]),
        int(trajectory.extra["calls"]),
        tuple(sorted(dumps(fact) for fact in found)),
        trajectory.success,
    )


def _observe(plan: Plan, returns: dict[str, str]) -> tuple[ToolCall, ...]:
    """Run the frontier; some calls give another text."""
    seen = SandboxEnvironment(plan).observe(plan, plan.frontier())
    return tuple(
        msgspec.structs.replace(call, result=returns[call.node]) if call.node in returns else call
        for call in seen
    )


def _course_of(state: State) -> Course:
    environment = SandboxEnvironment(state.plan)
    environment.learn(state.observations)
    return course(state, environment)


def inject(
    state: State, error_type: ErrorType, task: Task, draw: Draw
) -> tuple[State, Injection] | None:
    """Put one error into the plan or the tool return of a round, and prove that it is real.

    Args:
        state: The workflow whose frontier was just run.
        error_type: The type of the error.
        task: The task behind it.
        draw: Where choices come from.

    Returns:
        The faulty state with its new observations, and what was put in; None where no change
        of this type makes a difference: without repair it must fail a call, cost a round or a
        call, or change the answer.
    """
    before: Course | None = None
    for _ in range(_TRIES):
        changed = INJECTORS[error_type](state.plan, task, draw)
        if changed is None:
            return None
        if changed.plan.fault:
            continue
        faulty = State(changed.plan, _observe(changed.plan, changed.returns), state.round)
        before = before or _course_of(state)
        after = _course_of(faulty)
        worse = (
            after.failed > before.failed
            or after.rounds > before.rounds
            or after.calls > before.calls
            or after.facts != before.facts
            or (before.reached and not after.reached)
        )
        if worse:
            return faulty, msgspec.structs.replace(changed.injection, round=state.round)
    return None


def advance(state: State) -> State | None:
    """One more round by an agent that only goes on; None when nothing but the response is left."""
    plan = Plan.parse(advanced(state.plan, state.observations).given())
    if not any(plan.by_id[node_id].calls_tool for node_id in plan.frontier()):
        return None
    return State(plan, _observe(plan, {}), state.round + 1)


def start(task: Task) -> State:
    """The first round of the optimal plan, run without a fault."""
    plan = task.plan()
    return State(plan, _observe(plan, {}), 1)


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
    draw = Draw("inject", seed, *types)
    depth = max(task.layers)
    if depth < len(types):
        return None
    state: State | None = start(task)
    for _ in range(draw.integer(0, depth - len(types))):
        state = advance(state) if state else None
    injections: list[Injection] = []
    for index, error_type in enumerate(types):
        if index:
            state = advance(state) if state else None
        made = inject(state, error_type, task, draw) if state else None
        if made is None:
            return None
        state, injection = made
        injections.append(injection)
    assert state is not None
    return _instance(task, state, injections, number=number, query_id=query_id)


def _instance(
    task: Task, state: State, injections: Sequence[Injection], *, number: int, query_id: str
) -> Instance:
    level = 1 if len(injections) == 1 else 2
    plan, calls = dumps(state.plan.given), dumps([_as_call(c) for c in state.observations])
    goals = [[task.steps[goal].tool, task.results[goal]] for goal in task.goals]
    return Instance(
        key=instance_key(
            id=str(number), query_id=query_id, level=level, source=Source.SANDBOX,
            query=task.query, plan=plan, calls=calls,
        ),
        id=str(number),
        query_id=query_id,
        level=level,
        source=Source.SANDBOX,
        query=task.query,
        tools=tuple(tools()[name].record() for name in task.tools),
        plan=Plan.parse(plan),
        observations=state.observations,
        tags=tuple(i.error_type.value for i in injections),
        error_reason=" ".join(i.reason for i in injections),
        round_gt=task.rounds,
        funcall_times_gt=task.calls,
        extra={
            "sandbox": {
                "seed": task.seed,
                "goals": goals,
                "injections": [msgspec.to_builtins(i) for i in injections],
            }
        },
    )  # fmt: skip


def _as_call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments, "results": call.result}


def correct(rounds: Sequence[Any], goals: Sequence[Sequence[Any]]) -> bool:
    """Whether a run's answer holds every goal fact of its instance."""
    found = facts(rounds[-1].plan, rounds)
    return reached_goals(found, [(text_of(tool), value) for tool, value in goals])
