"""How far a batch is, how fast an annotator works, and answers faster than a person reads.

Time is read off the logs: the moments at which an item was opened, scored, noted or submitted.
A gap between two moments counts as work on the item unless it is longer than ``IDLE_SECONDS``:
then nobody knows whether somebody was reading or away, and the whole gap is left out.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from annotations.batches import load_batch
from annotations.claims import scorer_of, taken_items
from pararecover_core.literals import loads
from pararecover_core.plan import Plan
from pararecover_core.records import as_text

if TYPE_CHECKING:
    from annotations.store import Store

IDLE_SECONDS = 120.0
"""A longer gap between two moments is idle time."""

RECENT_MOMENTS = 1500
"""Moments that an annotator's own pace is taken from: about the last 100 items, read in 10 ms."""

FASTEST_WORDS_PER_MINUTE = 600.0
"""Words that nobody reads faster with understanding.

Adults read 238 words of English prose a minute on average, most of them 175 to 300
(Brysbaert 2019, a meta-analysis of 190 studies). 600 leaves room for skimming, so that the
warning comes only where part of the item cannot have been read.
"""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


class Moment(NamedTuple):
    """Something that an annotator did.

    Attributes:
        at: Seconds since the epoch.
        kind: "score", or the kind of an event: "open", "skip", "flag", "note", "submit", ...
    """

    at: float
    replan: str
    kind: str


class ItemTime(NamedTuple):
    """Seconds on one item: idle gaps left out, and with them."""

    active: float
    whole: float


class Work(NamedTuple):
    """Time spent over a series of moments.

    Attributes:
        items: Replan to the time on it.
        submitted: Replans in the order of their last submit.
    """

    items: dict[str, ItemTime]
    submitted: tuple[str, ...]
    active: float
    idle: float

    @property
    def median_seconds(self) -> float | None:
        """Median active time on a submitted item, None before the first."""
        times = [self.items[replan].active for replan in self.submitted]
        return median(times) if times else None

    @property
    def pace_per_hour(self) -> float | None:
        """Submitted items in an hour of active time, None where there is no time yet."""
        return len(self.submitted) / self.active * 3600 if self.submitted and self.active else None


class TooFast(NamedTuple):
    """An item that was handed in sooner than it can be read.

    Attributes:
        seconds: Time with the item, idle time included.
        needed: Seconds that reading alone takes at ``FASTEST_WORDS_PER_MINUTE``.
    """

    replan: str
    seconds: float
    needed: float

    def __str__(self) -> str:
        return (
            f"Your last item took {self.seconds:.0f} s; its query, thought and plan take about"
            f" {self.needed:.0f} s to read, even quickly. If you are sure, carry on;"
            " else go back to it."
        )


class Progress(msgspec.Struct, frozen=True):
    """Where one annotator stands in a batch.

    Attributes:
        mine_done: Items that this annotator submitted.
        mine_total: Those, the ones at work, and all that this annotator may still take. Where
            several share a batch, what others take goes off it.
        batch_done: Submitted scorings of everybody.
        batch_total: Scorings that the batch asks for.
        median_seconds: Median time on a submitted item, idle time left out; None before the
            first. Times and pace are over the newest ``RECENT_MOMENTS``.
        pace_per_hour: Submitted items in an hour, idle time left out; None before the first.
        too_fast: The item submitted last, if it was faster than reading; else None.
    """

    mine_done: int
    mine_total: int
    batch_done: int
    batch_total: int
    median_seconds: float | None = None
    pace_per_hour: float | None = None
    active_seconds: float = 0.0
    idle_seconds: float = 0.0
    too_fast: TooFast | None = None


class AnnotatorProgress(msgspec.Struct, frozen=True):
    """One annotator's row in the overview of a batch.

    Attributes:
        open: Claimed and not submitted, skipped and flagged ones included.
        released: Claims that were released and not taken up again.
        too_fast: Submitted items that were faster than reading.
        last_seen: Time of the last moment, ISO 8601, "" for none.
    """

    annotator: str
    done: int
    open: int
    skipped: int
    flagged: int
    released: int
    median_seconds: float | None
    pace_per_hour: float | None
    too_fast: int
    last_seen: str


def work(moments: Iterable[Moment], idle: float = IDLE_SECONDS) -> Work:
    """Time on each item and in all.

    The gap before a moment belongs to the item of that moment; the gap before an "open" belongs
    to the item that was left.

    Args:
        moments: N moments in any order.
        idle: A longer gap, in seconds, is idle time.

    Returns:
        The times; nothing for no moments.
    """
    active: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    submits: dict[str, None] = {}
    previous: Moment | None = None
    for moment in sorted(moments, key=lambda m: m.at):
        if previous is not None:
            gap = moment.at - previous.at
            owner = previous.replan if moment.kind == "open" else moment.replan
            whole[owner] += gap
            active[owner] += gap if gap <= idle else 0.0
        if moment.kind == "submit":
            submits.pop(moment.replan, None)
            submits[moment.replan] = None
        previous = moment
    items = {replan: ItemTime(active[replan], whole[replan]) for replan in {*whole, *submits}}
    total, worked = sum(whole.values()), sum(active.values())
    return Work(items, tuple(submits), worked, total - worked)


def words(text: str) -> int:
    """Words of a text; a Chinese, Japanese or Korean character counts as one.

    Readers of Chinese take in about 260 characters a minute, close to the 238 words of English.
    """
    return len(_WORD.findall(text))


