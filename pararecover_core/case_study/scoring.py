"""Scores in a case study: people (without names unless asked for), judges, and the means."""

import math
from collections.abc import Collection, Iterable, Sequence

from pararecover_core.case_study.model import ScoreLine, Source
from pararecover_core.draw import cut
from pararecover_core.pairing import HUMAN, gold_value
from pararecover_core.records import Score
from pararecover_core.rubric import Dimension, sde_rubric
from pararecover_core.scores import aggregate

_NOTE = 400
PROGRAM = "program"


def judges_of(scores: Iterable[Score]) -> list[str]:
    """Names of the judges that scored, in order."""
    found = {s.scorer for s in scores if s.value is not None}
    return sorted(name for name in found if name.startswith("judge:"))


def score_lines(
    source: Source, efficacy: float, *, hide: Collection[str], names: bool
) -> tuple[ScoreLine, ...]:
    """One line a sub-dimension, () where nobody scored or all of it is hidden.

    Args:
        source: Scores, adjudicated ones, S5.
        efficacy: E5, NaN where unknown.
        hide: Of "people", "judge", "notes", "efficacy".
        names: Whether annotators are named.
    """
    people = [] if "people" in hide else _people(source.scores)
    judges = [] if "judge" in hide else judges_of(source.scores)
    if not people and not judges:
        return ()
    labels = {
        name: name.removeprefix(HUMAN) if names else f"Annotator {place}"
        for place, name in enumerate(people, start=1)
    }
    given = {(score.scorer, score.dimension): score for score in source.scores}
    computed: dict[str, float | None] = {
        "S5": None if source.s5 is None else float(source.s5),
        "E5": None if math.isnan(efficacy) or "efficacy" in hide else efficacy,
    }
    quiet = "notes" in hide
    return tuple(
        ScoreLine(
            dimension=dimension.id,
            group=dimension.group,
            name=dimension.short,
            gold=_gold(dimension, people, given, source.gold, computed),
            people=_named(dimension.id, labels, given, quiet=quiet),
            judges=_named(
                dimension.id, {name: cut(name[6:], 80) for name in judges}, given, quiet=quiet
            ),
        )
        for dimension in sde_rubric().dimensions
    )


def _people(scores: Iterable[Score]) -> list[str]:
    return sorted({s.scorer for s in scores if s.scorer.startswith(HUMAN) and s.value is not None})


def _gold(
    dimension: Dimension,
    people: Sequence[str],
    given: dict[tuple[str, str], Score],
    decided: dict[str, float],
    computed: dict[str, float | None],
) -> float | None:
    if not dimension.judged:
        return computed.get(dimension.id)
    if not people:
        return None
    scores = [given[name, dimension.id] for name in people if (name, dimension.id) in given]
    values = [score.value for score in scores if score.value is not None]
    return gold_value(values, decided.get(dimension.id))


def _named(
    dimension: str, labels: dict[str, str], given: dict[tuple[str, str], Score], *, quiet: bool
) -> tuple[tuple[str, float | None, str], ...]:
    found = []
    for name, label in labels.items():
        score = given.get((name, dimension))
        if score is not None and (score.value is not None or score.note):
            found.append((label, score.value, "" if quiet else cut(score.note, _NOTE)))
    return tuple(found)


def means(lines: Sequence[ScoreLine]) -> dict[str, dict[str, float | None]]:
    """SI, DR and ES in [0, 100] of people and of each judge; None where a score is missing."""
    if not lines:
        return {}
    computed = {line.dimension: line.gold for line in lines if line.dimension in ("S5", "E5")}
    sides: dict[str, dict[str, float | None]] = {}
    if any(line.people for line in lines):
        sides["people"] = {line.dimension: line.gold for line in lines}
    for line in lines:
        for name, value, _ in line.judges:
            sides.setdefault(name, dict(computed))[line.dimension] = value
    found: dict[str, dict[str, float | None]] = {}
    for name, scores in sides.items():
        made = aggregate(scores)
        figures = {"SI": made.si, "DR": made.dr, "ES": made.es}
        found[name] = {k: None if math.isnan(v) else v for k, v in figures.items()}
    return found
