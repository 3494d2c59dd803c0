"""What a reader yields: whole records, rows that still have to be joined, and rejects.

Spreadsheets name an instance by id, by query, by plan, or by a content key; only the store knows
which instance that is. A reader therefore yields what the row says, and where it stands.
"""

from typing import Any

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.records import Instance, Replan, Score, Trajectory


class Place(msgspec.Struct, frozen=True):
    """Where a row stands: file, line or row number (from 1), and column where one is meant."""

    file: str
    line: int = 0
    column: str = ""

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{self.file}{line}" + (f", column {self.column}" if self.column else "")


class Reject(msgspec.Struct, frozen=True):
    """A row, cell or record that was not taken, and why."""

    place: Place
    got: str
    expected: str
    cure: str

    def error(self) -> InputError:
        """The reject as an error to raise."""
        return InputError(str(self.place), self.got, self.expected, self.cure)

    def __str__(self) -> str:
        return str(self.error())


class InstanceRef(msgspec.Struct, frozen=True):
    """How a row names its instance; empty fields were not in the row.

    Attributes:
        key: Content key, from our own exports.
        id: The file's own id. It may occur in several files: the other fields tell which.
        plan: The previous plan as given.
    """

    key: str = ""
    id: str = ""
    query_id: str = ""
    level: int = 0
    source: str = ""
    query: str = ""
    plan: Any = None


class ReplanRef(msgspec.Struct, frozen=True):
    """How a row names the replan that it scores; empty fields were not in the row."""

    instance: InstanceRef
    key: str = ""
    agent: str = ""
    thought: str | None = None
    plan: Any = None


class Answer(msgspec.Struct, frozen=True):
    """A replan that still has to be joined to its instance.

    Attributes:
        instance: The whole instance, where the row holds it; used if the store has none.
        agent: "" where neither the row nor the caller named one.
    """

    ref: InstanceRef
    agent: str
    thought: str
    plan: Any
    raw: str = ""
    usage: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    instance: Instance | None = None


class Mark(msgspec.Struct, frozen=True):
    """A score that still has to be joined to its replan; fields as in ``Score``."""

    ref: ReplanRef
    dimension: str
    scorer: str
    value: float | None
    note: str = ""
    at: str = ""
    rubric: str = ""
    extra: dict[str, Any] = {}


class LogLine(msgspec.Struct, frozen=True):
    """An entry of a score log, from our own export of it.

    Attributes:
        batch: Name of the batch, None for none.
        submitted: Whether the score counted: given outside of a batch, or submitted.
        instance: Key of the replan's instance.
    """

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
    instance: str
    agent: str = ""
    batch: str | None = None
    submitted: bool = True
    seconds: float | None = None
    extra: dict[str, Any] = {}


class Item(msgspec.Struct, frozen=True):
    """One thing that a reader found, with the place it came from."""

    place: Place
    content: Instance | Replan | Trajectory | Score | Answer | Mark | LogLine | Reject


class ScoreRow(msgspec.Struct, frozen=True):
    """One current score with what names its replan and instance: a row of the long form.

    Attributes:
        replan: Key of the replan.
        instance: Key of the instance.
        id: The instance's id in its file, "" where none.
        score: As ``Score.value``; None where only a note is left.
        revealed: Whether the score was made after the reveal.
    """

    replan: str
    instance: str
    id: str
    query_id: str
    level: int
    source: str
    agent: str
    dimension: str
    scorer: str
    score: float | None
    note: str = ""
    at: str = ""
    rubric: str = ""
    revealed: bool = False

    @property
    def prompt(self) -> str:
        """Id and version of the prompt behind a judge's score, "" for other scorers."""
        return self.scorer.partition("@")[2] if self.scorer.startswith("judge:") else ""
