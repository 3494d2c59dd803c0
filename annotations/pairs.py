"""The two sides of an agreement, from the store: whom to compare, over which replans.

Which scores of people count says ``gold``: those of a batch once the item is submitted.

A spreadsheet goes the same way (``pararecover_core.score_files``): both end in ``pairing.pair``.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

from annotations.gold import counts, held_out
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.pairing import GOLD, HUMAN, JUDGE, NO_HUMAN, SEALED, Cell, CellKey, pair
from pararecover_core.records import Score
from pararecover_core.rubric import JUDGED
from pararecover_core.score_files import choose

NOTE_LIMIT = 2000
"""Characters of a note that a list needs."""

State = tuple[int, ...]


class Selection(msgspec.Struct, frozen=True):
    """What is compared.

    Attributes:
        human: ``GOLD``, or the scorer name of one person.
        judge: Scorer name of a judge, "program", or another person.
        batch: Only replans of this batch, and all cells that it asks for; None for all.
        level: Only this level; 0 for all.
        error_type: Only instances with this label in any round; "" for all.
        agent: Only replans of this agent; "" for all.
        revealed: Whether scores count that a person made after seeing the judge's. Where not,
            the person's last score before the reveal counts.
        held_out: Whether a judge's scores count on items that a session holds out; whoever asks
            for them counts a look (``sealed.count_looks``).
    """

    human: str = GOLD
    judge: str = ""
    batch: int | None = None
    level: int = 0
    error_type: str = ""
    agent: str = ""
    revealed: bool = False
    held_out: bool = False


class Choices(NamedTuple):
    """What a database lets one choose from, each list in a stable order.

    Attributes:
        people: Scorer names of people with their number of scored cells, most first.
        judges: Scorer names of judges and programs with theirs.
        batches: Id and name.
    """

    people: list[tuple[str, int]]
    judges: list[tuple[str, int]]
    batches: list[tuple[int, str]]
    levels: list[int]
    error_types: list[str]
    agents: list[str]


class Shared(NamedTuple):
    """The cells that figures come from, and how many others there are.

    Attributes:
        cells: Cells that people scored, decided or were to score, and those whose score of the
            judge is missing, sealed or withdrawn.
        alone: How many more cells the judge alone scored, by sub-dimension.
    """

    cells: list[Cell]
    alone: dict[str, int]


class Named(NamedTuple):
    """How a list names a replan."""

    file_id: str
    query_id: str = ""
    level: int = 0
    agent: str = ""

    def short(self, key: str) -> str:
        """The item and who answered, in a few characters.

        Args:
            key: Key of the replan, for an item without an id.
        """
        return f"{(self.file_id or self.query_id or key[:6])[:16]} {self.agent[:16]}".strip()


def state(store: Store) -> State:
    """Changes whenever figures could: newest entries and numbers of records."""
    tables = ("score_log", "gold", "event_log", "prompt", "session_round WHERE kind = 'scores'")
    query = ", ".join(f"(SELECT COALESCE(MAX(entry), 0) FROM {table})" for table in tables)
    counted = ("instance", "replan", "batch", "batch_item")
    query += "".join(f", (SELECT COUNT(*) FROM {table})" for table in counted)
    with store.read() as db:
        return tuple(db.execute(f"SELECT {query}").fetchone())


def choices(store: Store) -> Choices:
    """What there is to choose from."""
    marks = ",".join("?" * len(JUDGED))
    with store.read() as db:
        scorers = db.execute(
            "SELECT scorer, COUNT(*) AS cells FROM score_log "  # a cell has one first revision
            f"WHERE revision = 1 AND dimension IN ({marks}) "
            "GROUP BY scorer ORDER BY cells DESC, scorer",
            JUDGED,
        ).fetchall()
        return Choices(
            [(name, cells) for name, cells in scorers if name.startswith(HUMAN)],
            [(name, cells) for name, cells in scorers if not name.startswith(HUMAN)]
            + [(name, 0) for name in _column(db, _ONLY_FAILED)],
            [(row[0], row[1]) for row in db.execute("SELECT id, name FROM batch ORDER BY id")],
            _column(db, "SELECT DISTINCT level FROM instance WHERE level > 0 ORDER BY level"),
            _column(db, "SELECT DISTINCT error_type FROM instance_error ORDER BY error_type"),
            _column(db, "SELECT DISTINCT agent FROM replan ORDER BY agent"),
        )


_NO_JUDGE = "Import some (pararecover import FILE --judge MODEL@PROMPT), or run pararecover judge"
_NOBODY = "Import people's scores, or let them annotate in the app"


def sides(known: Choices, human: str, judge: str) -> tuple[str, str]:
    """The two scorers that a person means to compare.

    Args:
        known: Who there is.
        human: ``GOLD``, or a person, with or without "human:".
        judge: A judge, or a person; "" where there is only one judge.

    Raises:
        InputError: There is none of that name, no judge, or several and none was named.
    """
    people = [name for name, _ in known.people]
    judges = [name for name, _ in known.judges]
    if not judges and not judge:
        raise InputError("judge side", "no judge's scores in the database", "some", _NO_JUDGE)
    side = GOLD if human == GOLD else choose("human side", human, people, cure=_NOBODY)
    others = [*judges, *people] if judge else judges
    return side, choose("judge side", judge, others, cure=_NO_JUDGE)


def load(store: Store, selection: Selection, *, dimensions: Sequence[str] = JUDGED) -> list[Cell]:
    """Pair the scores of a selection; notes are left out (``with_notes`` adds them).

    Args:
        store: The database.
        selection: Sides and filters.
        dimensions: Sub-dimensions to keep.

    Returns:
        Every cell that a side scored (a judge's on held-out items of a session are sealed: no
        score, with that reason); of a batch also those that it asks for.
    """
    with store.read() as db:
        return _load(db, selection, dimensions)


def load_shared(store: Store, selection: Selection) -> Shared:
    """As ``load``, with what the judge alone scored as mere numbers.

    A judge may have scored every answer, and people a hundredth of them.

    Args:
        store: The database.
        selection: Sides and filters.
    """
    with store.read() as db:
        if selection.batch is not None or not selection.judge or _person(selection.judge):
            return Shared(_load(db, selection, JUDGED), {})
        met = _met(db, selection)
        alone, unclear = _alone(db, selection, met)
        cells = _load(db, selection, JUDGED, judged=met | unclear)
    return Shared(cells, {name: alone[name] for name in JUDGED if alone[name]})


def judge_alone(store: Store, selection: Selection) -> list[Cell]:
    """The cells that ``load_shared`` only counts.

    Args:
        store: The database.
        selection: Sides and filters.
    """
    shared = {cell.sample for cell in load_shared(store, selection).cells}
    where, values = _filters(selection)
    query = f"SELECT s.replan, s.dimension, s.value FROM score_log s WHERE s.scorer = ?{where}"
    with store.read() as db:
        rows = db.execute(f"{query}{_OLDEST_FIRST}", (selection.judge, *values))
        newest = {(row[0], row[1]): row[2] for row in rows if row[0] not in shared}
    return [
        Cell(sample, dimension, None, value, NO_HUMAN)
        for (sample, dimension), value in newest.items()
        if dimension in JUDGED
    ]


def _load(
    db: sqlite3.Connection,
    selection: Selection,
    dimensions: Sequence[str],
    *,
    judged: frozenset[str] | None = None,
) -> list[Cell]:
    """The cells; of the judge's scores only those of the replans ``judged``, None for all."""
    where, values = _filters(selection)
    scorers = [row[0] for row in db.execute("SELECT DISTINCT scorer FROM score_log")]
    chosen = [name for name in scorers if _takes_part(name, selection)]
    some, only = "", []
    if judged is not None:
        some = " AND (s.scorer <> ? OR s.replan IN (SELECT value FROM json_each(?)))"
        only = [selection.judge, _json(list(judged))]
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples: there may be some hundred thousand
    query = f"{_SCORES}{where}{some}{_OLDEST_FIRST}"
    rows = cursor.execute(query, (_json(chosen), *values, *only))
    failed = _failures(db, selection.judge, where, values)
    scores = [*failed, *_newest(rows, revealed=selection.revealed)]
    if selection.judge.startswith(JUDGE) and not selection.held_out:
        scores = _sealed(scores, selection.judge, held_out(db))
    decided = db.execute(f"{_GOLD}{where}", values)
    gold: dict[CellKey, float] = {(row[0], row[1]): row[2] for row in decided}
    return pair(
        scores,
        human=selection.human,
        judge=selection.judge,
        gold=gold,
        wanted=_wanted(db, selection, where, values),
        dimensions=dimensions,
        revealed=selection.revealed,
    )


