"""The append-only score log: appending, undoing, replaying, and the summary that follows it.

A score is the newest revision of (replan, sub-dimension, scorer). Every entry holds the whole new
state (value and note), so that replaying is reading the newest. Nothing is changed or deleted: a
withdrawn score is an entry without a value, and an undo is an entry with the state before.

Source: design of the store; SI, DR and ES are means of their sub-dimensions (paper section 2.1.4).
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple, cast, get_args

import msgspec

from annotations.gold import held_out, standing
from pararecover_core.errors import InputError, StaleScoreError, StoreError
from pararecover_core.formats.items import LogLine
from pararecover_core.literals import dumps, loads
from pararecover_core.pairing import HUMAN, JUDGE, gold_value
from pararecover_core.rubric import LEVELS, sde_rubric

Action = Literal["score", "note", "clear", "undo", "import"]
Key = tuple[str, str, str]
"""(replan, sub-dimension, scorer)"""

_GROUP = {d.id: d.group for d in sde_rubric().dimensions}
_JUDGED = frozenset(d.id for d in sde_rubric().judged)


class ScoreEntry(msgspec.Struct, frozen=True):
    """What a client asks to append: the whole new state of one score.

    Attributes:
        event: An id that the client makes up once; sent again, it is stored once.
        value: 1, 0.5 or 0; None to withdraw the score or for a note without one.
        note: The note that stands from now on, "" for none.
        base_revision: The revision that the client saw, 0 where it saw none.
        rubric: Version of the rubric that the scorer read.
        revealed: Whether judge and other scores had been shown before.
        seconds: Time spent, idle time left out; None where unknown.
        at: When it was scored (ISO 8601, UTC), "" for now.
        extra: Whatever else the file had (imports).
    """

    event: str
    replan: str
    dimension: str
    scorer: str
    value: float | None
    note: str = ""
    base_revision: int = 0
    rubric: str = ""
    action: Action = "score"
    revealed: bool = False
    batch: int | None = None
    seconds: float | None = None
    at: str = ""
    extra: dict[str, Any] = {}

    @property
    def key(self) -> Key:
        """What the entry scores, and who."""
        return self.replan, self.dimension, self.scorer


class Saved(msgspec.Struct, frozen=True):
    """The acknowledgement of one entry: it is on disk."""

    event: str
    replan: str
    dimension: str
    scorer: str
    revision: int
    value: float | None
    note: str
    at: str


class LogEntry(msgspec.Struct, frozen=True):
    """One row of the log as it stands."""

    entry: int
    event: str
    replan: str
    dimension: str
    scorer: str
    revision: int
    value: float | None
    note: str
    at: str
    rubric: str
    action: str
    revealed: bool
    batch: int | None
    seconds: float | None
    extra: dict[str, Any]

    @property
    def key(self) -> Key:
        """What the entry scores, and who."""
        return self.replan, self.dimension, self.scorer


class Summary(NamedTuple):
    """Figures of one replan in [0, 1], None where nobody scored; see ``summarise``."""

    si: float | None = None
    dr: float | None = None
    es: float | None = None
    total: float | None = None
    judge_si: float | None = None
    judge_dr: float | None = None
    judge_es: float | None = None
    judge_total: float | None = None
    gap: float | None = None
    humans: int = 0
    judges: int = 0


def append(connection: sqlite3.Connection, entries: Iterable[ScoreEntry], now: str) -> list[Saved]:
    """Append entries inside the caller's transaction and bring the summary up to date.

    Returns:
        One acknowledgement per entry, in order; of an event that is already there, the one that
        it had.

    Raises:
        StaleScoreError: An entry's base revision is not the newest; the message says what is.
        StoreError: A replan is not in the database, or an event id stands for another score.
        InputError: A value that the sub-dimension cannot have.
    """
    saved = [_append(connection, entry, now) for entry in entries]
    refresh_summary(connection, {one.replan for one in saved})
    return saved


def _append(connection: sqlite3.Connection, entry: ScoreEntry, now: str) -> Saved:
    known = _by_event(connection, entry)
    if known:
        return known
    check_value(entry.dimension, entry.value, entry.action)
    newest = newest_of(connection, entry.key)
    if (newest.revision if newest else 0) != entry.base_revision:
        raise _stale(entry, newest)
    return insert(connection, entry, now)


def insert(connection: sqlite3.Connection, entry: ScoreEntry, now: str) -> Saved:
    """Write revision ``base_revision + 1``; the database refuses one that exists.

    Raises:
        StaleScoreError: The revision exists.
        StoreError: The replan does not.
    """
    note, exact = _storable(entry.note)
    at, revision = entry.at or now, entry.base_revision + 1
    values = (
        *(entry.event, *entry.key, revision, entry.value, note, at, entry.rubric, entry.action),
        *(int(entry.revealed), entry.batch, entry.seconds, exact),
        dumps(entry.extra) if entry.extra else "",
    )
    try:
        connection.execute(_INSERT, values)
    except sqlite3.IntegrityError as error:
        if "FOREIGN KEY" in str(error):
            got = f"{entry.replan}, which is not in the database"
            cure = "Import the replans first"
            raise StoreError("replan", got, "the key of a replan", cure) from error
        if "score_log.revision" in str(error):
            raise _stale(entry, newest_of(connection, entry.key)) from error
        raise
    return Saved(entry.event, *entry.key, revision, entry.value, entry.note, at)


_INSERT = """
INSERT INTO score_log (event, replan, dimension, scorer, revision, value, note, at, rubric,
  action, revealed, batch, seconds, note_given, extra)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
