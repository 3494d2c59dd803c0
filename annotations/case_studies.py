"""Case studies from the database: what an item shows, and the gallery of saved ones.

A saved case study keeps what its author chose, not what records say: it is built again each time,
so that new scores are in it. Every save is a new version.
"""

import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import orjson

from annotations import rounds
from annotations.gold import standing
from annotations.run_figures import answer_is_right, own_limit, rounds_taken
from annotations.search import HIDDEN_REPLANS, find
from pararecover_core.case_study import Case, Source, Spec, Subject, build
from pararecover_core.errors import InputError, StoreError
from pararecover_core.pairing import HUMAN
from pararecover_core.records import Instance, Replan, Score, Trajectory
from pararecover_core.scores import ROUND_LIMIT

if TYPE_CHECKING:
    from annotations.search import Row
    from annotations.store import Store

__all__ = [
    "Candidate",
    "Saved",
    "candidates",
    "example",
    "gallery",
    "make",
    "others",
    "save",
    "saved",
    "subject",
    "take_out",
    "versions",
]

NAME_LIMIT = 120


class Saved(msgspec.Struct, frozen=True):
    """A version of a saved case study; ``other`` is the second item of a comparison."""

    name: str
    version: int
    item: str
    other: str
    spec: Spec
    author: str
    at: str


def subject(store: "Store", item: str, other: str = "", *, reader: str = "") -> Subject:
    """What a case study of one or two items is about.

    Args:
        store: The database.
        item: Key of a replan, an instance or a trajectory.
        other: Key of another agent's answer to the same instance, "" for none.
        reader: The annotator who reads: what they still score blind is refused.

    Raises:
        StoreError: A key is unknown.
        InputError: The item is blind for the reader, has no plan, or the two items differ in
            their instance.
    """
    instance, first = _source(store, item, reader)
    sources = [first]
    if other:
        second_instance, second = _source(store, other, reader)
        if second_instance.key != instance.key:
            got = f"instances {instance.key} and {second_instance.key}"
            cure = "Choose two answers to the same instance"
            raise InputError("case study", got, "one instance", cure)
        sources.append(second)
    return Subject(instance, tuple(sources))


def _source(store: "Store", key: str, reader: str) -> tuple[Instance, Source]:
    run, replan_key, row = _found(store, key, reader)
    if row.hidden or row.tags_hidden:
        cure = "Submit your scores of it first"
        raise InputError(
            f"item {key}", "an item that you still score blind", "one you may see", cure
        )
    instance = store.instance(row.instance)
    replan = store.replan(replan_key) if replan_key else None
    if run is None and row.agent:
        run = rounds.run_of(store, row.instance, row.agent)
    story = rounds.rounds_of(store, instance, replan, run=run)
    if not any(one.plan.nodes or one.plan.given for one in story.rounds):
        cure = "Import the file that holds its content"
        raise InputError(f"item {key}", "no plan", "an item with its content", cure)
    agent = replan.agent if replan else run.agent if run else ""
    made = Source(
        agent=agent,
        rounds=story.rounds,
        numbers=story.numbers,
        success=story.success,
        outcome=story.outcome,
        taken=_taken(run, story),
        correct=None if run is None else answer_is_right(run),
        limit=(run and own_limit(run)) or ROUND_LIMIT,
        s5=_s5(replan),
        scores=_counting(store, replan.key) if replan else (),
        gold=_gold(store, replan.key) if replan else {},
    )
    return instance, made


def _found(store: "Store", key: str, reader: str) -> "tuple[Trajectory | None, str, Row]":
    """The run where the key is one, the replan's key, and the row of the item."""
    row = find(store, key, reader=reader)
    if row is not None:
        return None, row.replan, row
    run = store.trajectory(key)
    with store.read() as db:
        known = db.execute(
            "SELECT key FROM replan WHERE instance = ? AND agent = ? ORDER BY n DESC",
            (run.instance, run.agent),
        ).fetchone()
    row = find(store, known["key"] if known else run.instance, reader=reader)
    if row is None:
        raise StoreError(f"item {key}", "no instance", "a known one", "Import its file")
    return run, known["key"] if known else "", row


def _taken(run: Trajectory | None, story: rounds.Story) -> int | None:
    if run is None:
        return None
    return rounds_taken(run) or story.numbers[-1]


def _s5(replan: Replan | None) -> int | None:
    known = replan is not None and (replan.plan.nodes or replan.plan.given is not None)
    return replan.plan.s5 if replan is not None and known else None


def _counting(store: "Store", replan: str) -> tuple[Score, ...]:
    """Current scores of a replan; of people those that count (see ``gold``)."""
    with store.read() as db:
        kept = {(HUMAN + s.annotator, s.dimension): s.value for s in standing(db, [replan])}
    found = []
    for score in store.scores(replan):
        if not score.scorer.startswith(HUMAN):
            found.append(score)
        elif (score.scorer, score.dimension) in kept:
            value = kept[score.scorer, score.dimension]
            found.append(msgspec.structs.replace(score, value=value))
    return tuple(found)


def _gold(store: "Store", replan: str) -> dict[str, float]:
    query = "SELECT dimension, value FROM gold_current WHERE replan = ? AND value IS NOT NULL"
    with store.read() as db:
        return {row["dimension"]: row["value"] for row in db.execute(query, (replan,))}


def make(store: "Store", saved: Saved, *, reader: str = "") -> Case:
    """Build a saved case study with what the database holds now."""
    return build(subject(store, saved.item, saved.other, reader=reader), saved.spec)


