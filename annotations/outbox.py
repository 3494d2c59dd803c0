"""Acts that the Annotate page sends: each is stored once, in order, or refused with a reason.

The page keeps an act until it is acknowledged and sends all that it keeps every time, so every
act comes with its own event id and may come again. An act belongs to the item it was made on,
whatever is on screen by now.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from annotations import queue, score_log
from annotations.batches import load_batch
from annotations.claims import State, load_item, scorer_of
from annotations.score_log import LogEntry, Saved, ScoreEntry
from pararecover_core.errors import InputError, ParaRecoverError, StaleScoreError
from pararecover_core.rubric import sde_rubric

if TYPE_CHECKING:
    from annotations.store import Store

Ack = dict[str, Any]

MAX_NOTE = 20_000
"""Longest note, in characters."""


class Act(msgspec.Struct, frozen=True):
    """Something an annotator did on an item.

    Attributes:
        event: The act's own id, made by the browser.
        item: Key of the replan.
        dimension: The sub-dimension; "" for acts on the whole item.
        value: 1, 0.5 or 0 for a score; what an undo is expected to go back to.
        base: Revision that the browser saw; 0 where it saw none.
        after: Event of the act on the same sub-dimension that had no answer yet, "" for none;
            the base revision is then the one that it got.
        seconds: Active time on the item so far.
        at: When it was done, by the browser's clock.
    """

    event: str
    kind: Literal["score", "clear", "undo", "note", "skip", "flag", "submit", "reveal"]
    item: str
    batch: int
    dimension: str = ""
    value: float | None = None
    note: str | None = None
    base: int = 0
    after: str = ""
    seconds: float | None = None
    at: str = ""
    order: float = 0


class Outcome(msgspec.Struct, frozen=True):
    """What became of a series of acts.

    Attributes:
        acks: Event to its acknowledgement: ``revision``, ``value``, ``note`` and ``at`` of a
            score; ``refused`` with the reason, ``stale`` with the ``score`` that stands, or
            ``retry`` where trying again may help.
        changed: Items whose state changed by more than a score.
    """

    acks: dict[str, Ack]
    changed: frozenset[str]


def apply(store: "Store", annotator: str, acts: Iterable[Any]) -> Outcome:
    """Carry out acts in order.

    Args:
        store: The database.
        annotator: Whose acts they are.
        acts: N acts as the browser sent them.

    Returns:
        An acknowledgement for each act that has an event id.
    """
    acks: dict[str, Ack] = {}
    changed: set[str] = set()
    refused: dict[str, str] = {}
    for given in acts:
        event = given.get("event") if isinstance(given, Mapping) else None
        if not isinstance(event, str) or not event:
            continue
        item, dimension = str(given.get("item", "")), str(given.get("dimension") or "")
        if given.get("kind") == "submit" and item in refused:
            acks[event] = {"refused": f"Not submitted: {refused[item]} was not saved."}
        else:
            acks[event] = _attempt(store, annotator, given, acks)
        if dimension and "refused" in acks[event]:
            refused.setdefault(item, dimension)
        if not dimension:
            changed.add(item)
    return Outcome(acks, frozenset(changed))


def _attempt(
    store: "Store", annotator: str, given: Mapping[str, Any], acks: Mapping[str, Ack]
) -> Ack:
    try:
        act = msgspec.convert(given, Act, strict=False)
        if act.dimension:
            return _score(store, annotator, act, acks)
        return _on_item(store, annotator, act)
    except msgspec.ValidationError as error:
        return {"refused": f"This act could not be read: {error}."}
    except StaleScoreError:
        return _stale(store, annotator, act)
    except ParaRecoverError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError):
            return _again(error)
        return {"refused": str(error)}
    except sqlite3.Error as error:
        return _again(error)


def _again(error: Exception) -> Ack:
    """The database could not write just now: the page keeps the act."""
    return {"refused": f"Not saved, press S to save again. {error}", "retry": True}


def _score(store: "Store", annotator: str, act: Act, acks: Mapping[str, Ack]) -> Ack:
    if acks.get(act.after, {}).get("stale"):
        return _stale(store, annotator, act)
    with store.write() as db:
        item = load_item(db, load_batch(db, act.batch), annotator, act.item)
        newest = score_log.newest_of(db, (act.item, act.dimension, scorer_of(annotator)))
        revealed = item.shown.marks_revealed
        entry = _entry(annotator, act, _base(db, act), newest, revealed=revealed)
        if act.kind == "undo":
            saved = score_log.undo(db, entry, store.now())
        else:
            saved = score_log.append(db, [entry], store.now())[0]
        takes_back = act.kind in ("clear", "undo") and saved is not None and saved.value is None
        if takes_back and item.state is State.SUBMITTED:  # raising takes the entry back
            cure = "Give it another value instead"
            raise InputError(act.dimension, "no value on a submitted item", "a value", cure)
    return {"refused": "There is nothing left to undo."} if saved is None else _saved(saved)


def _entry(
    annotator: str, act: Act, base: int, newest: LogEntry | None, *, revealed: bool
) -> ScoreEntry:
    """What goes into the log: a note keeps the score, a score keeps the note."""
    if act.kind not in ("score", "clear", "note", "undo"):
        raise InputError(act.dimension, act.kind, "score, clear, note or undo", "Reload the page")
    value = act.value if act.kind == "score" else None
    if act.kind == "note":
        value = newest.value if newest else None
    note = (act.note or "")[:MAX_NOTE] if act.kind == "note" else newest.note if newest else ""
    return ScoreEntry(
        event=act.event,
        replan=act.item,
        dimension=act.dimension,
        scorer=scorer_of(annotator),
        value=value,
        note=note,
        base_revision=base,
        rubric=sde_rubric().version,
        action=act.kind,
        revealed=revealed,
        batch=act.batch,
        seconds=act.seconds,
    )


def _base(db: sqlite3.Connection, act: Act) -> int:
    """The revision that the act builds on: that of the act before it, where one was on its way."""
    if not act.after:
        return act.base
    row = db.execute("SELECT revision FROM score_log WHERE event = ?", [act.after]).fetchone()
    return int(row[0]) if row else act.base


def _saved(saved: Saved) -> Ack:
    return {"revision": saved.revision, "value": saved.value, "note": saved.note, "at": saved.at}


def _stale(store: "Store", annotator: str, act: Act) -> Ack:
    with store.read() as db:
        newest = score_log.newest_of(db, (act.item, act.dimension, scorer_of(annotator)))
    if newest is None:
        return {"refused": "The score changed in another tab; reload to continue", "stale": True}
    done = "Cleared" if newest.value is None else f"Scored {newest.value:g}"
    return {
        "refused": f"{done} in another tab; reload to continue",
        "stale": True,
        "score": {
            "value": newest.value,
            "note": newest.note,
            "revision": newest.revision,
            "at": newest.at,
        },
    }


def _on_item(store: "Store", annotator: str, act: Act) -> Ack:
    note = (act.note or "")[:MAX_NOTE]
    where = (store, act.batch, annotator, act.item)
    if act.kind == "skip":
        queue.skip(*where, event=act.event, note=note)
    elif act.kind == "flag":
        queue.flag(*where, event=act.event, note=note)
    elif act.kind == "submit":
        queue.submit(*where, event=act.event)
    elif act.kind == "reveal":
        queue.reveal(*where, event=act.event)
    elif act.kind == "note":
        queue.note(*where, event=act.event, note=note)
    else:
        raise InputError(act.kind, "no sub-dimension", "one", "Reload the page")
    return {"at": store.now()}
