"""What the Calibrate page shows: figures as text and places on an axis, disagreements, CSV.

Without Streamlit, so that a test reads what the page would draw.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from annotations.pairs import NOTE_LIMIT, Choices, Named, Selection, names, with_notes
from annotations.score_log import storable
from annotations.search import HIDDEN_REPLANS
from annotations.store import Store
from pararecover_core.agreement import MEASURES, Agreement, Estimate, Figures, measure
from pararecover_core.agreement_people import NO_DOUBLE, Ceiling, ceiling
from pararecover_core.figures import UNDEFINED, fixed
from pararecover_core.pairing import GOLD, HUMAN, Cell, Coverage
from pararecover_core.rubric import JUDGED, sde_rubric
from pararecover_core.score_files import FileScores

PAGE_SIZE = 50
NAME_LIMIT = 40
SIDE_LIMIT = 12
PEOPLE_AND_JUDGE = ("people", "judge")
LOW_COVERAGE = 0.98
"""Share of cells with both scores under which a row is marked."""

Data = dict[str, Any]


class Comparison(msgspec.Struct, frozen=True):
    """Figures of two sides and the cells in which they differ, largest difference first.

    Attributes:
        top: People with people, by sub-dimension and "overall": the ceiling.
    """

    found: Agreement
    disagreements: tuple[Cell, ...]
    top: dict[str, Ceiling] = {}


class Pick(msgspec.Struct, frozen=True):
    """Which disagreements to list: of one sub-dimension, or of one cell of its matrix.

    Attributes:
        dimension: "" for all.
        human: Place of the human score on the scale 0, 0.5, 1: 0, 1 or 2; None for any.
        judge: Place of the judge's score; None for any.
    """

    dimension: str = ""
    human: int | None = None
    judge: int | None = None

    def text(self) -> str:
        """As a link holds it: "D3", "D3-1-0.5" (people 1, judge 0.5), or "" for all."""
        if self.human is None or self.judge is None:
            return self.dimension
        return f"{self.dimension}-{self.human / 2:g}-{self.judge / 2:g}"

    @classmethod
    def parse(cls, text: str) -> "Pick":
        """The pick of a link; what cannot be understood asks for all."""
        dimension, _, scores = text.partition("-")
        if dimension not in JUDGED:
            return cls()
        human, _, judge = scores.partition("-")
        levels = {f"{place / 2:g}": place for place in range(3)}
        if human in levels and judge in levels:
            return cls(dimension, levels[human], levels[judge])
        return cls(dimension)


class Listed(msgspec.Struct, frozen=True):
    """One page of a list of cells, how many there are, and how many are kept back.

    Attributes:
        blind: Cells of items that the reader still has to score blind.
    """

    cells: tuple[Cell, ...]
    total: int
    page: int
    pages: int
    blind: int = 0


def compare(
    cells: Iterable[Cell], *, resamples: int = 2000, alone: Mapping[str, int] | None = None
) -> Comparison:
    """Measure two sides and put their disagreements in order.

    Args:
        cells: As ``measure`` takes them.
        resamples: Bootstrap resamples.
        alone: As ``measure`` takes it.

    Raises:
        AgreementError: As ``measure``.
    """
    given = list(cells)
    places = {name: place for place, name in enumerate(JUDGED)}
    apart = [cell for cell in given if cell.gap > 0]
    apart.sort(key=lambda cell: (-cell.gap, places.get(cell.dimension, 99)))
    top = ceiling(given, resamples=resamples)
    found = measure(given, resamples=resamples, alone=alone)
    return Comparison(found, tuple(apart), top)


def listed(
    comparison: Comparison,
    pick: Pick,
    *,
    page: int = 1,
    blind: Collection[str] = (),
    size: int = PAGE_SIZE,
) -> Listed:
    """One page of the disagreements that were picked.

    Args:
        comparison: What is compared.
        pick: Which ones.
        page: From 1; brought into range.
        blind: Samples that are kept back, because the reader still has to score them.
        size: Cells a page.
    """
    picked = [cell for cell in comparison.disagreements if _matches(cell, pick)]
    kept = [cell for cell in picked if cell.sample not in blind]
    pages = max(1, math.ceil(len(kept) / size))
    number = min(max(1, page), pages)
    start = (number - 1) * size
    shown = tuple(kept[start : start + size])
    return Listed(shown, len(kept), number, pages, len(picked) - len(kept))


def _matches(cell: Cell, pick: Pick) -> bool:
    if pick.dimension and cell.dimension != pick.dimension:
        return False
    wanted = ((pick.human, cell.human), (pick.judge, cell.judge))
    return all(place is None or score == place / 2 for place, score in wanted)


# The board


def board(
    found: Agreement,
    cells: Listed,
    pick: Pick,
    *,
    label: Callable[[Cell], tuple[str, str]],
    link: Callable[[Cell], str] = lambda cell: "",
    sides: tuple[str, str] = PEOPLE_AND_JUDGE,
    top: Mapping[str, Ceiling] | None = None,
) -> Data:
    """Everything that the board draws, as JSON data; every text is ready to be shown.

    Args:
        found: The figures.
        cells: The disagreements on this page of the list, with notes.
        pick: What the list was narrowed to.
        label: Short name of a cell's item, and a longer one.
        link: Address of a cell's item, "" for none.
        sides: What to call the two sides.
        top: People with people.
    """
    rows, top = [*found.dimensions, found.overall], top or {}
    low, high, ticks = axis(rows, [one.ema for one in top.values()])
    widest = max((abs(f.difference.value) for f in rows if f.n), default=0.0) or 1.0
    return {
        "sides": list(sides),
        "key": _key_figures(found, sides, top.get("overall")),
        "level": f"{100 * found.level:g}%",
        "ticks": [{"at": _share(tick, low, high), "text": fixed(tick, 2)} for tick in ticks],
        "rows": [
            _row(figures, low, high, widest) | _top(top, figures, low, high) for figures in rows
        ],
        "matrices": [_matrix(figures) for figures in found.dimensions],
        "pick": msgspec.to_builtins(pick),
        "list": {
            "title": _list_title(pick),
            "total": f"{cells.total:,}",
            "noun": "cell" if cells.total == 1 else "cells",
            "blind": cells.blind,
            "page": cells.page,
            "pages": cells.pages,
            "rows": [_list_row(cell, label(cell), link(cell)) for cell in cells.cells],
        },
    }


def _top(top: Mapping[str, Ceiling], figures: Figures, low: float, high: float) -> Data:
    """Where people with people stand on the axis."""
    one = top.get(figures.name)
    if one is None or not one.cells:
        return {"top": None, "top_low": None, "top_high": None, "top_text": NO_DOUBLE}
    ends = f" ({fixed(one.ema.low, 3)} to {fixed(one.ema.high, 3)})" if one.samples > 1 else ""
    return {
        "top": _share(one.ema.value, low, high),
        "top_low": _share(one.ema.low, low, high),
        "top_high": _share(one.ema.high, low, high),
        "top_text": f"people with people {fixed(one.ema.value, 3)}{ends}, {one.cells:,} cells",
    }


def axis(
    rows: Sequence[Figures], others: Sequence[Estimate] = ()
) -> tuple[float, float, list[float]]:
    """Ends and ticks of the EMA axis: round numbers around every point and interval.

    Args:
        rows: The figures to place; those without pairs are passed over.
        others: More points and intervals to place.

    Returns:
        Low and high end in [0, 1], and three to six ticks between them.
    """
    values = [
        value
        for one in (*(figures.ema for figures in rows), *others)
        for value in (one.value, one.low, one.high)
        if not math.isnan(value)
    ]
    if not values:
        return 0.0, 1.0, [0.0, 0.5, 1.0]
    low, high = min(values), max(values)
    step = next(step for step in (0.05, 0.1, 0.2, 0.25) if (high - low) / step <= 4 or step == 0.25)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    ticks = [round(place * step, 10) for place in range(first, last + 1)]
    ticks = [tick for tick in ticks if 0 <= tick <= 1]
    return max(0.0, first * step), min(1.0, last * step), ticks


def _share(value: float, low: float, high: float) -> float | None:
    return None if math.isnan(value) else (value - low) / (high - low)


def _key_figures(found: Agreement, sides: tuple[str, str], top: Ceiling | None) -> list[Data]:
    overall, coverage = found.overall, found.overall.coverage
    span = ""
    if not math.isnan(overall.ema.low):
        span = f", {fixed(overall.ema.low, 3)} to {fixed(overall.ema.high, 3)}"
    words = " / ".join(sides)
    human, judge = fixed(overall.human_mean.value, 3), fixed(overall.judge_mean.value, 3)
    note = f", {overall.kappa_note}" if overall.kappa_note else ""
    return [
        {"value": fixed(overall.ema.value, 3), "label": f"exact match (EMA){span}"},
        {
            "value": fixed(top.ema.value, 3) if top else UNDEFINED,
            "label": f"people with people, {top.cells if top else 0:,} cells of two or more",
            "title": top.note if top and top.note else None,
        },
        {"value": fixed(overall.mae.value, 3), "label": "mean error (MAE), in rubric points"},
        {"value": f"{human} / {judge}", "label": f"mean score, {words}"},
        {"value": fixed(overall.kappa.value, 2), "label": f"linear weighted kappa{note}"},
        {
            "value": f"{coverage.both:,}",
            "of": f"of {coverage.by_people:,}",
            "label": f"cells of people scored by both{_why(coverage)}",
            "title": coverage_text(coverage),
        },
    ]


def _why(coverage: Coverage) -> str:
    """The two most frequent reasons, for a line."""
    reasons = sorted(_gaps(coverage).items(), key=lambda gap: (-gap[1], gap[0]))
    short = [f"{count:,} {reason}" for reason, count in reasons[:2]]
    return f"; {', '.join(short)}" if short else ""


def coverage_text(coverage: Coverage) -> str:
    """Coverage in words: how many had both, one or none, and every reason."""
    parts = [f"{coverage.both:,} cells with both scores"]
    for count, words in (
        (coverage.only_human, "with people's alone"),
        (coverage.only_judge, "with the judge's alone"),
        (coverage.neither, "with neither"),
    ):
        if count:
            parts.append(f"{count:,} {words}")
    for reason, count in sorted(_gaps(coverage).items()):
        parts.append(f"{reason}: {count:,}")
    return "; ".join(parts)


def _gaps(coverage: Coverage) -> dict[str, int]:
    gaps = dict(coverage.human_gaps)
    for reason, count in coverage.judge_gaps.items():
        gaps[reason] = gaps.get(reason, 0) + count
    return gaps


def _row(figures: Figures, low: float, high: float, widest: float) -> Data:
    overall = figures.name == "overall"
    coverage = figures.coverage
    dimension = None if overall else sde_rubric().dimension(figures.name)
    undefined = figures.kappa_note if math.isnan(figures.kappa.value) else ""
    return {
        "id": "All" if overall else figures.name,
        "overall": overall,
        "name": dimension.short if dimension else "Overall",
        "full": dimension.name if dimension else "mean over the sub-dimensions",
        "at": _share(figures.ema.value, low, high),
        "low": _share(figures.ema.low, low, high),
        "high": _share(figures.ema.high, low, high),
        "ema": _or_dash(figures.ema.value, 3),
        "mae": _or_dash(figures.mae.value, 3),
        "human": _or_dash(figures.human_mean.value, 3),
        "judge": _or_dash(figures.judge_mean.value, 3),
        "bias": _or_dash(figures.difference.value, 3, sign=True),
        "bar": 0.0 if not figures.n else figures.difference.value / widest,
        "kappa": _or_dash(figures.kappa.value, 2),
        "note": undefined or figures.kappa_note,
        "both": f"{coverage.both:,}",
        "of": f"of {coverage.by_people:,}",
        "thin": coverage.both < LOW_COVERAGE * coverage.by_people,
        "coverage": coverage_text(coverage),
        "spans": _spans(figures),
    }


def _or_dash(value: float, digits: int, *, sign: bool = False) -> str:
    return "–" if math.isnan(value) else fixed(value, digits, sign=sign).replace("-", "−")


def _spans(figures: Figures) -> str:
    """Every figure with its interval, in words."""
    called = ("EMA", "MAE", "People", "Judge", "Bias", "Kappa", "Quadratic kappa", "Alpha", "AC2")
    names = dict(zip(MEASURES, called, strict=True))
    parts = []
    for name, words in names.items():
        estimate = getattr(figures, name)
        text = f"{words} {fixed(estimate.value, 3)}"
        if not math.isnan(estimate.low):
            text += f" ({fixed(estimate.low, 3)} to {fixed(estimate.high, 3)})"
        parts.append(text)
    return "; ".join(parts)


def _matrix(figures: Figures) -> Data:
    """Counts by row, human 1 first, with each cell's share of its row."""
    rows = []
    for human in (2, 1, 0):
        counts = figures.confusion[human]
        total = sum(counts) or 1
        rows.append(
            [
                {"n": count, "share": count / total, "same": human == judge, "at": [human, judge]}
                for judge, count in enumerate(counts)
            ]
        )
    return {
        "id": figures.name,
        "name": sde_rubric().dimension(figures.name).short,
        "n": figures.n,
        "rows": rows,
    }