def _met(db: sqlite3.Connection, selection: Selection) -> frozenset[str]:
    """Replans whose cells are more than the judge's score alone."""
    query = (
        "SELECT replan FROM score_log WHERE scorer GLOB 'human:*' UNION SELECT replan FROM gold "
        "UNION SELECT replan FROM judgement WHERE scorer = ? AND status <> 'ok'"
    )
    found = {row[0] for row in db.execute(query, (selection.judge,))}
    return frozenset(found) | held_out(db)


def _alone(
    db: sqlite3.Connection, selection: Selection, met: frozenset[str]
) -> tuple[Counter[str], frozenset[str]]:
    """How many cells the judge alone scored, by sub-dimension, and replans it withdrew from."""
    where, values = _filters(selection)
    query = (
        "SELECT s.dimension, COUNT(*) FILTER (WHERE s.revision = 1), "  # one first one a cell
        "json_group_array(DISTINCT s.replan) FILTER (WHERE s.value IS NULL) "
        f"FROM score_log s WHERE s.scorer = ?{where} "
        "AND s.replan {} IN (SELECT value FROM json_each(?)) GROUP BY s.dimension"
    )
    given = (selection.judge, *values)
    rows = db.execute(query.format("NOT"), (*given, _json(list(met)))).fetchall()
    unclear = frozenset(key for row in rows for key in orjson.loads(row[2]))
    alone = Counter({row[0]: row[1] for row in rows})
    if unclear:
        held = db.execute(query.format(""), (*given, _json(list(unclear))))
        alone.subtract({row[0]: row[1] for row in held})
    return alone, unclear


