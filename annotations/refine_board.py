"""What the Refine page shows: versions on dev, the difference of texts, cells, the sealed side.

Without Streamlit, so that a test reads what the page would draw.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from annotations import pairs, sessions
from annotations.calibration import LOW_COVERAGE, axis, still_blind
from annotations.refining import Version
from annotations.score_log import storable
from annotations.sessions import Round, Session, Side
from pararecover_core.agreement import Estimate
from pararecover_core.agreement_people import Ceiling, ceiling
from pararecover_core.compare import Move, Paired, Verdict
from pararecover_core.figures import fixed
from pararecover_core.judges.prompt import Prompt
from pararecover_core.pairing import Cell
from pararecover_core.rubric import JUDGED
from pararecover_core.text_difference import difference

if TYPE_CHECKING:
    from annotations.store import Store

CELLS_SHOWN = 50
"""Cells on a page of the list."""

CONTEXT = 2
"""Unchanged lines that are shown around a change."""

NOTE_LIMIT = 120

Data = dict[str, Any]


class CellPick(msgspec.Struct, frozen=True):
    """Which cells to list.

    Attributes:
        move: "fixed", "broken" or "same"; "" for those that moved.
        dimension: "" for all.
        page: From 1; brought into range.
    """

    move: str = ""
    dimension: str = ""
    page: int = 1

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "CellPick":
        """What the board said; what cannot be understood asks for all that moved."""
        move, dimension, page = (said.get(name) for name in ("move", "dimension", "page"))
        return cls(
            move if move in set(Move) else "",
            dimension if dimension in JUDGED else "",
            page if type(page) is int else 1,
        )


def people_ceiling(store: "Store", session: Session, *, resamples: int = 500) -> Ceiling:
    """How far people agree with people on the dev side."""
    dev = {key for key, _ in sessions.wanted(store, session.id, Side.DEV)}
    found = pairs.load(store, pairs.Selection(judge="", batch=session.batch))
    return ceiling([c for c in found if c.sample in dev], resamples=resamples)["overall"]


def board(
    store: "Store",
    session: Session,
    rows: Sequence[Version],
    chosen: Version | None,
    top: Ceiling,
    *,
    reader: str = "",
    whole: bool = False,
    repeats: Sequence[str] = (),
    pick: CellPick = CellPick(),  # noqa: B008 (immutable)
) -> Data:
    """Everything that the board draws, as JSON data; every text is ready to be shown.

    Args:
        store: The database.
        session: Which session.
        rows: Versions of one judge, newest first.
        chosen: The version whose change is shown.
        top: People with people.
        pick: Which cells to list.
        reader: Who reads: items that they still have to score blind are not listed.
        whole: Whether the whole prompt is shown, not only what is near a change.
        repeats: Runs of words that the chosen prompt takes from dev samples.
    """
    points = [row.found.overall for row in rows]
    low, high, ticks = axis(points, [Estimate(top.ema.value)])
    at = _Axis(low, high)
    moved = [row.changed.overall for row in rows if row.changed]
    widest = max((max(p.fixed, p.broken) for p in moved), default=0) or 1
    return {
        "ticks": [{"at": at.share(tick), "text": fixed(tick, 2)} for tick in ticks],
        "ceiling": {"at": at.share(top.ema.value), "text": _ceiling_words(top)},
        "rows": [_row(row, at, widest, row is chosen) for row in rows],
        "chosen": None if chosen is None else _chosen(chosen, rows, whole, repeats),
        "moved": [] if chosen is None or chosen.changed is None else _moved(chosen),
        "cells": _cells(store, chosen, reader, pick),
        "sealed": _sealed(store, session, chosen),
    }


class _Axis:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.wide = low, (high - low) or 1.0

    def share(self, value: float) -> float | None:
        return None if math.isnan(value) else (value - self.low) / self.wide


def _ceiling_words(top: Ceiling) -> str:
    if not top.cells:
        return top.note
    return f"people with people: EMA {fixed(top.ema.value, 3)}, {top.cells:,} cells of two or more"


def _row(row: Version, at: _Axis, widest: int, current: bool) -> Data:
    figures, changed = row.found.overall, row.changed.overall if row.changed else None
    return {
        "scorer": row.scorer,
        "label": row.label,
        "by": storable(row.author) or "built in",
        "note": _partly(row) + storable(row.note[:NOTE_LIMIT]),
        "current": current,
        "at": at.share(figures.ema.value),
        "low": at.share(figures.ema.low),
        "high": at.share(figures.ema.high),
        "ema": fixed(figures.ema.value, 3),
        "mae": fixed(figures.mae.value, 3),
        "n": f"{figures.n:,}",
        "words": f"EMA {fixed(figures.ema.value, 3)} ({fixed(figures.ema.low, 3)} to "
        f"{fixed(figures.ema.high, 3)}), n = {figures.n:,} cells",
        **_paired(changed, widest),
    }


def _partly(row: Version) -> str:
    """Says so where a version has scored only some of what its prompts ask and people scored."""
    own = [one.coverage for one in row.found.dimensions if one.name in _asked(row)]
    both, by_people = sum(one.both for one in own), sum(one.by_people for one in own)
    if both >= LOW_COVERAGE * by_people:
        return ""
    return f"Only {both:,} of {by_people:,} cells judged: run it again. "


def _asked(row: Version) -> set[str]:
    """The sub-dimensions that the prompts of a version ask for."""
    return {dimension for prompt in row.prompts for dimension in prompt.dimensions}


def _paired(changed: Paired | None, widest: int) -> Data:
    if changed is None:
        return {"verdict": "start", "diff": "", "p": "", "same": "", "fixed": 0, "broken": 0}
    ends = ""
    if not math.isnan(changed.ema.low):
        ends = f" ({_signed(changed.ema.low)} to {_signed(changed.ema.high)})"
    mae = f"MAE {_signed(changed.mae.value)}"
    if not math.isnan(changed.mae.low):
        mae += f" ({_signed(changed.mae.low)} to {_signed(changed.mae.high)})"
    return {
        "verdict": changed.verdict.value,
        "tone": _TONES[changed.verdict],
        "diff": _signed(changed.ema.value),
        "p": "p < 0.001" if changed.p < 0.001 else f"p = {fixed(changed.p, 3)}",
        "same": f"{changed.same:,}",
        "fixed": changed.fixed,
        "broken": changed.broken,
        "fixed_bar": changed.fixed / widest,
        "broken_bar": changed.broken / widest,
        "detail": f"Difference of EMA {_signed(changed.ema.value)}{ends}; {mae}; "
        f"{changed.test}, {changed.n:,} cells of {changed.samples:,} samples",
    }


def _signed(value: float) -> str:
    return fixed(value, 3, sign=True).replace("-", "−")


_TONES = {
    Verdict.BETTER: "up",
    Verdict.WORSE: "down",
    Verdict.UNCLEAR: "flat",
    Verdict.UNDEFINED: "flat",
}


def _chosen(chosen: Version, rows: Sequence[Version], whole: bool, repeats: Sequence[str]) -> Data:
    before = next((row for row in rows if row.scorer == chosen.parent), None)
    new = chosen.edited or chosen.prompts[0]
    old = _same_id(before, new)
    if old is None or whole:
        shown = [
            {"kind": "same", "before": "", "after": n, "parts": [[storable(line), False]]}
            for n, line in enumerate(new.text.splitlines(), 1)
        ]
        title, words = new.name, f"version {new.version}, {len(shown)} lines"
    else:
        lines = difference(old.text, new.text)
        near = {
            place + by
            for place, line in enumerate(lines)
            if line.kind != "same"
            for by in range(-CONTEXT, CONTEXT + 1)
        }
        shown = [
            {
                "kind": line.kind,
                "before": line.before or "",
                "after": line.after or "",
                "parts": [[storable(text), marked] for text, marked in line.parts],
            }
            for place, line in enumerate(lines)
            if place in near
        ]
        added = sum(line.kind == "added" for line in lines)
        removed = sum(line.kind == "removed" for line in lines)
        title = f"{old.name} to {new.name}"
        words = f"{added} {_lines(added)} added, {removed} removed"
    return {
        "title": title,
        "words": words,
        "lines": shown,
        "whole": whole or old is None,
        "can_fold": old is not None,
        "repeats": [storable(run[:200]) for run in repeats],
        "edit": [prompt.name for prompt in chosen.prompts],
    }


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"


def _same_id(before: Version | None, new: Prompt) -> Prompt | None:
    found = [p for p in before.prompts if p.id == new.id] if before else []
    return found[0] if found else None


def _moved(chosen: Version) -> list[Data]:
    by_name = {p.name: p for p in chosen.changed.dimensions} if chosen.changed else {}
    most = max((max(p.fixed, p.broken) for p in by_name.values()), default=0) or 1
    return [
        {
            "id": name,
            "fixed": by_name[name].fixed,
            "broken": by_name[name].broken,
            "up": by_name[name].fixed / most,
            "down": by_name[name].broken / most,
            "p": f"{by_name[name].test}: p = {fixed(by_name[name].p, 3)}",
        }
        for name in JUDGED
        if name in by_name
    ]


def _cells(store: "Store", chosen: Version | None, reader: str, pick: CellPick) -> Data:
    if chosen is None or chosen.changed is None:
        return {"rows": [], "title": "", "kinds": [], "hidden": 0, "dimension": ""}
    blind = still_blind(store, reader) if reader else frozenset()
    inside = [c for c in chosen.changed.cells if pick.dimension in ("", c.dimension)]
    picked = [c for c in inside if c.move == pick.move or (not pick.move and c.move != Move.SAME)]
    kept = [c for c in picked if c.sample not in blind]
    kept.sort(key=lambda c: (JUDGED.index(c.dimension), c.move, c.sample))
    pages = max(1, math.ceil(len(kept) / CELLS_SHOWN))
    page = min(max(1, pick.page), pages)
    some = kept[(page - 1) * CELLS_SHOWN : page * CELLS_SHOWN]
    called = pairs.names(store, {c.sample for c in some})
    counts = {move: sum(c.move is move for c in inside) for move in Move}
    kinds = [
        {"move": move.value, "text": f"{word} {counts[move]:,}", "on": pick.move == move}
        for move, word in _KINDS.items()
    ]
    return {
        "title": f"{chosen.parent.rpartition('@')[2]} to {chosen.label}",
        "kinds": kinds,
        "move": pick.move,
        "dimension": pick.dimension,
        "page": page,
        "pages": pages,
        "hidden": len(picked) - len(kept),
        "rows": [
            {
                "sample": c.sample,
                "item": storable(called[c.sample].short(c.sample)),
                "dimension": c.dimension,
                "human": f"{c.human:g}",
                "before": f"{c.before:g}",
                "after": f"{c.after:g}",
                "move": c.move.value,
                "right": c.after == c.human,
                "link": f"trajectories?item={c.sample}",
            }
            for c in some
        ],
    }


_KINDS = {Move.FIXED: "Fixed", Move.BROKEN: "Broken", Move.SAME: "Unchanged"}


def _sealed(store: "Store", session: Session, chosen: Version | None) -> Data:
    looks, held = sessions.looks(store, session.id), Side.HELD_OUT.value
    opened = {one.data["scorer"] for one in looks}
    ready = None
    if chosen is not None:
        ready = sessions.readiness(store, session.id, chosen.scorer, _asked(chosen))
    return {
        "looks": len(looks),
        "size": f"{session.items[held]:,} items, {session.cells[held]:,} cells, "
        f"{session.scored[held]:,} scored by people",
        "lines": [_look_line(one) for one in looks[-5:]],
        "label": chosen.label if chosen else "",
        "opened": bool(chosen and chosen.scorer in opened),
        "next": len(looks) + 1,
        "judged": ready.judged if ready else 0,
        "ready": _ready_words(ready) if ready else "",
        "whole": ready is not None and ready.judged + ready.failed >= ready.asked,
    }


def _ready_words(ready: sessions.Readiness) -> str:
    failed = f", {ready.failed:,} failed (Run has: only failed calls)" if ready.failed else ""
    return f"{ready.judged:,} of {ready.asked:,} cells judged{failed}"


def _look_line(one: Round) -> Data:
    data, gap = one.data, one.data.get("gap")
    dev = ""
    if gap is not None:
        dev = f", dev {fixed(data['dev_ema'], 3)}, gap {_signed(gap)}"
    ends = ""
    if data.get("ema_low") is not None:
        ends = f" ({fixed(data['ema_low'], 3)} to {fixed(data['ema_high'], 3)})"
    return {
        "what": storable(str(data["scorer"]).removeprefix("judge:")),
        "text": f"EMA {fixed(data['ema'], 3)}{ends}, MAE {fixed(data['mae'], 3)}{dev}",
        "when": f"{one.at[:10]}, by {storable(one.author) or 'nobody named'}, "
        f"n = {data['n']:,} cells",
    }


def worst_cells(
    store: "Store",
    session: int,
    scorer: str,
    dimensions: Sequence[str] = JUDGED,
    *,
    reader: str = "",
    most: int = 30,
) -> list[Cell]:
    """Dev cells in which a judge and people differ, largest difference first.

    Args:
        store: The database.
        session: Which session.
        scorer: Scorer name of the judge.
        dimensions: Only these sub-dimensions.
        reader: Who reads: items that they still have to score blind are left out.
        most: How many at most.
    """
    blind = still_blind(store, reader) if reader else frozenset()
    found = [
        c
        for c in sessions.cells(store, session, scorer, Side.DEV)
        if c.gap > 0 and c.dimension in dimensions and c.sample not in blind
    ]
    return sorted(found, key=lambda c: (-c.gap, JUDGED.index(c.dimension), c.sample))[:most]
