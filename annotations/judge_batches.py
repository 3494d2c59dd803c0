"""Judging by batches at the endpoint: hand in, look again later, collect once.

What was handed in stands in ``judge_batch`` with the calls that it holds, so that a program that
was killed, or another one, collects it. Collecting is one transaction: all or nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from annotations.judge_job import ModelJudge, Part, write_judgements
from annotations.judging import Todo, begin_run, end_run, read_tasks
from annotations.store import Store
from pararecover_core.completions import Completion, Status
from pararecover_core.judges.llm_judge import Judgement, LlmJudge
from pararecover_core.literals import dumps
from pararecover_core.llm_batch import BatchEndpoint, BatchState


class Waiting(NamedTuple):
    """A batch that was handed in and not yet collected."""

    id: str
    scorer: str
    run: int
    submitted: str
    calls: int


def waiting(store: Store, scorers: Sequence[str], base_url: str) -> list[Waiting]:
    """Batches of these judges at an endpoint, oldest first."""
    query = (
        "SELECT * FROM judge_batch WHERE collected IS NULL AND base_url = ? "
        "AND scorer IN (SELECT value FROM json_each(?)) ORDER BY submitted, id"
    )
    with store.read() as db:
        rows = db.execute(query, (base_url, orjson.dumps(list(scorers)).decode())).fetchall()
    return [
        Waiting(row["id"], row["scorer"], row["run"], row["submitted"], len(_tasks(row["tasks"])))
        for row in rows
    ]


def hand_in(store: Store, endpoint: BatchEndpoint, part: Part) -> list[str]:
    """Hand in what a judge has to do; ids of the batches.

    Raises:
        ConfigError: The endpoint takes no batches.
    """
    judge = _model(part)
    run = begin_run(store, part.plan, len(part.todo))
    by_name = {_name(one): one for one in part.todo}
    tasks = read_tasks(store, part.todo, judge.prompts)
    named = zip(by_name, tasks, strict=True)
    made = []
    try:
        for batch in endpoint.submit((name, judge.request(task)) for name, task in named):
            held = {name: by_name[name] for name in batch.names}
            values = (batch.id, part.judge.scorer, part.plan.base_url, run, dumps(held))
            with store.write() as db:
                db.execute(
                    "INSERT INTO judge_batch (id, scorer, base_url, run, tasks, submitted) "
                    "VALUES (?,?,?,?,?,?)",
                    (*values, store.now()),
                )
            made.append(batch.id)
    finally:
        if not made:
            end_run(store, run, "failed", "no batch was handed in")
    return made


def collect(store: Store, endpoint: BatchEndpoint, state: BatchState, part: Part) -> dict[str, int]:
    """Write what a batch that has ended gave; calls without an answer count as failed.

    Returns:
        What became of its calls, with their number.
    """
    judge = _model(part)
    with store.read() as db:
        row = db.execute("SELECT * FROM judge_batch WHERE id = ?", (state.id,)).fetchone()
    tasks, run = _tasks(row["tasks"]), int(row["run"])
    answers = dict(endpoint.collect(state))
    lost = Completion(Status.ENDPOINT_ERROR, error=f"the batch ended as {state.status}")
    judgements: list[Judgement] = [
        judge.read_for(todo.replan, judge.prompts[todo.prompt], todo.dimensions, found)
        for name, todo in tasks.items()
        for found in (answers.get(name, lost),)
    ]
    counts: dict[str, int] = {}
    for one in judgements:
        counts[one.status] = counts.get(one.status, 0) + 1
    now = store.now()
    with store.write() as db:
        taken = db.execute(
            "UPDATE judge_batch SET collected = ? WHERE id = ? AND collected IS NULL",
            (now, state.id),
        ).rowcount
        if not taken:
            return {}  # another process was first
        write_judgements(db, run, judgements, part.judge.price, now)
        left = db.execute(
            "SELECT COUNT(*) FROM judge_batch WHERE run = ? AND collected IS NULL", (run,)
        ).fetchone()[0]
    if not left:
        end_run(store, run, "done")
    return counts


def _model(part: Part) -> LlmJudge:
    if not isinstance(part.judge, ModelJudge):
        raise TypeError("the program needs no batch")
    return part.judge.judge


def _name(todo: Todo) -> str:
    return f"{todo.replan}-{todo.prompt}-{todo.attempt}"


def _tasks(text: str) -> dict[str, Todo]:
    return {
        name: Todo(replan, prompt, tuple(dimensions), attempt)
        for name, (replan, prompt, dimensions, attempt) in orjson.loads(text).items()
    }
