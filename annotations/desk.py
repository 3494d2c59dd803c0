"""One annotator at one batch: which item is open, what comes next, what to send to the page.

Without Streamlit, so that tests and benchmarks drive it as the page does. ``respond`` takes what
the page sent (acts that wait, a move, what it holds already) and gives what it needs to know.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from annotations import outbox, queue
from annotations.batches import (
    Batch,
    BatchPlan,
    create_batch,
    get_batch,
    list_batches,
    load_batch,
)
from annotations.claims import WorkItem, load_item
from annotations.progress import progress
from annotations.workbench import content, efficacy_data, full_text, standing
from pararecover_core.errors import ParaRecoverError, StoreError
from pararecover_core.literals import whole_number
from pararecover_core.records import Instance, Replan

if TYPE_CHECKING:
    from annotations.store import Store

Data = dict[str, Any]

SCORE_EVERYTHING = "score_everything"
"""What the page asks for when nobody made a batch yet."""
LOOK_BACK = "look_back"
"""What the page asks for when nothing waits: the item worked on last."""
REVEAL_ALL = "reveal_all"
"""The same, to reveal all that this annotator submitted in the batch."""
DEFAULT_BATCH = "Everything, in order"

STEP_ONWARD = 2
"""A move to what waits next, as after submitting; 1 and -1 are neighbours, 0 is the item."""


class Desk(msgspec.Struct, frozen=True):
    """Where an annotator is.

    Attributes:
        batch: The batch at work, None where there is none.
        item: The open replan, "" where nothing is open.
        token: The newest move that was carried out.
        previous: The item that a step back opens, "" at the beginning.
        following: The item that a step forward opens.
        onward: The item that comes after submitting this one.
        look: The open item is no item of a batch (an instance without an answer, or a replan
            that nobody asked to score): it is shown to look at.
    """

    batch: int | None = None
    item: str = ""
    token: float = 0
    previous: str = ""
    following: str = ""
    onward: str = ""
    look: bool = False
    notice: str = ""


def open_desk(store: "Store", annotator: str, *, batch: str = "", item: str = "") -> Desk:
    """Sit down: at a linked batch or item, else where there is work.

    Args:
        store: The database.
        annotator: Who sits down.
        batch: Id of a batch as the link gives it; "" or an unknown one means the newest batch
            with work for this annotator.
        item: Key of a replan or instance as the link gives it, "" for the next that waits.

    Returns:
        The desk, with the item claimed where it can be.
    """
    batches = list_batches(store)
    named = [b for b in batches if b.id == whole_number(batch)]
    if item:
        return _open_link(store, annotator, named or batches, item)
    for found in named or batches:
        work = queue.next_item(store, found.id, annotator)
        if work:
            return _at(store, annotator, Desk(batch=found.id), work)
    first = (named or batches)[:1]
    notice = "" if named or not batch else f"There is no batch {batch[:40]}."
    return Desk(batch=first[0].id if first else None, notice=notice)


def _open_link(store: "Store", annotator: str, batches: Iterable[Batch], item: str) -> Desk:
    for found in [*batches, *list_batches(store)]:
        try:
            work = queue.open_item(store, found.id, annotator, item)
        except StoreError:
            continue
        return _at(store, annotator, Desk(batch=found.id), work)
    replan = _replan_for(store, item)
    if replan and replan.key != item:
        return _open_link(store, annotator, batches, replan.key)
    if replan is None and _instance(store, item) is None:
        desk = open_desk(store, annotator)
        return msgspec.structs.replace(desk, notice=f"There is no item {item[:40]} here.")
    return Desk(item=item, look=True)


def _replan_for(store: "Store", key: str) -> Replan | None:
    """The replan of a key; of an instance's key, its first replan."""
    try:
        return store.replan(key)
    except StoreError:
        return next(iter(store.replans_of(key)), None)


def _instance(store: "Store", key: str) -> Instance | None:
    try:
        return store.instance(key)
    except StoreError:
        return None


