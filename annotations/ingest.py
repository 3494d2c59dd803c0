"""Taking what readers found: joining rows to records, and letting nothing half-land.

A row lands whole, is known already, or is listed as a reject with its reason. Nothing that a
person scored is overwritten by an import: a score that differs lands only when it is newer.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from annotations import record_rows, score_log
from annotations.joining import (
    UNNAMED,
    AmbiguousError,
    JoinError,
    MissingError,
    find_answer,
    find_instance,
    find_replan,
    has_content,
)
from annotations.score_log import (
    LogEntry,
    ScoreEntry,
    check_value,
    history,
    insert,
    newest_of,
    storable,
)
from annotations.twins import take_twins
from pararecover_core.errors import InputError
from pararecover_core.formats.items import (
    Answer,
    InstanceRef,
    Item,
    LogLine,
    Mark,
    Place,
    Reject,
    ReplanRef,
)
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Score, Trajectory, replan_key
from pararecover_core.taxonomy import split_labels

_GROUP_SIZE = 256
"""Instances that are written at once."""

_OWN = ("revealed", "revision")
"""What a score's ``extra`` may say that has its own column here."""

_KEEPABLE = ("a record that can be kept", "Correct the row, then import the file again")


class ImportReport(msgspec.Struct):
    """What an import did.

    Attributes:
        kinds: How many instances, replans, trajectories and scores landed, by kind.
        known: How many were there already, by kind.
        levels: Landed instances by level; 0 where the file does not say.
        tags: Error labels of landed instances.
        rejects: Every row that was not taken, with its reason.
        broken: Landed replans whose plan does not parse (S5 = 0).
    """

    kinds: dict[str, int] = {}
    known: dict[str, int] = {}
    levels: dict[int, int] = {}
    tags: dict[str, int] = {}
    rejects: list[Reject] = []
    broken: int = 0

    @property
    def landed(self) -> int:
        """Records that are new in the database."""
        return sum(self.kinds.values())

    def __add__(self, other: "ImportReport") -> "ImportReport":
        """Both reports as one."""
        return ImportReport(
            dict(Counter(self.kinds) + Counter(other.kinds)),
            dict(Counter(self.known) + Counter(other.known)),
            dict(Counter(self.levels) + Counter(other.levels)),
            dict(Counter(self.tags) + Counter(other.tags)),
            [*self.rejects, *other.rejects],
            self.broken + other.broken,
        )


