"""Browsing everything: filter, sort, count, one page at a time, and links that restore a view.

A row is one answer to one instance, or an instance without an answer. What an annotator still has
to score blind stays blind here: such rows show no agent, tags or scores, and a filter or an order
that would tell them leaves these rows out and says how many.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import orjson

from annotations.search_index import match_text
from annotations.search_schema import ERROR_BITS, OTHER_BIT
from pararecover_core.records import Source

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["Facets", "Filter", "Page", "Row", "Sort", "facets", "from_query", "search", "to_query"]

OTHER = "other label"
"""Stands for every error label outside the 14 types."""
PAGE_SIZE = 10
QUERY_LENGTH = 200
MOST_TERMS = 8

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


class _Clause(NamedTuple):
    field: str
    sql: str
    values: tuple[Any, ...] = ()
    tells: bool = False


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
_ORDERS: dict[str, tuple[str, bool]] = {
    "import": ("s.instance_n", False),
    "level": ("s.level", False),
    "agent": ("s.agent", True),
    "rounds": ("COALESCE(s.run, s.rounds)", False),
    **{name: (f"COALESCE(s.{name}, s.judge_{name})", True) for name in ("si", "dr", "es", "total")},
    "gap": ("s.gap", True),
}
_FIGURES = ("si", "dr", "es", "total", "judge_si", "judge_dr", "judge_es", "judge_total", "gap")


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
        hidden = _Hidden.of(db, reader)
        clauses = _clauses(wanted)
        column, order_tells = _ORDERS[sort.by]
        tells = order_tells or any(clause.tells for clause in clauses)
        shown, left_out = list(clauses), 0
        if hidden.replans and tells:
            plain = [clause for clause in clauses if not clause.tells]
            left_out = _count(db, [*plain, hidden.clause("")])
            shown.append(hidden.clause("NOT"))
        total = _count(db, shown)
        pages = max(1, -(-total // size))
        number = min(max(page, 1), pages)
        where, values = _where(shown)
        order = f"{column} IS NULL, {column} {'DESC' if sort.descending else 'ASC'}, "
        if sort.by == "import":
            order = f"{column} {'DESC' if sort.descending else 'ASC'}, "
        found = db.execute(
            f"SELECT s.n FROM search_item s WHERE {where} ORDER BY {order} s.n LIMIT ? OFFSET ?",
            (*values, size, (number - 1) * size),
        )
        rows = _rows(db, [row["n"] for row in found], hidden)
    return Page(rows, total, number, pages, left_out)


def find(store: "Store", key: str, *, reader: str = "") -> Row | None:
    """The row of a replan or instance by its key, whatever the filter says; None for no such."""
    with store.read() as db:
        query = (
            "SELECT n FROM search_item WHERE replan_n = (SELECT n FROM replan WHERE key = :key) "
            "UNION ALL SELECT n FROM search_item WHERE instance_n = "
            "(SELECT n FROM instance WHERE key = :key) LIMIT 1"
        )
        found = db.execute(query, {"key": key}).fetchone()
        rows = _rows(db, [found["n"]], _Hidden.of(db, reader)) if found else ()
    return rows[0] if rows else None


def facets(store: "Store", wanted: Filter) -> Facets:
    """Counts beside the choices of each field."""
    cube_fields = {"levels", "errors", "sources", "agents", "s5", "answer"}
    where, values = _where(clause for clause in _clauses(wanted) if clause.field not in cube_fields)
    with store.read() as db:
        cube = db.execute(
            "SELECT level, source, agent, s5, errors, replan_n IS NULL AS waits, COUNT(*) AS n "
            f"FROM search_item s WHERE {where} GROUP BY level, source, agent, s5, errors, waits",
            values,
        ).fetchall()
    counts: dict[str, dict[Any, int]] = {field: {} for field in cube_fields}
    for row in cube:
        choices = _choices(row)
        misses = [field for field in choices if not _meets(wanted, field, choices[field])]
        for field, values_of in choices.items():
            if not misses or misses == [field]:
                for value in values_of:
                    counts[field][value] = counts[field].get(value, 0) + row["n"]
    return Facets(**counts)


def _choices(row: sqlite3.Row) -> dict[str, tuple[Any, ...]]:
    return {
        "levels": (row["level"],),
        "errors": labels_of(row["errors"]),
        "sources": (row["source"],),
        "agents": (row["agent"],) if row["agent"] else (),
        "s5": () if row["s5"] is None else (int(row["s5"]),),
        "answer": ("no" if row["waits"] else "yes",),
    }


def _meets(wanted: Filter, field: str, values: Sequence[Any]) -> bool:
    asked = getattr(wanted, field)
    if asked is None or asked in ((), ""):
        return True
    return bool(set(asked if isinstance(asked, tuple) else (asked,)) & set(values))


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

    def clause(self, negate: str) -> _Clause:
        """SQL for rows whose instance the reader still has to score."""
        numbers = orjson.dumps(sorted(self.instances)).decode()
        return _Clause(
            "hidden", f"s.instance_n {negate} IN (SELECT value FROM json_each(?))", (numbers,)
        )


def _clauses(wanted: Filter) -> list[_Clause]:
    found = [_text_clause(term) for term in terms(wanted.text)]
    for field, column in (("levels", "level"), ("sources", "source"), ("agents", "agent")):
        asked = getattr(wanted, field)
        if asked:
            marks = ", ".join("?" * len(asked))
            found.append(_Clause(field, f"s.{column} IN ({marks})", asked, field == "agents"))
    if wanted.errors:
        bits = sum({ERROR_BITS.get(label, OTHER_BIT) for label in wanted.errors})
        found.append(_Clause("errors", "s.errors & ? <> 0", (bits,), True))
    if wanted.s5 is not None:
        found.append(_Clause("s5", "s.s5 = ?", (wanted.s5,)))
    if wanted.ranged:
        column = wanted.measure if wanted.by == "people" else f"judge_{wanted.measure}"
        low, high = wanted.low / 100 - 1e-9, wanted.high / 100 + 1e-9
        found.append(_Clause("range", f"s.{column} BETWEEN ? AND ?", (low, high), True))
    if wanted.gap > 0:
        found.append(_Clause("gap", "s.gap >= ?", (wanted.gap - 1e-9,), True))
    if wanted.answer:
        negate = "NOT " if wanted.answer == "yes" else ""
        found.append(_Clause("answer", f"s.replan_n IS {negate}NULL"))
    return found


def terms(text: str) -> list[str]:
    """The search terms of a text: words, and "words in quotes" as one."""
    found: list[str] = []
    for place, part in enumerate(text.split('"')):
        found += [part] if place % 2 else part.split()
    return [term for term in found if match_text(term)][:MOST_TERMS]


def _text_clause(term: str) -> _Clause:
    query = match_text(term)
    return _Clause(
        "text",
        "(s.instance_n IN (SELECT rowid FROM instance_text WHERE instance_text MATCH ?) "
        "OR s.replan_n IN (SELECT rowid FROM replan_text WHERE replan_text MATCH ?))",
        (query, query),
    )


def _where(clauses: Iterable[_Clause]) -> tuple[str, list[Any]]:
    kept = list(clauses)
    sql = " AND ".join(clause.sql for clause in kept) or "1"
    return sql, [value for clause in kept for value in clause.values]


def _count(db: sqlite3.Connection, clauses: Iterable[_Clause]) -> int:
    where, values = _where(clauses)
    return int(
        db.execute(f"SELECT COUNT(*) FROM search_item s WHERE {where}", values).fetchone()[0]
    )


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
    return tuple(_row(by_number[n], hidden, marks) for n in numbers if n in by_number)


def _row(row: sqlite3.Row, hidden: _Hidden, marks: Mapping[str, dict[str, float]]) -> Row:
    blind, blind_tags = row["replan_n"] in hidden.replans, row["instance_n"] in hidden.instances
    figures = {name: row[name] for name in _FIGURES if row[name] is not None}
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
        errors=() if blind_tags else labels_of(row["errors"]),
        rounds=round_now if row["run"] is None or blind else row["run"],
        run=row["run"] is not None and not blind,
        round_gt=row["round_gt"],
        figures={} if blind else figures,
        marks={} if blind else own,
        hidden=blind,
    )


_KIND_RANK = {"human": 0, "judge": 1, "program": 2}


def _marks(db: sqlite3.Connection, replans: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score of each sub-dimension: gold, else the mean over people, else judges, else program."""
    listed = orjson.dumps(list(replans)).decode()
    inside = "IN (SELECT value FROM json_each(?))"
    rows = db.execute(
        "SELECT replan, dimension, scorer_kind, AVG(value) AS value FROM score_current "
        f"WHERE replan {inside} AND value IS NOT NULL GROUP BY replan, dimension, scorer_kind",
        (listed,),
    ).fetchall()
    found: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: -_KIND_RANK[row["scorer_kind"]]):
        found.setdefault(row["replan"], {})[row["dimension"]] = row["value"]
    gold = db.execute(
        f"SELECT replan, dimension, value FROM gold_current WHERE replan {inside} "
        "AND value IS NOT NULL",
        (listed,),
    )
    for row in gold:
        found.setdefault(row["replan"], {})[row["dimension"]] = row["value"]
    return found