def save(
    store: "Store",
    name: str,
    item: str,
    spec: Spec,
    *,
    event: str,
    other: str = "",
    author: str = "",
) -> Saved:
    """Save the next version under a name.

    Args:
        store: The database.
        name: What its author calls it.
        item: As ``subject`` takes it.
        spec: What its author chose.
        event: Given by the client: the same event is saved once.
        other: The second item of a comparison, "" for none.
        author: Who saves it.

    Raises:
        InputError: The name is empty.
    """
    called = " ".join(name.split())[:NAME_LIMIT]
    if not called:
        raise InputError("name of the case study", "none", "a name", "Give it one")
    return _append(store, called, item, other, spec, event=event, author=author, gone=False)


def take_out(store: "Store", name: str, *, event: str, author: str = "") -> None:
    """Take a case study out of the gallery; its versions stay in the file."""
    found = saved(store, name)
    _append(
        *(store, name, found.item, found.other, found.spec),
        event=event,
        author=author,
        gone=True,
    )


def _append(
    store: "Store",
    name: str,
    item: str,
    other: str,
    spec: Spec,
    *,
    event: str,
    author: str,
    gone: bool,
) -> Saved:
    with store.write() as db:
        known = db.execute("SELECT * FROM case_study WHERE event = ?", (event,)).fetchone()
        if known is None:
            newest = db.execute(
                "SELECT COALESCE(MAX(version), 0) FROM case_study WHERE name = ?", (name,)
            ).fetchone()[0]
            db.execute(
                "INSERT INTO case_study (event, name, version, item, other, spec, author, at, gone)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(event, name, newest + 1, item, other),
                    *(orjson.dumps(msgspec.to_builtins(spec, str_keys=True)).decode(), author),
                    *(store.now(), int(gone)),
                ),
            )
            known = db.execute("SELECT * FROM case_study WHERE event = ?", (event,)).fetchone()
        return _saved(known)


_NEWEST = (
    "SELECT c.* FROM case_study c WHERE NOT EXISTS (SELECT 1 FROM case_study later "
    "WHERE later.name = c.name AND later.version > c.version) AND c.gone = 0"
)


def gallery(store: "Store") -> list[Saved]:
    """The newest version of every case study, last saved first."""
    with store.read() as db:
        return [_saved(row) for row in db.execute(f"{_NEWEST} ORDER BY c.entry DESC")]


def versions(store: "Store", name: str) -> list[Saved]:
    """All versions under a name, newest first."""
    query = "SELECT * FROM case_study WHERE name = ? AND gone = 0 ORDER BY version DESC"
    with store.read() as db:
        return [_saved(row) for row in db.execute(query, (name,))]


def saved(store: "Store", name: str, version: int = 0) -> Saved:
    """A saved case study; version 0 is the newest.

    Raises:
        InputError: There is none of that name or version.
    """
    found = [one for one in versions(store, name) if version in (0, one.version)]
    if not found:
        listed = ", ".join(one.name for one in gallery(store)[:10]) or "none is saved yet"
        got = repr(name) + (f", version {version}" if version else "")
        raise InputError("saved case study", got, f"one of: {listed}", "Check the name")
    return found[0]


def _saved(row: sqlite3.Row) -> Saved:
    return Saved(
        *(row["name"], row["version"], row["item"], row["other"]),
        spec=msgspec.convert(orjson.loads(row["spec"]), Spec, strict=False),
        author=row["author"],
        at=row["at"],
    )


class Candidate(msgspec.Struct, frozen=True):
    """A run that may be told: its key and what tells it from others."""

    item: str
    agent: str
    rounds: int
    optimal: int | None
    query: str


def candidates(store: "Store", *, reader: str = "", limit: int = 200) -> list[Candidate]:
    """Runs to choose from, those that took most rounds over their optimum first.

    Args:
        store: The database.
        reader: The annotator who reads: instances with answers they still score blind are left
            out.
        limit: Runs at most.
    """
    query = (
        "SELECT t.key, t.agent, t.rounds, i.round_gt, substr(i.query, 1, 80) AS query "
        "FROM trajectory t JOIN instance i ON i.key = t.instance "
        f"WHERE i.key NOT IN (SELECT instance FROM replan WHERE key IN ({HIDDEN_REPLANS})) "
        "ORDER BY t.success DESC, t.rounds - COALESCE(i.round_gt, t.rounds) DESC, t.key LIMIT :most"
    )
    with store.read() as db:
        rows = db.execute(query, {"who": reader, "most": limit})
        return [Candidate(*row) for row in rows]


def others(store: "Store", item: str, *, reader: str = "") -> list[tuple[str, str]]:
    """Key and agent of the other answers to an item's instance, for a comparison."""
    _, replan, row = _found(store, item, reader)
    query = "SELECT key, agent FROM replan WHERE instance = ? AND key <> ? ORDER BY agent, n"
    with store.read() as db:
        return [tuple(one) for one in db.execute(query, (row.instance, replan))]


def example(store: "Store") -> Saved | None:
    """The shipped example (appendix B's story); None where the sample's runs are not there."""
    text = files("annotations").joinpath("guidelines", "case_study.json").read_bytes()
    found = msgspec.convert(orjson.loads(text), Saved, strict=False)
    with store.read() as db:
        known = db.execute("SELECT 1 FROM trajectory WHERE key = ?", (found.item,)).fetchone()
    return found if known else None
