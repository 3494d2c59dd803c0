"""Calibration sessions: a fixed sample, a split by query, human scores, and a history of rounds.

Dev is what a prompt is refined on. The held-out side is sealed: its figures are given by ``look``
alone, which counts and keeps every look.

Source: paper section 3.3 (sampling, rounds of annotation, refinement); the split is ours.
"""

import random
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import networkx as nx
import orjson

from annotations.adjudicate import human_scores
from annotations.batches import BatchPlan, Sampling, create_batch, load_batch
from annotations.judging import open_failures
from annotations.score_log import refresh_summary
from pararecover_core.agreement import Agreement, measure
from pararecover_core.errors import InputError
from pararecover_core.literals import dumps
from pararecover_core.pairing import NO_HUMAN, NO_JUDGE, Cell, CellKey
from pararecover_core.rubric import JUDGED

if TYPE_CHECKING:
    from annotations.store import Store

HELD_OUT = 1 / 3


class Side(StrEnum):
    """The two sides of a session."""

    DEV = "dev"
    HELD_OUT = "held-out"


class SessionPlan(msgspec.Struct, frozen=True):
    """A session to be made.

    Attributes:
        batch: An existing batch whose items are the sample; None to draw one.
        sampling: How to draw; by default 400 for each judged sub-dimension, as in the paper.
        annotators_per_item: For a drawn batch.
        overlap: Share of its items that get several annotators, in [0, 1].
        held_out: Share of the items that is sealed, in (0, 1).
        seed: Seed of the split.
    """

    name: str
    batch: int | None = None
    sampling: Sampling = Sampling(per_dimension=True)
    annotators_per_item: int = 2
    overlap: float = 0.2
    held_out: float = HELD_OUT
    seed: int = 0
    created_by: str = ""


class Session(msgspec.Struct, frozen=True):
    """A session as it stands.

    Attributes:
        items: Number of items by side.
        cells: Cells asked for by side.
        scored: Cells with a human score that was taken in, by side.
    """

    id: int
    name: str
    created: str
    created_by: str
    batch: int
    seed: int
    held_out: float
    items: dict[str, int]
    cells: dict[str, int]
    scored: dict[str, int]


class Round(msgspec.Struct, frozen=True):
    """One entry of a session's history; what ``data`` holds depends on ``kind``."""

    entry: int
    kind: str
    at: str
    author: str
    note: str
    data: dict[str, Any]


def create_session(store: "Store", plan: SessionPlan) -> Session:
    """Draw or take a sample, split it by query, take in the human scores that there are.

    Raises:
        InputError: The plan cannot work, or there are too few queries to split.
    """
    _check(store, plan)
    batch = plan.batch
    if batch is None:
        made = BatchPlan(
            f"{plan.name.strip()} sample",
            sampling=plan.sampling,
            annotators_per_item=plan.annotators_per_item,
            overlap=plan.overlap,
            created_by=plan.created_by,
        )
        batch = create_batch(store, made).id
    with store.read() as db:
        items = _items_of(db, batch)
    sides = split_by_task({key: task for key, (task, _) in items.items()}, plan.held_out, plan.seed)
    settings = {"seed": plan.seed, "held_out": plan.held_out}
    with store.write() as db:
        cursor = db.execute(
            "INSERT INTO session (name, created, created_by, batch, settings) VALUES (?,?,?,?,?)",
            (plan.name.strip(), store.now(), plan.created_by, batch, dumps(settings)),
        )
        session = int(cursor.lastrowid or 0)
        db.executemany(
            "INSERT INTO session_item (session, replan, side, task, dimensions) VALUES (?,?,?,?,?)",
            [
                (session, key, sides[key], task, dumps(dimensions))
                for key, (task, dimensions) in items.items()
            ],
        )
        refresh_summary(db, [key for key, side in sides.items() if side is Side.HELD_OUT])
    take_scores(store, session, author=plan.created_by, note="scores that there were")
    return get_session(store, session)


def _check(store: "Store", plan: SessionPlan) -> None:
    name = plan.name.strip()
    if not name:
        raise InputError("session name", "nothing", "a name", "Give the session a name")
    if not 0 < plan.held_out < 1:
        got = f"{plan.held_out:g}"
        raise InputError("held-out share", got, "a share between 0 and 1", "Write 30 % as 0.3")
    with store.read() as db:
        if db.execute("SELECT 1 FROM session WHERE name = ?", (name,)).fetchone():
            raise InputError("session name", f"{name!r} twice", "a new name", "Choose another name")


