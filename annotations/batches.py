"""Batches: which replans are scored, on which sub-dimensions, by how many annotators each."""

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from annotations.blind import Reveal
from annotations.sampling import (
    PAPER_SIZE,
    Allocation,
    Candidate,
    Stratum,
    choose_shared,
    draw,
    draw_per_dimension,
)
from pararecover_core.errors import InputError
from pararecover_core.rubric import DIMENSIONS, JUDGED

if TYPE_CHECKING:
    from annotations.store import Store

STALE_MINUTES = 60
"""Minutes without a touch after which a claim is released to others."""

MOST_ANNOTATORS = 20
"""Most annotators that one item can have."""


class Filter(msgspec.Struct, frozen=True):
    """Which replans may be drawn; an empty field does not filter.

    Attributes:
        error_types: Any round of the instance has one of them.
        unbatched: Only replans that are in no batch yet.
    """

    levels: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    unbatched: bool = False


class Sampling(msgspec.Struct, frozen=True):
    """How replans are drawn.

    Attributes:
        size: How many; with ``per_dimension`` how many for each sub-dimension.
        stratify: Nothing for a plain random sample.
        per_dimension: Each sub-dimension gets a random sample of its own, and an item asks only
            those it was drawn for, as in the paper.
    """

    size: int = PAPER_SIZE
    seed: int = 0
    stratify: tuple[Stratum, ...] = ()
    allocation: Allocation = Allocation.PROPORTIONAL
    per_dimension: bool = False
    where: Filter = Filter()


class BatchPlan(msgspec.Struct, frozen=True):
    """A batch to be made.

    Attributes:
        replans: Exactly these, in this order; leave empty to draw by ``sampling``.
        dimensions: Sub-dimensions that are asked, any order; S5 and E5 are computed.
        annotators_per_item: Annotators of a shared item, 1 to ``MOST_ANNOTATORS``.
        overlap: Share of items, in [0, 1], that get ``annotators_per_item`` annotators; the
            others get one.
        stale_minutes: Minutes without a touch after which others may take a claimed item.
        hide_outcome: E5, which tells how the run ended, is hidden while the item is blind.
    """

    name: str
    replans: tuple[str, ...] = ()
    sampling: Sampling | None = None
    dimensions: tuple[str, ...] = JUDGED
    annotators_per_item: int = 1
    overlap: float = 1.0
    reveal: Reveal = Reveal.AFTER_SUBMIT
    stale_minutes: float = STALE_MINUTES
    hide_outcome: bool = False
    created_by: str = ""


class Batch(msgspec.Struct, frozen=True):
    """A batch as it stands in the database.

    Attributes:
        items: Replans in it.
        slots: Scorings asked for: the sum of annotators over its items.
        submitted: Scorings handed in.
        plan: How it was drawn, as stored; ``available`` in it says how many replans there were.
    """

    id: int
    name: str
    created: str
    created_by: str
    dimensions: tuple[str, ...]
    annotators_per_item: int
    reveal: Reveal
    stale_minutes: float
    items: int
    slots: int
    submitted: int
    plan: dict[str, Any]


class Preview(msgspec.Struct, frozen=True):
    """What a plan would give.

    Attributes:
        available: Replans that match the filter.
        items: Replans that would be in the batch.
        slots: Scorings asked for.
        cells: Single scores asked for, over all slots.
        short: What falls short, in words, "" where nothing does.
    """

    available: int
    items: int
    slots: int
    cells: int
    short: str = ""


class _Item(msgspec.Struct, frozen=True):
    replan: str
    slots: int
    dimensions: tuple[str, ...]


def paper_plan(name: str, *, seed: int = 0, where: Filter | None = None) -> BatchPlan:
    """400 replans for each judged sub-dimension, a fifth of the items scored by two.

    Source: paper section 3.3 (400 per judged dimension); the overlap is ours.
    """
    sampling = Sampling(PAPER_SIZE, seed, per_dimension=True, where=where or Filter())
    return BatchPlan(name, sampling=sampling, annotators_per_item=2, overlap=0.2)