def with_notes(store: Store, cells: Iterable[Cell], judge: str) -> list[Cell]:
    """The same cells with people's notes and the judge's reason, as far as a list needs them."""
    given = list(cells)
    keys = [(cell.sample, cell.dimension) for cell in given]
    notes: dict[tuple[str, str], dict[str, str]] = {key: {} for key in keys}
    with store.read() as db:
        query = (
            "SELECT replan, dimension, scorer, substr(note, 1, ?) FROM score_current "
            "WHERE note <> '' AND replan IN (SELECT value FROM json_each(?))"
        )
        for row in db.execute(query, (NOTE_LIMIT, _json([key[0] for key in keys]))):
            if (row[0], row[1]) in notes:
                notes[row[0], row[1]][row[2]] = row[3]
    return [_noted(cell, notes[key], judge) for cell, key in zip(given, keys, strict=True)]


def names(store: Store, replans: Iterable[str]) -> dict[str, Named]:
    """How lists name these replans."""
    query = (
        "SELECT r.key, i.file_id, i.query_id, i.level, r.agent FROM replan r "
        "JOIN instance i ON i.key = r.instance "
        "WHERE r.key IN (SELECT value FROM json_each(?))"
    )
    with store.read() as db:
        return {row[0]: Named(*row[1:]) for row in db.execute(query, (_json(list(replans)),))}


_ONLY_FAILED = (
    "SELECT DISTINCT scorer FROM judgement WHERE scorer NOT IN (SELECT scorer FROM score_log) "
    "ORDER BY scorer"
)
_GOLD = "SELECT s.replan, s.dimension, s.value FROM gold_current s WHERE s.value IS NOT NULL"


_SCORES = (
    "SELECT s.replan, s.dimension, s.scorer, s.value, s.revealed, "
    "CASE WHEN s.value IS NULL THEN substr(s.note, 1, 200) ELSE '' END "
    f"FROM score_log s WHERE s.scorer IN (SELECT value FROM json_each(?)) AND {counts('s')}"
)
_OLDEST_FIRST = " ORDER BY s.scorer, s.replan, s.entry"


