"""Claims on items, within an open transaction: what ``queue`` is made of."""

import json
import sqlite3
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from annotations.batches import Batch
from annotations.blind import Shown, shown
from pararecover_core.errors import StoreError


class State(StrEnum):
    """Where an item stands for one annotator."""

    OPEN = "open"  # in the batch, not claimed by this annotator
    CLAIMED = "claimed"
    SUBMITTED = "submitted"
    SKIPPED = "skipped"
    FLAGGED = "flagged"
    RELEASED = "released"


class WorkItem(msgspec.Struct, frozen=True):
    """An item as one annotator has it.

    Attributes:
        position: Place in the batch, from 1 to ``total``.
        dimensions: Sub-dimensions that this item asks, in rubric order.
        slot: The annotator's slot, from 1; 0 where none is held.
        slots: Annotators that this item needs.
        state: ``OPEN`` or ``RELEASED`` where no slot is held.
        can_score: Whether scores may be given now (a slot is held and not submitted).
        note: The annotator's note on the whole sample.
    """

    batch: int
    batch_name: str
    replan: str
    instance: str
    position: int
    total: int
    dimensions: tuple[str, ...]
    slot: int
    slots: int
    state: State
    can_score: bool
    shown: Shown
    note: str = ""
    claimed_at: str = ""
    touched_at: str = ""
    submitted_at: str = ""
    revealed_at: str = ""


def scorer_of(annotator: str) -> str:
    """The scorer's name in the score log."""
    return f"human:{annotator}"


_MINE = """
FROM assignment AS a JOIN batch_item AS i USING (batch, replan)
WHERE a.batch = ? AND a.annotator = ?
"""


def claimed_next(db: sqlite3.Connection, batch: int, annotator: str, after: str) -> str | None:
    """A claimed item to go on with: the last touched, or the next one claimed after ``after``."""
    if not after:
        row = db.execute(
            "SELECT a.replan" + _MINE + "AND a.state = 'claimed'"
            " ORDER BY a.touched_at DESC, i.position LIMIT 1",
            [batch, annotator],
        ).fetchone()
        return row[0] if row else None
    row = db.execute(
        "SELECT a.replan" + _MINE + "AND a.state = 'claimed'"
        " AND (a.claimed_at, i.position) > (SELECT b.claimed_at, j.position FROM assignment AS b"
        "   JOIN batch_item AS j USING (batch, replan)"
        "   WHERE b.batch = a.batch AND b.annotator = a.annotator AND b.replan = ?)"
        " ORDER BY a.claimed_at, i.position LIMIT 1",
        [batch, annotator, after],
    ).fetchone()
    return row[0] if row else None


_FREE = """
i.slots > (SELECT count(*) FROM assignment AS h
  WHERE h.batch = i.batch AND h.replan = i.replan AND h.state <> 'released')
"""


_NEVER_MINE = """
NOT EXISTS (SELECT 1 FROM assignment AS m WHERE m.batch = i.batch AND m.replan = i.replan
  AND m.annotator = ?)
"""


def fresh(db: sqlite3.Connection, batch: int, annotator: str) -> str | None:
    """The first item with a free slot that this annotator never had; released ones last."""
    row = db.execute(
        f"SELECT i.replan FROM batch_item AS i WHERE i.batch = ? AND {_NEVER_MINE}"
        " AND NOT EXISTS (SELECT 1 FROM assignment AS r WHERE r.batch = i.batch"
        f"   AND r.replan = i.replan AND r.state = 'released') AND {_FREE}"
        " ORDER BY i.position LIMIT 1",
        [batch, annotator],
    ).fetchone()
    row = (
        row
        or db.execute(
            "SELECT i.replan FROM assignment AS r JOIN batch_item AS i USING (batch, replan)"
            f" WHERE r.batch = ? AND r.state = 'released' AND {_NEVER_MINE} AND {_FREE}"
            " ORDER BY i.position LIMIT 1",
            [batch, annotator],
        ).fetchone()
    )
    return str(row[0]) if row else None


def taken_items(db: sqlite3.Connection, batch: int, annotator: str) -> int:
    """How many items this annotator cannot take: full ones, and those already held."""
    row = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM assignment AS a JOIN batch_item AS i"
        "   USING (batch, replan) WHERE a.batch = ? AND a.state <> 'released'"
        "   GROUP BY a.replan HAVING count(*) >= i.slots OR sum(a.annotator = ?) > 0)",
        [batch, annotator],
    ).fetchone()
    return int(row[0])