def candidates(
    db: sqlite3.Connection, where: Filter, stratify: Sequence[Stratum] = tuple(Stratum)
) -> list[Candidate]:
    """Replans that can be drawn: those whose content is here and which match the filter.

    Args:
        db: A connection.
        where: What must match.
        stratify: The error type is looked up only where it is one of these.
    """
    clauses = ["replan.stub = 0"]
    values: list[str | int] = []
    for column, wanted in (
        ("instance.level", where.levels),
        ("instance.source", where.sources),
        ("replan.agent", where.agents),
    ):
        if wanted:
            clauses.append(f"{column} IN ({_marks(wanted)})")
            values.extend(wanted)
    if where.error_types:
        clauses.append(
            "EXISTS (SELECT 1 FROM instance_error AS e WHERE e.instance = replan.instance"
            f" AND e.error_type IN ({_marks(where.error_types)}))"
        )
        values.extend(where.error_types)
    if where.unbatched:
        clauses.append("NOT EXISTS (SELECT 1 FROM batch_item AS b WHERE b.replan = replan.key)")
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples: there may be some hundred thousand
    rows = cursor.execute(
        "SELECT replan.key, instance.level, replan.agent, replan.instance"
        " FROM replan JOIN instance ON instance.key = replan.instance"
        f" WHERE {' AND '.join(clauses)}",
        values,
    ).fetchall()
    tags: dict[str, str] = {}
    if Stratum.ERROR_TYPE in stratify:  # the last row of an instance is its newest round's
        query = "SELECT instance, error_type FROM instance_error ORDER BY round, error_type DESC"
        tags = dict(cursor.execute(query).fetchall())
    return [Candidate(key, level, tags.get(given, ""), agent) for key, level, agent, given in rows]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def check_plan(plan: BatchPlan) -> None:
    """Refuse a plan that cannot work.

    Raises:
        InputError: The message names the field.
    """
    if not plan.name.strip():
        raise InputError("batch name", "nothing", "a name", "Give the batch a name")
    unknown = [d for d in plan.dimensions if d not in JUDGED]
    if unknown or not plan.dimensions:
        computed = [d for d in unknown if d in DIMENSIONS]
        cure = f"{computed[0]} is computed; leave it out" if computed else "Choose at least one"
        got = ", ".join(unknown) or "none"
        raise InputError("sub-dimensions", got, "some of " + ", ".join(JUDGED), cure)
    if not 1 <= plan.annotators_per_item <= MOST_ANNOTATORS:
        got = str(plan.annotators_per_item)
        cure = "Choose how many people score a shared item"
        raise InputError("annotators per item", got, f"1 to {MOST_ANNOTATORS}", cure)
    if not 0 <= plan.overlap <= 1:
        cure = "Write 20 % as 0.2"
        raise InputError("overlap", f"{plan.overlap:g}", "a share from 0 to 1", cure)
    if plan.stale_minutes <= 0:
        got = f"{plan.stale_minutes:g} minutes"
        cure = "A claim needs some time before others may take the item"
        raise InputError("stale claims", got, "more than 0", cure)
    if bool(plan.replans) == (plan.sampling is not None):
        got = "both" if plan.replans else "neither"
        raise InputError("replans", got, "a list of replans or a sampling", "Give one of the two")


def preview(store: "Store", plan: BatchPlan) -> Preview:
    """What ``create_batch`` would make of a plan, without making it.

    Raises:
        InputError: The plan cannot work.
    """
    check_plan(plan)
    with store.read() as db:
        found = _available(db, plan)
    return _preview(plan, found, _items(plan, found))


def _preview(plan: BatchPlan, found: Sequence[Candidate], items: Sequence[_Item]) -> Preview:
    return Preview(
        available=len(found),
        items=len(items),
        slots=sum(item.slots for item in items),
        cells=sum(item.slots * len(item.dimensions) for item in items),
        short=_shortage(plan, len(found)),
    )


def _shortage(plan: BatchPlan, available: int) -> str:
    sampling = plan.sampling
    if sampling is None or available >= sampling.size:
        return ""
    exist = f"{available:,} replan{' exists' if available == 1 else 's exist'}"
    if not sampling.per_dimension:
        return f"Only {exist}, {sampling.size:,} were asked for; all of them are taken."
    return (
        f"Only {exist}, {sampling.size:,} were asked for each sub-dimension;"
        " every item asks all of them."
    )


def _available(db: sqlite3.Connection, plan: BatchPlan) -> list[Candidate]:
    if plan.sampling:
        return candidates(db, plan.sampling.where, plan.sampling.stratify)
    known = {key for (key,) in db.execute("SELECT key FROM replan WHERE stub = 0")}
    missing = [key for key in plan.replans if key not in known]
    if missing:
        got = f"{len(missing)} unknown: {', '.join(missing[:5])}"
        raise InputError("replans", got, "keys of imported replans", "Import their answers first")
    return [Candidate(key) for key in dict.fromkeys(plan.replans)]


def _items(plan: BatchPlan, found: Sequence[Candidate]) -> list[_Item]:
    """The items in order, each with its annotators and sub-dimensions."""
    dimensions = tuple(d for d in JUDGED if d in plan.dimensions)
    sampling = plan.sampling or Sampling()
    if plan.replans:
        asked = {candidate.replan: dimensions for candidate in found}
    elif sampling.per_dimension:
        asked = draw_per_dimension(found, dimensions, sampling.seed, sampling.size)
    else:
        drawn = draw(found, sampling.size, sampling.seed, sampling.stratify, sampling.allocation)
        asked = dict.fromkeys(drawn, dimensions)
    shared = choose_shared(list(asked), plan.overlap, sampling.seed)
    return [
        _Item(key, plan.annotators_per_item if key in shared else 1, dims)
        for key, dims in asked.items()
    ]