def _newest(rows: Iterable[tuple[Any, ...]], *, revealed: bool) -> Iterable[Score]:
    """The newest score of each scorer and cell that counts; of people, by choice, blind ones.

    Args:
        rows: What ``_SCORES`` selects, oldest first.
        revealed: Whether scores after the reveal count.
    """
    newest: dict[tuple[str, str, str], Score] = {}
    no_extra: dict[str, Any] = {}
    revealed_extra: dict[str, Any] = {"revealed": True}
    for replan, dimension, scorer, value, after, note in rows:
        key = (replan, dimension, scorer)
        if after and not revealed and key in newest:
            continue
        extra = revealed_extra if after else no_extra
        newest[key] = Score(replan, dimension, scorer, value, note, "", "", extra)
    return newest.values()


def _failures(db: sqlite3.Connection, judge: str, where: str, values: Sequence[Any]) -> list[Score]:
    """Why a judge has no score, cell by cell, as scores without a value."""
    query = (
        "SELECT s.replan, d.value, s.status FROM judgement s, json_each(s.dimensions) d "
        f"WHERE s.scorer = ? AND s.status <> 'ok'{where} ORDER BY s.entry"
    )
    rows = db.execute(query, (judge, *values))
    return [Score(row[0], row[1], judge, None, row[2]) for row in rows]


def _sealed(scores: list[Score], judge: str, kept: frozenset[str]) -> list[Score]:
    """Scores with the judge's of held-out items kept back: a session counts each look at them."""
    if not kept:
        return scores
    return [
        Score(s.replan, s.dimension, s.scorer, None, SEALED)
        if s.scorer == judge and s.replan in kept
        else s
        for s in scores
    ]


def _person(scorer: str) -> bool:
    return scorer.startswith(HUMAN)


def _takes_part(scorer: str, selection: Selection) -> bool:
    return _person(scorer) or scorer == selection.judge


def _filters(selection: Selection) -> tuple[str, list[Any]]:
    """SQL that narrows ``s.replan``, starting with AND, and its values."""
    where = ""
    values: list[Any] = []
    inner: list[str] = []
    if selection.batch is not None:
        where += " AND s.replan IN (SELECT replan FROM batch_item WHERE batch = ?)"
        values.append(selection.batch)
    if selection.agent:
        inner.append("r.agent = ?")
        values.append(selection.agent)
    if selection.level:
        inner.append("i.level = ?")
        values.append(selection.level)
    if selection.error_type:
        inner.append("i.key IN (SELECT instance FROM instance_error WHERE error_type = ?)")
        values.append(selection.error_type)
    if inner:
        where += (
            " AND s.replan IN (SELECT r.key FROM replan r JOIN instance i ON i.key = r.instance "
            f"WHERE {' AND '.join(inner)})"
        )
    return where, values


def _wanted(
    db: sqlite3.Connection, selection: Selection, where: str, values: list[Any]
) -> list[CellKey]:
    """The cells that the chosen batch asks for."""
    if selection.batch is None:
        return []
    every = db.execute("SELECT dimensions FROM batch WHERE id = ?", (selection.batch,)).fetchone()
    if every is None:
        return []
    query = f"SELECT s.replan, s.dimensions FROM batch_item s WHERE s.batch = ?{where}"
    return [
        (row[0], dimension)
        for row in db.execute(f"{query} ORDER BY s.position", (selection.batch, *values))
        for dimension in orjson.loads(row[1] or every[0])
    ]


def _noted(cell: Cell, notes: dict[str, str], judge: str) -> Cell:
    people = "; ".join(notes[HUMAN + name] for name, _ in cell.people if HUMAN + name in notes)
    return msgspec.structs.replace(cell, human_note=people, judge_note=notes.get(judge, ""))


def _column(db: sqlite3.Connection, query: str) -> list[Any]:
    return [row[0] for row in db.execute(query)]


def _json(values: Sequence[str]) -> str:
    return orjson.dumps(values).decode()
