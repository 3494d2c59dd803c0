"""Browsing everything: filter, sort, count, one page at a time.

A row is one answer to one instance, or an instance without an answer. What an annotator still has
to score blind stays blind here: such rows show no agent, tags or scores, and a filter or an order
that would tell them leaves these rows out and says how many.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import orjson

from annotations.gold import standing
from annotations.search_index import match_text
from annotations.search_schema import ERROR_BITS, OTHER_BIT
from annotations.search_table import FIGURES, NONE, Array, Table, table
from pararecover_core.pairing import gold_value
from pararecover_core.taxonomy import OTHER

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["Facets", "Filter", "Page", "Row", "Sort", "facets", "find", "search"]

Mask = npt.NDArray[np.bool_]

PAGE_SIZE = 10
QUERY_LENGTH = 200
MOST_TERMS = 8
KEPT_TERMS = 16

Measure = Literal["total", "si", "dr", "es"]
By = Literal["people", "judges"]
Order = Literal["import", "level", "agent", "rounds", "si", "dr", "es", "total", "gap"]


class Filter(msgspec.Struct, frozen=True):
    """What to show; an empty field asks for nothing.

    Attributes:
        text: Words that must all occur in query, id, thought or tool names; the last word may be
            a beginning, and "words in quotes" stand in a row.
        errors: Error types, any of them in any round; ``OTHER`` for other labels.
        s5: 1 or 0, of the new plan.
        measure, by, low, high: A range in [0, 100] of SI, DR, ES or their mean.
        gap: Least largest difference of people and judges over the sub-dimensions, in [0, 1].
        answer: "yes" or "no": whether there is a replan.
    """

    text: str = ""
    levels: tuple[int, ...] = ()
    errors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    s5: int | None = None
    measure: Measure = "total"
    by: By = "people"
    low: float = 0.0
    high: float = 100.0
    gap: float = 0.0
    answer: Literal["", "yes", "no"] = ""

    @property
    def ranged(self) -> bool:
        """Whether a range of scores is asked for."""
        return self.low > 0 or self.high < 100

    def active(self) -> int:
        """How many of the fields ask for something."""
        asked = (self.text.strip(), self.levels, self.errors, self.sources, self.agents)
        return (
            sum(map(bool, asked))
            + (self.s5 is not None)
            + sum(map(bool, (self.ranged, self.gap, self.answer)))
        )


class Sort(msgspec.Struct, frozen=True):
    """In which order; what has no value comes last."""

    by: Order = "import"
    descending: bool = False


class Row(msgspec.Struct, frozen=True):
    """One row of the list.

    Attributes:
        replan: Key of the replan, "" where there is no answer yet.
        rounds: Rounds of the run where one is known, else the round of the decision point.
        figures: SI, DR, ES, total and judge_* in [0, 1]; only those that exist.
        marks: Score of each sub-dimension in [0, 1] by people, else judges, else a program.
        hidden: The reader still has to score it: agent, errors and figures are left empty.
        tags_hidden: The reader still has to score some answer to its instance: no errors.
    """

    instance: str
    replan: str
    file_id: str
    query_id: str
    query: str
    level: int
    source: str
    agent: str
    errors: tuple[str, ...]
    rounds: int | None
    run: bool
    round_gt: int | None
    figures: dict[str, float]
    marks: dict[str, float]
    hidden: bool
    tags_hidden: bool

    @property
    def key(self) -> str:
        """What a link names: the replan, else the instance."""
        return self.replan or self.instance


class Page(msgspec.Struct, frozen=True):
    """A page of rows; ``number`` is from 1, ``left_out`` are rows that stay blind."""

    rows: tuple[Row, ...]
    total: int
    number: int
    pages: int
    left_out: int = 0


class Facets(msgspec.Struct, frozen=True):
    """How many rows each choice of a field would leave, under all other fields."""

    levels: dict[int, int]
    errors: dict[str, int]
    sources: dict[str, int]
    agents: dict[str, int]
    s5: dict[int, int]
    answer: dict[str, int]


HIDDEN_REPLANS = """
SELECT bi.replan FROM batch_item bi JOIN batch b ON b.id = bi.batch
LEFT JOIN assignment a ON a.batch = bi.batch AND a.replan = bi.replan AND a.annotator = :who
WHERE b.reveal <> 2 AND bi.batch IN (SELECT batch FROM assignment WHERE annotator = :who)
AND CASE
  WHEN a.state IN ('claimed', 'skipped', 'flagged') THEN 1
  WHEN a.state = 'submitted' THEN b.reveal = 0 OR a.revealed_at IS NULL OR a.revealed_at = ''
  ELSE (SELECT COUNT(*) FROM assignment o WHERE o.batch = bi.batch AND o.replan = bi.replan
    AND o.state <> 'released') < bi.slots
