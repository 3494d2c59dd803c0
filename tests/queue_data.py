"""A small database for tests of queue, progress and adjudication, and a clock that obeys."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from annotations.batches import Batch, BatchPlan, create_batch
from annotations.score_log import ScoreEntry
from annotations.store import Store
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source
from pararecover_core.rubric import JUDGED

PLAN = {"tasks": [{"id": "1", "name": "find_depot", "para": {"city": "Lleida"}, "dep": []}]}


class Clock:
    """Time that stands still until told."""

    def __init__(self) -> None:
        self.time = datetime(2025, 6, 2, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def on(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def instance(n: int, level: int = 1, tags: tuple[str, ...] = ("Type_Error",)) -> Instance:
    return Instance(
        key=f"i{n}",
        id=str(n),
        query_id=f"q{n}",
        level=level,
        source=Source.ROLLOUT,
        query=f"query {n}",
        tools=(),
        plan=Plan.parse(PLAN),
        observations=(),
        tags=tags,
    )


def replan(n: int, agent: str = "agent-a", thought: str = "a thought") -> Replan:
    return Replan(f"r{n}-{agent[-1]}", f"i{n}", agent, thought, Plan.parse(PLAN))


def fill(store: Store, records) -> None:
    items = [Item(Place("test", n), record) for n, record in enumerate(records, 1)]
    report = store.ingest(items)
    assert not report.rejects


def make_store(path: Path, items: int = 4, agents=("agent-a",), clock: Clock | None = None):
    """A store with ``items`` instances (odd ones level 1, even ones level 2) and answers."""
    store = Store(path / "test.db", clock=clock or Clock())
    for n in range(1, items + 1):
        fill(store, [instance(n, level=2 - n % 2), *(replan(n, agent) for agent in agents)])
    return store


def batch_of_all(store: Store, items: int = 4, **options) -> Batch:
    keys = tuple(f"r{n}-a" for n in range(1, items + 1))
    return create_batch(store, BatchPlan(options.pop("name", "Pilot"), replans=keys, **options))


def score(
    store: Store,
    replan: str,
    annotator: str,
    value: float | None = 1.0,
    dimensions=JUDGED,
    *,
    batch: int | None = None,
    note: str = "",
    revealed: bool = False,
) -> None:
    """Score sub-dimensions of a replan on top of what stands."""
    scorer = f"human:{annotator}"
    newest = {s: r for s, r in _revisions(store, replan, scorer)}
    store.append(
        [
            ScoreEntry(
                event=f"{replan}/{dimension}/{scorer}/{newest.get(dimension, 0) + 1}",
                replan=replan,
                dimension=dimension,
                scorer=scorer,
                value=value,
                note=note,
                base_revision=newest.get(dimension, 0),
                action="score" if value is not None else "clear",
                revealed=revealed,
                batch=batch,
            )
            for dimension in dimensions
        ]
    )


def _revisions(store: Store, replan: str, scorer: str):
    with store.read() as db:
        return [
            (row[0], row[1])
            for row in db.execute(
                "SELECT dimension, max(revision) FROM score_log WHERE replan = ? AND scorer = ?"
                " GROUP BY dimension",
                [replan, scorer],
            )
        ]