def _list_title(pick: Pick) -> str:
    if not pick.dimension:
        return ""
    words = pick.dimension
    if pick.human is not None and pick.judge is not None:
        words += f", people {pick.human / 2:g}, judge {pick.judge / 2:g}"
    return words


def _list_row(cell: Cell, names: tuple[str, str], link: str) -> Data:
    people = ", ".join(f"{name} {value:g}" for name, value in cell.people)
    return {
        "sample": cell.sample,
        "item": _sendable(names[0], NAME_LIMIT),
        "full": _sendable(names[1], NOTE_LIMIT),
        "dimension": cell.dimension,
        "short": sde_rubric().dimension(cell.dimension).short,
        "human": f"{cell.human:g}",
        "people": _sendable(people, NOTE_LIMIT),
        "judge": f"{cell.judge:g}",
        "gap": f"{cell.gap:.1f}",
        "reason": _sendable(cell.judge_note, NOTE_LIMIT),
        "note": _sendable(cell.human_note, NOTE_LIMIT),
        "link": link,
    }


def _sendable(text: str, limit: int) -> str:
    """A text from a file as a page can carry it: cut, and without lone surrogates."""
    return storable(text if len(text) <= limit else f"{text[:limit]}…")


# Where scores come from


def store_board(
    store: Store, comparison: Comparison, selection: Selection, pick: Pick, page: int, reader: str
) -> Data:
    """The board of a comparison from the database.

    Args:
        store: The database.
        comparison: What is compared.
        selection: Where it came from.
        pick: Which disagreements to list.
        page: Which page of them.
        reader: Who reads: items that they still have to score blind are not listed.
    """
    some = listed(comparison, pick, page=page, blind=still_blind(store, reader))
    noted = tuple(with_notes(store, some.cells, selection.judge))
    called = names(store, {cell.sample for cell in noted})
    return board(
        comparison.found,
        msgspec.structs.replace(some, cells=noted),
        pick,
        label=lambda cell: _store_label(cell.sample, called[cell.sample]),
        link=lambda cell: f"trajectories?item={cell.sample}",
        sides=side_names(selection.human, selection.judge),
        top=comparison.top,
    )