END
"""
"""Keys of the replans that ``:who`` still has to score blind."""
_TELLS = frozenset({"agents", "errors", "range", "gap"})
"""Fields of a filter that would tell what blind scoring hides; so would these orders:"""
_ORDERS_TELL = frozenset({"agent", "si", "dr", "es", "total", "gap"})
_FACETS = ("levels", "errors", "sources", "agents", "s5", "answer")


def search(
    store: "Store",
    wanted: Filter,
    sort: Sort = Sort(),  # noqa: B008 (frozen)
    *,
    page: int = 1,
    size: int = PAGE_SIZE,
    reader: str = "",
) -> Page:
    """One page of what a filter leaves.

    Args:
        store: The database.
        wanted: The filter.
        sort: The order; ties keep the order of import.
        page: From 1; a page behind the last one gives the last one.
        size: Rows a page, at least 1.
        reader: The annotator who reads, "" where nothing is hidden.

    Returns:
        Rows and the number of all that match.
    """
    with store.read() as db:
        rows = table(store.path, db)
        hidden = _Hidden.of(db, reader)
        masks = _masks(rows, wanted, db)
        shown, left_out = _all(rows, masks.values()), 0
        if hidden.replans and (sort.by in _ORDERS_TELL or _TELLS & set(masks)):
            waits = np.isin(rows["instance_n"], list(hidden.instances))
            plain = _all(rows, [mask for field, mask in masks.items() if field not in _TELLS])
            left_out = int(np.count_nonzero(plain & waits))
            shown = shown & ~waits
        total = int(np.count_nonzero(shown))
        pages = max(1, -(-total // size))
        number = min(max(page, 1), pages)
        ordered = _ordered(rows, np.flatnonzero(shown), sort)
        places = ordered[(number - 1) * size : number * size]
        found = _rows(db, [int(n) for n in rows["n"][places]], hidden)
    return Page(found, total, number, pages, left_out)


def _all(rows: Table, masks: Iterable[Mask]) -> Mask:
    found = np.ones(len(rows), bool)
    for mask in masks:
        found &= mask
    return found


def _ordered(rows: Table, places: npt.NDArray[np.intp], sort: Sort) -> npt.NDArray[np.intp]:
    """Places in the asked order; what has no value comes last, ties keep the order of import."""
    keys = _sort_keys(rows, sort)[places]
    if sort.descending:
        keys = -keys
    keys = np.where(np.isnan(keys), np.inf, keys)
    return places[np.lexsort((rows["n"][places], rows["instance_n"][places], keys))]


def _sort_keys(rows: Table, sort: Sort) -> npt.NDArray[np.float64]:
    if sort.by == "agent":
        names = rows.names["agent"]
        rank = {name: place for place, name in enumerate(sorted(names))}
        ranks = np.array([rank[name] if name else np.nan for name in names])
        return ranks[rows["agent"]] if len(names) else np.empty(0)
    if sort.by == "rounds":
        rounds = np.where(rows["run"] == NONE, rows["rounds"] + 1, rows["run"])
        unknown = (rows["run"] == NONE) & (rows["rounds"] == NONE)
        return np.where(unknown, np.nan, rounds.astype(np.float64))
    if sort.by in ("si", "dr", "es", "total"):
        people, judges = rows[sort.by], rows[f"judge_{sort.by}"]
        return np.where(np.isnan(people), judges, people).astype(np.float64)
    column = {"import": "instance_n", "level": "level", "gap": "gap"}[sort.by]
    return rows[column].astype(np.float64)


def find(store: "Store", key: str, *, reader: str = "") -> Row | None:
    """The row of a replan or instance by its key, whatever the filter says; None for no such."""
    with store.read() as db:
        query = (
            "SELECT n FROM search_item WHERE replan_n = (SELECT n FROM replan WHERE key = :key) "
            "OR instance_n = (SELECT n FROM instance WHERE key = :key) ORDER BY n LIMIT 1"
        )
        found = db.execute(query, {"key": key}).fetchone()
        rows = _rows(db, [found["n"]], _Hidden.of(db, reader)) if found else ()
    return rows[0] if rows else None


def facets(store: "Store", wanted: Filter) -> Facets:
    """Counts beside the choices of each field."""
    with store.read() as db:
        rows = table(store.path, db)
        masks = _masks(rows, wanted, db)
    return Facets(**{field: _counts(rows, masks, field) for field in _FACETS})


def _counts(rows: Table, masks: Mapping[str, Mask], field: str) -> dict[Any, int]:
    """How many rows each choice of a field would leave."""
    under = _all(rows, [mask for other, mask in masks.items() if other != field])
    if field == "errors":
        found: dict[Any, int] = {}
        for bits, count in _times(rows["errors"][under]):
            for label in labels_of(bits):
                found[label] = found.get(label, 0) + count
        return found
    if field == "answer":
        there = int(np.count_nonzero(rows["replan_n"][under] != NONE))
        every = int(np.count_nonzero(under))
        return {word: n for word, n in (("yes", there), ("no", every - there)) if n}
    column = {"levels": "level", "sources": "source", "agents": "agent", "s5": "s5"}[field]
    pairs = _times(rows[column][under])
    if column in rows.names:
        return {rows.names[column][v]: n for v, n in pairs if rows.names[column][v]}
    return {value: n for value, n in pairs if value != NONE}


def _times(values: Array) -> list[tuple[int, int]]:
    """Each value of a column of small whole numbers, and how often it stands there."""
    counts = np.bincount(values + 1)  # NONE becomes 0
    return [(int(place) - 1, int(counts[place])) for place in np.flatnonzero(counts)]


def labels_of(bits: int) -> tuple[str, ...]:
    """The error types that bits of ``search_item.errors`` stand for, ``OTHER`` last."""
    named = tuple(name for name, bit in ERROR_BITS.items() if bits & bit)
    return (*named, OTHER) if bits & OTHER_BIT else named


class _Hidden(NamedTuple):
    """Numbers of the replans that a reader still has to score, and of their instances."""

    replans: frozenset[int]
    instances: frozenset[int]

    @classmethod
    def of(cls, db: sqlite3.Connection, reader: str) -> "_Hidden":
        if not reader:
            return cls(frozenset(), frozenset())
        rows = db.execute(
            "SELECT r.n, i.n AS instance_n FROM replan r JOIN instance i ON i.key = r.instance "
            f"WHERE r.key IN ({HIDDEN_REPLANS})",
            {"who": reader},
        ).fetchall()
        return cls(frozenset(r["n"] for r in rows), frozenset(r["instance_n"] for r in rows))


def _masks(rows: Table, wanted: Filter, db: sqlite3.Connection) -> dict[str, Mask]:
    """Which rows each asked field of a filter leaves."""
    found: dict[str, Mask] = {}
    if asked := terms(wanted.text):
        found["text"] = _all(rows, [_text_mask(rows, term, db) for term in asked])
    if wanted.levels:
        found["levels"] = np.isin(rows["level"], wanted.levels)
    if wanted.sources:
        found["sources"] = np.isin(rows["source"], rows.codes("source", wanted.sources))
    if wanted.agents:
        found["agents"] = np.isin(rows["agent"], rows.codes("agent", wanted.agents))
    if wanted.errors:
        bits = sum({ERROR_BITS.get(label, OTHER_BIT) for label in wanted.errors})
        found["errors"] = (rows["errors"] & bits) != 0
    if wanted.s5 is not None:
        found["s5"] = rows["s5"] == wanted.s5
    if wanted.ranged:
        values = rows[wanted.measure if wanted.by == "people" else f"judge_{wanted.measure}"]
        found["range"] = (values >= wanted.low / 100 - 1e-6) & (values <= wanted.high / 100 + 1e-6)
    if wanted.gap > 0:
        found["gap"] = rows["gap"] >= wanted.gap - 1e-6
    if wanted.answer:
        found["answer"] = (rows["replan_n"] != NONE) == (wanted.answer == "yes")
    return found


def _text_mask(rows: Table, term: str, db: sqlite3.Connection) -> Mask:
    query = match_text(term)
    mask = rows.texts.get(query)
    if mask is None:
        mask = _listed(rows["instance_n"], "instance_text", query, db)
        mask |= _listed(rows["replan_n"], "replan_text", query, db)
        if len(rows.texts) >= KEPT_TERMS:
            rows.texts.clear()
        rows.texts[query] = mask
    return mask


def _listed(numbers: Array, index: str, query: str, db: sqlite3.Connection) -> Mask:
    """Which of these numbers a word index finds; they travel as one text, which is quicker."""
    text = db.execute(
        f"SELECT group_concat(rowid) FROM {index} WHERE {index} MATCH ?", (query,)
    ).fetchone()[0]
    if not text or not len(numbers):
        return np.zeros(len(numbers), bool)
    hits = np.fromstring(str(text), np.int64, sep=",")
    found = np.zeros(max(int(numbers.max()), int(hits.max())) + 2, bool)
    found[hits] = True
    return found[numbers]  # NONE is the last place, which is never a hit


def terms(text: str) -> list[str]:
    """The search terms of a text: words, and "words in quotes" as one."""
    found: list[str] = []
    for place, part in enumerate(text.split('"')):
        found += [part] if place % 2 else part.split()
    return [term for term in found if match_text(term)][:MOST_TERMS]


def _rows(db: sqlite3.Connection, numbers: Sequence[int], hidden: _Hidden) -> tuple[Row, ...]:
    listed = orjson.dumps(list(numbers)).decode()
    rows = db.execute(
        "SELECT s.*, i.key AS instance_key, i.file_id, i.query_id, "
        f"substr(i.query, 1, {QUERY_LENGTH}) AS query, r.key AS replan_key "
        "FROM search_item s JOIN instance i ON i.n = s.instance_n "
        "LEFT JOIN replan r ON r.n = s.replan_n "
        "WHERE s.n IN (SELECT value FROM json_each(?))",
        (listed,),
    ).fetchall()
    by_number = {row["n"]: row for row in rows}
    marks = _marks(db, [row["replan_key"] for row in rows if row["replan_key"]])
    labels = _labels(db, [row["instance_key"] for row in rows])
    return tuple(_row(by_number[n], hidden, marks, labels) for n in numbers if n in by_number)


def _labels(db: sqlite3.Connection, instances: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Error labels of instances in order of rounds, as they were given."""
    found = db.execute(
        "SELECT instance, error_type FROM instance_error WHERE instance IN "
        "(SELECT value FROM json_each(?)) ORDER BY round, error_type",
        (orjson.dumps(list(instances)).decode(),),
    )
    labels: dict[str, tuple[str, ...]] = {}
    for row in found:
        known = labels.get(row["instance"], ())
        if row["error_type"] not in known:
            labels[row["instance"]] = (*known, row["error_type"])
    return labels