def _at(store: "Store", annotator: str, desk: Desk, work: WorkItem) -> Desk:
    """The desk with an item open, and the items around it known and claimed."""
    around = (store, work.batch, annotator)
    onward = queue.next_item(*around, after=work.replan)
    queue.touch(*around, work.replan)  # the open item is the one touched last
    ahead = onward.replan if onward and onward.replan != work.replan else ""
    history = _history(*around)
    at = history.index(work.replan) if work.replan in history else len(history)
    return msgspec.structs.replace(
        desk,
        batch=work.batch,
        item=work.replan,
        previous=history[at - 1] if at else "",
        following=next(iter(history[at + 1 :]), ahead),
        onward=ahead,
        look=False,
        notice="",
    )


def _history(store: "Store", batch: int, annotator: str) -> list[str]:
    """The items of an annotator in the order in which they were taken."""
    with store.read() as db:
        rows = db.execute(
            "SELECT a.replan FROM assignment AS a JOIN batch_item AS i USING (batch, replan)"
            " WHERE a.batch = ? AND a.annotator = ? AND a.state <> 'released'"
            " ORDER BY a.claimed_at, i.position",
            [batch, annotator],
        )
        return [key for (key,) in rows]


def move(
    store: "Store", annotator: str, desk: Desk, *, item: str, step: int, ask: str = ""
) -> Desk:
    """Go to another item.

    Args:
        store: The database.
        annotator: Who moves.
        desk: Where the annotator is.
        item: Where the move starts, or with step 0 where it leads.
        step: 0 to open ``item``, 1 or -1 for the neighbour, 2 for what waits next.
        ask: ``SCORE_EVERYTHING`` makes the default batch first, ``LOOK_BACK`` opens the item
            that was worked on last, ``REVEAL_ALL`` reveals what was submitted in the batch.

    Returns:
        The desk; without an item where nothing waits.
    """
    if ask == SCORE_EVERYTHING:
        return open_desk(store, annotator, batch=str(score_everything(store, annotator).id))
    if desk.batch is None:
        return open_desk(store, annotator)
    around = (store, desk.batch, annotator)
    if ask == REVEAL_ALL:
        queue.reveal_all(*around)
        return desk
    history = _history(*around)
    at = history.index(item) if item in history else len(history)
    if ask == LOOK_BACK:
        item, step = next(reversed(history), ""), 0
    elif step == STEP_ONWARD and item == desk.item and desk.onward:
        item, step = desk.onward, 0  # the one that was claimed ahead
    elif step == -1:
        if not at:
            return msgspec.structs.replace(desk, notice="This is your first item.")
        item, step = history[at - 1], 0
    elif step == 1 and at + 1 < len(history):
        item, step = history[at + 1], 0
    if step == 0 and item:
        return _at(store, annotator, desk, queue.open_item(*around, item))
    work = queue.next_item(*around, after=item)
    if work and not (step == 1 and work.replan == item):
        return _at(store, annotator, desk, work)
    if step == 1:
        return msgspec.structs.replace(desk, notice="This is your last item; nothing else waits.")
    return msgspec.structs.replace(desk, item="", previous="", following="", onward="")


def score_everything(store: "Store", annotator: str) -> Batch:
    """The default batch: every replan, in the order of import, one annotator each.

    Raises:
        InputError: There is no replan to score.
    """
    with store.read() as db:
        keys = [key for (key,) in db.execute("SELECT key FROM replan WHERE stub = 0 ORDER BY n")]
    names = {batch.name for batch in list_batches(store)}
    name = DEFAULT_BATCH
    for number in range(2, len(names) + 3):
        if name not in names:
            break
        name = f"{DEFAULT_BATCH} ({number})"
    return create_batch(store, BatchPlan(name, replans=tuple(keys), created_by=annotator))


