"""Double annotation: agreement on an item, adjudication, and the gold score.

The gold score of a sub-dimension is what an adjudicator decided, else what all annotators agree
on, else there is none: no tie is broken by order, by majority or by a mean. Where a single
annotator scored, their score stands for the human score, and its basis says so.

Which scores count says ``gold``: those of a batch once their annotator has submitted the item,
those of a file at once.
"""

import itertools
import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from annotations.batches import load_batch
from annotations.gold import PEOPLE
from annotations.score_log import refresh_summary
from pararecover_core.errors import InputError, StaleScoreError, StoreError
from pararecover_core.pairing import gold_value
from pararecover_core.rubric import JUDGED, LEVELS

if TYPE_CHECKING:
    from annotations.store import Store


class Basis(StrEnum):
    """What a human score rests on."""

    ADJUDICATED = "adjudicated"
    AGREED = "agreed"
    SINGLE = "single"
    DISAGREED = "disagreed"
    NONE = "none"

    @property
    def is_gold(self) -> bool:
        """Whether the score is gold: decided, or agreed by two or more."""
        return self in (Basis.ADJUDICATED, Basis.AGREED)


class Opinion(NamedTuple):
    """One annotator's score of one sub-dimension.

    Attributes:
        revealed: Whether it was given after the reveal of judge and other scores.
    """

    annotator: str
    value: float
    note: str
    at: str
    revealed: bool


class Decision(msgspec.Struct, frozen=True):
    """What an adjudicator decided; the newest revision counts."""

    replan: str
    dimension: str
    revision: int
    value: float | None
    adjudicator: str
    reason: str
    at: str


class HumanScore(msgspec.Struct, frozen=True):
    """The human score of one sub-dimension, and what it rests on.

    Attributes:
        value: The score; None where annotators disagree or nobody scored.
        annotators: Whose scores there are, in alphabetical order.
        revealed: Whether one of them was given after a reveal.
    """

    replan: str
    dimension: str
    value: float | None
    basis: Basis
    annotators: tuple[str, ...] = ()
    revealed: bool = False


class Cell(msgspec.Struct, frozen=True):
    """One sub-dimension of an item that two or more annotators scored."""

    replan: str
    dimension: str
    opinions: tuple[Opinion, ...]
    decision: Decision | None = None

    @property
    def gap(self) -> float:
        """Largest difference of two scores, in [0, 1]; 0 is agreement."""
        values = [opinion.value for opinion in self.opinions]
        return max(values) - min(values)

    @property
    def decided(self) -> bool:
        """Whether a decision stands."""
        return self.decision is not None and self.decision.value is not None

    @property
    def outdated(self) -> bool:
        """Whether a score changed after the decision."""
        return self.decision is not None and any(
            opinion.at > self.decision.at for opinion in self.opinions
        )

    @property
    def waits(self) -> bool:
        """Whether an adjudicator is needed: the scores differ and nobody has decided."""
        return self.gap > 0 and not self.decided


class ItemAgreement(msgspec.Struct, frozen=True):
    """How far the annotators of one item agree.

    Attributes:
        position: Place in its batch, from 1; 0 outside of one.
        cells: Sub-dimensions that two or more annotators scored, in rubric order.
        pairs: Pairs of scores compared: all pairs of annotators on all cells.
        ema: Share of equal pairs, in [0, 1]; NaN where there is no pair (eq. 5).
        mae: Mean difference of pairs, in [0, 1]; NaN where there is no pair (eq. 6).
    """

    replan: str
    instance: str
    position: int
    annotators: tuple[str, ...]
    cells: tuple[Cell, ...]
    pairs: int
    ema: float
    mae: float

    @property
    def disagreements(self) -> tuple[Cell, ...]:
        """Cells on which scores differ, largest gap first."""
        return tuple(sorted((c for c in self.cells if c.gap > 0), key=lambda c: -c.gap))

    @property
    def waiting(self) -> int:
        """Disagreements that nobody has decided."""
        return sum(cell.waits for cell in self.cells)


