"""A judging run beside whatever else happens: progress, what it cost so far, a way to stop it.

The model is asked in one thread, results are written in another, a few at a time: what is written
is on disk, what is not is in the cache of answers.
"""

import contextlib
import queue
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from annotations import score_log
from annotations.jobs import Job, Jobs
from annotations.judging import RunPlan, Todo, begin_run, end_run, read_items, read_tasks
from annotations.score_log import ScoreEntry, storable
from annotations.store import Store
from pararecover_core.completions import Status, Usage
from pararecover_core.errors import ParaRecoverError, StoreError
from pararecover_core.judges.llm_judge import Judgement, LlmJudge, judge_many
from pararecover_core.judges.program import ProgramJudge
from pararecover_core.literals import dumps
from pararecover_core.prices import Price, cost
from pararecover_core.rubric import sde_rubric

if TYPE_CHECKING:
    import sqlite3

STEADY_CALLS = 3
"""Calls from which on a guess of the time left means something."""

_WRITE_SECONDS = 0.5
_WRITE_MOST = 400
_QUEUE_MOST = 4000

Done = Callable[[Judgement], object]


class Judge(Protocol):
    """Anything that judges: a model with prompts, or the program."""

    scorer: str

    def work(
        self, store: Store, todo: Sequence[Todo], done: Done, cancelled: Callable[[], bool]
    ) -> str:
        """Make the calls; "" or why the endpoint made it stop."""

    def price(self, usage: Usage) -> float | None:
        """US dollars for tokens, None where that is unknown."""


class ModelJudge:
    """A model with its prompts as a judge of the store's replans.

    Args:
        judge: Who judges.
        price: Of its model, None where it is unknown.
    """

    def __init__(self, judge: LlmJudge, price: Price | None) -> None:
        self.scorer = judge.scorer
        self.judge, self.known_price = judge, price

    def work(
        self, store: Store, todo: Sequence[Todo], done: Done, cancelled: Callable[[], bool]
    ) -> str:
        """Make the calls; "" or why the endpoint made it stop."""
        model = self.judge.model
        judge_many(
            self.judge,
            read_tasks(store, todo, self.judge.prompts),
            lambda judgement: judgement.status is Status.STOPPED or done(judgement),
            cancelled=lambda: bool(model.stopped) or cancelled(),
        )
        return model.stopped

    def price(self, usage: Usage) -> float | None:
        """US dollars for tokens, None where that is unknown."""
        return cost(usage, self.known_price)


class Program:
    """The program judge as a judge of the store's replans."""

    scorer = ProgramJudge.scorer

    def work(
        self, store: Store, todo: Sequence[Todo], done: Done, cancelled: Callable[[], bool]
    ) -> str:
        """Judge until all is done or somebody cancels."""
        judge = ProgramJudge()
        for one, item in read_items(store, todo):
            if cancelled():
                break
            found = judge.judge(item)
            scores = {d: found.scores[d] for d in one.dimensions}
            done(msgspec.structs.replace(found, scores=scores, dimensions=one.dimensions))
        return ""

    def price(self, usage: Usage) -> float | None:
        """Nothing: it asks nobody."""
        return 0.0


class Part(msgspec.Struct, frozen=True):
    """One judge of a job and what it has to do."""

    judge: Judge
    todo: list[Todo]
    plan: RunPlan


class Progress(msgspec.Struct, frozen=True):
    """How far a job is.

    Attributes:
        statuses: What became of the calls so far, with their number.
        cost: US dollars so far, None where the price is unknown.
        cost_left: US dollars for the rest, from those so far.
        seconds_left: None while there is nothing to guess from.
    """

    total: int
    done: int
    cached: int
    statuses: dict[str, int]
    usage: Usage
    cost: float | None
    cost_left: float | None
    seconds_left: float | None

    @property
    def share(self) -> float:
        """Share of the calls that are done, in [0, 1]."""
        return self.done / self.total if self.total else 1.0

    @property
    def failed(self) -> int:
        """Calls that gave no score."""
        return self.done - self.statuses.get(Status.OK, 0)