def _items_of(db: sqlite3.Connection, batch: int) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Replans of a batch with what keeps together and the sub-dimensions asked."""
    info = load_batch(db, batch)
    rows = db.execute(
        "SELECT b.replan, b.dimensions, r.instance, i.query_id, i.query_key, i.query"
        " FROM batch_item AS b JOIN replan AS r ON r.key = b.replan"
        " JOIN instance AS i ON i.key = r.instance WHERE b.batch = ? ORDER BY b.position",
        (batch,),
    ).fetchall()
    together = nx.Graph()
    for row in rows:
        node = ("replan", row["replan"])
        together.add_edge(node, ("instance", row["instance"]))
        if row["query_id"]:
            together.add_edge(node, ("query id", row["query_id"]))
        if row["query"].strip():
            together.add_edge(node, ("query", row["query_key"]))
    task: dict[str, str] = {}
    for group in nx.connected_components(together):
        names = sorted(name for kind, name in group if kind == "replan")
        task |= dict.fromkeys(names, names[0])
    own = {row["replan"]: tuple(orjson.loads(row["dimensions"] or "[]")) for row in rows}
    return {key: (task[key], own[key] or info.dimensions) for key in own}


def split_by_task(tasks: Mapping[str, str], held_out: float, seed: int | str) -> dict[str, Side]:
    """Split items so that no task stands on both sides.

    Args:
        tasks: Item to its task.
        held_out: Share of the items that should be held out, in (0, 1).
        seed: The same seed and tasks give the same split.

    Returns:
        Item to its side; both sides have items.

    Raises:
        InputError: There are fewer than two tasks.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for item, task in tasks.items():
        groups[task].append(item)
    if len(groups) < 2:
        cure = "Draw a sample with answers to two queries or more"
        raise InputError("session", f"{len(groups)} query", "two or more to split", cure)
    order = sorted(groups)
    random.Random(f"split:{seed}").shuffle(order)
    wanted, taken = held_out * len(tasks), 0
    sides: dict[str, Side] = {}
    for place, task in enumerate(order):
        size = len(groups[task])
        last = place == len(order) - 1
        room = abs(taken + size - wanted) <= abs(taken - wanted)
        side = Side.HELD_OUT if (room and not last) or (last and not taken) else Side.DEV
        taken += size if side is Side.HELD_OUT else 0
        sides |= dict.fromkeys(groups[task], side)
    if Side.DEV not in sides.values():
        sides |= dict.fromkeys(groups[order[0]], Side.DEV)
    return sides


# Reading


def list_sessions(store: "Store") -> list[Session]:
    """All sessions, newest first."""
    with store.read() as db:
        rows = db.execute("SELECT * FROM session ORDER BY id DESC").fetchall()
        return [_session(db, row) for row in rows]


def get_session(store: "Store", session: int) -> Session:
    """One session.

    Raises:
        InputError: There is none of that number.
    """
    return find_session(store, str(session))


def find_session(store: "Store", which: str) -> Session:
    """A session by its name or number.

    Raises:
        InputError: There is none.
    """
    found = list_sessions(store)
    for one in found:
        if which in (one.name, str(one.id)):
            return one
    known = ", ".join(repr(one.name) for one in found)
    expected = f"one of {known}" if known else "a session (there is none yet)"
    raise InputError("session", repr(which), expected, "Make one on the Refine page")


def _session(db: sqlite3.Connection, row: sqlite3.Row) -> Session:
    settings = orjson.loads(row["settings"])
    items, cells = {side.value: 0 for side in Side}, {side.value: 0 for side in Side}
    scored = {side.value: 0 for side in Side}
    sides = {}
    for one in db.execute(
        "SELECT replan, side, dimensions FROM session_item WHERE session = ?", (row["id"],)
    ):
        sides[one["replan"]] = one["side"]
        items[one["side"]] += 1
        cells[one["side"]] += len(orjson.loads(one["dimensions"]))
    for replan, _ in _human(db, row["id"]):
        scored[sides[replan]] += 1
    return Session(
        *(row["id"], row["name"], row["created"], row["created_by"], row["batch"]),
        *(settings["seed"], settings["held_out"], items, cells, scored),
    )


