"""Which record a row means: instances by content key or file id, replans by content or agent.

Ids of published files overlap, so an id alone may name several instances; whatever else the row
says narrows them, and what stays ambiguous is refused, never guessed.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from annotations.record_rows import exists, fold_key
from annotations.score_log import storable
from pararecover_core.formats.items import InstanceRef, ReplanRef
from pararecover_core.literals import loads
from pararecover_core.plan import Plan
from pararecover_core.records import as_text

UNNAMED = "unnamed"
"""The agent of a replan for which nobody named one."""

_IMPORT_FIRST = "Import the instance file first, then this file again"
_NAME_FILE = "Add a level or source column, or pass --level or --source"
_NAME_QUERY = "Add a query or plan column: level and source are the same"
_AGENTS_NAMED = 5
"""How many agents a message lists."""
_NAME_AGENT = "Add an agent column, or pass --agent"


class JoinError(Exception):
    """A row that cannot be joined: what it has, what was expected, what to do."""

    def __init__(self, got: str, expected: str, cure: str) -> None:
        super().__init__(got, expected, cure)
        self.got, self.expected, self.cure = got, expected, cure


class MissingError(JoinError):
    """What the row names is not in the database."""


class AmbiguousError(JoinError):
    """The row may mean several records.

    Attributes:
        keys: Their keys.
    """

    keys: tuple[str, ...] = ()


def find_instance(connection: sqlite3.Connection, ref: InstanceRef) -> str:
    """The key of the one instance that a row means.

    Raises:
        MissingError: None fits.
        AmbiguousError: Several fit.
    """
    if ref.key:
        if exists(connection, "instance", ref.key):
            return ref.key
        raise MissingError(
            f"no instance with key {ref.key} in the database", "a known one", _IMPORT_FIRST
        )
    named, rows = _candidates(connection, ref)
    if not rows:
        raise MissingError(f"no instance with {named} in the database", "one", _IMPORT_FIRST)
    differs = ""
    for field, agrees in _checks(connection, ref):
        fitting = [row for row in rows if agrees(row)]
        if not fitting:
            differs = field
            break
        rows = fitting
    if differs:
        got = f"no instance with {named} and this {differs} in the database"
        raise MissingError(got, f"the {differs} that the database has for {named}", _IMPORT_FIRST)
    if len(rows) > 1:
        error = AmbiguousError(
            f"{named}, which {len(rows)} instances have ({_listed(rows)})",
            "one",
            _NAME_FILE if len({(row["level"], row["source"]) for row in rows}) > 1 else _NAME_QUERY,
        )
        error.keys = tuple(row["key"] for row in rows)
        raise error
    return str(rows[0]["key"])


def find_replan(connection: sqlite3.Connection, instance: str, ref: ReplanRef) -> str | None:
    """The key of the one replan of an instance that a row means.

    With a thought or plan, replans of the same content are meant: those of the named agent, else
    those for which nobody named one; any agent's where the row names none. Without, the one
    replan there is (of the agent, where one is named).

    Returns:
        The key; None where the row has content that no replan has: it is a new one.

    Raises:
        MissingError: The row has no content, and there is no replan.
        AmbiguousError: Several replans fit.
    """
    rows = _replans(connection, instance)
    content = has_content(ref)
    if content:
        same = _SameContent(connection, ref.thought, ref.plan)
        rows = [row for row in rows if _may_be(row, ref.agent) and same(row)]
    if ref.agent:
        own = [row for row in rows if row["agent"] == ref.agent]
        rows = own or [row for row in rows if content and row["agent"] == UNNAMED]
    if len(rows) == 1:
        return str(rows[0]["key"])
    if rows:
        agents = ", ".join(sorted({row["agent"] for row in rows}))
        got = f"an instance that {len(rows)} replans answer (of {agents})"
        error = AmbiguousError(got, "one", _NAME_AGENT)
        error.keys = tuple(row["key"] for row in rows)
        raise error
    if content:
        return None
    raise _unanswered(connection, instance, ref.agent)


def _unanswered(connection: sqlite3.Connection, instance: str, agent: str) -> MissingError:
    """The message for a score of an instance that the agent did not answer."""
    of_agent = f" of {agent}" if agent else ""
    got = f"a score, and no replan{of_agent} for its instance in the database"
    others = sorted({row["agent"] for row in _replans(connection, instance)})
    if not others:
        cure = "Import the replans first, or add thought and plan columns"
        return MissingError(got, "one", cure)
    listed = ", ".join(others[:_AGENTS_NAMED]) + (", ..." if len(others) > _AGENTS_NAMED else "")
    return MissingError(got, f"one of {listed}", "Correct the agent, or --agent")


def find_answer(
    connection: sqlite3.Connection, instance: str, *, agent: str, thought: str, plan: Any
) -> str | None:
    """The replan of an instance that an answer repeats.

    Args:
        connection: The database.
        instance: Key of the instance.
        agent: "" where nobody named one: then any agent's replan of that content is meant.
        thought: As given.
        plan: As given.

    Returns:
        Its key, or None where the answer is new.
    """
    same = _SameContent(connection, thought, plan)
    for row in _replans(connection, instance):
        if _may_be(row, agent) and same(row):
            return str(row["key"])
    return None


def has_content(ref: ReplanRef) -> bool:
    """Whether a row holds an answer of its own, be it an empty one."""
    return ref.thought is not None or as_text(ref.plan).strip() != ""


def _candidates(connection: sqlite3.Connection, ref: InstanceRef) -> tuple[str, list[sqlite3.Row]]:
    """What the row names an instance by, and the instances of that name."""
    ways = (
        ("file_id", ref.id, f"id {ref.id}"),
        ("query_id", ref.query_id, f"query_id {ref.query_id}"),
        ("query_key", fold_key(ref.query), "this query"),
    )
    for column, value, named in ways:
        if value:
            query = f"SELECT * FROM instance WHERE {column} = ? ORDER BY n"
            return named, connection.execute(query, (value,)).fetchall()
    expected = "an id, a query_id or a query"
    raise MissingError("a row that names no instance", expected, "Add an id column")


Check = tuple[str, Callable[[sqlite3.Row], bool]]


def _checks(connection: sqlite3.Connection, ref: InstanceRef) -> Sequence[Check]:
    """What else the row says, cheapest first; what the database does not know fits."""
    query_key = fold_key(ref.query)
    checks: list[Check] = [
        ("query_id", lambda row: not ref.query_id or row["query_id"] in ("", ref.query_id)),
        ("level", lambda row: not ref.level or row["level"] in (0, ref.level)),
        ("source", lambda row: not ref.source or row["source"] in ("unknown", ref.source)),
        ("query", lambda row: not query_key or row["query_key"] in ("", query_key)),
    ]
    if as_text(ref.plan).strip():
        checks.append(("plan", _SamePlan(connection, ref.plan).fits))
    return checks


class _SamePlan(NamedTuple):
    """Whether an instance's plan says the same as a given one."""

    connection: sqlite3.Connection
    given: Any

    def fits(self, row: sqlite3.Row) -> bool:
        """Whether the instance of a row has that plan; a stub may have it."""
        found = self.connection.execute(
            "SELECT body FROM instance_body WHERE n = ?", (row["n"],)
        ).fetchone()
        return found is None or same_plan(self.given, loads(found["body"]).get("plan"))