class JudgeJob(Job):
    """One judging run, or several one after the other, in a thread of its own.

    Args:
        store: Where replans come from and results go.
        parts: Judges and what each has to do.
        clock: Seconds, ever growing.
    """

    def __init__(
        self,
        store: Store,
        parts: Sequence[Part],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("judge", clock=clock)
        self.outcome = ""
        self.message = ""
        self.error: ParaRecoverError | None = None
        self.runs: list[int] = []
        self.scorers = tuple(part.judge.scorer for part in parts)
        self._store, self._parts = store, parts
        self._total = sum(len(part.todo) for part in parts)
        self._statuses: Counter[str] = Counter()
        self._cached, self._usage = 0, Usage()
        self._cost: float | None = 0.0

    def progress(self) -> Progress:
        """How far it is."""
        statuses = dict(self._statuses)
        done, cached = sum(statuses.values()), self._cached
        asked, left = done - cached, self._total - done
        steady = asked >= STEADY_CALLS and left > 0
        return Progress(
            self._total,
            done,
            cached,
            statuses,
            self._usage,
            self._cost,
            None if self._cost is None or not steady else self._cost / asked * left,
            self.spent / asked * left if steady else None,
        )

    def work(self) -> None:
        """Judge; of a run that is stopped, results so far stay."""
        try:
            for part in self._parts:
                if self._stop.is_set():
                    self.outcome = "cancelled"
                elif part.todo:
                    self._run_part(part)
                if self.outcome in ("cancelled", "stopped"):
                    return
            self.outcome = "done"
        except ParaRecoverError as error:
            self.outcome, self.message, self.error = "failed", str(error), error
        finally:
            self.outcome = self.outcome or "failed"

    def _run_part(self, part: Part) -> None:
        run = begin_run(self._store, part.plan, len(part.todo))
        self.runs.append(run)
        writer = _Writer(self._store, run, part.judge.price)
        outcome, message = "failed", "an unexpected error"
        try:
            with writer:
                message = part.judge.work(
                    self._store,
                    part.todo,
                    lambda judgement: self._take(writer, part.judge, judgement),
                    lambda: self._stop.is_set() or writer.failed,
                )
            outcome = "stopped" if message else "cancelled" if self._stop.is_set() else "done"
        except ParaRecoverError as error:
            message = str(error)
            raise
        finally:
            with contextlib.suppress(StoreError):
                end_run(self._store, run, outcome, message)
        self.outcome, self.message = outcome, message

    def _take(self, writer: "_Writer", judge: Judge, judgement: Judgement) -> None:
        writer.put(judgement)
        self._statuses[judgement.status] += 1
        if judgement.cached:
            self._cached += 1
            return
        self._usage += judgement.usage
        paid = judge.price(judgement.usage)
        self._cost = None if self._cost is None or paid is None else self._cost + paid


class _Writer:
    """Writes judgements in a thread of its own, many in one transaction."""

    def __init__(self, store: Store, run: int, price: Callable[[Usage], float | None]) -> None:
        self._store, self._run, self._price = store, run, price
        self._queue: queue.Queue[Judgement | None] = queue.Queue(_QUEUE_MOST)
        self._error: ParaRecoverError | None = None
        self._thread = threading.Thread(target=self._work, name="judge-writer", daemon=True)

    def __enter__(self) -> "_Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    @property
    def failed(self) -> bool:
        """Whether the database refused; the rest would be lost."""
        return self._error is not None

    def put(self, judgement: Judgement) -> None:
        """Hand over one judgement; waits where too many are waiting."""
        self._queue.put(judgement)

    def _work(self) -> None:
        open_ = True
        while open_:
            some, open_ = self._some()
            if self._error is None and some:
                try:
                    with self._store.write() as db:
                        write_judgements(db, self._run, some, self._price, self._store.now())
                except ParaRecoverError as error:
                    self._error = error

    def _some(self) -> tuple[list[Judgement], bool]:
        """What has come within a moment, and whether more may come."""
        some: list[Judgement] = []
        until = time.monotonic() + _WRITE_SECONDS
        while len(some) < _WRITE_MOST:
            try:
                one = self._queue.get(timeout=max(0.001, until - time.monotonic()))
            except queue.Empty:
                break
            if one is None:
                return some, False
            some.append(one)
        return some, True


def write_judgements(
    db: "sqlite3.Connection",
    run: int,
    judgements: Sequence[Judgement],
    price: Callable[[Usage], float | None],
    now: str,
) -> None:
    """Write judgements and their scores inside the caller's transaction.

    A score that stands already is left alone: another run was first.
    """
    touched = set()
    for one in judgements:
        entry = _insert(db, run, one, price(one.usage), now)
        if not one.scores:
            continue
        newest = {
            row[0]: (row[1], row[2])
            for row in db.execute(_NEWEST, (one.replan, one.scorer)).fetchall()
        }
        for dimension, scored in one.scores.items():
            revision, value = newest.get(dimension, (0, None))
            if value is None:
                touched.add(one.replan)
                made = ScoreEntry(
                    *(f"judgement-{entry}-{dimension}", one.replan, dimension, one.scorer),
                    scored.score,
                    scored.reason,
                    revision,
                    sde_rubric().version,
                )
                score_log.insert(db, made, now)
    score_log.refresh_summary(db, touched)


_NEWEST = (  # SQLite gives the value of the row with the greatest revision
    "SELECT dimension, MAX(revision), value FROM score_log WHERE replan = ? AND scorer = ? "
    "GROUP BY dimension"
)


def _insert(
    db: "sqlite3.Connection", run: int, one: Judgement, paid: float | None, now: str
) -> int:
    raw = zlib.compress(one.raw.encode("utf-8", "replace"), 1) if one.raw else None
    values = (
        *(run, one.replan, one.scorer, one.prompt, dumps(one.dimensions), one.status),
        *(storable(one.error), raw, one.usage.prompt, one.usage.completion, paid, one.seconds),
        *(int(one.cached), now),
    )
    cursor = db.execute(
        "INSERT INTO judgement (run, replan, scorer, prompt, dimensions, status, error, raw, "
        "prompt_tokens, completion_tokens, cost, seconds, cached, at) "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        values,
    )
    return int(cursor.lastrowid or 0)


_JOBS: Jobs[JudgeJob] = Jobs("judge")


def start_job(store: Store, parts: Sequence[Part]) -> JudgeJob:
    """Begin a job that every page of this process can find again.

    Raises:
        StoreError: One is running on this database.
    """
    return _JOBS.start(store, lambda: JudgeJob(store, parts))


def current_job(store: Store) -> JudgeJob | None:
    """The newest job of this process on a database, running or ended."""
    return _JOBS.current(store)
