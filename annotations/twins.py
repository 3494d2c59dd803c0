"""Instances that came twice with different facts: one record, whichever file was first.

A results spreadsheet that holds whole items may know neither query_id, level, source nor
observations; the benchmark file knows them, so the two give different keys. The record that is
here keeps its key, its answers and its scores; what it lacked is filled in.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

import msgspec
import orjson

from annotations.joining import same_plan
from annotations.record_rows import fold_key, rewrite_instance
from annotations.score_log import storable
from pararecover_core.literals import loads
from pararecover_core.records import Instance, Source, from_data

_GAPS = ("query_id", "level", "tools", "observations", "tags", "error_reason", "extra")
"""Fields that an empty value leaves open; ``source``, ``round_gt`` and ``funcall_times_gt`` too."""


def take_twins(connection: sqlite3.Connection, instances: Sequence[Instance]) -> dict[str, str]:
    """Find instances that are here under another key, and fill in what those lacked.

    Args:
        connection: Inside a write transaction.
        instances: N instances about to be written.

    Returns:
        Key of each that is here already to the key that it has here; the others are new, or
        known by their own key.
    """
    ids = orjson.dumps(list({storable(one.id) for one in instances} - {""})).decode()
    rows = defaultdict(list)
    query = (
        "SELECT n, key, file_id, query_id, level, source, query_key FROM instance"
        " WHERE stub = 0 AND file_id IN (SELECT value FROM json_each(?)) ORDER BY n"
    )
    for row in connection.execute(query, (ids,)):
        rows[row["file_id"]].append(row)
    found: dict[str, str] = {}
    for one in instances if rows else ():
        near = rows.get(storable(one.id), [])
        if not near or any(row["key"] == one.key for row in near):
            continue
        if twin := _twin(connection, near, one):
            found[one.key] = twin.key
            whole = completed(twin, one)
            if whole != twin:
                rewrite_instance(connection, twin, whole)
    return found


def _twin(
    connection: sqlite3.Connection, near: Sequence[sqlite3.Row], one: Instance
) -> Instance | None:
    """The one record of the same id that says the same as far as both say anything."""
    query_key = fold_key(one.query)
    fitting = []
    for row in near:
        agrees = row["query_key"] == query_key and _facts_agree(row, one)
        held = _load(connection, row["n"]) if agrees else None
        if held and _same_work(held, one):
            fitting.append(held)
    return fitting[0] if len(fitting) == 1 else None


def _facts_agree(row: sqlite3.Row, one: Instance) -> bool:
    pairs = (
        (row["query_id"], one.query_id),
        (row["level"], one.level),
        (_known(row["source"]), _known(one.source.value)),
    )
    return all(not held or not given or held == given for held, given in pairs)


def _known(source: str) -> str:
    return "" if source == Source.UNKNOWN.value else source


def _load(connection: sqlite3.Connection, n: int) -> Instance | None:
    row = connection.execute("SELECT body FROM instance_body WHERE n = ?", (n,)).fetchone()
    record = from_data(loads(row["body"])) if row else None
    return record if isinstance(record, Instance) else None


def _same_work(held: Instance, one: Instance) -> bool:
    """Whether plan and calls are the same; calls that one of them lacks may be the other's."""
    calls = [[(c.name, c.arguments, c.result) for c in i.observations] for i in (held, one)]
    same_calls = not all(calls) or calls[0] == calls[1]
    return same_calls and same_plan(held.plan.given, one.plan.given)


def completed(held: Instance, more: Instance) -> Instance:
    """A record with what it lacks taken from another; what it says already stays."""
    changes = {name: getattr(held, name) or getattr(more, name) for name in _GAPS}
    if held.source is Source.UNKNOWN:
        changes["source"] = more.source
    for name in ("round_gt", "funcall_times_gt"):
        value = getattr(held, name)
        changes[name] = getattr(more, name) if value is None else value
    return msgspec.structs.replace(held, **changes)