def side_names(human: str, judge: str) -> tuple[str, str]:
    """What to call two sides: people and judge, or the names of persons."""
    left = PEOPLE_AND_JUDGE[0] if human == GOLD else human.removeprefix(HUMAN)
    right = judge.removeprefix(HUMAN) if judge.startswith(HUMAN) else PEOPLE_AND_JUDGE[1]
    return _sendable(left, SIDE_LIMIT), _sendable(right, SIDE_LIMIT)


def _store_label(key: str, named: Named) -> tuple[str, str]:
    level = f"LEVEL-{named.level}, " if named.level else ""
    words = f"{level}agent {named.agent or 'not named'}, replan {key}"
    return named.short(key), words


def still_blind(store: Store, reader: str) -> frozenset[str]:
    """Keys of the replans that a reader still has to score blind."""
    with store.read() as db:
        return frozenset(row[0] for row in db.execute(HIDDEN_REPLANS, {"who": reader}))


def file_board(
    found: FileScores, comparison: Comparison, pick: Pick, page: int, sides: tuple[str, str]
) -> Data:
    """The board of a file that was not imported; its items are rows and open nowhere.

    Args:
        found: The file's scores.
        comparison: What is compared.
        pick: Which disagreements to list.
        page: Which page of them.
        sides: Scorer names of both sides.
    """
    return board(
        comparison.found,
        listed(comparison, pick, page=page),
        pick,
        label=lambda cell: (found.labels[cell.sample], str(found.places[cell.sample])),
        sides=side_names(*sides),
        top=comparison.top,
    )


def what_is_missing(known: Choices, selection: Selection, comparison: Comparison) -> str:
    """What to do where there is nothing to compare, "" where there is something."""
    coverage = comparison.found.overall.coverage
    if coverage.both:
        return ""
    if not known.people and not known.judges:
        return "Nobody has scored in this database yet, neither people nor a judge."
    if not known.people:
        return "A judge has scored, but no person has."
    if not selection.judge:
        return "People have scored, but no judge has."
    if not coverage.cells:
        return "No cell fits these filters. Widen them."
    words = f"No cell has both scores: {coverage_text(coverage)}."
    return words[0].upper() + words[1:]
