"""Small records for tests of the store, written for them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from annotations.store import ScoreEntry, Store
from pararecover_core.formats.items import Answer, InstanceRef, Item, Place
from pararecover_core.literals import dumps
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Source, Tool, ToolCall, instance_key

BROKEN = dumps({"tasks": [{"id": "1", "dep": ["9"]}]})
"""A plan with S5 = 0: node 1 waits for a node that does not exist."""


class Clock:
    """A clock that moves one second a look, from noon on 2 January 2030."""

    def __init__(self) -> None:
        self.moment = datetime(2030, 1, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


def plan_text(*names: str, done: int = 0) -> str:
    """A chain root -> 1 -> 2 ... whose first ``done`` nodes are executed."""
    tasks: list[dict[str, Any]] = [{"id": "root", "dep": [], "status": True}]
    for number, name in enumerate(names, start=1):
        dep = [str(number - 1)] if number > 1 else ["root"]
        tasks.append(
            {"id": str(number), "name": name, "para": {}, "dep": dep, "status": number <= done}
        )
    return dumps({"tasks": tasks})


def instance(id: str = "1", query: str = "Bake a cake", **fields: Any) -> Instance:
    """An instance whose fields may be named, as a file would give it."""
    plan = fields.pop("plan", plan_text("mix", "bake", done=1))
    level, source = fields.pop("level", 1), fields.pop("source", Source.AUGMENTED)
    query_id = fields.pop("query_id", f"q{id}")
    key = instance_key(
        id=id, query_id=query_id, level=level, source=source, query=query, plan=plan, calls=None
    )
    return Instance(
        key=key,
        id=id,
        query_id=query_id,
        level=level,
        source=source,
        query=query,
        tools=(Tool("mix", given={"name": "mix"}),),
        plan=Plan.parse(plan),
        observations=(ToolCall("mix", {"bowl": 1}, "mixed", "1"),),
        **fields,
    )


def answer(
    id: str = "1", agent: str = "cook-1", thought: str = "Bake it now", **fields: Any
) -> Answer:
    """An answer that names its instance by id."""
    plan = fields.pop("plan", plan_text("mix", "bake", "serve", done=1))
    ref = fields.pop("ref", InstanceRef(id=id))
    return Answer(ref, agent, thought, plan, **fields)


def items(*contents: Any) -> list[Item]:
    """Items of a file ``f.jsonl``, one a line."""
    return [Item(Place("f.jsonl", line), content) for line, content in enumerate(contents, 1)]


def one_replan(store: Store, id: str = "1") -> str:
    """Key of a replan that is put into the store with its instance."""
    one = instance(id)
    store.ingest(items(one, answer(id)))
    return store.replans_of(one.key)[0].key


def entry(
    replan: str, dimension: str = "S1", value: float | None = 1.0, **fields: Any
) -> ScoreEntry:
    """An entry by human:ann with an event id made of what it says."""
    base = fields.pop("base", 0)
    scorer = fields.pop("scorer", "human:ann")
    event = fields.pop("event", f"{replan}-{dimension}-{scorer}-{base}")
    return ScoreEntry(event, replan, dimension, scorer, value, base_revision=base, **fields)