def _row(
    row: sqlite3.Row,
    hidden: _Hidden,
    marks: Mapping[str, dict[str, float]],
    labels: Mapping[str, tuple[str, ...]],
) -> Row:
    blind, blind_tags = row["replan_n"] in hidden.replans, row["instance_n"] in hidden.instances
    figures = {name: row[name] for name in FIGURES if row[name] is not None}
    own = dict(marks.get(row["replan_key"] or "", {}))
    if row["s5"] is not None:
        own.setdefault("S5", float(row["s5"]))
    round_now = None if row["rounds"] is None else row["rounds"] + 1
    return Row(
        instance=row["instance_key"],
        replan=row["replan_key"] or "",
        file_id=row["file_id"],
        query_id=row["query_id"],
        query=" ".join(row["query"].split()),
        level=row["level"],
        source=row["source"],
        agent="" if blind else row["agent"],
        errors=() if blind_tags else labels.get(row["instance_key"], ()),
        rounds=round_now if row["run"] is None or blind else row["run"],
        run=row["run"] is not None and not blind,
        round_gt=row["round_gt"],
        figures={} if blind else figures,
        marks={} if blind else own,
        hidden=blind,
        tags_hidden=blind_tags,
    )


_KIND_RANK = {"judge": 0, "program": 1}


