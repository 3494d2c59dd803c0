"""What a case study holds: plain data, so that every form of it says the same.

Source: paper appendix B, figure 2; the form is our design.
"""

from typing import Any

import msgspec

from pararecover_core.records import Instance, Round, Score
from pararecover_core.scores import ROUND_LIMIT

HIDEABLE: dict[str, str] = {
    "query": "Query",
    "tools": "Tools used",
    "strip": "Strip of all rounds",
    "efficacy": "E5 with its arithmetic",
    "origin": "Where the error began",
    "thoughts": "Thoughts of the agent",
    "observations": "Observations",
    "people": "Scores of people",
    "judge": "Scores of judges",
    "notes": "Notes of people and judges",
    "versions": "Versions of rubric, prompt and model",
    "agent": "Name of the agent",
    "item": "Ids of the item",
}
"""What may be left out of a case study, with its name for people."""

TITLE_LIMIT, NOTE_LIMIT, LEAD_LIMIT = 200, 2_000, 4_000
MOST_ROUNDS = 12
"""Rounds that are shown at most: a page of more is no case study and no small file."""


class Spec(msgspec.Struct, frozen=True):
    """What its author chose.

    Attributes:
        title: "" for one that the rounds suggest.
        rounds: Numbers of the rounds to show, () for those that tell the story.
        captions: A short heading by round number.
        notes: A text by round number.
        origin: Id of the node where the error began, "" to look for it.
        hide: Keys of ``HIDEABLE``.
        names: Whether annotators are named; else they are "Annotator 1" and so on.
    """

    title: str = ""
    lead: str = ""
    rounds: tuple[int, ...] = ()
    captions: dict[int, str] = {}
    notes: dict[int, str] = {}
    origin: str = ""
    hide: tuple[str, ...] = ()
    names: bool = False


class Source(msgspec.Struct, frozen=True):
    """One agent's rounds on one instance, and what is known of them.

    Attributes:
        rounds: N rounds, N >= 1; the thought of each led to its plan.
        numbers: The number of each round, rising.
        success: Whether the response was reached, None where the run's end is not known.
        taken: T of E5, None where the run's end is not known.
        s5: S5 of the scored replan, None where there is none.
        scores: Current scores of the replan by any scorer.
        gold: What an adjudicator decided, by sub-dimension.
        correct: Whether the answer is right, None where the truth is not known.
        limit: Rounds at which the run would have failed.
    """

    agent: str
    rounds: tuple[Round, ...]
    numbers: tuple[int, ...]
    success: bool | None = None
    outcome: str = ""
    taken: int | None = None
    s5: int | None = None
    scores: tuple[Score, ...] = ()
    gold: dict[str, float] = {}
    correct: bool | None = None
    limit: int = ROUND_LIMIT


class Subject(msgspec.Struct, frozen=True):
    """What a case study is about: an instance and one or two agents' rounds on it."""

    instance: Instance
    sources: tuple[Source, ...]


class Observed(msgspec.Struct, frozen=True):
    """A call and what it gave, cut to what a reader needs."""

    node: str
    tool: str
    arguments: str
    result: str
    state: str


class RoundView(msgspec.Struct, frozen=True):
    """A round that is shown.

    Attributes:
        picture: The plan of the round: what changed since the round before, what its calls gave.
        reached: Ids of nodes that wait for the fault.
        changes: What changed, in words.
    """

    number: int
    caption: str
    note: str
    thought: str
    observations: tuple[Observed, ...]
    picture: dict[str, Any]
    reached: tuple[str, ...]
    changes: str


class Mark(msgspec.Struct, frozen=True):
    """A round on the strip: "on", "failed", "repeat", "repair" or "end"; ``shown`` links it."""

    number: int
    kind: str
    shown: bool


class Origin(msgspec.Struct, frozen=True):
    """Where the error began, and what it reached."""

    round: int
    node: str
    call: str
    said: str
    cause: str
    reached: tuple[str, ...]


class ScoreLine(msgspec.Struct, frozen=True):
    """One sub-dimension: gold score of people, judges' scores, notes.

    Attributes:
        people: Each annotator's label, score and note.
        judges: Each judge's name, score and reason.
    """

    dimension: str
    group: str
    name: str
    gold: float | None
    people: tuple[tuple[str, float | None, str], ...] = ()
    judges: tuple[tuple[str, float | None, str], ...] = ()


class Side(msgspec.Struct, frozen=True):
    """One agent's part.

    Attributes:
        efficacy: E5, None where it is not known or left out.
        arithmetic: E5 as it is computed, "6 / 18 = 0.33".
        means: SI, DR and ES in [0, 100] by who scored ("people", or a judge's name).
    """

    agent: str
    rounds: tuple[RoundView, ...]
    strip: tuple[Mark, ...]
    optimal: int | None
    taken: int | None
    success: bool | None
    outcome: str
    efficacy: float | None
    arithmetic: str
    formula: str
    origin: Origin | None
    scores: tuple[ScoreLine, ...]
    means: dict[str, dict[str, float | None]]


class Case(msgspec.Struct, frozen=True):
    """A case study, ready to be written in any form; what is hidden is not in it."""

    title: str
    lead: str
    query: str
    tools: tuple[tuple[str, str], ...]
    item: str
    sides: tuple[Side, ...]
    versions: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """The case study as JSON data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
