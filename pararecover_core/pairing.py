"""Which two scores are compared: the human side and the judge side of each cell.

A cell is one sub-dimension of one sample (replan). The human side is the gold score (adjudicated,
else what all annotators agree on, else the only annotator's) or one annotator's. Where annotators
differ and nobody adjudicated, the cell has no human score: no mean, no first come. What is left
out is counted with its reason, never dropped in silence.

Source: paper section 3.3; the gold rule is ours.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pararecover_core.records import Score
from pararecover_core.rubric import JUDGED

GOLD = "gold"
"""The human side that takes all people together."""

HUMAN = "human:"
"""How the scorer name of a person starts."""

JUDGE = "judge:"
"""How the scorer name of a model that judges starts."""

NO_HUMAN = "no human score"
DISAGREE = "people disagree, not adjudicated"
WITHDRAWN = "score withdrawn"
NOTE_ALONE = "a note without a score"
AFTER_REVEAL = "scored after the reveal"
NO_JUDGE = "not scored by the judge"
SEALED = "held out by a session, sealed"
UNREADABLE = "unreadable score in the file"
FAILURES = (
    AFTER_REVEAL,
    "refused",
    "unparsable",
    "truncated",
    "timed out",
    "endpoint error",
    UNREADABLE,
    SEALED,
)
"""Why an attempt gave no score: the note of a score without value starts with one."""

CellKey = tuple[str, str]
"""Sample (replan key) and sub-dimension."""


class Cell(msgspec.Struct, frozen=True, gc=False):
    """One sub-dimension of one sample, as two sides see it.

    Attributes:
        sample: What is resampled: the key of a replan, or any stable name of a row.
        human: The human side's score in {0, 0.5, 1}, None where there is none.
        judge: The judge side's score, None where there is none.
        human_gap: Why there is no human score, in words; "" where there is one.
        judge_gap: Why there is no judge score, in words; "" where there is one.
        human_note: The human side's note.
        judge_note: The judge's reason.
        people: Every person who scored the cell, with their score.
    """

    sample: str
    dimension: str
    human: float | None
    judge: float | None
    human_gap: str = ""
    judge_gap: str = ""
    human_note: str = ""
    judge_note: str = ""
    people: tuple[tuple[str, float], ...] = ()

    @property
    def gap(self) -> float:
        """Absolute difference of the two scores; NaN where one is missing."""
        if self.human is None or self.judge is None:
            return math.nan
        return abs(self.human - self.judge)


class Coverage(msgspec.Struct, frozen=True):
    """How many cells had both scores, and why the others had not.

    Attributes:
        both: Cells with both scores: the n of every figure.
        only_human: Cells with a human score alone.
        only_judge: Cells with a judge score alone.
        neither: Cells with neither, of those that were asked for.
        human_gaps: Reason why a human score is missing, and in how many cells.
        judge_gaps: Reason why a judge score is missing, and in how many cells.
    """

    both: int = 0
    only_human: int = 0
    only_judge: int = 0
    neither: int = 0
    human_gaps: dict[str, int] = {}
    judge_gaps: dict[str, int] = {}

    @property
    def cells(self) -> int:
        """All cells that were looked at."""
        return self.both + self.only_human + self.only_judge + self.neither

    @property
    def by_people(self) -> int:
        """Cells that people scored, those they disagree about included."""
        return self.both + self.only_human + self.human_gaps.get(DISAGREE, 0)

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(
            self.both + other.both,
            self.only_human + other.only_human,
            self.only_judge + other.only_judge,
            self.neither + other.neither,
            dict(Counter(self.human_gaps) + Counter(other.human_gaps)),
            dict(Counter(self.judge_gaps) + Counter(other.judge_gaps)),
        )

    @classmethod
    def by_judge_alone(cls, cells: int) -> "Coverage":
        """Of so many cells that no person scored."""
        return cls(only_judge=cells, human_gaps={NO_HUMAN: cells} if cells else {})

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> "Coverage":
        """Count cells."""
        kinds: Counter[tuple[bool, bool]] = Counter()
        human_gaps: Counter[str] = Counter()
        judge_gaps: Counter[str] = Counter()
        for cell in cells:
            kinds[cell.human is not None, cell.judge is not None] += 1
            if cell.human is None:
                human_gaps[cell.human_gap or NO_HUMAN] += 1
            if cell.judge is None:
                judge_gaps[cell.judge_gap or NO_JUDGE] += 1
        return cls(
            kinds[True, True],
            kinds[True, False],
            kinds[False, True],
            kinds[False, False],
            dict(human_gaps),
            dict(judge_gaps),
        )


class SideScore(msgspec.Struct, frozen=True, gc=False):
    """What one side says about a cell: a score, or why there is none."""

    value: float | None
    gap: str = ""
    note: str = ""


def gold_value(values: Collection[float], adjudicated: float | None = None) -> float | None:
    """The gold rule: what all people together say about a cell.

    Args:
        values: The score of each annotator that counts; order has no say.
        adjudicated: The adjudicator's score, None where there is none.

    Returns:
        The adjudicated score, else the one that all annotators agree on (also the only one's),
        else None: no tie is broken by order, by majority or by a mean.
    """
    if adjudicated is not None:
        return adjudicated
    different = set(values)
    return different.pop() if len(different) == 1 else None


def gold_score(people: Sequence[Score], adjudicated: float | None = None) -> SideScore:
    """The score of all people together.

    Args:
        people: The current score of each annotator of one cell; order has no say.
        adjudicated: The adjudicator's score, None where there is none.

    Returns:
        The adjudicated score, else the one all annotators agree on (also the only one's), else
        no score with the reason.
    """
    if len(people) == 1 and adjudicated is None:
        return scorer_score(people[0], NO_HUMAN)
    given = [score for score in people if score.value is not None]
    notes = "; ".join([score.note for score in given if score.note])
    if adjudicated is not None:
        return SideScore(adjudicated, note=notes)
    if not given:
        absent = [scorer_score(score, NO_HUMAN).gap for score in people]
        return SideScore(None, min(absent, default=NO_HUMAN))
    value = gold_value([score.value for score in given if score.value is not None])
    return SideScore(value, DISAGREE if value is None else "", notes)


def scorer_score(score: Score | None, absent: str) -> SideScore:
    """The score of one scorer.

    Args:
        score: The scorer's current score of the cell, None where there is none.
        absent: The reason to give where there is none.
    """
    if score is None:
        return SideScore(None, absent)
    if score.value is not None:
        return SideScore(score.value, "", score.note)
    if score.note:
        reasons = (reason for reason in FAILURES if score.note.startswith(reason))
        return SideScore(None, next(reasons, NOTE_ALONE), score.note)
    return SideScore(None, WITHDRAWN)


def pair(
    scores: Iterable[Score],
    *,
    human: str = GOLD,
    judge: str,
    gold: Mapping[CellKey, float] | None = None,
    wanted: Iterable[CellKey] = (),
    dimensions: Sequence[str] = JUDGED,
    revealed: bool = False,
) -> list[Cell]:
    """Pair the scores of two sides, cell by cell.

    Args:
        scores: Current scores of any scorers, in any order, one for each scorer and cell; where
            one repeats, the later counts.
        human: ``GOLD`` or the scorer name of one person.
        judge: Scorer name of the judge side: a judge, the program, or another person, who then
            has no say in the gold score.
        gold: Adjudicated score by cell.
        wanted: Cells that both sides were to score, whether or not they did.
        dimensions: Sub-dimensions to keep.
        revealed: Whether people's scores count that were made after they saw the judge's
            (``extra`` holds a true "revealed"); else such a cell has no human score.

    Returns:
        Every cell that a side scored or was to score, by sample in order of appearance.
    """
    decided = gold or {}
    kept = frozenset(dimensions)
    asked: dict[CellKey, None] = dict.fromkeys(key for key in wanted if key[1] in kept)
    found: dict[CellKey, dict[str, Score]] = {}
    for score in scores:
        person = score.scorer.startswith(HUMAN)
        mine = score.scorer == judge or (person if human == GOLD else score.scorer == human)
        if score.dimension in kept and (mine or person):
            key = (score.replan, score.dimension)
            hidden = person and not revealed and bool(score.extra.get("revealed"))
            found.setdefault(key, {})[score.scorer] = _left_out(score) if hidden else score
            if mine:
                asked[key] = None
    if human == GOLD:
        asked.update((key, None) for key in decided if key[1] in kept)
    return [_cell(key, found.get(key, {}), human, judge, decided.get(key)) for key in asked]


def _left_out(score: Score) -> Score:
    return msgspec.structs.replace(score, value=None, note=AFTER_REVEAL)


def _cell(
    key: CellKey, by: Mapping[str, Score], human: str, judge: str, decided: float | None
) -> Cell:
    people = [score for name, score in by.items() if name != judge and name.startswith(HUMAN)]
    gold = human == GOLD
    left = gold_score(people, decided) if gold else scorer_score(by.get(human), NO_HUMAN)
    right = scorer_score(by.get(judge), NO_JUDGE)
    return Cell(
        key[0],
        key[1],
        left.value,
        right.value,
        left.gap,
        right.gap,
        left.note,
        right.note,
        tuple(
            [
                (score.scorer[len(HUMAN) :], score.value)
                for score in people
                if score.value is not None
            ]
        ),
    )