def _marks(db: sqlite3.Connection, replans: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score of each sub-dimension: the gold score, else the mean of judges, else program's."""
    listed = orjson.dumps(list(replans)).decode()
    inside = "IN (SELECT value FROM json_each(?))"
    rows = db.execute(
        "SELECT replan, dimension, scorer_kind, AVG(value) AS value FROM score_current "
        f"WHERE replan {inside} AND value IS NOT NULL AND scorer_kind <> 'human' "
        "GROUP BY replan, dimension, scorer_kind",
        (listed,),
    ).fetchall()
    found: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: -_KIND_RANK[row["scorer_kind"]]):
        found.setdefault(row["replan"], {})[row["dimension"]] = row["value"]
    people: dict[tuple[str, str], list[float]] = {}
    for one in standing(db, replans):
        people.setdefault((one.replan, one.dimension), []).append(one.value)
    for (replan, dimension), values in people.items():
        agreed = gold_value(values)
        if agreed is not None:
            found.setdefault(replan, {})[dimension] = agreed
    gold = db.execute(
        f"SELECT replan, dimension, value FROM gold_current WHERE replan {inside} "
        "AND value IS NOT NULL",
        (listed,),
    )
    for row in gold:
        found.setdefault(row["replan"], {})[row["dimension"]] = row["value"]
    return found
