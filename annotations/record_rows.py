"""Writing records into their tables, inside the caller's transaction."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from annotations.run_figures import answer_is_right, own_limit, rounds_taken
from annotations.score_log import refresh_summary, storable
from annotations.search_index import index_instances, index_replan, reindex_instance
from pararecover_core.literals import dumps
from pararecover_core.records import Instance, Record, Replan, Trajectory, content_key, to_data
from pararecover_core.taxonomy import split_labels

_INSERT_INSTANCE = """
INSERT INTO instance (n, key, file_id, query_id, level, source, query, query_key, round_gt,
  funcall_times_gt, s5, executed_rounds, error_reason)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
"""
_FILL_INSTANCE = """
UPDATE instance SET file_id = ?3, query_id = ?4, level = ?5, source = ?6, query = ?7,
  query_key = ?8, round_gt = ?9, funcall_times_gt = ?10, s5 = ?11, executed_rounds = ?12,
  error_reason = ?13, stub = 0
WHERE n = ?1 AND key = ?2
"""
_SUMMARY = """
INSERT INTO replan_summary (replan, instance, level, source, agent, s5)
SELECT r.key, r.instance, i.level, i.source, r.agent, r.s5
FROM replan r JOIN instance i ON i.key = r.instance WHERE r.key = ?
"""


_INSERT_ERROR = (
    "INSERT OR IGNORE INTO instance_error (instance, round, error_type) VALUES (?, ?, ?)"
)


def fold_key(query: str) -> str:
    """The key of a query with its white space folded, "" for an empty one."""
    folded = " ".join(query.split())
    return content_key(folded) if folded else ""


def exists(connection: sqlite3.Connection, table: str, key: str) -> bool:
    """Whether a table has a key."""
    query = f"SELECT 1 FROM {table} WHERE key = ?"
    return connection.execute(query, (key,)).fetchone() is not None


def insert_instances(
    connection: sqlite3.Connection, instances: Sequence[Instance]
) -> list[Instance]:
    """Write those that are new, and the content of those that were stubs.

    Args:
        connection: Inside a write transaction.
        instances: N instances; keys may repeat.

    Returns:
        Those that landed, in order; the others were there already.
    """
    known = _known(connection, [instance.key for instance in instances])
    following = 1 + connection.execute("SELECT COALESCE(MAX(n), 0) FROM instance").fetchone()[0]
    new: list[tuple[int, Instance]] = []
    filled: list[tuple[int, Instance]] = []
    for instance in instances:
        n, stub = known.get(instance.key, (0, 0))
        if n and not stub:
            continue
        known[instance.key] = (n or following, 0)
        (filled if n else new).append((n or following, instance))
        following += 0 if n else 1
    landed = new + filled
    rows = {n: _instance_row(n, one) for n, one in landed}
    bodies = [(n, body(one)) for n, one in landed]  # may raise: before anything is written
    connection.executemany(_INSERT_INSTANCE, [rows[n] for n, _ in new])
    connection.executemany(_FILL_INSTANCE, [rows[n] for n, _ in filled])
    connection.executemany(
        "UPDATE replan_summary SET level = ?, source = ? WHERE instance = ?",
        [(one.level, one.source.value, one.key) for _, one in filled],
    )
    connection.executemany("INSERT INTO instance_body (n, body) VALUES (?, ?)", bodies)
    index_instances(connection, landed)
    connection.executemany(
        _INSERT_ERROR,
        [row for _, one in landed for row in _error_rows(one)],
    )
    return [one for _, one in landed]


def rewrite_instance(connection: sqlite3.Connection, old: Instance, new: Instance) -> None:
    """Write what a known instance lacked; its key, answers and scores stay.

    Args:
        connection: Inside a write transaction.
        old: The instance as it is here.
        new: The same key, with more fields filled.

    Raises:
        ValueError: It cannot be kept; nothing is written then.
    """
    content = body(new)
    row = connection.execute("SELECT n FROM instance WHERE key = ?", (new.key,)).fetchone()
    values = _instance_row(row["n"], new)
    connection.execute(_FILL_INSTANCE, values)
    connection.execute("UPDATE instance_body SET body = ? WHERE n = ?", (content, row["n"]))
    connection.execute(
        "UPDATE replan_summary SET level = ?, source = ? WHERE instance = ?",
        (new.level, new.source.value, new.key),
    )
    reindex_instance(connection, row["n"], old, new)
    connection.executemany(_INSERT_ERROR, _error_rows(new))


def insert_stub(
    connection: sqlite3.Connection,
    key: str,
    *,
    file_id: str,
    query_id: str,
    level: int,
    source: str,
) -> None:
    """Write an instance of which only names are known."""
    connection.execute(
        "INSERT OR IGNORE INTO instance (key, file_id, query_id, level, source, stub) "
        "VALUES (?, ?, ?, ?, ?, 1)",
        (key, storable(file_id), storable(query_id), level, source or "unknown"),
    )


def insert_replan(connection: sqlite3.Connection, replan: Replan) -> bool:
    """Write a replan, or the content of a stub.

    Returns:
        Whether it landed; False where it was there already.
    """
    row = connection.execute("SELECT n, stub FROM replan WHERE key = ?", (replan.key,)).fetchone()
    if row and not row["stub"]:
        return False
    content = body(replan)
    values = (replan.instance, storable(replan.agent), replan.plan.s5, storable(replan.thought))
    if row:
        n = row["n"]
        connection.execute(
            "UPDATE replan SET instance = ?, agent = ?, s5 = ?, thought = ?, stub = 0 WHERE n = ?",
            (*values, n),
        )
        connection.execute(
            "UPDATE replan_summary SET agent = ?, s5 = ? WHERE replan = ?",
            (values[1], values[2], replan.key),
        )
        refresh_summary(connection, [replan.key])
    else:
        n = connection.execute(
            "INSERT INTO replan (key, instance, agent, s5, thought) VALUES (?, ?, ?, ?, ?)",
            (replan.key, *values),
        ).lastrowid
        connection.execute(_SUMMARY, (replan.key,))
    connection.execute("INSERT INTO replan_body (n, body) VALUES (?, ?)", (n, content))
    index_replan(connection, int(n), replan)
    return True


def insert_replan_stub(
    connection: sqlite3.Connection, key: str, *, instance: str, agent: str
) -> None:
    """Write a replan of which only names are known."""
    connection.execute(
        "INSERT INTO replan (key, instance, agent, stub) VALUES (?, ?, ?, 1)",
        (key, instance, storable(agent)),
    )
    connection.execute(_SUMMARY, (key,))


def insert_trajectory(connection: sqlite3.Connection, trajectory: Trajectory) -> bool:
    """Write a trajectory; False where it was there already."""
    values = {
        "key": trajectory.key,
        "instance": trajectory.instance,
        "agent": storable(trajectory.agent),
        "success": int(trajectory.success),
        "rounds": len(trajectory.rounds),
        "body": body(trajectory),
        **told_by_run(trajectory),
    }
    cursor = connection.execute(
        f"INSERT OR IGNORE INTO trajectory ({', '.join(values)}) "
        f"VALUES ({', '.join('?' * len(values))})",
        tuple(values.values()),
    )
    return cursor.rowcount == 1


def told_by_run(trajectory: Trajectory) -> dict[str, Any]:
    """The columns of a trajectory that hold what its measures say."""
    replan = trajectory.extra.get("replan")
    return {
        "replan": storable(replan) if isinstance(replan, str) else "",
        "outcome": storable(trajectory.outcome),
        "correct": answer_is_right(trajectory),
        "taken": rounds_taken(trajectory),
        "round_limit": own_limit(trajectory),
    }


def body(record: Record) -> str:
    """A record as the text that is kept.

    Raises:
        ValueError: It is nested too deep to be written as JSON.
    """
    try:
        return dumps(to_data(record))
    except RecursionError:
        raise ValueError("nested too deep to be kept") from None


def _known(connection: sqlite3.Connection, keys: list[str]) -> dict[str, tuple[int, int]]:
    rows = connection.execute(
        "SELECT key, n, stub FROM instance WHERE key IN (SELECT value FROM json_each(?))",
        (orjson.dumps(keys).decode(),),
    )
    return {row["key"]: (row["n"], row["stub"]) for row in rows}


def _instance_row(n: int, instance: Instance) -> tuple[object, ...]:
    for name in ("level", "round_gt", "funcall_times_gt"):
        if abs(getattr(instance, name) or 0) >= 2**63:
            raise ValueError(f"{name} is larger than can be kept")
    return (
        *(n, instance.key, storable(instance.id), storable(instance.query_id)),
        *(instance.level, instance.source.value, storable(instance.query)),
        *(fold_key(instance.query), instance.round_gt, instance.funcall_times_gt),
        *(instance.plan.s5, instance.plan.executed_rounds(), storable(instance.error_reason)),
    )


def _error_rows(instance: Instance) -> list[tuple[str, int, str]]:
    return [
        (instance.key, number, storable(label))
        for number, tag in enumerate(instance.tags, start=1)
        for label in split_labels(tag)
    ]