def left_over(db: sqlite3.Connection, batch: int, annotator: str, after: str) -> str | None:
    """What was skipped, flagged, left unfinished, or released and taken by nobody."""
    row = db.execute(
        "SELECT a.replan" + _MINE + "AND (a.state IN ('claimed', 'skipped', 'flagged')"
        f" OR (a.state = 'released' AND {_FREE}))"
        " ORDER BY a.replan = ?, a.touched_at, i.position LIMIT 1",
        [batch, annotator, after],
    ).fetchone()
    return row[0] if row else None


def free_slot(db: sqlite3.Connection, batch: int, annotator: str, replan: str) -> int:
    """The slot that this annotator holds or may take, from 1; 0 for none."""
    slots = db.execute(
        "SELECT slots FROM batch_item WHERE batch = ? AND replan = ?", [batch, replan]
    ).fetchone()[0]
    held = {
        row[0]: row[1]
        for row in db.execute(
            "SELECT annotator, slot FROM assignment"
            " WHERE batch = ? AND replan = ? AND state <> 'released'",
            [batch, replan],
        )
    }
    if annotator in held:
        return int(held[annotator])
    return min(set(range(1, slots + 1)) - set(held.values()), default=0)


def claim(db: sqlite3.Connection, batch: int, annotator: str, replan: str, now: str) -> None:
    """Take a slot, or go on with the one held; a skip or flag stands until the submit."""
    db.execute(
        "INSERT INTO assignment (batch, replan, annotator, slot, state, claimed_at, touched_at)"
        " VALUES (?, ?, ?, ?, 'claimed', ?, ?)"
        " ON CONFLICT (batch, replan, annotator) DO UPDATE SET slot = excluded.slot,"
        " state = CASE state WHEN 'released' THEN 'claimed' ELSE state END,"
        " touched_at = excluded.touched_at",
        [batch, replan, annotator, free_slot(db, batch, annotator, replan), now, now],
    )
    log_event(db, "", now, annotator, batch, replan, "open")


def change(db: sqlite3.Connection, item: WorkItem, annotator: str, **values: str) -> None:
    """Set columns of an assignment; the names are ours, never from outside."""
    columns = ", ".join(f"{name} = ?" for name in values)
    db.execute(
        f"UPDATE assignment SET {columns} WHERE batch = ? AND replan = ? AND annotator = ?",
        [*values.values(), item.batch, item.replan, annotator],
    )


def release_stale_claims(db: sqlite3.Connection, batch: Batch, now: str, *, spare: str) -> int:
    """Give back what nobody touched or scored for the batch's stale time."""
    limit = datetime.fromisoformat(now) - timedelta(minutes=batch.stale_minutes)
    cutoff = limit.isoformat(timespec="milliseconds")
    stale = db.execute(
        "SELECT a.replan, a.annotator FROM assignment AS a WHERE a.batch = ?"
        " AND a.state IN ('claimed', 'skipped', 'flagged') AND a.submitted_at IS NULL"
        " AND a.touched_at < ? AND a.annotator <> ?"
        " AND NOT EXISTS (SELECT 1 FROM score_log AS s WHERE s.replan = a.replan"
        "   AND s.scorer = 'human:' || a.annotator AND s.batch = a.batch AND s.at >= ?)",
        [batch.id, cutoff, spare, cutoff],
    ).fetchall()
    for replan, annotator in stale:
        db.execute(
            "UPDATE assignment SET state = 'released'"
            " WHERE batch = ? AND replan = ? AND annotator = ?",
            [batch.id, replan, annotator],
        )
        log_event(db, "", now, annotator, batch.id, replan, "release")
    return len(stale)


def log_event(
    db: sqlite3.Connection,
    event: str,
    now: str,
    annotator: str,
    batch: int,
    replan: str,
    kind: str,
    note: str = "",
) -> bool:
    """Append to the event log; an event that is already there is not written again."""
    cursor = db.execute(
        "INSERT INTO event_log (event, at, annotator, batch, replan, kind, note)"
        " VALUES (coalesce(nullif(?, ''), lower(hex(randomblob(16)))), ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (event) DO NOTHING",
        [event, now, annotator, batch, replan, kind, note],
    )
    return cursor.rowcount == 1