class Ingest:
    """One import inside one write transaction.

    Args:
        connection: Inside a write transaction.
        now: The time of the import, for scores that have none.
        progress: Called now and then with the number of items taken.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: str,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._connection, self._now, self._progress = connection, now, progress
        self._kinds: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._levels: Counter[int] = Counter()
        self._tags: Counter[str] = Counter()
        self._rejects: list[Reject] = []
        self._waiting: list[tuple[Place, Instance]] = []
        self._broken = 0
        self._of_item: list[tuple[str, bool, bool]] = []
        self._brought: list[Instance] = []
        self._touched: set[str] = set()
        self._twins: dict[str, str] = {}
        self._last: tuple[ReplanRef, str] | None = None

    def run(self, items: Iterable[Item]) -> ImportReport:
        """Take all items; see ``Store.ingest``."""
        taken = 0
        for taken, item in enumerate(items, start=1):
            if isinstance(item.content, Instance):
                self._waiting.append((item.place, item.content))
                if len(self._waiting) >= _GROUP_SIZE:
                    self._write_waiting()
            else:
                self._write_waiting()
                self._take(item)
            if self._progress and taken % _GROUP_SIZE == 0:
                self._progress(taken)
        self._write_waiting()
        score_log.refresh_summary(self._connection, self._touched)
        if self._progress:
            self._progress(taken)
        return ImportReport(
            kinds=dict(+self._kinds),
            known=dict(+self._known),
            levels=dict(+self._levels),
            tags=dict(+self._tags),
            rejects=self._rejects,
            broken=self._broken,
        )

    def _take(self, item: Item) -> None:
        """One row: all that it brings, or a reject."""
        self._connection.execute("SAVEPOINT item")
        self._of_item, self._brought = [], []
        try:
            self._dispatch(item.content)
        except JoinError as error:
            self._refuse(item, error.got, error.expected, error.cure)
        except InputError as error:
            self._refuse(item, f"{error.where} {error.got}", error.expected, error.cure)
        except ValueError as error:
            self._refuse(item, str(error), *_KEEPABLE)
        else:
            for kind, landed, parses in self._of_item:
                (self._kinds if landed else self._known)[kind] += 1
                self._broken += landed and not parses
            self._count_instances(self._brought)
        self._connection.execute("RELEASE item")

    def _dispatch(self, content: Any) -> None:
        if isinstance(content, Replan | Trajectory) and content.instance in self._twins:
            here = self._twins[content.instance]
            content = msgspec.structs.replace(content, instance=here)
        if isinstance(content, Reject):
            self._rejects.append(content)
        elif isinstance(content, Answer):
            self._answer(content)
        elif isinstance(content, Mark):
            self._mark(content)
        elif isinstance(content, Replan):
            self._stub_instance(InstanceRef(content.instance))
            self._insert_replan(content)
        elif isinstance(content, Trajectory):
            self._stub_instance(InstanceRef(content.instance))
            self._count("trajectory", record_rows.insert_trajectory(self._connection, content))
        elif isinstance(content, Score):
            self._score(content)
        elif isinstance(content, LogLine):
            self._log_line(content)

    def _refuse(self, item: Item, got: str, expected: str, cure: str) -> None:
        """Undo what the row brought so far and list it."""
        self._connection.execute("ROLLBACK TO item")
        self._last = None
        reject = Reject(item.place, got, expected, cure)
        if self._rejects and _same_row(self._rejects[-1], reject):
            place = msgspec.structs.replace(item.place, column="")  # the row, not one cell of it
            self._rejects[-1] = msgspec.structs.replace(reject, place=place)
        else:
            self._rejects.append(reject)

    def _count(self, kind: str, landed: bool, parses: bool = True) -> None:
        self._of_item.append((kind, landed, parses))

    # Instances

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            self._write_instances([instance for _, instance in waiting])
        except ValueError:  # one of them cannot be kept: take them one by one
            for place, instance in waiting:
                try:
                    self._write_instances([instance])
                except ValueError as error:
                    self._rejects.append(Reject(place, str(error), *_KEEPABLE))

    def _write_instances(self, instances: Sequence[Instance]) -> None:
        twins = take_twins(self._connection, instances)
        self._twins |= twins
        new = [one for one in instances if one.key not in twins]
        landed = record_rows.insert_instances(self._connection, new)
        self._known["instance"] += len(instances) - len(landed)
        self._count_instances(landed)

    def _count_instances(self, landed: Sequence[Instance]) -> None:
        self._kinds["instance"] += len(landed)
        for instance in landed:
            self._levels[instance.level] += 1
            self._tags.update(label for tag in instance.tags for label in split_labels(tag))

    def _stub_instance(self, ref: InstanceRef) -> None:
        if not record_rows.exists(self._connection, "instance", ref.key):
            record_rows.insert_stub(
                self._connection,
                ref.key,
                file_id=ref.id,
                query_id=ref.query_id,
                level=ref.level,
                source=ref.source,
            )

    def _instance_of(self, ref: InstanceRef, whole: Instance | None = None) -> str:
        """The instance that a row means, else the one that it holds, else a stub of its key."""
        if ref.key in self._twins:
            return self._twins[ref.key]
        try:
            key = find_instance(self._connection, ref)
        except AmbiguousError as error:
            if whole is None or whole.key not in error.keys:
                raise
            key = whole.key
        except MissingError:
            if whole is not None:
                key = whole.key
            elif ref.key:
                self._stub_instance(ref)
                key = ref.key
            else:
                raise
        if whole is not None and key == whole.key:
            self._brought += record_rows.insert_instances(self._connection, [whole])
        return key

    # Replans

    def _answer(self, answer: Answer) -> None:
        instance = self._instance_of(answer.ref, answer.instance)
        same = find_answer(
            self._connection, instance, agent=answer.agent, thought=answer.thought, plan=answer.plan
        )
        if same:
            self._count("replan", False)
            return
        self._new_replan(
            instance,
            answer.agent,
            answer.thought,
            answer.plan,
            raw=answer.raw,
            usage=answer.usage,
            extra=answer.extra,
        )

    def _new_replan(self, instance: str, agent: str, thought: str, plan: Any, **more: Any) -> str:
        agent = agent or UNNAMED
        key = replan_key(
            instance=instance, agent=agent, thought=thought, plan=plan, raw=more.get("raw", "")
        )
        self._insert_replan(Replan(key, instance, agent, thought, Plan.parse(plan), **more))
        return key

    def _insert_replan(self, replan: Replan) -> None:
        landed = record_rows.insert_replan(self._connection, replan)
        self._count("replan", landed, bool(replan.plan.s5))

    def _replan_of(self, ref: ReplanRef) -> str:
        """The replan that a row scores, made from what the row holds where there is none."""
        if self._last and self._last[0] == ref:
            return self._last[1]
        key = self._look_up_replan(ref)
        self._last = (ref, key)
        return key

    def _look_up_replan(self, ref: ReplanRef) -> str:
        if ref.key and record_rows.exists(self._connection, "replan", ref.key):
            return ref.key
        if ref.key and not has_content(ref):
            instance = self._instance_of(ref.instance)
            agent = ref.agent or UNNAMED
            record_rows.insert_replan_stub(
                self._connection, ref.key, instance=instance, agent=agent
            )
            return ref.key
        try:
            instance = self._instance_of(ref.instance)
        except AmbiguousError as error:
            return self._by_content(ref, error)
        found = find_replan(self._connection, instance, ref)
        return found or self._new_replan(instance, ref.agent, ref.thought or "", ref.plan)

    def _by_content(self, ref: ReplanRef, error: AmbiguousError) -> str:
        """Of several instances, the one that has the row's own thought and plan as a replan."""
        if not has_content(ref):
            raise error
        found = [find_replan(self._connection, instance, ref) for instance in error.keys]
        fitting = [key for key in found if key]
        if len(fitting) != 1:
            raise error
        return fitting[0]

    # Scores

    def _mark(self, mark: Mark) -> None:
        check_value(mark.dimension, mark.value, "import")
        self._add_score(self._replan_of(mark.ref), mark)

    def _score(self, score: Score) -> None:
        check_value(score.dimension, score.value, "import")
        if not record_rows.exists(self._connection, "replan", score.replan):
            got = f"a score of replan {score.replan}, which is not in the database"
            raise MissingError(got, "the key of a known replan", "Import the replans first")
        self._add_score(score.replan, score)

    def _log_line(self, line: LogLine) -> None:
        """Replay an entry of a log: it keeps its event, revision, action and time."""
        check_value(line.dimension, line.value, "import")
        ref = ReplanRef(InstanceRef(line.instance), line.replan, line.agent)
        entry = score_log.replayed(line, self._replan_of(ref))
        known = self._connection.execute(
            "SELECT 1 FROM score_log WHERE event = ?", (entry.event,)
        ).fetchone()
        newest = newest_of(self._connection, entry.key)
        if not known and (newest.revision if newest else 0) != entry.base_revision:
            raise JoinError(
                f"revision {line.revision} of {line.dimension} by {line.scorer}, and "
                f"{'revision ' + str(newest.revision) if newest else 'none'} stands here",
                "entries that follow each other",
                "Replay the log into an empty database",
            )
        if not known:
            insert(self._connection, entry, self._now)
            self._touched.add(entry.replan)
        self._count("score", not known)

    def _add_score(self, replan: str, score: Mark | Score) -> None:
        """Append an imported score, unless it is there already or would overwrite."""
        entry = ScoreEntry(
            event="",
            replan=replan,
            dimension=score.dimension,
            scorer=storable(score.scorer),
            value=score.value,
            note=score.note,
            rubric=score.rubric,
            action="import",
            revealed=bool(score.extra.get("revealed")),
            at=score.at,
            extra={name: value for name, value in score.extra.items() if name not in _OWN},
        )
        newest = newest_of(self._connection, entry.key)
        if newest is None:
            lands = entry.value is not None or bool(entry.note)
        else:
            lands = supersedes(entry, newest, self._connection)
        if lands:
            base = newest.revision if newest else 0
            event = f"import:{':'.join(entry.key)}:{base + 1}"
            insert(
                self._connection,
                msgspec.structs.replace(entry, event=event, base_revision=base),
                self._now,
            )
            self._touched.add(replan)
        self._count("score", lands)