def same_plan(one: Any, other: Any) -> bool:
    """Whether two given plans are the same text, or say the same when parsed."""
    if one == other or _folded(as_text(one)) == _folded(as_text(other)):
        return True
    first, second = Plan.parse(one), Plan.parse(other)
    return bool(first.nodes) and _meaning(first) == _meaning(second)


def _meaning(plan: Plan) -> list[tuple[Any, ...]]:
    return [
        (node.id, node.name, node.parameters, node.description, node.dependencies, node.done)
        for node in plan.nodes
    ]


class _SameContent:
    """Whether a replan has a given thought and plan.

    What was not given is not compared; where neither was, the replan must be empty too.
    """

    def __init__(self, connection: sqlite3.Connection, thought: str | None, plan: Any) -> None:
        self._connection = connection
        self._thought, self._plan = _folded(storable(thought or "")), plan
        empty_plan = not as_text(plan).strip()
        self._by_thought = bool(self._thought) or empty_plan
        self._by_plan = not empty_plan or not self._thought

    def __call__(self, row: sqlite3.Row) -> bool:
        if row["stub"] or (self._by_thought and _folded(row["thought"]) != self._thought):
            return False
        if not self._by_plan:
            return True
        query = "SELECT body FROM replan_body WHERE n = ?"
        found = self._connection.execute(query, (row["n"],)).fetchone()
        return same_plan(self._plan, loads(found["body"]).get("plan"))


def _replans(connection: sqlite3.Connection, instance: str) -> list[sqlite3.Row]:
    query = "SELECT n, key, agent, thought, stub FROM replan WHERE instance = ? ORDER BY n"
    return connection.execute(query, (instance,)).fetchall()


def _may_be(row: sqlite3.Row, agent: str) -> bool:
    return not agent or row["agent"] in (agent, UNNAMED)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _listed(rows: Sequence[sqlite3.Row]) -> str:
    """The first few instances by level, source and key."""
    shown = [f"level {row['level'] or '?'} {row['source']} {row['key']}" for row in rows[:4]]
    return "; ".join(shown) + ("; ..." if len(rows) > 4 else "")