def known_event(db: sqlite3.Connection, event: str) -> bool:
    """Whether the client's event was carried out before."""
    found = db.execute("SELECT 1 FROM event_log WHERE event = ?", [event]).fetchone()
    return bool(event) and found is not None


def place(batch: Batch, action: str, replan: str) -> str:
    """Where an error happened: the action, the item, the batch."""
    return f"{action} {replan} in batch {batch.name!r}"


def require(
    db: sqlite3.Connection,
    batch: Batch,
    annotator: str,
    replan: str,
    action: str,
    *,
    submitted: bool,
    held: bool = True,
) -> WorkItem:
    """The item, if this annotator may act on it; takes a released one back if it is free."""
    item = load_item(db, batch, annotator, replan)
    where = place(batch, action, replan)
    if item.state is State.OPEN:
        cure = "Open the item first"
        raise StoreError(where, f"no claim of {annotator!r}", "an item of your own", cure)
    if item.state is State.RELEASED and held:
        slot = free_slot(db, batch.id, annotator, replan)
        if not slot:
            got = "an item that was released and taken by another annotator"
            raise StoreError(where, got, "an item of your own", "Your scores are kept; go on")
        db.execute(
            "UPDATE assignment SET state = 'claimed', slot = ?"
            " WHERE batch = ? AND replan = ? AND annotator = ?",
            [slot, batch.id, replan, annotator],
        )
    if item.state is State.SUBMITTED and not submitted:
        cure = "Re-open it to change scores"
        raise StoreError(where, "a submitted item", "one at work", cure)
    return item


def missing(db: sqlite3.Connection, item: WorkItem, annotator: str) -> tuple[str, ...]:
    """Sub-dimensions that the item asks and the annotator has not scored."""
    scored = {
        dimension
        for (dimension,) in db.execute(
            "SELECT dimension FROM score_current"
            " WHERE replan = ? AND scorer = ? AND value IS NOT NULL",
            [item.replan, scorer_of(annotator)],
        )
    }
    return tuple(d for d in item.dimensions if d not in scored)


def load_item(db: sqlite3.Connection, batch: Batch, annotator: str, replan: str) -> WorkItem:
    """An item as this annotator has it; changes nothing.

    Raises:
        StoreError: The item is not in the batch.
    """
    row = db.execute(
        "SELECT r.instance, i.position, i.slots, coalesce(nullif(i.dimensions, ''), '[]')"
        " AS dimensions, a.slot, a.state, coalesce(a.note, '') AS note,"
        " coalesce(a.claimed_at, '') AS claimed_at, coalesce(a.touched_at, '') AS touched_at,"
        " coalesce(a.submitted_at, '') AS submitted_at,"
        " coalesce(a.revealed_at, '') AS revealed_at,"
        " EXISTS (SELECT 1 FROM assignment AS e WHERE e.replan = i.replan AND e.annotator = ?"
        "   AND e.batch <> i.batch AND e.revealed_at IS NOT NULL) AS seen"
        " FROM batch_item AS i JOIN replan AS r ON r.key = i.replan"
        " LEFT JOIN assignment AS a ON a.batch = i.batch AND a.replan = i.replan"
        "   AND a.annotator = ?"
        " WHERE i.batch = ? AND i.replan = ?",
        [annotator, annotator, batch.id, replan],
    ).fetchone()
    if row is None:
        cure = "Choose an item of this batch"
        raise StoreError(place(batch, "open", replan), "no such item", "one of its items", cure)
    state = State(row["state"] or State.OPEN)
    held = state not in (State.OPEN, State.RELEASED)
    return WorkItem(
        batch=batch.id,
        batch_name=batch.name,
        replan=replan,
        instance=row["instance"],
        position=row["position"],
        total=batch.items,
        dimensions=tuple(json.loads(row["dimensions"])) or batch.dimensions,
        slot=row["slot"] if held else 0,
        slots=row["slots"],
        state=state,
        can_score=held and state is not State.SUBMITTED,
        shown=shown(
            batch.reveal,
            submitted_at=row["submitted_at"],
            revealed_at=row["revealed_at"],
            seen_elsewhere=bool(row["seen"]),
        ),
        note=row["note"],
        claimed_at=row["claimed_at"],
        touched_at=row["touched_at"],
        submitted_at=row["submitted_at"],
        revealed_at=row["revealed_at"],
    )