_PARAMS = {"q": "text", "level": "levels", "error": "errors", "source": "sources"} | {
    "agent": "agents"
}


def to_query(wanted: Filter, sort: Sort = Sort()) -> dict[str, list[str]]:  # noqa: B008
    """A filter and order as query parameters of a link; empty fields are left out."""
    found: dict[str, list[str]] = {}
    for name, field in _PARAMS.items():
        value = getattr(wanted, field)
        if value:
            found[name] = [str(one) for one in value] if isinstance(value, tuple) else [value]
    if wanted.s5 is not None:
        found["s5"] = [str(wanted.s5)]
    if wanted.ranged:
        span = f"{wanted.measure}.{wanted.by}.{wanted.low:g}-{wanted.high:g}"
        found["score"] = [span]
    if wanted.gap:
        found["gap"] = [f"{wanted.gap:g}"]
    if wanted.answer:
        found["answer"] = [wanted.answer]
    if sort != Sort():
        found["sort"] = [sort.by + ("-down" if sort.descending else "")]
    return found


def from_query(params: Mapping[str, Sequence[str]]) -> tuple[Filter, Sort]:
    """The filter and order of a link; what cannot be understood asks for nothing."""
    given = {name: [str(v) for v in values] for name, values in params.items()}
    one = {name: values[-1] for name, values in given.items() if values}
    asked: dict[str, Any] = {
        "text": one.get("q", "")[:500],
        "levels": tuple(int(v) for v in given.get("level", ()) if v in ("0", "1", "2")),
        "errors": tuple(v for v in given.get("error", ()) if v in ERROR_BITS or v == OTHER),
        "sources": tuple(v for v in given.get("source", ()) if v in set(Source)),
        "agents": tuple(given.get("agent", ())),
        "s5": int(one["s5"]) if one.get("s5") in ("0", "1") else None,
        "answer": one["answer"] if one.get("answer") in ("yes", "no") else "",
        "gap": _number(one.get("gap", ""), 0.0, 1.0, 0.0),
        **_range(one.get("score", "")),
    }
    by, _, down = one.get("sort", "").partition("-")
    sort = Sort(by, down == "down") if by in _ORDERS else Sort()  # type: ignore[arg-type]
    return Filter(**asked), sort


def _range(text: str) -> dict[str, Any]:
    measure, _, rest = text.partition(".")
    by, _, span = rest.partition(".")
    low, _, high = span.partition("-")
    if measure not in ("total", "si", "dr", "es") or by not in ("people", "judges"):
        return {}
    low_value = _number(low, 0.0, 100.0, 0.0)
    return {
        "measure": measure,
        "by": by,
        "low": low_value,
        "high": max(low_value, _number(high, 0.0, 100.0, 100.0)),
    }


def _number(text: str, low: float, high: float, default: float) -> float:
    try:
        value = float(text)
    except ValueError:
        return default
    return min(max(value, low), high) if value == value else default
