"""Scores straight from a file, compared without importing it.

A row is a sample. Rows are joined by what names their replan (a long form has one score a row),
and the two sides of a comparison are chosen by the same rules as in the store.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pararecover_core.errors import InputError
from pararecover_core.formats.items import Item, Mark, Place, Reject, ReplanRef
from pararecover_core.pairing import GOLD, HUMAN, UNREADABLE, Cell, pair
from pararecover_core.records import Score, as_text, content_key
from pararecover_core.rubric import JUDGED


class FileScores(NamedTuple):
    """The scores of files, what was not taken, and where each sample stands.

    Attributes:
        scores: Scores; ``replan`` is a name of the sample within the files.
        rejects: Rows and cells that were not taken.
        places: Sample name to the row that it came from.
        labels: Sample name to what the row calls it: its id, query id or key, else its row.
    """

    scores: list[Score]
    rejects: list[Reject]
    places: dict[str, Place]
    labels: dict[str, str]

    def scorers(self) -> list[str]:
        """Scorer names, in order of appearance."""
        return list(dict.fromkeys(score.scorer for score in self.scores))

    def people(self) -> list[str]:
        """Scorer names of people."""
        return [name for name in self.scorers() if name.startswith(HUMAN)]

    def judges(self) -> list[str]:
        """Scorer names of judges and of the program."""
        return [name for name in self.scorers() if not name.startswith(HUMAN)]

    def sides(self, human: str = GOLD, judge: str = "") -> tuple[str, str]:
        """Scorer names of both sides.

        Raises:
            InputError: A side is not in the file, or "" leaves several judges to choose from.
        """
        side = GOLD if human == GOLD else choose("human side", human, self.people())
        others = [*self.judges(), *self.people()] if judge else self.judges()
        return side, choose("judge side", judge, others)


def file_scores(items: Iterable[Item]) -> FileScores:
    """Collect the scores of files.

    Rows that name the same replan are one sample, unless one scorer scores the same
    sub-dimension in several of them: then each row is a sample. A cell of a score column that
    could not be read becomes a score without value, so that it is counted and not lost.

    Args:
        items: What a format reader yields.
    """
    marks: list[tuple[Place, Mark]] = []
    found = FileScores([], [], {}, {})
    for item in items:
        if isinstance(item.content, Mark):
            marks.append((item.place, item.content))
        elif isinstance(item.content, Score):
            found.scores.append(item.content)
            found.places.setdefault(item.content.replan, item.place)
            found.labels.setdefault(item.content.replan, item.content.replan)
        elif isinstance(item.content, Reject):
            found.rejects.append(item.content)
    names = _sample_names(marks)
    for (place, mark), name in zip(marks, names, strict=True):
        found.places.setdefault(name, place)
        found.labels.setdefault(name, _label(place, mark.ref))
        found.scores.append(
            Score(
                *(name, mark.dimension, mark.scorer, mark.value),
                *(mark.note, mark.at, mark.rubric, mark.extra),
            )
        )
    found.scores.extend(_unreadable(marks, names, found.rejects))
    return found


def file_cells(
    found: FileScores,
    *,
    human: str = GOLD,
    judge: str = "",
    dimensions: Sequence[str] = JUDGED,
    revealed: bool = False,
) -> list[Cell]:
    """Pair the two sides of a file.

    Args:
        found: The file's scores.
        human: ``GOLD`` or a scorer name, with or without "human:".
        judge: A scorer name; "" where the file holds one judge alone.
        dimensions: Sub-dimensions to keep.
        revealed: Whether people's scores count that were made after the reveal.

    Returns:
        As ``pair``.

    Raises:
        InputError: A side is not in the file, or "" leaves several judges to choose from.
    """
    side, other = found.sides(human, judge)
    return pair(found.scores, human=side, judge=other, dimensions=dimensions, revealed=revealed)


_COLUMNS = "Score columns are named like D3_human and D3_model, or diag_D3_score"


def choose(what: str, name: str, known: Sequence[str], *, cure: str = _COLUMNS) -> str:
    """The one scorer that a person means.

    Args:
        what: Which side, for the message.
        name: A scorer name, with or without its "human:" or "judge:"; "" for the only one.
        known: Scorer names to choose from.
        cure: What to do where there is nobody to choose, for the message.

    Raises:
        InputError: There is none of that name, or several and no name was given.
    """
    if not name and len(known) == 1:
        return known[0]
    wanted = (name, f"{HUMAN}{name}", f"judge:{name}")
    for candidate in known:
        if candidate in wanted:
            return candidate
    if not known:
        raise InputError(what, "no such scores", "scores of that side", cure)
    got = repr(name) if name else f"{len(known)} scorers"
    raise InputError(what, got, f"one of {', '.join(known)}", "Name one of them")


def _sample_names(marks: Sequence[tuple[Place, Mark]]) -> list[str]:
    """A name for each mark's sample: what its row says about the replan, else the row."""
    by_ref: dict[int, str] = {}
    plain: list[str] = []
    for place, mark in marks:
        key = id(mark.ref)  # the marks of a row share one ref: it is read once
        if key not in by_ref:
            by_ref[key] = _identity(mark.ref)
        plain.append(by_ref[key] or _row(place))
    seen: dict[tuple[str, str, str], str] = {}
    repeated: set[str] = set()
    per_row = Counter(_row(place) for place, _ in marks)
    for (place, mark), name in zip(marks, plain, strict=True):
        first = seen.setdefault((name, mark.scorer, mark.dimension), _row(place))
        if first != _row(place) and per_row[_row(place)] > 1:
            repeated.add(name)
    return [
        f"{name} ({_row(place)})" if name in repeated else name
        for (place, _), name in zip(marks, plain, strict=True)
    ]


def _identity(ref: ReplanRef) -> str:
    """One text of everything that names a replan, "" where the row names nothing."""
    instance = ref.instance
    parts = (
        instance.key,
        instance.id,
        instance.query_id,
        instance.query,
        as_text(instance.plan),
        ref.agent,
        ref.thought or "",
        as_text(ref.plan),
    )
    if ref.key:
        return ref.key
    return content_key(str(instance.level), instance.source, *parts) if any(parts) else ""


def _row(place: Place) -> str:
    return str(Place(place.file, place.line))


def _label(place: Place, ref: ReplanRef) -> str:
    return ref.instance.id or ref.instance.query_id or ref.key or _row(place)


def _unreadable(
    marks: Sequence[tuple[Place, Mark]], names: Sequence[str], rejects: Iterable[Reject]
) -> list[Score]:
    """Rejected cells of score columns, as scores without value of the column's scorer."""
    columns: dict[tuple[str, str], tuple[str, str]] = {}
    rows: dict[str, str] = {}
    for (place, mark), name in zip(marks, names, strict=True):
        if place.column:
            columns.setdefault((place.file, place.column), (mark.dimension, mark.scorer))
        rows[_row(place)] = name
    lost = []
    for reject in rejects:
        column = columns.get((reject.place.file, reject.place.column))
        row = rows.get(_row(reject.place))
        if column and row:
            note = f"{UNREADABLE}: {reject.got}"
            lost.append(Score(row, column[0], column[1], None, note))
    return lost