def _same_row(one: Reject, other: Reject) -> bool:
    """Whether two cells of one row were not taken for the same reason."""
    at = (one.place.file, one.place.line) == (other.place.file, other.place.line)
    words = (one.got, one.expected, one.cure) == (other.got, other.expected, other.cure)
    return at and words and other.place.line > 0


def supersedes(entry: ScoreEntry, newest: LogEntry, connection: sqlite3.Connection) -> bool:
    """Whether an imported score follows the one that stands.

    Returns:
        True where it is newer, or only adds a note; False where it is the same or stands in the
        history already.

    Raises:
        JoinError: It differs, and nothing says that it is newer.
    """
    if entry.value == newest.value and entry.note in ("", newest.note):
        return False
    if entry.value == newest.value and not newest.note:
        return True
    given, held = _moment(entry.at), _moment(newest.at)
    if given and held and given > held:
        return True
    if given and any(
        (old.value, old.note, _moment(old.at)) == (entry.value, entry.note, given)
        for old in history(connection, entry.key)
    ):
        return False
    raise JoinError(
        f"{_shown(entry)} for {entry.dimension}, and {entry.scorer} already holds "
        f"{_shown(newest)} since {newest.at}",
        "the same score, or a newer one with its time",
        "Add an 'at' column with the newer time, or change the score in the app",
    )


def _shown(state: ScoreEntry | LogEntry) -> str:
    value = "no score" if state.value is None else f"{state.value:g}"
    return f"{value} with the note {state.note[:40]!r}" if state.note else value


def _moment(at: str) -> datetime | None:
    """A time as given in ISO 8601; without a zone it is UTC; None where it is no time."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
