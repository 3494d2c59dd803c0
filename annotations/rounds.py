"""Rounds to step through: of a stored run, of records that continue one another, of an answer.

The published files hold single decision points; several of them may be consecutive rounds of one
rollout. They continue one another when the query is the same and the earlier plan's executed
nodes are all executed in the later one, which has more of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pararecover_core.draw import parameter_text, picture
from pararecover_core.literals import loads
from pararecover_core.mentions import segments
from pararecover_core.plan import RESPONSE, ROOT, FieldChange, Parameters, Plan
from pararecover_core.records import (
    Instance,
    Replan,
    Round,
    Source,
    ToolCall,
    Trajectory,
    as_text,
    from_data,
)
from pararecover_core.results import ResultState, result_state

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["Story", "chain", "content", "rounds_of", "strip"]

MOST_CANDIDATES = 400
"""Records of one query that are looked at for a continuation."""
_TEXT, _CELL, _ROWS = 8_000, 600, 100


class Story(msgspec.Struct, frozen=True):
    """Rounds in order, and what is known of them.

    Attributes:
        rounds: Each with its plan, what running it gave, and the thought that led to the plan.
        numbers: The number of each round in its rollout, from 1.
        instances: Key of the instance that a round comes from, "" for an answer or a run.
        at: Index of the round that the chosen instance or answer is.
        kind: "run" (a stored trajectory), "records" (continuing ones) or "item".
        answered: Whether the last round is an agent's answer or later.
        success, outcome: Of a run, else None and "".
    """

    rounds: tuple[Round, ...]
    numbers: tuple[int, ...]
    instances: tuple[str, ...]
    at: int
    kind: str
    answered: bool
    success: bool | None = None
    outcome: str = ""


def executed(plan: Plan) -> dict[str, str]:
    """Executed nodes of a plan with the names of their tools, the root aside."""
    return {node.id: node.name for node in plan.by_id.values() if node.done and node.id != ROOT}


def continues(earlier: Plan, later: Plan) -> bool:
    """Whether one plan is a later round of the same work as another."""
    was, now = executed(earlier), executed(later)
    return len(was) < len(now) and all(now.get(node) == name for node, name in was.items())


def chain(store: "Store", instance: Instance) -> tuple[Instance, ...]:
    """The records that are rounds of the same rollout as an instance, itself among them.

    Augmented records are variants of one another, not rounds: they stand alone, and so does a
    record without a query id.

    Args:
        store: The database.
        instance: One decision point.

    Returns:
        N instances in order of rounds, N >= 1.
    """
    if not instance.query_id or instance.source is Source.AUGMENTED or not instance.plan.nodes:
        return (instance,)
    others = [one for one in _same_query(store, instance) if one.key != instance.key]
    earlier: list[Instance] = []
    first = instance
    while found := [one for one in others if continues(one.plan, first.plan)]:
        first = max(found, key=lambda one: len(executed(one.plan)))
        earlier.insert(0, first)
    later: list[Instance] = []
    last = instance
    while found := [one for one in others if continues(last.plan, one.plan)]:
        last = min(found, key=lambda one: len(executed(one.plan)))
        later.append(last)
    return (*earlier, instance, *later)


def _same_query(store: "Store", instance: Instance) -> list[Instance]:
    query = (
        "SELECT b.body FROM instance i JOIN instance_body b USING (n) WHERE i.query_id = ? "
        "AND i.level = ? AND i.source = ? ORDER BY i.n LIMIT ?"
    )
    values = (instance.query_id, instance.level, instance.source.value, MOST_CANDIDATES)
    with store.read() as db:
        bodies = [row["body"] for row in db.execute(query, values)]
    wanted = " ".join(instance.query.split())
    records = [from_data(loads(body)) for body in bodies]
    return [
        one
        for one in records
        if isinstance(one, Instance) and " ".join(one.query.split()) == wanted
    ]


def run_of(store: "Store", instance: str, agent: str) -> Trajectory | None:
    """The newest stored run of an agent from an instance, None where there is none."""
    with store.read() as db:
        row = db.execute(
            "SELECT key FROM trajectory WHERE instance = ? AND agent = ? ORDER BY rowid DESC",
            (instance, agent),
        ).fetchone()
    return store.trajectory(row["key"]) if row else None


def rounds_of(
    store: "Store",
    instance: Instance,
    replan: Replan | None = None,
    *,
    run: Trajectory | None = None,
) -> Story:
    """The rounds that a reader steps through.

    Args:
        store: The database.
        instance: The decision point.
        replan: The answer to it, None where there is none.
        run: A stored run from it; it takes the place of single records.

    Returns:
        Earlier records of the same rollout, the instance, then the answer, or the run, or later
        records where no answer is chosen. A run that holds the instance's plan further on, as
        logs of agents do, is shown whole.
    """
    records = chain(store, instance)
    here = next(place for place, one in enumerate(records) if one.key == instance.key)
    kept = records if replan is None and run is None else records[: here + 1]
    rounds = [Round(one.plan, one.observations) for one in kept]
    numbers = _numbers(kept)
    keys = [one.key for one in kept]
    at = here
    if run is not None:
        begun = _place_in(run, instance)
        if begun > 0:
            return _whole(run, instance, begun)
        added = run.rounds[1:] if begun == 0 else run.rounds
        at = here + 1 if added else here
    elif replan is not None:
        added = (Round(replan.plan, (), replan.thought),)
        at = here + 1
    else:
        added = ()
    rounds += added
    numbers += [numbers[-1] + place + 1 for place in range(len(added))]
    keys += [""] * len(added)
    return Story(
        rounds=tuple(rounds),
        numbers=tuple(numbers),
        instances=tuple(keys),
        at=at,
        kind="run" if run else "records" if len(records) > 1 else "item",
        answered=bool(added),
        success=run.success if run else None,
        outcome=run.outcome if run else "",
    )


def _place_in(run: Trajectory, instance: Instance) -> int:
    """Index of the round of a run that an instance is, -1 where it is none of them."""
    given = instance.plan.given
    return next((i for i, one in enumerate(run.rounds) if one.plan.given == given), -1)


def _whole(run: Trajectory, instance: Instance, begun: int) -> Story:
    """A run from before the instance to its end."""
    count = len(run.rounds)
    return Story(
        rounds=run.rounds,
        numbers=tuple(range(1, count + 1)),
        instances=tuple(instance.key if place == begun else "" for place in range(count)),
        at=min(begun + 1, count - 1),
        kind="run",
        answered=begun + 1 < count,
        success=run.success,
        outcome=run.outcome,
    )


def _numbers(records: Sequence[Instance]) -> list[int]:
    """Round numbers that always rise, from the rounds that lie behind each plan."""
    numbers: list[int] = []
    for one in records:
        number = one.plan.executed_rounds() + 1
        numbers.append(max(number, numbers[-1] + 1) if numbers else number)
    return numbers


def strip(story: Story) -> list[dict[str, Any]]:
    """What the strip shows of each round: its number and whether a call failed or the plan grew."""
    found: list[dict[str, Any]] = []
    previous: Plan | None = None
    for place, one in enumerate(story.rounds):
        failed = any(result_state(c.result) is not ResultState.OK for c in one.observations)
        grew = bool(previous is not None and set(one.plan.by_id) - set(previous.by_id))
        last = place == len(story.rounds) - 1 and not one.observations
        mark = "failed" if failed else "grew" if grew else "plan" if last else "ran"
        found.append({"number": story.numbers[place], "mark": mark, "s5": one.plan.s5})
        previous = one.plan
    return found


def content(story: Story, place: int, tools: Sequence[str] = ()) -> dict[str, Any]:
    """Everything that is shown of one round, as JSON data.

    Args:
        story: The rounds.
        place: Index of the round.
        tools: Names that are marked in the thought.

    Returns:
        ``picture`` of the plan with what changed since the round before, ``changes`` as a list,
        ``thought`` in segments, ``observations`` of the round before (what the plan answers),
        ``own`` observations of this round, and ``nodes`` with their calls.
    """
    now = story.rounds[place]
    before = story.rounds[place - 1] if place else None
    calls = before.observations if before else now.observations
    role = "after" if before else "before"
    drawn = picture(
        now.plan, before=before.plan if before else now.plan, after=now.plan if before else None,
        observations=calls, role=role,  # type: ignore[arg-type]
    )  # fmt: skip
    return {
        "number": story.numbers[place],
        "since": story.numbers[place - 1] if before else None,
        "instance": story.instances[place],
        "answer": not story.instances[place],
        "picture": drawn,
        "changes": _changes(before.plan, now.plan, calls) if before else [],
        "thought": _thought(now, before, tools),
        "before": _observations(before) if before else None,
        "own": _observations(now),
        "nodes": _nodes(now.plan),
        "s5": {"value": now.plan.s5, "reason": now.plan.fault or "ids are unique, no cycle"},
    }


def _thought(now: Round, before: Round | None, tools: Sequence[str]) -> list[Any]:
    ids = set(now.plan.by_id) | (set(before.plan.by_id) if before else set())
    found = segments(now.thought[:_TEXT], nodes=ids, tools=set(tools))
    shown: list[Any] = [list(part) if part.kind else part.text for part in found]
    return [*shown, " …"] if len(now.thought) > _TEXT else shown


def _observations(one: Round) -> list[dict[str, str]]:
    return [
        {
            "node": call.node,
            "tool": _cut(call.name, 80),
            "result": _cut(call.result, _CELL),
            "state": str(result_state(call.result)),
        }
        for call in one.observations[:_ROWS]
    ]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} … ({len(text):,} characters)"


def _changes(before: Plan, now: Plan, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """What changed, one entry a mark: newly done, failed, added, removed, changed, reopened."""
    found = before.difference(now)
    results = {call.node: call for call in calls if call.node}
    bad = {
        node: call
        for node, call in results.items()
        if result_state(call.result) is not ResultState.OK
    }
    entries = [
        {"mark": "failed", "ids": [node], "text": f"{call.name} {_went(call)}"}
        for node, call in bad.items()
    ]
    well = [node for node in found.newly_done if node not in bad]
    entries += [
        {"mark": "new", "ids": [node], "text": _done_text(now, node, results)} for node in well[:8]
    ]
    if len(well) > 8:
        entries.append({"mark": "new", "ids": well[8:], "text": "done"})
    entries += [_grouped("added", found.added, now), _grouped("removed", found.removed, before)]
    for node in found.redesigned():
        entries.append(
            {"mark": "changed", "ids": [node], "text": _change_text(found.changed[node])}
        )
    if found.reopened:
        entries.append(
            {"mark": "changed", "ids": list(found.reopened), "text": "no longer marked as done"}
        )
    return [entry for entry in entries if entry["ids"]][:60]


def _went(call: ToolCall) -> str:
    words = {"error": "failed:", "timeout": "timed out:", "empty": "returned nothing:"}
    return f"{words[str(result_state(call.result))]} {_cut(call.result, 160) or '(empty)'}"


def _done_text(plan: Plan, node: str, results: dict[str, ToolCall]) -> str:
    name = plan.by_id[node].name
    result = _cut(results[node].result, 100) if node in results else ""
    return f"{name} done" + (f": {result}" if result else "")


def _grouped(mark: str, ids: Sequence[str], plan: Plan) -> dict[str, Any]:
    names = ", ".join(dict.fromkeys(plan.by_id[node].name for node in ids if plan.by_id[node].name))
    return {
        "mark": mark,
        "ids": list(ids),
        "text": f"{mark}: {_cut(names, 160)}" if names else mark,
    }


def _change_text(changes: Sequence[FieldChange]) -> str:
    return "; ".join(_moved(change) for change in changes if change.field != "description")


def _moved(change: FieldChange) -> str:
    before, after = change.before, change.after
    if isinstance(before, Parameters) and isinstance(after, Parameters):
        before, after = _differing(before, after), _differing(after, before)
    return f"{change.field} changed from {_said(before)} to {_said(after)}"


def _differing(one: Parameters, other: Parameters) -> Parameters:
    """Those values of one that the other has not."""
    absent = object()
    named = {
        name: value for name, value in one.named.items() if other.named.get(name, absent) != value
    }
    return Parameters(named, () if one.positional == other.positional else one.positional)


def _said(value: Any) -> str:
    if isinstance(value, Parameters):
        return _cut(parameter_text(value) or "nothing", 200)
    if isinstance(value, list):
        return _cut(", ".join(map(str, value)) or "nothing", 160)
    return _cut(as_text(value) or "nothing", 160)


def _nodes(plan: Plan) -> dict[str, dict[str, Any]]:
    """Calls of the nodes, for the line below the drawing."""
    return {
        node.id: {
            "name": node.name,
            "call": _cut(_said(node.parameters), 400),
            "needs": list(node.dependencies)[:40],
            "done": node.done,
            "text": _cut(node.description, _CELL),
        }
        for node in list(plan.by_id.values())[:_MOST_NODES]
        if node.id not in (ROOT, RESPONSE) or node.description
    }


_MOST_NODES = 400