def respond(
    store: "Store", annotator: str, desk: Desk, message: Mapping[str, Any]
) -> tuple[Desk, Data]:
    """Carry out what the page sent and say what it needs to know.

    Args:
        store: The database.
        annotator: Who is at the page.
        desk: Where the annotator was.
        message: ``acts`` that wait, a move (``token``, ``item``, ``step``, ``ask``), ``have``
            (items that the page holds), ``full`` (a text to send whole); {} for a fresh page.

    Returns:
        The desk now, and the feed: ``acks``, ``item``, ``contents`` and ``standings`` that the
        page lacks, neighbours, ``progress``, ``empty`` where nothing is open.
    """
    done = outbox.apply(store, annotator, message.get("acts") or ())
    desk, moved = _moved(store, annotator, desk, message)
    have = {str(key) for key in message.get("have") or ()}
    feed: Data = {
        "acks": done.acks,
        "token": desk.token,
        "item": desk.item or None,
        "from": desk.item or None,
        "previous": desk.previous or None,
        "following": desk.following or None,
        "onward": desk.onward or None,
        "notice": desk.notice,
    }
    around = {desk.previous, desk.following, desk.onward} - {"", desk.item}
    wanted = ({desk.item} if desk.item else set()) | around
    fresh = (wanted - have) | (done.changed & (wanted | have)) | ({desk.item} if moved else set())
    feed["contents"], feed["standings"] = _items(store, annotator, desk, fresh - {""}, have)
    if fresh or moved or not desk.item:
        feed["progress"] = _progress(store, annotator, desk)
    if not desk.item:
        feed["empty"] = _empty(store, annotator, desk)
    if isinstance(message.get("full"), Mapping):
        feed["full"] = _full(store, message["full"])
    return desk, feed


def _moved(
    store: "Store", annotator: str, desk: Desk, message: Mapping[str, Any]
) -> tuple[Desk, bool]:
    token = message.get("token") or 0
    if not isinstance(token, int | float) or token <= desk.token:
        return desk, not message
    item, step, ask = message.get("item") or "", message.get("step") or 0, message.get("ask") or ""
    try:
        desk = move(store, annotator, desk, item=str(item), step=int(step), ask=str(ask))
    except ParaRecoverError as error:
        desk = msgspec.structs.replace(desk, notice=str(error))
    return msgspec.structs.replace(desk, token=token), True


def _items(
    store: "Store", annotator: str, desk: Desk, wanted: Iterable[str], have: Iterable[str]
) -> tuple[Data, Data]:
    contents, standings = {}, {}
    for key in sorted(wanted):
        replan = _replan_for(store, key)
        instance = store.instance(replan.instance if replan else key)
        if key not in have:
            contents[key] = content(instance, replan)
        if desk.look or desk.batch is None or replan is None:
            standings[key] = _to_look_at(instance, replan)
        else:
            work = _work(store, annotator, desk.batch, key)
            standings[key] = standing(
                work,
                annotator,
                store.history(key),
                replan=replan,
                instance=instance,
                e5=_e5(store, instance, replan, work, get_batch(store, work.batch)),
                gold=_gold(store, key),
            )
    return contents, standings


def _work(store: "Store", annotator: str, batch: int, key: str) -> WorkItem:
    with store.read() as db:
        return load_item(db, load_batch(db, batch), annotator, key)


def _to_look_at(instance: Instance, replan: Replan | None) -> Data:
    """The standing of what is in no batch: nothing to score, and blind."""
    why = "In no batch: to look at only" if replan else "No answer yet"
    return {
        "batch": None,
        "batch_name": "in no batch",
        "position": instance.id or instance.key,
        "total": 0,
        "level": instance.level,
        "round": instance.plan.executed_rounds() + 1,
        "dimensions": [],
        "slots": 0,
        "state": "open",
        "can_score": False,
        "why": why,
        "note": "",
        "submitted_at": "",
        "revealed_at": "",
        "shown": {"blind": True, "can_reveal": False},
        "scores": {},
        "undo": [],
        "e5": None,
        "revealed": None,
    }


