"""A run as records: a plan a round, the whole trajectory, and where it first failed.

The plan of round k holds the root, every call up to round k, and the response once the final
answer comes. What a log does not hold, the dependencies, is found by ``edges``; each node says in
``edge_origin`` where its dependencies come from: "given", "values" or "order".

Source: a round is one frontier (paper section 2); that a turn of a log is a round is our reading.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pararecover_core.formats.items import Item, Place, Reject
from pararecover_core.formats.logs.edges import Evidence, enums_of
from pararecover_core.formats.logs.run import Call, Run, Turn, joined, txt
from pararecover_core.formats.rows import ReadOptions
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Plan
from pararecover_core.records import (
    Instance,
    Replan,
    Round,
    Source,
    Tool,
    ToolCall,
    Trajectory,
    as_text,
    content_key,
    instance_key,
    parse_tools,
    replan_key,
)
from pararecover_core.results import ResultState, result_state

MOST_TASKS = 60_000
"""Tasks in all plans of a run together: some 340 rounds of one call, 110 of ten."""
ORDER_WIDTH = 20
"""Calls of the round before that a call waits for where only the order is known."""
_LONG_VALUE, _LONG_CALL = 500, 2_000
UNNAMED = "imported"


def items_of(run: Run, place: Place, options: ReadOptions) -> Iterator[Item]:
    """The records that a run makes, or the reject of a run that makes none.

    Args:
        run: As a reader of logs understood it.
        place: Where it stands in its file.
        options: What the caller knows about the file.

    Yields:
        An instance (the first round with a failed call, else the first round), the agent's next
        turn as a replan where a call failed and a turn follows, and the whole trajectory.
    """
    refused = _refused(run)
    if refused:
        yield Item(place, Reject(place, *refused))
        return
    rounds = rounds_of(run)
    at = failing(rounds)
    instance = _instance(run, rounds[at or 0], at or 0, options)
    agent = run.agent.strip() or options.agent or UNNAMED
    yield Item(place, instance)
    if at is not None and at + 1 < len(rounds):
        yield Item(place, _replan(instance.key, agent, rounds[at + 1]))
    yield Item(place, _trajectory(run, instance.key, agent, rounds))


def _refused(run: Run) -> tuple[str, str, str] | None:
    if not any(turn.calls for turn in run.turns):
        got = run.extra.get("error") or "a run without a tool call"
        return str(got)[:300], "at least one call of a tool", "Take the run out of the file"
    total = calls = 0
    for turn in run.turns:
        calls += len(turn.calls)
        total += calls
    if total > MOST_TASKS:
        got = f"a run of {len(run.turns):,} rounds and {calls:,} calls"
        expected = f"at most {MOST_TASKS:,} tasks in the plans of all rounds together"
        return got, expected, "Cut the log into several runs"
    return None


def rounds_of(run: Run) -> tuple[Round, ...]:
    """One round a turn, and one for the final answer."""
    return _Rounds(run).build()


class _Rounds:
    """Builds the rounds of one run, node by node."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.turns = [turn for turn in run.turns if turn.calls]
        self.has_results = any(c.result is not None for turn in self.turns for c in turn.calls)
        self.evidence = Evidence(enums_of(run.tools))
        self.nodes: dict[str, str] = {}  # id of a call in the log to its node
        self.waited: dict[str, None] = {}  # nodes that nothing waits for yet
        query = run.query or (self.turns[0].said if self.turns else "")
        self.evidence.heard(run.query)
        root = {"id": ROOT, "name": "", "para": {}, "desc": _cut(query, _LONG_CALL)}
        self.tasks: list[dict[str, Any]] = [root | {"dep": [], "status": True}]
        self.previous: list[str] = []

    def build(self) -> tuple[Round, ...]:
        rounds = [self._round(turn) for turn in self.turns]
        if self.run.answer is None or self.run.planned:
            return tuple(rounds)
        plan = Plan.parse({"tasks": [*self.tasks, self._response()]})
        thought = self.run.answer_thought or self.run.answer
        return (*rounds, Round(plan, (), thought))

    def _round(self, turn: Turn) -> Round:
        self.evidence.heard(turn.said)
        first = len(self.tasks)
        ids = [str(first + offset) for offset in range(len(turn.calls))]
        for node, call in zip(ids, turn.calls, strict=True):
            if call.id:
                self.nodes[call.id] = node
        fresh = [self._task(node, call) for node, call in zip(ids, turn.calls, strict=True)]
        tasks = [*self.tasks, *fresh]
        if self.run.planned and self.run.answer is not None:
            tasks.append(self._response())
        plan = Plan.parse({"tasks": tasks})
        calls = [c for c in zip(ids, turn.calls, strict=True) if c[1].result is not None]
        observations = tuple(_observation(node, call) for node, call in calls)
        for (node, call), seen in zip(calls, observations, strict=True):
            self.evidence.called(node, call.arguments)
            self.evidence.returned(node, seen.result)
        ran = (call.result is not None or not self.has_results for call in turn.calls)
        self.tasks += [task | {"status": done} for task, done in zip(fresh, ran, strict=True)]
        self.previous = ids
        return Round(plan, observations, turn.thought)

    def _task(self, node: str, call: Call) -> dict[str, Any]:
        dependencies, origin = self._dependencies(call)
        for dependency in dependencies:
            self.waited.pop(dependency, None)
        self.waited[node] = None
        task = {
            "id": node,
            "name": call.name,
            "para": _shortened(call.arguments),
            "desc": "",
            "dep": dependencies or [ROOT],
            "status": False,
        }
        if dependencies:
            task["edge_origin"] = dict.fromkeys(dependencies, origin)
        return task

    def _dependencies(self, call: Call) -> tuple[list[str], str]:
        if call.needs is not None:
            return [self.nodes.get(need, f"call {need}") for need in call.needs], "given"
        quoted = self.evidence.sources(call.arguments) if self.previous else ()
        if quoted:
            return sorted(quoted, key=int), "values"
        return self.previous[-ORDER_WIDTH:], "order"

    def _response(self) -> dict[str, Any]:
        """The final answer: it waits for every executed node that nothing else waits for."""
        done = {task["id"] for task in self.tasks if task["status"]}
        ends = [node for node in self.waited if node in done or self.run.planned]
        ends = ends[-MOST_TASKS // 100 :] or [ROOT]
        task = {
            "id": RESPONSE,
            "name": "",
            "para": {},
            "desc": _cut(self.run.answer or "", _LONG_CALL),
            "dep": ends,
            "status": False,
        }
        origin = "given" if self.run.planned else "order"
        return task if ends == [ROOT] else task | {"edge_origin": dict.fromkeys(ends, origin)}


def _shortened(arguments: Any) -> Any:
    """Arguments as a node shows them: a plan is kept for every round, long texts only once."""
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        text = as_text(arguments)
        return arguments if len(text) <= _LONG_CALL else [_cut(text, _LONG_CALL)]
    if len(dumps(arguments)) <= _LONG_CALL:
        return arguments
    kept = list(arguments.items())[:50]
    return {_cut(str(name), _LONG_VALUE): _short_value(value) for name, value in kept}


def _short_value(value: Any) -> Any:
    text = as_text(value)
    return value if len(text) <= _LONG_VALUE else _cut(text, _LONG_VALUE)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def _observation(node: str, call: Call) -> ToolCall:
    """What a call gave; where only the log says that it failed, the text says so too."""
    result = call.result or ""
    if call.failed and result_state(result) is ResultState.OK:
        result = f"Error: {result}"
    return ToolCall(call.name, call.arguments, result, node)


def failing(rounds: tuple[Round, ...]) -> int | None:
    """Index of the first round with a call that failed, ran out of time or gave nothing."""
    for at, one in enumerate(rounds):
        if any(result_state(call.result) is not ResultState.OK for call in one.observations):
            return at
    return None


def _instance(run: Run, one: Round, at: int, options: ReadOptions) -> Instance:
    said = [turn.said for turn in run.turns[: at + 1]] if not run.query else []
    query = run.query or joined(*said) or "(the log holds no query)"
    source = options.source or Source.UNKNOWN.value
    calls = msgspec.to_builtins(one.observations)
    return Instance(
        instance_key(
            id=run.id,
            query_id=run.query_id,
            level=options.level,
            source=source,
            query=query,
            plan=one.plan.given,
            calls=calls,
        ),
        run.id,
        run.query_id,
        options.level,
        Source(source),
        query,
        _tools(run.tools),
        one.plan,
        one.observations,
        extra={"log": run.form},
    )


def _tools(given: Any) -> tuple[Tool, ...]:
    """The listed tools; a list that cannot be read is left out, since a log stands without it."""
    try:
        return parse_tools(given)
    except ValueError:
        return ()


def _replan(instance: str, agent: str, one: Round) -> Replan:
    key = replan_key(instance=instance, agent=agent, thought=one.thought, plan=one.plan.given)
    return Replan(key, instance, agent, one.thought, one.plan)


def _trajectory(run: Run, instance: str, agent: str, rounds: tuple[Round, ...]) -> Trajectory:
    answered = run.answer is not None and not run.planned
    success = answered if run.success is None else run.success
    outcome = "response" if answered else "plan" if run.planned else "no response"
    if run.success is False and answered:
        outcome = "task failed"
    extra = {"log": run.form, **{name: v for name, v in run.extra.items() if v not in (None, "")}}
    key = content_key(instance, agent, *(as_text(one.plan.given) for one in rounds), txt(outcome))
    return Trajectory(key, instance, agent, rounds, success, outcome, extra)
