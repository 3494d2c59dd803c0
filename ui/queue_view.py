"""Batches and adjudication as text and HTML: pure functions, everything from outside escaped."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from html import escape
from urllib.parse import quote

from annotations.adjudicate import Cell, Decision, ItemAgreement, Opinion, PairFigures
from annotations.batches import Batch, Preview
from annotations.progress import AnnotatorProgress, Flag
from pararecover_core.figures import fixed
from pararecover_core.rubric import Dimension


class Which(StrEnum):
    """What the adjudication view lists."""

    WAITING = "Waiting"
    DECIDED = "Decided"
    ALL = "All"
    ITEMS = "By item"


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~:$&^=])")


def plain(text: str) -> str:
    """Text for a label that Streamlit reads as Markdown: shown as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def counted(count: int, one: str, many: str = "") -> str:
    """A count and its noun: "1 item", "2 items"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def level(value: float | None) -> str:
    """A score as people write it: "1", "0.5", "0"; "" for none."""
    return "" if value is None else f"{value:g}"


def clock(seconds: float | None) -> str:
    """Minutes and seconds, "2:05"; a dash for none."""
    if seconds is None:
        return "\N{EN DASH}"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def moment(at: str) -> str:
    """A time of the log, "1 Dec 2026, 14:02 UTC"; what is no time is shown as it is."""
    try:
        time = datetime.fromisoformat(at).astimezone(UTC)
    except ValueError:
        return at
    return f"{time.day} {time:%b %Y, %H:%M} UTC"


def asked(dimensions: Sequence[str], judged: Sequence[str]) -> str:
    """Which sub-dimensions, briefly."""
    if tuple(dimensions) == tuple(judged):
        return f"all {len(judged)} judged sub-dimensions"
    return ", ".join(dimensions)


def caption(batch: Batch) -> str:
    """One line of a batch in a list."""
    return f"{batch.submitted:,} of {batch.slots:,} submitted \N{MIDDLE DOT} " + counted(
        batch.items, "item"
    )


def description(batch: Batch, judged: Sequence[str]) -> str:
    """How a batch was made, in one line."""
    parts = [
        counted(batch.items, "item"),
        asked(batch.dimensions, judged),
        _annotators(batch),
        f"revealed {batch.reveal.label}",
        "E5 hidden while blind" if batch.plan.get("hide_outcome") else "",
        _drawn(batch),
        f"made {moment(batch.created)}" + (f" by {batch.created_by}" if batch.created_by else ""),
    ]
    return " \N{MIDDLE DOT} ".join(part for part in parts if part)


def _annotators(batch: Batch) -> str:
    share = batch.plan.get("overlap", 1.0)
    if batch.annotators_per_item == 1 or not share:
        return "one annotator each"
    if share == 1:
        return f"{batch.annotators_per_item} annotators each"
    return f"{share:.0%} of items by {batch.annotators_per_item} annotators, others by one"


def _drawn(batch: Batch) -> str:
    sampling = batch.plan.get("sampling")
    if not sampling:
        return "given replans"
    seed = f"seed {sampling['seed']}"
    if sampling["per_dimension"]:
        return f"a sample of {sampling['size']:,} for each sub-dimension, {seed}"
    if sampling["stratify"]:
        by = ", ".join(word.replace("_", " ") for word in sampling["stratify"])
        return f"stratified by {by} ({sampling['allocation']}), {seed}"
    return f"random, {seed}"


def preview_text(found: Preview) -> str:
    """What a plan would give, in a sentence."""
    return (
        f"{counted(found.items, 'item')} of {found.available:,} that match,"
        f" {counted(found.slots, 'scoring')}, {counted(found.cells, 'single score')}."
    )


def cells_of(items: Iterable[ItemAgreement], which: Which) -> list[tuple[ItemAgreement, Cell]]:
    """Disagreements with their items, in the order of the batch, largest first in an item."""
    listed = [
        (item, cell)
        for item in sorted(items, key=lambda item: item.position)
        for cell in item.disagreements
    ]
    if which is Which.WAITING:
        return [(item, cell) for item, cell in listed if cell.waits]
    if which is Which.DECIDED:
        return [(item, cell) for item, cell in listed if cell.decided]
    return listed


def nothing_of(which: Which) -> tuple[str, str]:
    """What an empty list says: title and words."""
    if which is Which.WAITING:
        return "Nothing waits.", "Every disagreement so far is decided, or all annotators agree."
    if which is Which.DECIDED:
        return "Nothing is decided yet.", "Open Waiting to decide the first one."
    return "No disagreement.", "All annotators agree on every item so far."


# ---- HTML ----------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """A table; cells are HTML already, heads are text.

    Args:
        head: Titles of the columns.
        rows: Cells, as HTML.
        numbers: Columns that stand to the right, from 0.
    """
    right = set(numbers)
    kinds = [' class="num"' if n in right else "" for n in range(len(head))]
    heads = "".join(f"<th{k}>{escape(t)}</th>" for t, k in zip(head, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{c}</td>" for c, k in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        '<div class="prq-scroll"><table class="prq-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def strip(figures: Iterable[tuple[str, str, str]]) -> str:
    """Key figures in a row: figure, what stands beside it, what it is."""
    cells = (
        f"<div><b>{escape(figure)}</b>{f'<span>{escape(beside)}</span>' if beside else ''}"
        f"<p>{escape(words)}</p></div>"
        for figure, beside, words in figures
    )
    return f'<div class="prq-strip">{"".join(cells)}</div>'


def empty(title: str, words: str, link: tuple[str, str] | None = None) -> str:
    """An empty state: what is not there, and what to do next.

    Args:
        title: What is not there.
        words: What to do.
        link: Address within the app and its words.
    """
    end = f' <a href="{escape(link[0])}" target="_self">{escape(link[1])}</a>' if link else ""
    return f'<div class="prq-empty"><b>{escape(title)}</b>{escape(words)}{end}</div>'


def heading(title: str, words: str = "") -> str:
    """A title and the line under it."""
    under = f'<div class="prq-sub">{escape(words)}</div>' if words else ""
    return f'<div class="prq-title">{escape(title)}</div>{under}'


def note(text: str) -> str:
    """A remark that should be seen."""
    return f'<div class="prq-note">{escape(text)}</div>'


def sub(text: str) -> str:
    """A line of quiet text."""
    return f'<div class="prq-sub">{escape(text)}</div>'


def link(address: str, words: str) -> str:
    """A link within the app."""
    return f'<a class="prq-link" href="{escape(address)}" target="_self">{escape(words)}</a>'


def item_link(batch: int, replan: str, words: str = "Open") -> str:
    """A link that opens an item on the Annotate page."""
    address = f"annotate?batch={batch}&item={quote(replan, safe='')}"
    return f'<a href="{escape(address)}" target="_self">{escape(words)}</a>'


def batch_strip(batch: Batch, people: Sequence[AnnotatorProgress], pairs: PairFigures) -> str:
    """Key figures of a batch."""
    figures = [
        (f"{batch.submitted:,}", f"of {batch.slots:,}", "scorings submitted"),
        (f"{sum(p.open for p in people):,}", "", "at work"),
        (f"{sum(p.flagged for p in people):,}", "", "flagged"),
        (f"{sum(p.released for p in people):,}", "", "released, not taken up"),
    ]
    return strip(figures + agreement_figures(pairs))


def agreement_figures(pairs: PairFigures) -> list[tuple[str, str, str]]:
    """Agreement of people with people, and what waits for an adjudicator."""
    if math.isnan(pairs.ema):
        return [("\N{EN DASH}", "", "people with people: no item by two yet")]
    return [
        (
            fixed(pairs.ema, 3),
            f"MAE {fixed(pairs.mae, 3)}",
            f"EMA, {counted(pairs.items, 'shared item')}",
        ),
        (f"{pairs.waiting:,}", f"of {pairs.disagreements:,}", "disagreements wait"),
    ]


def people_table(people: Iterable[AnnotatorProgress]) -> str:
    """A row for each annotator of a batch."""
    head = (
        *("Annotator", "Done", "At work", "Skipped", "Flagged", "Released"),
        *("Median", "An hour", "Faster than reading", "Last seen"),
    )
    rows = [
        (
            f"<b>{escape(one.annotator)}</b>",
            *(f"{n:,}" for n in (one.done, one.open, one.skipped, one.flagged, one.released)),
            clock(one.median_seconds),
            "\N{EN DASH}" if one.pace_per_hour is None else f"{one.pace_per_hour:.1f}",
            f"{one.too_fast:,}",
            escape(moment(one.last_seen)),
        )
        for one in people
    ]
    return table(head, rows, range(1, len(head)))


def flags_table(batch: int, raised: Iterable[Flag]) -> str:
    """A row for each flag."""
    rows = [
        (
            item_link(batch, flag.replan, flag.replan),
            escape(flag.annotator),
            escape(flag.note) or "\N{EN DASH}",
            escape(flag.state),
            escape(moment(flag.at)),
        )
        for flag in raised
    ]
    return table(("Item", "By", "What was said", "Now", "When"), rows, [4])


def cell_label(item: ItemAgreement, cell: Cell) -> str:
    """A disagreement in a list."""
    return f"**{cell.dimension}** item {item.position}"


def cell_caption(cell: Cell) -> str:
    """What stands under a disagreement in a list: the scores, and the decision."""
    scores = ", ".join(f"{o.annotator} {level(o.value)}" for o in cell.opinions)
    if not cell.decided or cell.decision is None:
        return plain(scores)
    changed = "; scores changed since" if cell.outdated else ""
    decided = f"decided {level(cell.decision.value)} by {cell.decision.adjudicator}"
    return plain(f"{scores}; {decided}{changed}")


def pairs_line(pairs: PairFigures) -> str:
    """Agreement of people with people in one line."""
    wait = "waits" if pairs.waiting == 1 else "wait"
    return (
        f"EMA {fixed(pairs.ema, 3)}, MAE {fixed(pairs.mae, 3)} on"
        f" {counted(pairs.items, 'shared item')}; {pairs.waiting:,} of"
        f" {counted(pairs.disagreements, 'disagreement')} {wait}"
    )


def opinions(given: Iterable[Opinion], notes: dict[str, str]) -> str:
    """Scores and notes of the annotators, one below the other.

    Args:
        given: The scores.
        notes: Notes on the whole sample, by annotator.
    """
    return "".join(
        '<div class="prq-opinion">'
        f'<span class="prq-value">{level(one.value)}</span><b>{escape(one.annotator)}</b> '
        f"<small>{escape(moment(one.at))}{', after the reveal' if one.revealed else ''}</small>"
        f"<p>{escape(one.note) or '<small>No note.</small>'}</p>"
        + _sample_note(notes.get(one.annotator, ""))
        + "</div>"
        for one in given
    )


def _sample_note(text: str) -> str:
    return f"<p><small>On the sample:</small> {escape(text)}</p>" if text else ""


def anchors(dimension: Dimension) -> str:
    """Question and anchors of a sub-dimension."""
    rows = "".join(
        f"<b>{level(value)}</b><span>{escape(dimension.anchors.of(value))}</span>"
        for value in (1.0, 0.5, 0.0)
    )
    return (
        f'<div class="prq-title">{escape(dimension.id)} {escape(dimension.name)}</div>'
        f'<div class="prq-sub">{escape(dimension.question)}</div>'
        f'<div class="prq-anchor">{rows}</div>'
    )


def history(given: Iterable[Decision]) -> str:
    """Decisions on a sub-dimension, newest first."""
    rows = "".join(
        f'<div class="prq-opinion"><span class="prq-value">{level(one.value)}</span>'
        f"<b>{escape(one.adjudicator)}</b> <small>decided {escape(moment(one.at))}</small>"
        f"<p>{escape(one.reason)}</p></div>"
        for one in given
    )
    return f'<div class="prq-head">Decisions</div>{rows}'


def item_summary(item: ItemAgreement) -> str:
    """Agreement of an item's annotators in a line."""
    text = (
        f"Item {item.position}: {', '.join(item.annotators)}; EMA {fixed(item.ema, 3)},"
        f" MAE {fixed(item.mae, 3)} over {counted(item.pairs, 'pair')} of scores;"
        f" {len(item.disagreements):,} differ, {item.waiting:,} of them wait for a decision."
    )
    return f'<div class="prq-sub">{escape(text)}</div>'


def items_table(batch: int | None, items: Iterable[ItemAgreement]) -> str:
    """A row for each item that two or more annotators scored."""
    head = ("Item", "Annotators", "Pairs", "EMA", "MAE", "Disagreements", "Waiting", "Differ on")
    rows = [
        (
            _adjudication_link(batch, item),
            escape(", ".join(item.annotators)),
            f"{item.pairs:,}",
            f"<b>{fixed(item.ema, 3)}</b>",
            fixed(item.mae, 3),
            f"{len(item.disagreements):,}",
            f"{item.waiting:,}",
            escape(", ".join(cell.dimension for cell in item.disagreements)) or "\N{EN DASH}",
        )
        for item in items
    ]
    return table(head, rows, range(2, 7))


def _adjudication_link(batch: int | None, item: ItemAgreement) -> str:
    """The item's place, as a link to its largest disagreement where there is one."""
    if not item.disagreements:
        return f"{item.position}"
    cell = item.disagreements[0]
    address = (
        f"annotate?view=adjudicate&batch={'all' if batch is None else batch}&which=all"
        f"&replan={quote(cell.replan, safe='')}&dimension={cell.dimension}"
    )
    return f'<a href="{escape(address)}" target="_self">{item.position}</a>'