def _e5(
    store: "Store", instance: Instance, replan: Replan, work: WorkItem, batch: Batch
) -> Data | None:
    """E5 from the program's score, else from a run of the same agent; None where hidden."""
    if work.shown.blind and batch.plan.get("hide_outcome"):
        return None
    with store.read() as db:
        scored = db.execute(
            "SELECT value, note FROM score_current WHERE replan = ? AND dimension = 'E5'"
            " AND scorer = 'program' AND value IS NOT NULL",
            [replan.key],
        ).fetchone()
        runs = db.execute(
            "SELECT key FROM trajectory WHERE instance = ? AND agent = ? AND replan IN ('', ?)"
            " ORDER BY replan DESC, rowid DESC LIMIT 1",
            [replan.instance, replan.agent, replan.key],
        ).fetchall()
    if scored:
        return {"value": scored["value"], "reason": scored["note"]}
    return efficacy_data(instance, replan, store.trajectory(runs[0]["key"])) if runs else None


def _gold(store: "Store", replan: str) -> dict[str, tuple[float | None, str]]:
    with store.read() as db:
        rows = db.execute(
            "SELECT dimension, value, reason FROM gold_current WHERE replan = ?", [replan]
        )
        return {row["dimension"]: (row["value"], row["reason"]) for row in rows}


def _progress(store: "Store", annotator: str, desk: Desk) -> Data | None:
    if desk.batch is None:
        return None
    found = progress(store, desk.batch, annotator)
    return {
        "mine_done": found.mine_done,
        "mine_total": found.mine_total,
        "batch_done": found.batch_done,
        "batch_total": found.batch_total,
        "median_seconds": found.median_seconds,
        "pace_per_hour": found.pace_per_hour,
        "warning": str(found.too_fast) if found.too_fast else "",
    }


def _empty(store: "Store", annotator: str, desk: Desk) -> Data:
    """What to say and offer where no item is open."""
    counts = store.counts()
    batches = list_batches(store)
    make = {"text": "Make a batch", "href": "annotate?view=admin"}
    if not counts.replans:
        held = f"{counts.instances:,} instances and no answer" if counts.instances else "no record"
        return {
            "title": "Nothing to score yet",
            "lines": [
                f"This database holds {held}. What is scored is an agent's answer: its thought"
                " and its new plan.",
                "Answers come from a results spreadsheet (columns id, thought, replan), or from"
                " pararecover import.",
            ],
            "ways": [{"text": "Bring your files", "href": "dataset", "main": True}],
        }
    if not batches:
        return {
            "title": "No batch yet",
            "lines": [
                f"{counts.replans:,} answers wait to be scored. A batch says which of them, on"
                " which sub-dimensions, and by how many people.",
            ],
            "ways": [
                {"text": "Score everything, in order", "act": SCORE_EVERYTHING, "main": True},
                make,
            ],
        }
    open_ones = [b for b in batches if b.id != desk.batch and b.submitted < b.slots][:3]
    this = next((b for b in batches if b.id == desk.batch), batches[0])
    lines = [f"In {this.name}, {this.submitted:,} of {this.slots:,} scorings are handed in."]
    hidden = len(queue.unrevealed(store, this.id, annotator))
    if hidden:
        lines.append(
            f"Agent, error tags and others' scores of {_items_of(hidden)} that you submitted stay"
            " hidden, and off the lists of other pages, until you reveal them. Scores that you"
            " change after that are marked."
        )
    return {
        "title": "No item waits for you",
        "lines": lines,
        "ways": [
            *({"text": f"Open {b.name}", "href": f"annotate?batch={b.id}"} for b in open_ones),
            *([{"text": f"Reveal {_items_of(hidden)}", "act": REVEAL_ALL}] if hidden else []),
            {"text": "Look back at your last item", "act": LOOK_BACK},
            {"text": "Read the agreement", "href": "calibrate"},
            make,
        ],
    }


def _full(store: "Store", asked: Mapping[str, Any]) -> Data:
    key, field = str(asked.get("item") or ""), str(asked.get("field") or "")
    replan = _replan_for(store, key)
    instance = store.instance(replan.instance if replan else key)
    return {"item": key, "field": field, "text": full_text(instance, replan, field)}


def _items_of(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"