def _human(db: sqlite3.Connection, session: int) -> dict[CellKey, float]:
    rows = db.execute(
        "SELECT replan, dimension, value FROM session_score WHERE round ="
        " (SELECT MAX(entry) FROM session_round WHERE session = ? AND kind = 'scores')",
        (session,),
    )
    return {(row[0], row[1]): row[2] for row in rows}


def human(store: "Store", session: int, side: Side) -> dict[CellKey, float]:
    """People's scores of one side, as they were last taken in."""
    with store.read() as db:
        inside = _wanted(db, session, side)
        return {key: value for key, value in _human(db, session).items() if key in inside}


def wanted(store: "Store", session: int, side: Side) -> list[CellKey]:
    """The cells that one side asks for."""
    with store.read() as db:
        return list(_wanted(db, session, side))


def _wanted(db: sqlite3.Connection, session: int, side: Side) -> dict[CellKey, None]:
    rows = db.execute(
        "SELECT replan, dimensions FROM session_item WHERE session = ? AND side = ?"
        " ORDER BY replan",
        (session, side.value),
    )
    return {(row[0], d): None for row in rows for d in orjson.loads(row[1])}


def judged(store: "Store", session: int, scorer: str, side: Side) -> dict[CellKey, float]:
    """A judge's current scores of one side."""
    return {key: value for key, (value, _) in _judged(store, session, scorer, side).items()}


class Readiness(NamedTuple):
    """Held-out cells that a judge scored, that failed, and that the session asks for: no figure."""

    judged: int
    failed: int
    asked: int


def readiness(
    store: "Store", session: int, scorer: str, dimensions: Collection[str] = JUDGED
) -> Readiness:
    """How far a judge is with what its prompts ask of the held-out side.

    Args:
        store: The database.
        session: Which session.
        scorer: The judge.
        dimensions: What its prompts ask for.
    """
    done = judged(store, session, scorer, Side.HELD_OUT)
    cells = wanted(store, session, Side.HELD_OUT)
    asked = frozenset(cell for cell in cells if cell[1] in dimensions)
    failed = {(f.replan, d) for f in open_failures(store, scorer) for d in f.dimensions}
    return Readiness(len(done), len((failed & asked) - done.keys()), len(asked))


def reasons(store: "Store", session: int, scorer: str, side: Side) -> dict[CellKey, str]:
    """A judge's reasons for them."""
    return {key: note for key, (_, note) in _judged(store, session, scorer, side).items()}


def _judged(
    store: "Store", session: int, scorer: str, side: Side
) -> dict[CellKey, tuple[float, str]]:
    with store.read() as db:
        inside = _wanted(db, session, side)
        rows = db.execute(
            "SELECT replan, dimension, value, substr(note, 1, 2000) FROM score_current"
            " WHERE scorer = ? AND value IS NOT NULL",
            (scorer,),
        )
        return {(r[0], r[1]): (r[2], r[3]) for r in rows if (r[0], r[1]) in inside}


def cells(store: "Store", session: int, scorer: str, side: Side) -> list[Cell]:
    """Every cell of one side, people's score as taken in, the judge's as it stands."""
    left, right = human(store, session, side), _judged(store, session, scorer, side)
    found = []
    for key in wanted(store, session, side):
        person, (value, note) = left.get(key), right.get(key, (None, ""))
        gaps = ("" if person is not None else NO_HUMAN, "" if value is not None else NO_JUDGE)
        found.append(Cell(*key, person, value, *gaps, judge_note=note))
    return found


def scorers(store: "Store", session: int) -> list[str]:
    """Judges that scored a dev cell of the session, in the order of their first score."""
    with store.read() as db:
        rows = db.execute(
            "SELECT s.scorer FROM score_log AS s WHERE s.scorer NOT GLOB 'human:*'"
            " AND s.replan IN (SELECT replan FROM session_item WHERE session = ? AND side = 'dev')"
            " AND s.dimension IN (SELECT value FROM json_each(?))"
            " GROUP BY s.scorer ORDER BY MIN(s.entry)",
            (session, dumps(JUDGED)),
        )
        return [row[0] for row in rows]


