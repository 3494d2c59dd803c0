"""The annotator's queue: claim, continue, skip, flag, submit, reveal.

An item has as many slots as annotators it needs. A slot is claimed inside one
``BEGIN IMMEDIATE`` transaction, and a unique index of the database stands behind it, so that two
annotators never hold the same slot. The order for one annotator is: what was claimed after the
item just left, then fresh items, then what was skipped, flagged or left unfinished, least
recently touched first.

A claim that nobody touched for the batch's ``stale_minutes`` is released when another annotator
asks for an item, and is given away after all fresh ones. Its annotator's scores stay in the log;
whoever comes back while the slot is still free continues.

Every action carries the client's event id: a repeated one changes nothing.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from annotations import claims
from annotations.batches import load_batch
from annotations.blind import Reveal, Shown
from annotations.claims import State, WorkItem, scorer_of
from annotations.score_log import refresh_summary
from pararecover_core.errors import StoreError

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = [
    "State",
    "WorkItem",
    "flag",
    "may_show",
    "missing_scores",
    "neighbour",
    "next_item",
    "note",
    "open_item",
    "release_stale",
    "reopen",
    "reveal",
    "reveal_all",
    "scorer_of",
    "skip",
    "submit",
    "touch",
    "unrevealed",
]


TOUCH_SECONDS = 30
"""Age of the last touch up to which opening the same item again writes nothing."""


def next_item(store: "Store", batch: int, annotator: str, *, after: str = "") -> WorkItem | None:
    """The item to score now, claimed.

    Args:
        store: The database.
        batch: Which batch.
        annotator: Who asks.
        after: The replan that is being left, "" at the start of a session: then the unfinished
            item touched last is continued.

    Returns:
        The item, or None where nothing waits for this annotator.

    Raises:
        InputError: There is no such batch.
    """
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        claims.release_stale_claims(db, info, now, spare=annotator)
        replan = (
            claims.claimed_next(db, batch, annotator, after)
            or claims.fresh(db, batch, annotator)
            or claims.left_over(db, batch, annotator, after)
        )
        if replan is None:
            return None
        claims.claim(db, batch, annotator, replan, now)
        return claims.load_item(db, info, annotator, replan)


def open_item(store: "Store", batch: int, annotator: str, replan: str) -> WorkItem:
    """One item by its key: a deep link, or a step back.

    A free slot is claimed. Where none is free, the item is opened to look at, still blind.

    Raises:
        InputError: There is no such batch.
        StoreError: The item is not in the batch.
    """
    with store.read() as db:
        info = load_batch(db, batch)
        item = claims.load_item(db, info, annotator, replan)
        if item.state is State.SUBMITTED or _just_touched(item, store.now()):
            return item
    with store.write() as db:
        now = store.now()
        claims.release_stale_claims(db, info, now, spare=annotator)
        if claims.free_slot(db, batch, annotator, replan):
            claims.claim(db, batch, annotator, replan, now)
        return claims.load_item(db, info, annotator, replan)


def _just_touched(item: WorkItem, now: str) -> bool:
    """Whether the item is at work and was touched moments ago: no need to write that again."""
    if not item.can_score:
        return False
    age = datetime.fromisoformat(now) - datetime.fromisoformat(item.touched_at)
    return age < timedelta(seconds=TOUCH_SECONDS)


def neighbour(
    store: "Store", batch: int, annotator: str, replan: str, *, step: int
) -> WorkItem | None:
    """The item before or after one in the annotator's own history, submitted ones included.

    Args:
        store: The database.
        batch: Which batch.
        annotator: Whose history.
        replan: Where the annotator is now.
        step: -1 for the one before, 1 for the one after.

    Returns:
        The item, or None at the end of the history (then ``next_item`` goes on).
    """
    with store.read() as db:
        keys = [
            row[0]
            for row in db.execute(
                "SELECT a.replan FROM assignment AS a JOIN batch_item AS i USING (batch, replan)"
                " WHERE a.batch = ? AND a.annotator = ? AND a.state <> 'released'"
                " ORDER BY a.claimed_at, i.position",
                [batch, annotator],
            )
        ]
    at = keys.index(replan) if replan in keys else len(keys)
    if not 0 <= at + step < len(keys):
        return None
    return open_item(store, batch, annotator, keys[at + step])


def release_stale(store: "Store", batch: int, *, minutes: float | None = None) -> int:
    """Release the stale claims of every annotator.

    Args:
        store: The database.
        batch: Which batch.
        minutes: Time without a touch; the batch's own where None.

    Returns:
        How many claims were released.
    """
    with store.write() as db:
        info = load_batch(db, batch)
        if minutes is not None:
            info = msgspec.structs.replace(info, stale_minutes=minutes)
        return claims.release_stale_claims(db, info, store.now(), spare="")


def skip(
    store: "Store", batch: int, annotator: str, replan: str, *, event: str, note: str = ""
) -> WorkItem:
    """Put an item at the end of the annotator's own queue.

    Raises:
        StoreError: The annotator does not hold it, or has submitted it.
    """
    return _act(store, batch, annotator, replan, "skip", event, note, State.SKIPPED)


def flag(
    store: "Store", batch: int, annotator: str, replan: str, *, event: str, note: str = ""
) -> WorkItem:
    """Mark an item as doubtful for whoever runs the batch, and put it at the end of the queue.

    Raises:
        StoreError: The annotator does not hold it, or has submitted it.
    """
    return _act(store, batch, annotator, replan, "flag", event, note, State.FLAGGED)


def note(
    store: "Store", batch: int, annotator: str, replan: str, *, event: str, note: str
) -> WorkItem:
    """Keep a note on the whole sample; the newest one counts, all stay in the log.

    Raises:
        StoreError: The annotator never had the item.
    """
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        item = claims.require(db, info, annotator, replan, "note", submitted=True, held=False)
        if claims.log_event(db, event, now, annotator, batch, replan, "note", note):
            claims.change(db, item, annotator, note=note, touched_at=now)
        return claims.load_item(db, info, annotator, replan)


def touch(store: "Store", batch: int, annotator: str, replan: str) -> WorkItem:
    """Say that the annotator is still at work on the item.

    Scores count as touches by themselves. A released item is taken back where its slot is free;
    where it is not, ``can_score`` of the result is false.
    """
    with store.write(durable=False) as db:
        info, now = load_batch(db, batch), store.now()
        item = claims.load_item(db, info, annotator, replan)
        if item.state is State.RELEASED and claims.free_slot(db, batch, annotator, replan):
            claims.claim(db, batch, annotator, replan, now)
        elif item.can_score:
            claims.change(db, item, annotator, touched_at=now)
        return claims.load_item(db, info, annotator, replan)


def missing_scores(store: "Store", batch: int, annotator: str, replan: str) -> tuple[str, ...]:
    """Sub-dimensions that the item asks and this annotator has not scored, in rubric order."""
    with store.read() as db:
        return claims.missing(
            db, claims.load_item(db, load_batch(db, batch), annotator, replan), annotator
        )


def submit(store: "Store", batch: int, annotator: str, replan: str, *, event: str) -> WorkItem:
    """Hand an item in.

    Raises:
        StoreError: A sub-dimension has no score (the message names it), or the annotator does
            not hold the item.
    """
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        if claims.known_event(db, event):
            return claims.load_item(db, info, annotator, replan)
        item = claims.require(db, info, annotator, replan, "submit", submitted=True)
        missing = claims.missing(db, item, annotator)
        if missing:
            got = f"{', '.join(missing)} without a score"
            cure = "Score what is missing, or skip the item"
            raise StoreError(claims.place(info, "submit", replan), got, "a score on each", cure)
        claims.log_event(db, event, now, annotator, batch, replan, "submit")
        if item.state is not State.SUBMITTED:
            claims.change(
                db, item, annotator, state=State.SUBMITTED, touched_at=now, submitted_at=now
            )
            refresh_summary(db, [replan])  # its scores count from now on
        return claims.load_item(db, info, annotator, replan)


def reopen(store: "Store", batch: int, annotator: str, replan: str, *, event: str) -> WorkItem:
    """Open a submitted item for changes; its scores count on, and nobody else can take it.

    Raises:
        StoreError: The annotator does not hold the item.
    """
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        item = claims.require(db, info, annotator, replan, "re-open", submitted=True)
        if claims.log_event(db, event, now, annotator, batch, replan, "reopen"):
            claims.change(db, item, annotator, state=State.CLAIMED, touched_at=now)
        return claims.load_item(db, info, annotator, replan)


def reveal(store: "Store", batch: int, annotator: str, replan: str, *, event: str) -> WorkItem:
    """Show judge, agent, tags and others' scores; later scores are recorded as made after it.

    Raises:
        StoreError: The item is not submitted, or the batch never reveals.
    """
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        if claims.known_event(db, event):
            return claims.load_item(db, info, annotator, replan)
        item = claims.require(db, info, annotator, replan, "reveal", submitted=True)
        where = claims.place(info, "reveal", replan)
        if info.reveal is Reveal.NEVER:
            cure = "Ask whoever runs the batch"
            raise StoreError(where, "a batch that stays blind", "one that reveals", cure)
        if not item.submitted_at:
            cure = "Score every sub-dimension and submit, then reveal"
            raise StoreError(where, "an item at work", "a submitted one", cure)
        claims.log_event(db, event, now, annotator, batch, replan, "reveal")
        claims.change(db, item, annotator, revealed_at=item.revealed_at or now)
        return claims.load_item(db, info, annotator, replan)


def unrevealed(store: "Store", batch: int, annotator: str) -> list[str]:
    """Keys of the replans that the annotator submitted and may reveal, in the batch's order."""
    with store.read() as db:
        if load_batch(db, batch).reveal is not Reveal.AFTER_SUBMIT:
            return []
        rows = db.execute(
            "SELECT replan FROM assignment JOIN batch_item USING (batch, replan)"
            " WHERE batch = ? AND annotator = ? AND state = 'submitted'"
            " AND coalesce(revealed_at, '') = '' ORDER BY position",
            [batch, annotator],
        )
        return [replan for (replan,) in rows]


def reveal_all(store: "Store", batch: int, annotator: str) -> int:
    """Reveal all that ``unrevealed`` lists; how many those were."""
    replans = unrevealed(store, batch, annotator)
    for replan in replans:
        reveal(store, batch, annotator, replan, event=uuid4().hex)
    return len(replans)


def may_show(store: "Store", batch: int, annotator: str, replan: str) -> Shown:
    """What may be shown of an item to an annotator now."""
    with store.read() as db:
        return claims.load_item(db, load_batch(db, batch), annotator, replan).shown


def _act(
    store: "Store",
    batch: int,
    annotator: str,
    replan: str,
    kind: str,
    event: str,
    note: str,
    state: State,
) -> WorkItem:
    with store.write() as db:
        info, now = load_batch(db, batch), store.now()
        if not claims.known_event(db, event):
            item = claims.require(db, info, annotator, replan, kind, submitted=False)
            claims.log_event(db, event, now, annotator, batch, replan, kind, note)
            claims.change(db, item, annotator, state=state, touched_at=now)
        return claims.load_item(db, info, annotator, replan)