def create_batch(store: "Store", plan: BatchPlan) -> Batch:
    """Draw a batch and store it.

    Args:
        store: Where the replans are.
        plan: What to make.

    Returns:
        The new batch.

    Raises:
        InputError: The plan cannot work, its name is taken, or nothing matches its filter.
    """
    check_plan(plan)
    with store.read() as db:  # drawing may take a second: nobody who scores has to wait for it
        found = _available(db, plan)
    items = _items(plan, found)
    if not items:
        cure = "Import answers of agents first, or widen the filter"
        raise InputError("batch", "no replan to score", "at least one", cure)
    with store.write() as db:
        if db.execute("SELECT 1 FROM batch WHERE name = ?", [plan.name.strip()]).fetchone():
            got = f"{plan.name.strip()!r} twice"
            raise InputError("batch name", got, "a new name", "Choose another name")
        number = _insert(db, plan, items, _preview(plan, found, items), store.now())
    return get_batch(store, number)


def _insert(
    db: sqlite3.Connection, plan: BatchPlan, items: Sequence[_Item], made: Preview, now: str
) -> int:
    dimensions = tuple(d for d in JUDGED if d in plan.dimensions)
    settings = {
        "overlap": plan.overlap,
        "stale_minutes": plan.stale_minutes,
        "hide_outcome": plan.hide_outcome,
        "sampling": msgspec.to_builtins(plan.sampling),
        "items": made.items,
        "slots": made.slots,
        "available": made.available,
        "short": made.short,
    }
    cursor = db.execute(
        "INSERT INTO batch (name, created, created_by, dimensions, annotators_per_item, reveal,"
        " settings) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            plan.name.strip(),
            now,
            plan.created_by,
            json.dumps(dimensions),
            plan.annotators_per_item,
            int(plan.reveal),
            json.dumps(settings),
        ],
    )
    db.executemany(
        "INSERT INTO batch_item (batch, replan, position, slots, dimensions)"
        " VALUES (?, ?, ?, ?, ?)",
        [
            (cursor.lastrowid, item.replan, position, item.slots, _own(item, dimensions))
            for position, item in enumerate(items, start=1)
        ],
    )
    return int(cursor.lastrowid or 0)


def _own(item: _Item, dimensions: tuple[str, ...]) -> str:
    return "" if item.dimensions == dimensions else json.dumps(item.dimensions)


_SELECT = """
SELECT b.id, b.name, b.created, b.created_by, b.dimensions, b.annotators_per_item, b.reveal,
  b.settings,
  (SELECT count(*) FROM assignment AS a WHERE a.batch = b.id AND a.state = 'submitted')
FROM batch AS b
"""


def batch_of(row: Sequence[Any]) -> Batch:
    """A batch from a row of ``_SELECT``."""
    settings: dict[str, Any] = json.loads(row[7])
    return Batch(
        id=row[0],
        name=row[1],
        created=row[2],
        created_by=row[3],
        dimensions=tuple(json.loads(row[4])),
        annotators_per_item=row[5],
        reveal=Reveal(row[6]),
        stale_minutes=float(settings.get("stale_minutes", STALE_MINUTES)),
        items=settings["items"],
        slots=settings["slots"],
        submitted=row[8],
        plan=settings,
    )


def list_batches(store: "Store") -> list[Batch]:
    """All batches, newest first."""
    with store.read() as db:
        return [batch_of(row) for row in db.execute(_SELECT + " ORDER BY b.id DESC")]


def get_batch(store: "Store", batch: int) -> Batch:
    """One batch.

    Raises:
        InputError: There is no such batch.
    """
    with store.read() as db:
        return load_batch(db, batch)


def find_batch(store: "Store", which: str) -> int:
    """The id of a batch that is named by its name or its id; a name comes first.

    Raises:
        InputError: There is no such batch.
    """
    found = list_batches(store)
    by_name = {batch.name: batch.id for batch in found}
    by_id = {str(batch.id): batch.id for batch in found}
    number = by_name.get(which, by_id.get(which))
    if number is None:
        known = ", ".join(repr(batch.name) for batch in found)
        expected = f"one of {known}" if known else "a batch (there is none yet)"
        raise InputError("batch", repr(which), expected, "Check its name or id")
    return number


def load_batch(db: sqlite3.Connection, batch: int) -> Batch:
    """One batch, within an open transaction.

    Raises:
        InputError: There is no such batch.
    """
    row = db.execute(_SELECT + " WHERE b.id = ?", [batch]).fetchone()
    if row is None:
        known = ", ".join(str(n) for (n,) in db.execute("SELECT id FROM batch ORDER BY id"))
        cure = "Choose a batch from the list, or make one"
        raise InputError("batch", str(batch), f"one of {known}" if known else "a batch", cure)
    return batch_of(row)