class PairFigures(NamedTuple):
    """Agreement of people with people over a set of items; NaN where there is no pair."""

    items: int
    pairs: int
    ema: float
    mae: float
    disagreements: int
    waiting: int


# ---- rules ---------------------------------------------------------------------------------


def human_score(
    replan: str, dimension: str, opinions: Sequence[Opinion], adjudicated: float | None
) -> HumanScore:
    """The human score of one sub-dimension.

    Args:
        replan: Key of the replan.
        dimension: The sub-dimension.
        opinions: N scores of N annotators, N >= 0.
        adjudicated: What the adjudicator decided, None for nothing.

    Returns:
        The decision, else the score that all N agree on, else no value.
    """
    value = gold_value([opinion.value for opinion in opinions], adjudicated)
    if adjudicated is not None:
        basis = Basis.ADJUDICATED
    elif value is not None:
        basis = Basis.AGREED if len(opinions) > 1 else Basis.SINGLE
    else:
        basis = Basis.DISAGREED if opinions else Basis.NONE
    return HumanScore(
        replan,
        dimension,
        value,
        basis,
        tuple(sorted(opinion.annotator for opinion in opinions)),
        any(opinion.revealed for opinion in opinions),
    )


def pair_up(cells: Iterable[Cell]) -> list[tuple[float, float]]:
    """The scores of every pair of annotators on every cell."""
    return [
        (one.value, other.value)
        for cell in cells
        for one, other in itertools.combinations(cell.opinions, 2)
    ]


