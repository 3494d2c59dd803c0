"""Judging runs: what is still to judge, what it will cost, and results as they arrive.

A call is one prompt for one replan. Its scores go into the score log, and the call itself, failed
or not, into ``judgement``: a failure is countable and can be tried again, and is never a score.
A run that was killed goes on where it was: what is in the log is not asked again, and answers that
had come but were not written yet are in the cache of answers.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

from annotations.store import Store
from pararecover_core.completions import Status, Usage
from pararecover_core.errors import InputError
from pararecover_core.judges.llm_judge import Item, Task, forecast
from pararecover_core.judges.prompt import Prompt
from pararecover_core.literals import dumps, loads
from pararecover_core.plan import Plan
from pararecover_core.prices import Price, cost
from pararecover_core.records import Instance, Record, Replan, from_data
from pararecover_core.rubric import JUDGED

_SOME = 40
"""Calls from whose texts the length of all is guessed."""


class Scope(msgspec.Struct, frozen=True):
    """Which replans to judge; all conditions hold together.

    Attributes:
        batch: Only those of this batch.
        scored: Only those that a person scored: where judge and people can be compared.
        level: Only this level; 0 for all.
        agent: Only this agent's; "" for all.
        replans: Only these keys; None for all.
        cells: Only these sub-dimensions of these replans, by key; None for all.
        limit: So many replans at most, in order of import (of a batch: in its order).
    """

    batch: int | None = None
    scored: bool = False
    level: int = 0
    agent: str = ""
    replans: tuple[str, ...] | None = None
    limit: int | None = None
    cells: dict[str, tuple[str, ...]] | None = None


class Todo(NamedTuple):
    """One call to make.

    Attributes:
        prompt: Its place among the prompts of the judge.
        attempt: How often it failed before.
    """

    replan: str
    prompt: int
    dimensions: tuple[str, ...]
    attempt: int = 0


class Work(msgspec.Struct, frozen=True):
    """What a run would do.

    Attributes:
        todo: Calls to make, in order.
        replans: Replans in the scope.
        done: Calls of the scope that are there already.
        failed: Calls of the scope that failed before, by what became of them; they are in
            ``todo`` only where failures are to be tried again.
    """

    todo: list[Todo]
    replans: int
    done: int
    failed: dict[str, int]


class Forecast(msgspec.Struct, frozen=True):
    """What a run will take, roughly.

    Attributes:
        counted: Calls of this judge whose counted tokens it rests on; 0 where it rests on the
            length of texts.
        cost: US dollars, None where the price is unknown.
    """

    calls: int
    usage: Usage
    cost: float | None
    counted: int = 0


def find_work(
    store: Store,
    scorer: str,
    prompts: Sequence[Sequence[str]],
    *,
    scope: Scope = Scope(),  # noqa: B008 (immutable)
    dimensions: Sequence[str] = JUDGED,
    names: Sequence[str] = (),
    retry_failed: bool = False,
) -> Work:
    """What a judge has still to do.

    Args:
        store: The database.
        scorer: Scorer name of the judge.
        prompts: Sub-dimensions of each of its prompts.
        scope: Which replans.
        dimensions: Which sub-dimensions.
        names: Names of the prompts; none for the program.
        retry_failed: Only calls that failed before (refusals, which are answers, left out).

    Returns:
        The calls: those without any result, or only the failed ones.
    """
    called = list(names) or [""] * len(prompts)
    with store.read() as db:
        replans = _replans(db, scope)
        scored = _scored(db, scorer)
        failures = _failures(db, scorer)
    todo: list[Todo] = []
    done, failed = 0, dict[str, int]()
    for replan in replans:
        have = scored.get(replan, frozenset())
        asks = dimensions if scope.cells is None else scope.cells.get(replan, ())
        for place, asked in enumerate(prompts):
            wanted = tuple(d for d in asked if d in dimensions and d in asks)
            missing = tuple(d for d in wanted if d not in have)
            if not missing:
                done += bool(wanted)
                continue
            count, status, tried = failures.get((replan, called[place]), (0, "", frozenset()))
            was_failed = count > 0 and status != Status.OK and tried >= set(missing)
            if was_failed:
                failed[status] = failed.get(status, 0) + 1
            if was_failed == retry_failed and not (was_failed and status == Status.REFUSED):
                todo.append(Todo(replan, place, missing, count))
    return Work(todo, len(replans), done, failed)


def _replans(db: sqlite3.Connection, scope: Scope) -> list[str]:
    """Keys of the replans in a scope whose content is here."""
    source, order, values = "replan r", "r.n", list[Any]()
    where = ["NOT r.stub", "NOT i.stub"]
    if scope.batch is not None:
        source, order = "batch_item b JOIN replan r ON r.key = b.replan", "b.position"
        where.append("b.batch = ?")
        values.append(scope.batch)
    if scope.scored:
        where.append(
            "EXISTS (SELECT 1 FROM score_log s WHERE s.replan = r.key "
            "AND s.scorer LIKE 'human:%' AND s.value IS NOT NULL)"
        )
    if scope.level:
        where.append("i.level = ?")
        values.append(scope.level)
    if scope.agent:
        where.append("r.agent = ?")
        values.append(scope.agent)
    if scope.replans is not None:
        where.append("r.key IN (SELECT value FROM json_each(?))")
        values.append(orjson.dumps(scope.replans).decode())
    query = (
        f"SELECT r.key FROM {source} JOIN instance i ON i.key = r.instance "
        f"WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    )
    limit = -1 if scope.limit is None else scope.limit
    return [row[0] for row in db.execute(query, (*values, limit))]


def _scored(db: sqlite3.Connection, scorer: str) -> dict[str, frozenset[str]]:
    query = (
        "SELECT replan, json_group_array(dimension) FROM score_current "
        "WHERE scorer = ? AND value IS NOT NULL GROUP BY replan"
    )
    return {row[0]: frozenset(orjson.loads(row[1])) for row in db.execute(query, (scorer,))}


def _failures(
    db: sqlite3.Connection, scorer: str
) -> dict[tuple[str, str], tuple[int, str, frozenset[str]]]:
    """Of each call that ever failed: how often, how it last ended, what it asked then."""
    query = (
        "SELECT j.replan, j.prompt, f.fails, j.status, j.dimensions FROM judgement j JOIN ("
        " SELECT replan, prompt, MAX(entry) AS newest, SUM(status <> 'ok') AS fails"
        " FROM judgement WHERE scorer = ? GROUP BY replan, prompt HAVING fails > 0"
        ") f ON f.newest = j.entry"
    )
    return {
        (row[0], row[1]): (row[2], row[3], frozenset(orjson.loads(row[4])))
        for row in db.execute(query, (scorer,))
    }


def read_items(
    store: Store, todo: Sequence[Todo], *, understood: bool = True
) -> Iterator[tuple[Todo, Item]]:
    """The content behind calls, a few at a time; calls of one replan share it.

    Args:
        store: The database.
        todo: Calls, those of one replan next to each other.
        understood: Whether plans are read; a model is shown them as they were given.
    """
    query = (
        "SELECT r.key, rb.body, ib.body FROM replan r "
        "JOIN replan_body rb ON rb.n = r.n JOIN instance i ON i.key = r.instance "
        "JOIN instance_body ib ON ib.n = i.n WHERE r.key IN (SELECT value FROM json_each(?))"
    )
    for start in range(0, len(todo), _SOME):
        some = todo[start : start + _SOME]
        keys = orjson.dumps(list({one.replan for one in some})).decode()
        with store.read() as db:
            bodies = {row[0]: (row[1], row[2]) for row in db.execute(query, (keys,))}
        item, key = None, ""
        for one in some:
            if one.replan != key or item is None:
                item, key = _item(*bodies[one.replan], understood), one.replan
            yield one, item


def _item(replan: bytes, instance: bytes, understood: bool) -> Item:
    found, of = _record(replan, understood), _record(instance, understood)
    if not isinstance(found, Replan) or not isinstance(of, Instance):
        raise InputError("replan", "another kind of record", "a replan", "Restore a backup")
    return Item(of, found)


def _record(body: bytes, understood: bool) -> Record:
    data = loads(body)
    if understood:
        return from_data(data)
    given = data.pop("plan", None)
    record = from_data(data)
    if isinstance(record, Instance | Replan):
        return msgspec.structs.replace(record, plan=Plan(given))
    return record


def read_tasks(store: Store, todo: Sequence[Todo], prompts: Sequence[Prompt]) -> Iterator[Task]:
    """The calls of a model judge with what it is shown."""
    for one, item in read_items(store, todo, understood=False):
        yield Task(item, prompts[one.prompt], one.dimensions, one.attempt)


def foresee(
    store: Store, todo: Sequence[Todo], scorer: str, prompts: Sequence[Prompt], price: Price | None
) -> Forecast:
    """What calls will take: from tokens counted before, else from the length of some texts."""
    with store.read() as db:
        counted, asked, answered = db.execute(
            "SELECT COUNT(*), AVG(prompt_tokens), AVG(completion_tokens) FROM judgement "
            "WHERE scorer = ? AND prompt_tokens > 0 AND dimensions <> '[]'",
            (scorer,),
        ).fetchone()
    if counted >= 5:
        usage = Usage(round(asked * len(todo)), round(answered * len(todo)))
        return Forecast(len(todo), usage, cost(usage, price), counted)
    step = max(1, len(todo) // _SOME)
    some = todo[::step][:_SOME]
    guess = forecast(read_tasks(store, some, prompts))
    share = len(todo) / len(some) if some else 0.0
    usage = Usage(round(guess.prompt * share), round(guess.completion * share))
    return Forecast(len(todo), usage, cost(usage, price))


# Runs


class RunPlan(msgspec.Struct, frozen=True):
    """What a run is about, as its row says.

    Attributes:
        settings: What was chosen, for the list of runs.
    """

    scorer: str
    base_url: str = ""
    dimensions: tuple[str, ...] = JUDGED
    settings: dict[str, Any] = {}
    started_by: str = ""


def begin_run(store: Store, plan: RunPlan, calls: int) -> int:
    """Note that a run begins; its number."""
    values = (
        *(plan.scorer, plan.base_url, dumps(plan.dimensions), calls, dumps(plan.settings)),
        *(plan.started_by, store.now()),
    )
    with store.write() as db:
        cursor = db.execute(
            "INSERT INTO judge_run (scorer, base_url, dimensions, calls, settings, started_by, "
            "started) VALUES (?,?,?,?,?,?,?)",
            values,
        )
        return int(cursor.lastrowid or 0)


def end_run(store: Store, run: int, outcome: str, message: str = "") -> None:
    """Note how a run ended: done, cancelled, stopped (by the endpoint) or failed."""
    with store.write() as db:
        db.execute(
            "UPDATE judge_run SET ended = ?, outcome = ?, message = ? WHERE id = ?",
            (store.now(), outcome, message, run),
        )


class RunRow(msgspec.Struct, frozen=True):
    """A run as a list shows it.

    Attributes:
        statuses: What became of its calls so far, with their number.
        cost: US dollars so far, None where the price is unknown.
        cached: Calls that were answered from the cache.
    """

    id: int
    scorer: str
    base_url: str
    dimensions: tuple[str, ...]
    calls: int
    settings: dict[str, Any]
    started_by: str
    started: str
    ended: str | None
    outcome: str
    message: str
    statuses: dict[str, int]
    usage: Usage
    cost: float | None
    cached: int


def list_runs(store: Store, *, limit: int = 50) -> list[RunRow]:
    """Runs, newest first: who judged what, when, with which prompt."""
    with store.read() as db:
        rows = db.execute("SELECT * FROM judge_run ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
        return [_run_row(db, row) for row in rows]


_SPENT = (
    "SELECT status, COUNT(*) AS calls, SUM(cached) AS cached, "
    "SUM((1 - cached) * prompt_tokens) AS asked, SUM((1 - cached) * completion_tokens) AS said, "
    "SUM((1 - cached) * cost) AS cost, SUM(cost IS NULL AND NOT cached) AS unpriced "
    "FROM judgement WHERE run = ? GROUP BY status"
)


def _run_row(db: sqlite3.Connection, row: sqlite3.Row) -> RunRow:
    spent = db.execute(_SPENT, (row["id"],)).fetchall()
    unknown = any(one["unpriced"] for one in spent)
    return RunRow(
        *(row["id"], row["scorer"], row["base_url"], tuple(orjson.loads(row["dimensions"]))),
        *(row["calls"], orjson.loads(row["settings"]), row["started_by"], row["started"]),
        *(row["ended"], row["outcome"], row["message"]),
        {one["status"]: one["calls"] for one in spent},
        Usage(sum(one["asked"] for one in spent), sum(one["said"] for one in spent)),
        None if unknown else sum(one["cost"] or 0.0 for one in spent),
        sum(one["cached"] for one in spent),
    )


class Failure(NamedTuple):
    """A call that failed and was not made good since."""

    replan: str
    prompt: str
    dimensions: tuple[str, ...]
    status: str
    error: str


def open_failures(store: Store, scorer: str) -> list[Failure]:
    """The newest result of each call of a judge, where that is a failure."""
    query = (
        "SELECT j.replan, j.prompt, j.dimensions, j.status, j.error FROM judgement j "
        "WHERE j.scorer = ? AND j.status <> 'ok' AND NOT EXISTS (SELECT 1 FROM judgement l "
        "WHERE l.scorer = j.scorer AND l.replan = j.replan AND l.prompt = j.prompt "
        "AND l.entry > j.entry) ORDER BY j.entry"
    )
    with store.read() as db:
        rows = db.execute(query, (scorer,)).fetchall()
    return [Failure(row[0], row[1], tuple(orjson.loads(row[2])), *row[3:]) for row in rows]