"""


def check_value(dimension: str, value: float | None, action: Action = "score") -> None:
    """Refuse a value that the sub-dimension cannot have.

    Raises:
        InputError: Not 1, 0.5 or 0 (computed ones: not in [0, 1]); or missing, or one too many.
    """
    if dimension not in _GROUP:
        known = ", ".join(_GROUP)
        raise InputError("sub-dimension", repr(dimension), f"one of {known}", "Check its id")
    if value is None:
        if action == "score":
            cure = "Give a value, or withdraw the score with the action 'clear'"
            raise InputError(dimension, "no value", "1, 0.5 or 0", cure)
        return
    if action == "clear":
        raise InputError(dimension, str(value), "no value with 'clear'", "Leave the value out")
    if dimension in _JUDGED and value not in LEVELS:
        raise InputError(dimension, str(value), "1, 0.5 or 0", "Choose the nearest anchor")
    if not 0 <= value <= 1:
        raise InputError(dimension, str(value), "a number from 0 to 1", "Check the scale")


def newest_of(connection: sqlite3.Connection, key: Key) -> LogEntry | None:
    """The newest entry of one score, withdrawn or not; None where there is none."""
    query = (
        "SELECT * FROM score_log WHERE replan = ? AND dimension = ? AND scorer = ? "
        "ORDER BY revision DESC LIMIT 1"
    )
    row = connection.execute(query, key).fetchone()
    return log_entry(row) if row else None


def history(connection: sqlite3.Connection, key: Key) -> list[LogEntry]:
    """All entries of one score, oldest first."""
    query = (
        "SELECT * FROM score_log WHERE replan = ? AND dimension = ? AND scorer = ? "
        "ORDER BY revision"
    )
    return [log_entry(row) for row in connection.execute(query, key)]


def log_entry(row: sqlite3.Row) -> LogEntry:
    """A row of ``score_log`` or ``score_current``."""
    values = {name: row[name] for name in LogEntry.__struct_fields__}
    values["revealed"] = bool(row["revealed"])
    values["extra"] = loads(row["extra"]) if row["extra"] else {}
    values["note"] = exact_note(row)
    return LogEntry(**values)


def exact_note(row: sqlite3.Row) -> str:
    """The note of a row as it was given, lone surrogates included."""
    exact: bytes | None = row["note_given"]
    return row["note"] if exact is None else exact.decode("utf-8", "surrogatepass")


def before(entries: Sequence[LogEntry]) -> tuple[float | None, str] | None:
    """The state that an undo goes back to.

    Args:
        entries: The whole history of one score, oldest first.

    Returns:
        Value and note before the newest entry that is not undone, (None, "") before the first;
        None where nothing is left to undo.
    """
    states: list[tuple[float | None, str]] = []
    for entry in entries:
        if entry.action != "undo":
            states.append((entry.value, entry.note))
        elif states:
            states.pop()
    if not states:
        return None
    return states[-2] if len(states) > 1 else (None, "")


def undo(connection: sqlite3.Connection, entry: ScoreEntry, now: str) -> Saved | None:
    """Append the state before the newest entry that is not undone.

    Args:
        connection: Inside the caller's write transaction.
        entry: Event, score and base revision; its value, note and action are not used.
        now: The time to write.

    Returns:
        The acknowledgement, or None where nothing is left to undo.

    Raises:
        StaleScoreError: The base revision is not the newest.
    """
    known = _by_event(connection, entry)
    if known:
        return known
    state = before(history(connection, entry.key))
    if state is None:
        return None
    value, note = state
    undone = msgspec.structs.replace(entry, value=value, note=note, action="undo")
    return append(connection, [undone], now)[0]


def replay(entries: Iterable[LogEntry]) -> dict[Key, LogEntry]:
    """The current scores that a log leads to, computed without the database.

    Args:
        entries: The log in any order that keeps each score's own order.

    Returns:
        The newest entry of each score.

    Raises:
        StoreError: A revision is missing or comes twice.
    """
    state: dict[Key, LogEntry] = {}
    for entry in entries:
        expected = state[entry.key].revision + 1 if entry.key in state else 1
        if entry.revision != expected:
            where = "/".join(entry.key)
            raise StoreError(where, f"revision {entry.revision}", str(expected), "Restore a backup")
        state[entry.key] = entry
    return state


def replayed(line: LogLine, replan: str) -> ScoreEntry:
    """An entry of another database's log as one to insert here.

    Batches stay where they are: their name goes into ``extra``.

    Raises:
        InputError: The action is not known.
    """
    if line.action not in get_args(Action):
        known = ", ".join(get_args(Action))
        raise InputError("action", repr(line.action), f"one of {known}", "Export the log again")
    extra = dict(line.extra)
    if line.batch is not None:
        extra["batch"] = line.batch
    return ScoreEntry(
        line.event, replan, line.dimension, storable(line.scorer), line.value, line.note,
        base_revision=line.revision - 1, rubric=line.rubric, action=cast(Action, line.action),
        revealed=line.revealed, seconds=line.seconds, at=line.at, extra=extra,
    )  # fmt: skip


def summarise(
    s5: int | None,
    scores: Iterable[tuple[str, str, float | None]],
    gold: Mapping[str, float] | None = None,
) -> Summary:
    """Figures of one replan, for filters and lists.

    People's value of a sub-dimension is the gold score (``pairing.gold_value``: none where they
    disagree and nobody decided); judges' value is the mean over judges. SI, DR and ES are means
    over the sub-dimensions that have a value; S5 as computed and E5 of the program count once
    anybody scored in their group. The total is the mean of those of the three that exist.

    Args:
        s5: S5 of the new plan, None where it is unknown.
        scores: (sub-dimension, scorer, value) of the scores that count; None is passed over.
        gold: Adjudicated value by sub-dimension.

    Returns:
        Figures in [0, 1]; the gap is the largest difference of people and judges over the
        sub-dimensions that both scored.
    """
    by_kind: dict[str, dict[str, list[float]]] = {"human": {}, "judge": {}, "program": {}}
    scorers: dict[str, set[str]] = {"human": set(), "judge": set(), "program": set()}
    for dimension, scorer, value in scores:
        if value is not None:
            kind = scorer.partition(":")[0]
            kind = kind if kind in by_kind else "program"
            by_kind[kind].setdefault(dimension, []).append(value)
            scorers[kind].add(scorer)
    ruled = {d: gold_value(values) for d, values in by_kind["human"].items()}
    people = {d: value for d, value in ruled.items() if value is not None} | dict(gold or {})
    judges = {d: fmean(values) for d, values in by_kind["judge"].items()}
    program = {d: fmean(values) for d, values in by_kind["program"].items()}
    if s5 is not None:
        program.setdefault("S5", float(s5))
    gaps = [abs(people[d] - judges[d]) for d in people.keys() & judges.keys()]
    return Summary(
        *_means(people, program),
        *_means(judges, program),
        gap=max(gaps, default=None),
        humans=len(scorers["human"]),
        judges=len(scorers["judge"]),
    )


def _means(
    scored: Mapping[str, float], program: Mapping[str, float]
) -> tuple[float | None, float | None, float | None, float | None]:
    means: list[float | None] = []
    for group in "SDE":
        own = {d: value for d, value in scored.items() if _GROUP.get(d) == group}
        computed = {d: value for d, value in program.items() if _GROUP.get(d) == group}
        means.append(fmean((computed | own).values()) if own else None)
    given = [mean for mean in means if mean is not None]
    return means[0], means[1], means[2], fmean(given) if given else None


def refresh_summary(connection: sqlite3.Connection, replans: Iterable[str]) -> None:
    """Bring ``replan_summary`` up to date; call it wherever log, gold or sessions change.

    Judges' scores of items that a session holds out stay out of it.
    """
    fields = Summary._fields
    update = (
        f"UPDATE replan_summary SET {', '.join(f'{field} = ?' for field in fields)} "
        "WHERE replan = ?"
    )
    sealed = held_out(connection)
    for replan in replans:
        summary = _summary_of(connection, replan, sealed)
        connection.execute(update, (*summary, replan))


def _summary_of(connection: sqlite3.Connection, replan: str, sealed: Collection[str]) -> Summary:
    scores = connection.execute(
        "SELECT dimension, scorer, value FROM score_current "
        "WHERE replan = ? AND scorer NOT GLOB 'human:*'",
        (replan,),
    ).fetchall()
    people = standing(connection, [replan])
    gold = connection.execute(
        "SELECT dimension, value FROM gold_current WHERE replan = ? AND value IS NOT NULL",
        (replan,),
    ).fetchall()
    s5 = connection.execute("SELECT s5 FROM replan WHERE key = ?", (replan,)).fetchone()
    return summarise(
        s5["s5"] if s5 else None,
        [
            (row["dimension"], row["scorer"], row["value"])
            for row in scores
            if replan not in sealed or not row["scorer"].startswith(JUDGE)
        ]
        + [(one.dimension, HUMAN + one.annotator, one.value) for one in people],
        {row["dimension"]: row["value"] for row in gold},
    )


def _by_event(connection: sqlite3.Connection, entry: ScoreEntry) -> Saved | None:
    row = connection.execute("SELECT * FROM score_log WHERE event = ?", (entry.event,)).fetchone()
    if row is None:
        return None
    found = log_entry(row)
    if found.key != entry.key:
        got, expected = f"the event of {'/'.join(found.key)}", "an event id used once"
        cure = "Make up a new event id for each score"
        raise StoreError(f"event {entry.event}", got, expected, cure)
    return Saved(found.event, *found.key, found.revision, found.value, found.note, found.at)


def _stale(entry: ScoreEntry, newest: LogEntry | None) -> StaleScoreError:
    where = f"{entry.dimension} of replan {entry.replan} by {entry.scorer}"
    if newest is None:
        got = f"a change of revision {entry.base_revision}, and nothing is scored yet"
    else:
        value = "no score" if newest.value is None else f"{newest.value:g}"
        got = (
            f"a change of revision {entry.base_revision}, and revision {newest.revision} stands: "
            f"{value}, at {newest.at}"
        )
    expected = "a change of the newest revision"
    return StaleScoreError(where, got, expected, "Reload the item, then score it again")


def _storable(text: str) -> tuple[str, bytes | None]:
    """Text that SQLite can hold, and its exact bytes where that is not the same."""
    held = storable(text)
    return held, None if held == text else text.encode("utf-8", "surrogatepass")


def storable(text: str) -> str:
    """Text with lone surrogates replaced by U+FFFD, which SQLite and browsers can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