def exact_and_error(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Exact match (eq. 5) and mean absolute error (eq. 6) of pairs of scores.

    The same figures as ``agreement.ema`` and ``agreement.mae``, cheap enough for thousands of
    small items.

    Args:
        pairs: N pairs.

    Returns:
        Both in [0, 1]; NaN for N = 0.
    """
    if not pairs:
        return math.nan, math.nan
    return fmean(one == other for one, other in pairs), fmean(abs(a - b) for a, b in pairs)


def item_figures(items: Collection[ItemAgreement]) -> PairFigures:
    """Agreement over all pairs of a set of items."""
    pairs = pair_up(cell for item in items for cell in item.cells)
    exact, error = exact_and_error(pairs)
    return PairFigures(
        len(items),
        len(pairs),
        exact,
        error,
        sum(len(item.disagreements) for item in items),
        sum(item.waiting for item in items),
    )


# ---- reading -------------------------------------------------------------------------------

_OPINIONS = f"""
SELECT s.replan, s.dimension, substr(s.scorer, 7) AS annotator, s.value, s.note, s.at, s.revealed
{PEOPLE}
"""
_ORDER = " ORDER BY s.replan, s.dimension, annotator"


def _opinion(row: sqlite3.Row) -> Opinion:
    return Opinion(row["annotator"], row["value"], row["note"], row["at"], bool(row["revealed"]))


def _decisions(db: sqlite3.Connection, where: str, values: Sequence[object]) -> list[Decision]:
    rows = db.execute(
        "SELECT g.replan, g.dimension, g.revision, g.value, g.adjudicator, g.reason, g.at"
        f" FROM gold_current AS g {where}",
        values,
    )
    return [Decision(*row) for row in rows]


def gold(store: "Store", replan: str, dimension: str) -> HumanScore:
    """The human score of one sub-dimension of one replan; ``basis.is_gold`` tells gold."""
    with store.read() as db:
        cell = _cell(db, replan, dimension)
    decided = cell.decision.value if cell.decision else None
    return human_score(replan, dimension, cell.opinions, decided)


def human_scores(store: "Store", *, batch: int | None = None) -> Iterator[HumanScore]:
    """The human score of every sub-dimension that somebody scored or decided.

    Args:
        store: The database.
        batch: Only replans of this batch.

    Yields:
        One score per replan and sub-dimension, ordered by both.
    """
    where, values = "", []
    if batch is not None:
        where = "{} IN (SELECT replan FROM batch_item WHERE batch = ?)"
        values = [batch]
    with store.read() as db:
        decided = {
            (d.replan, d.dimension): d.value
            for d in _decisions(db, where and f"WHERE {where.format('g.replan')}", values)
            if d.value is not None
        }
        rows = db.execute(
            _OPINIONS + (where and f" AND {where.format('s.replan')}") + _ORDER, values
        )
        grouped = itertools.groupby(rows, key=lambda row: (row["replan"], row["dimension"]))
        for key, group in grouped:
            yield human_score(*key, [_opinion(row) for row in group], decided.pop(key, None))
    for (replan, dimension), value in sorted(decided.items()):
        yield human_score(replan, dimension, (), value)


def cell(store: "Store", replan: str, dimension: str) -> Cell:
    """All scores that count for one sub-dimension of one replan, and the decision."""
    with store.read() as db:
        return _cell(db, replan, dimension)


def _cell(db: sqlite3.Connection, replan: str, dimension: str) -> Cell:
    rows = db.execute(
        _OPINIONS + " AND s.replan = ? AND s.dimension = ?" + _ORDER, [replan, dimension]
    )
    opinions = tuple(_opinion(row) for row in rows)
    found = _decisions(db, "WHERE g.replan = ? AND g.dimension = ?", [replan, dimension])
    return Cell(replan, dimension, opinions, found[0] if found else None)


_IN_BATCH = (
    "FROM batch_item AS b JOIN replan_summary AS m USING (replan)"
    " WHERE b.batch = ? AND m.humans > 1"
)
_ANYWHERE = (
    "FROM (SELECT key AS replan, n AS position FROM replan) AS b"
    " JOIN replan_summary AS m USING (replan) WHERE m.humans > 1"
)


def double_scored(store: "Store", batch: int | None) -> list[ItemAgreement]:
    """Items that two or more annotators scored, in the app or in imported files.

    Args:
        store: The database.
        batch: Which batch's items; None for every item of the database.

    Returns:
        Those with the most undecided disagreements first, then in the order of the batch or
        of their import.

    Raises:
        InputError: There is no such batch.
    """
    shared, values = (_ANYWHERE, []) if batch is None else (_IN_BATCH, [batch])
    inside = f"replan IN (SELECT b.replan {shared})"
    with store.read() as db:
        if batch is not None:
            load_batch(db, batch)
        rows = db.execute(f"{_OPINIONS} AND s.{inside}{_ORDER}", values).fetchall()
        decisions = {
            (d.replan, d.dimension): d for d in _decisions(db, f"WHERE g.{inside}", values)
        }
        found = db.execute(f"SELECT b.replan, b.position, m.instance {shared}", values)
        places = {row[0]: (row[1], row[2]) for row in found}
    items = [
        _item(replan, places[replan], list(group), decisions)
        for replan, group in itertools.groupby(rows, key=lambda row: str(row["replan"]))
    ]
    return sorted(
        (item for item in items if item.cells), key=lambda item: (-item.waiting, item.position)
    )


def _item(
    replan: str,
    place: tuple[int, str],
    rows: Sequence[sqlite3.Row],
    decisions: Mapping[tuple[str, str], Decision],
) -> ItemAgreement:
    by_dimension: dict[str, list[Opinion]] = {}
    for row in rows:
        by_dimension.setdefault(row["dimension"], []).append(_opinion(row))
    cells = tuple(
        Cell(replan, d, tuple(by_dimension[d]), decisions.get((replan, d)))
        for d in JUDGED
        if len(by_dimension.get(d, ())) > 1
    )
    pairs = pair_up(cells)
    exact, error = exact_and_error(pairs)
    return ItemAgreement(
        replan=replan,
        instance=place[1],
        position=place[0],
        annotators=tuple(sorted({o.annotator for c in cells for o in c.opinions})),
        cells=cells,
        pairs=len(pairs),
        ema=exact,
        mae=error,
    )


def sample_notes(store: "Store", batch: int | None, replan: str) -> dict[str, str]:
    """Annotators' notes on the whole sample, by name, of a batch or (None) the newest of any."""
    with store.read() as db:
        rows = db.execute(
            "SELECT annotator, note FROM assignment WHERE coalesce(batch = ?, 1) AND replan = ?"
            " AND submitted_at IS NOT NULL AND note <> '' ORDER BY annotator, submitted_at",
            [batch, replan],
        )
        return {row[0]: row[1] for row in rows}


def decisions(store: "Store", replan: str, dimension: str) -> list[Decision]:
    """Everything that was decided on one sub-dimension, newest first."""
    with store.read() as db:
        rows = db.execute(
            "SELECT replan, dimension, revision, value, adjudicator, reason, at FROM gold"
            " WHERE replan = ? AND dimension = ? ORDER BY revision DESC",
            [replan, dimension],
        )
        return [Decision(*row) for row in rows]


# ---- deciding ------------------------------------------------------------------------------


def adjudicate(
    store: "Store",
    *,
    replan: str,
    dimension: str,
    value: float,
    adjudicator: str,
    reason: str,
    event: str,
    base_revision: int = 0,
    batch: int | None = None,
) -> Decision:
    """Decide a sub-dimension; appended, so that earlier decisions stay in the log.

    Args:
        store: The database.
        replan: Key of the replan.
        dimension: A judged sub-dimension.
        value: 1, 0.5 or 0.
        adjudicator: Who decides.
        reason: Why; not blank.
        event: The client's event id: sent again, it is stored once.
        base_revision: The revision of the decision that the adjudicator saw, 0 for none.
        batch: Where it was decided.

    Returns:
        The decision as it is on disk.

    Raises:
        InputError: Value, sub-dimension or reason cannot be.
        StoreError: Fewer than two annotators have submitted a score.
        StaleScoreError: Somebody else decided in the meantime.
    """
    _check(dimension, value, reason)
    with store.write() as db:
        known = db.execute(
            "SELECT replan, dimension, revision, value, adjudicator, reason, at FROM gold"
            " WHERE event = ?",
            [event],
        ).fetchone()
        if known:
            return Decision(*known)
        current = _cell(db, replan, dimension)
        _check_current(current, base_revision)
        decision = Decision(
            replan=replan,
            dimension=dimension,
            revision=base_revision + 1,
            value=value,
            adjudicator=adjudicator,
            reason=reason.strip(),
            at=store.now(),
        )
        db.execute(
            "INSERT INTO gold (event, batch, replan, dimension, revision, value, adjudicator,"
            " reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [event, batch, *msgspec.structs.astuple(decision)],
        )
        refresh_summary(db, [replan])
        return decision


def _check(dimension: str, value: float, reason: str) -> None:
    if dimension not in JUDGED:
        cure = "Computed ones need no decision"
        raise InputError("sub-dimension", repr(dimension), "one of " + ", ".join(JUDGED), cure)
    if value not in LEVELS:
        raise InputError(f"decision on {dimension}", str(value), "1, 0.5 or 0", "Choose one")
    if not reason.strip():
        cure = "Write what decided it, so that annotators can learn from it"
        raise InputError(f"decision on {dimension}", "no reason", "a reason", cure)


def _check_current(current: Cell, base_revision: int) -> None:
    where = f"{current.replan}/{current.dimension}"
    if len(current.opinions) < 2:
        got = f"{len(current.opinions)} submitted score(s)"
        cure = "Wait until two annotators have submitted the item"
        raise StoreError(where, got, "two or more", cure)
    newest = current.decision
    if (newest.revision if newest else 0) != base_revision:
        got = f"a decision on revision {base_revision}"
        if newest:
            got += f", while {newest.adjudicator} has decided {newest.value} in the meantime"
        expected = f"revision {newest.revision if newest else 0}"
        raise StaleScoreError(where, got, expected, "Look at it again, then decide")