# History


def history(store: "Store", session: int, kinds: Sequence[str] = ()) -> list[Round]:
    """The rounds of a session, oldest first; of some kinds, or all."""
    with store.read() as db:
        rows = db.execute(
            "SELECT * FROM session_round WHERE session = ? ORDER BY entry", (session,)
        ).fetchall()
    return [
        Round(*(row["entry"], row["kind"], row["at"], row["author"], row["note"]), _data(row))
        for row in rows
        if not kinds or row["kind"] in kinds
    ]


def _data(row: sqlite3.Row) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(row["data"])
    return found


def add_round(
    store: "Store",
    session: int,
    kind: str,
    data: Mapping[str, Any],
    *,
    author: str = "",
    note: str = "",
) -> int:
    """Append to the history; the number of the entry."""
    with store.write() as db:
        return _add_round(db, session, kind, data, at=store.now(), author=author, note=note)


def _add_round(
    db: sqlite3.Connection,
    session: int,
    kind: str,
    data: Mapping[str, Any],
    *,
    at: str,
    author: str,
    note: str,
) -> int:
    cursor = db.execute(
        "INSERT INTO session_round (session, kind, at, author, note, data) VALUES (?,?,?,?,?,?)",
        (session, kind, at, author, note, dumps(dict(data))),
    )
    return int(cursor.lastrowid or 0)


def take_scores(
    store: "Store", session: int, *, author: str = "", note: str = ""
) -> dict[str, int]:
    """Take in people's scores as they stand now: a round of annotation.

    Args:
        store: The database.
        session: Which session.
        author: Who does it.
        note: What changed in the guidelines, for example.

    Returns:
        Cells taken in ("n"), and how many are new, changed, gone or disagreed about, against
        the round before.
    """
    with store.read() as db:
        batch = db.execute("SELECT batch FROM session WHERE id = ?", (session,)).fetchone()[0]
        inside = _wanted(db, session, Side.DEV) | _wanted(db, session, Side.HELD_OUT)
        before = _human(db, session)
    found = {
        (one.replan, one.dimension): one
        for one in human_scores(store, batch=batch)
        if (one.replan, one.dimension) in inside
    }
    now = {key: one.value for key, one in found.items() if one.value is not None}
    made = {
        "n": len(now),
        "new": len(now.keys() - before.keys()),
        "changed": sum(before[key] != now[key] for key in now.keys() & before.keys()),
        "gone": len(before.keys() - now.keys()),
        "disagreed": sum(one.value is None for one in found.values()),
    }
    with store.write() as db:
        entry = _add_round(db, session, "scores", made, at=store.now(), author=author, note=note)
        db.executemany(
            "INSERT INTO session_score (round, replan, dimension, value) VALUES (?,?,?,?)",
            [(entry, *key, value) for key, value in now.items()],
        )
    return made


def looks(store: "Store", session: int) -> list[Round]:
    """Every look at the sealed side, oldest first."""
    return history(store, session, ("look",))


def look(
    store: "Store", session: int, scorer: str, *, author: str = "", resamples: int = 2000
) -> Agreement:
    """Open the sealed side for one judge: the look is counted and kept before figures are given.

    Raises:
        InputError: No held-out cell was scored by both, so that the look would be wasted.
    """
    sealed = measure(cells(store, session, scorer, Side.HELD_OUT), resamples=resamples)
    if not sealed.pooled.n:
        cure = "Run the judge on the held-out side first; that shows nothing and costs no look"
        raise InputError("held-out", "no cell that both scored", "at least one", cure)
    dev = measure(cells(store, session, scorer, Side.DEV), resamples=0)
    data = {
        "scorer": scorer,
        "ema": sealed.overall.ema.value,
        "ema_low": sealed.overall.ema.low,
        "ema_high": sealed.overall.ema.high,
        "mae": sealed.overall.mae.value,
        "n": sealed.pooled.n,
        "dev_ema": dev.overall.ema.value if dev.pooled.n else None,
        "gap": dev.overall.ema.value - sealed.overall.ema.value if dev.pooled.n else None,
    }
    add_round(store, session, "look", data, author=author)
    return sealed