def reading_seconds(query: str, thought: str, plan: Plan) -> float:
    """Least time in which an item can be read.

    Args:
        query: What was asked.
        thought: The agent's thought.
        plan: The new plan; the names and values of its nodes are counted, not its brackets.

    Returns:
        Seconds at ``FASTEST_WORDS_PER_MINUTE``.
    """
    nodes = " ".join(
        f"{node.name} {as_text(list(node.parameters.named.values()))} "
        f"{as_text(list(node.parameters.positional))}"
        for node in plan.nodes
    )
    count = words(query) + words(thought) + words(nodes or as_text(plan.given))
    return count / FASTEST_WORDS_PER_MINUTE * 60


def progress(store: "Store", batch: int, annotator: str) -> Progress:
    """Where one annotator stands in a batch.

    Raises:
        InputError: There is no such batch.
    """
    with store.read() as db:
        info = load_batch(db, batch)
        held, done = db.execute(
            "SELECT count(*), coalesce(sum(state = 'submitted'), 0) FROM assignment"
            " WHERE batch = ? AND annotator = ? AND state <> 'released'",
            [batch, annotator],
        ).fetchone()
        spent = work(_moments(db, batch, annotator, RECENT_MOMENTS))
        last = spent.submitted[-1:]
        return Progress(
            mine_done=done,
            mine_total=held + info.items - taken_items(db, batch, annotator),
            batch_done=info.submitted,
            batch_total=info.slots,
            median_seconds=spent.median_seconds,
            pace_per_hour=spent.pace_per_hour,
            active_seconds=spent.active,
            idle_seconds=spent.idle,
            too_fast=next(iter(_too_fast(db, spent, last)), None),
        )


def _moments(db: sqlite3.Connection, batch: int, annotator: str, newest: int = -1) -> list[Moment]:
    """What the annotator did in the batch; of each log only the ``newest`` rows, -1 for all."""
    cursor = db.cursor()
    cursor.row_factory = None
    rows = cursor.execute(
        "SELECT at, replan, 'score' FROM score_log WHERE batch = ? AND scorer = ?"
        " ORDER BY entry DESC LIMIT ?",
        [batch, scorer_of(annotator), newest],
    ).fetchall()
    rows += cursor.execute(
        "SELECT at, replan, kind FROM event_log WHERE batch = ? AND annotator = ?"
        " AND kind <> 'release' ORDER BY entry DESC LIMIT ?",
        [batch, annotator, newest],
    ).fetchall()
    times = sorted((datetime.fromisoformat(at).timestamp(), *rest) for at, *rest in rows)
    return [Moment(*time) for time in times[-newest if newest > 0 else None :]]


def _too_fast(db: sqlite3.Connection, spent: Work, replans: Sequence[str]) -> list[TooFast]:
    found = []
    for replan in replans:
        row = db.execute(
            "SELECT i.query, r.thought, b.body FROM replan AS r"
            " JOIN instance AS i ON i.key = r.instance LEFT JOIN replan_body AS b ON b.n = r.n"
            " WHERE r.key = ?",
            [replan],
        ).fetchone()
        plan = Plan.parse(loads(row["body"]).get("plan")) if row["body"] else Plan()
        needed = reading_seconds(row["query"], row["thought"], plan)
        if spent.items[replan].whole < needed:
            found.append(TooFast(replan, spent.items[replan].whole, needed))
    return found


def state(store: "Store") -> tuple[int, int, int]:
    """Changes whenever progress or agreement could: the newest entry of every log."""
    logs = ("score_log", "gold", "event_log")
    query = ", ".join(f"(SELECT coalesce(max(entry), 0) FROM {log})" for log in logs)
    with store.read() as db:
        found: tuple[int, int, int] = tuple(db.execute(f"SELECT {query}").fetchone())
        return found


def batch_progress(store: "Store", batch: int) -> list[AnnotatorProgress]:
    """Every annotator of a batch, in alphabetical order.

    Raises:
        InputError: There is no such batch.
    """
    with store.read() as db:
        load_batch(db, batch)
        rows = db.execute(
            "SELECT annotator, sum(state = 'submitted'),"
            " sum(state IN ('claimed', 'skipped', 'flagged')), sum(state = 'skipped'),"
            " sum(state = 'flagged'), sum(state = 'released'), max(touched_at)"
            " FROM assignment WHERE batch = ? GROUP BY annotator ORDER BY annotator",
            [batch],
        ).fetchall()
        return [_annotator(db, batch, row) for row in rows]


def _annotator(db: sqlite3.Connection, batch: int, row: sqlite3.Row) -> AnnotatorProgress:
    annotator, done, at_work, skipped, flagged, released, touched = row
    spent = work(_moments(db, batch, annotator))
    return AnnotatorProgress(
        annotator=annotator,
        done=done,
        open=at_work,
        skipped=skipped,
        flagged=flagged,
        released=released,
        median_seconds=spent.median_seconds,
        pace_per_hour=spent.pace_per_hour,
        too_fast=len(_too_fast(db, spent, spent.submitted)),
        last_seen=touched,
    )


class Flag(msgspec.Struct, frozen=True):
    """A flag that an annotator raised, with what was said."""

    replan: str
    annotator: str
    at: str
    note: str
    state: str


def flags(store: "Store", batch: int) -> list[Flag]:
    """Flags of a batch, newest first; ``state`` says where the item stands now."""
    with store.read() as db:
        rows = db.execute(
            "SELECT e.replan, e.annotator, e.at, e.note, a.state FROM event_log AS e"
            " JOIN assignment AS a USING (batch, replan, annotator)"
            " WHERE e.batch = ? AND e.kind = 'flag' ORDER BY e.entry DESC",
            [batch],
        )
        return [Flag(*row) for row in rows]
