"""A case study as one HTML file: opens offline, asks nothing of any server, prints well.

All text of records and authors is escaped; the page's policy lets its one script run and no other.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from pararecover_core.case_study.model import Case, Mark, Origin, RoundView, ScoreLine, Side
from pararecover_core.case_study.svg import INK, compact, edge_legend, escape, legend_states, svg
from pararecover_core.errors import InputError
from pararecover_core.figures import fixed
from pararecover_core.rubric import sde_rubric

LIMIT = 1_000_000
"""Bytes that the file stays below."""

_WIDE = 400
"""Width of a small drawing from which on its figure takes two columns."""
_SCORERS_ABREAST = 2
"""Columns of scores up to which the three tables stand side by side."""
_VARIABLES = {name: f"var(--{name})" for name in INK}
_MARK_SIGNS = {"failed": "✕", "repair": "✓"}
_MARK_WORDS = {
    "on": "moves the task on",
    "failed": "a call fails",
    "repeat": "repeats earlier work",
    "repair": "a repair works",
    "end": "nothing is run",
}
_STATE_WORDS = {
    "new": "ran this round",
    "failed": "failed",
    "added": "added this round",
    "changed": "changed this round",
    "removed": "removed",
    "ghost": "removed this round",
    "missing": "does not exist",
    "reached": "reached by the fault",
}


@cache
def _asset(name: str) -> str:
    return files("pararecover_core.case_study").joinpath(name).read_text(encoding="utf-8").strip()


def html(case: Case) -> str:
    """The file.

    Raises:
        InputError: It would reach ``LIMIT`` bytes even without the large drawings.
    """
    for large in (True, False):
        page = _page(case, large=large)
        if len(page.encode("utf-8", "replace")) < LIMIT:
            return page.encode("utf-8", "replace").decode("utf-8")
    shown = sum(len(side.rounds) for side in case.sides)
    raise InputError(
        "case study",
        f"a page of {shown} rounds over 1 MB",
        "a page below 1 MB",
        "Show fewer rounds",
    )


def _page(case: Case, *, large: bool) -> str:
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(case.title)}</title><style>{_asset('page.css')}</style></head>"
        f'<body><main class="pp{" two" if len(case.sides) > 1 else ""}">{_body(case, large=large)}'
        f"</main><script>{script}</script></body></html>\n"
    )


def _body(case: Case, *, large: bool) -> str:
    return "".join(
        [
            _header(case),
            _strips(case),
            _legend(case),
            _rounds(case, large=large),
            *(_scores(side, case) for side in case.sides),
            _tools(case),
            _footer(case),
        ]
    )


def paragraphs(text: str) -> str:
    """A text as escaped paragraphs; line breaks stay."""
    parts = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n")]
    return "".join(f"<p>{escape(part)}</p>" for part in parts if part)


def _header(case: Case) -> str:
    query = f'<p class="lead"><b>Query</b> {escape(case.query)}</p>' if case.query else ""
    lead = f'<div class="lead">{paragraphs(case.lead)}</div>' if case.lead else ""
    sums = "".join(_sum(side, named=len(case.sides) > 1) for side in case.sides)
    return (
        f'<header class="hd"><div><h1>{escape(case.title)}</h1>{query}{lead}</div>'
        f"<div>{sums}</div></header>"
    )


def _sum(side: Side, *, named: bool) -> str:
    if not side.arithmetic and not side.formula:
        return ""
    name = f'<p class="who">{escape(side.agent)}</p>' if named else ""
    big = f'<div class="big">{escape(side.arithmetic)}</div>' if side.arithmetic else ""
    return f'<div class="eq">{name}{big}<p>{escape(side.formula)}</p></div>'


def _strips(case: Case) -> str:
    rows = [side for side in case.sides if side.strip]
    if not rows:
        return ""
    optimal = next((side.optimal for side in rows if side.optimal), None)
    most = max([len(side.strip) for side in rows] + [optimal or 0])
    found = []
    if optimal:
        boxes = "<i></i>" * optimal
        found.append(_strip(f"Needed, {optimal}", boxes, most, f"{optimal} rounds are needed"))
    for side in rows:
        label = f"{side.agent}, {len(side.strip)}" if len(rows) > 1 else f"Used, {len(side.strip)}"
        words = "; ".join(f"round {m.number} {_MARK_WORDS[m.kind]}" for m in side.strip)
        boxes = "".join(_box(mark) for mark in side.strip)
        found.append(_strip(label, boxes, most, words))
    longest = max(rows, key=lambda side: len(side.strip))
    axis = "".join(f"<i>{mark.number}</i>" for mark in longest.strip)
    found.append(
        f'<span></span><div class="tk ax" style="--n:{most}" aria-hidden="true">{axis}</div>'
    )
    kinds = [k for k in _MARK_WORDS if any(m.kind == k for s in rows for m in s.strip)]
    key = "".join(
        f'<span><i class="{kind}">{_MARK_SIGNS.get(kind, "")}</i>{_MARK_WORDS[kind]}</span>'
        for kind in kinds
    )
    return f'<section class="strip">{"".join(found)}</section><div class="key tkey">{key}</div>'


def _strip(label: str, boxes: str, most: int, words: str) -> str:
    return (
        f'<b>{escape(label)}</b><div class="tk" style="--n:{most}" role="img" '
        f'aria-label="{escape(words)}">{boxes}</div>'
    )


def _box(mark: Mark) -> str:
    shown = " shown" if mark.shown else ""
    title = f"Round {mark.number}: {_MARK_WORDS[mark.kind]}"
    return f'<i class="{mark.kind}{shown}" title="{title}">{_MARK_SIGNS.get(mark.kind, "")}</i>'


def _legend(case: Case) -> str:
    shown = [one for side in case.sides for one in side.rounds]
    reached = any(one.reached for one in shown)
    states = legend_states([one.picture for one in shown], reached=reached)
    words = "".join(f'<span><i class="s-{s}"></i>{_STATE_WORDS[s]}</span>' for s in states)
    lines = edge_legend([one.picture for one in shown])
    words += "".join(f'<span><i class="e-{kind}"></i>{said}</span>' for kind, said in lines)
    hint = '<span class="hint">Choose a node to see its call and what it reaches.</span>'
    return f'<div class="key">{words}{hint}</div>'


def _rounds(case: Case, *, large: bool) -> str:
    blocks = []
    for place, side in enumerate(case.sides):
        figures = "".join(
            _figure(one, side, f"s{place}r{one.number}", large=large) for one in side.rounds
        )
        name = f"<h2>{escape(side.agent)}</h2>" if len(case.sides) > 1 else ""
        blocks.append(f'<div>{name}<div class="pans">{figures}</div></div>')
    return f'<section class="sides">{"".join(blocks)}</section>'


def _figure(one: RoundView, side: Side, name: str, *, large: bool) -> str:
    origin = side.origin.node if side.origin and one.number >= side.origin.round else ""
    options = {"reached": one.reached, "origin": origin, "ink": _VARIABLES, "alone": False}
    small = compact(one.picture)
    tall = svg(small, prefix=f"{name}-", **options)  # type: ignore[arg-type]
    big = ""
    if large:
        full = svg(one.picture, prefix=f"{name}-l", **options)  # type: ignore[arg-type]
        width = round(one.picture["width"])
        big = (
            '<button class="more" type="button">Show tools and values</button>'
            f'<dialog><form method="dialog"><b>Round {one.number}</b> '
            f"{escape(one.caption)}<button>Close</button></form>"
            f'<div class="full" style="--w:{width}px">{full}<p class="pick" hidden></p></div>'
            "</dialog>"
        )
    raw = one.picture["raw"]
    wide = ' class="wide"' if small["width"] > _WIDE else ""
    return (
        f'<figure id="{name}"{wide}><figcaption><b>Round {one.number}</b>'
        f"<span>{escape(one.caption)}</span></figcaption>"
        f'<div class="plan" style="--w:{round(small["width"])}px">{tall}'
        '<p class="pick" hidden></p></div>'
        + (f'<pre class="raw">{escape(raw[:800])}</pre>' if raw else "")
        + big
        + paragraphs(one.note)
        + _calls(one)
        + (f"<blockquote>{escape(one.thought)}</blockquote>" if one.thought else "")
        + (f'<p class="chg">{escape(one.changes)}</p>' if one.changes else "")
        + "</figure>"
    )


def _calls(one: RoundView) -> str:
    if not one.observations:
        return ""
    words = {"ok": "gave", "error": "failed:", "timeout": "timed out:", "empty": "gave nothing"}
    rows = "".join(
        f"<li><b>{escape(call.node or '?')}</b> <code>{escape(call.tool)}({escape(call.arguments)})"
        f'</code> <em class="{call.state}">{words.get(call.state, "")}</em> '
        f"<code>{escape(call.result)}</code></li>"
        for call in one.observations
    )
    return f'<ul class="calls">{rows}</ul>'


def _scores(side: Side, case: Case) -> str:
    aside = _aside(side)
    if not side.scores and not aside:
        return ""
    name = f"<h2>{escape(side.agent)}</h2>" if len(case.sides) > 1 else ""
    groups = "".join(
        _group(group.id, group.name, group.code, side)
        for group in sde_rubric().groups
        if any(line.group == group.id for line in side.scores)
    )
    columns = len(side.means)
    many = f' many" style="--m:{150 + 65 * columns}px' if columns > _SCORERS_ABREAST else ""
    return (
        f'<section class="sc">{name}<div class="bt{many if groups else " lone"}">{groups}{aside}'
        f"</div>{_notes(side.scores)}</section>"
    )


def _group(group: str, name: str, code: str, side: Side) -> str:
    heads = list(side.means)
    cells = "".join(f"<th>{escape(who)}</th>" for who in _called(heads))
    rows = "".join(_line(line, heads) for line in side.scores if line.group == group)
    foot = "".join(f"<td>{_mean(side.means[who].get(code))}</td>" for who in heads)
    return (
        f'<table class="sg"><thead><tr><th colspan="2">{escape(name)}</th>{cells}</tr></thead>'
        f'<tbody>{rows}</tbody><tfoot><tr><th colspan="2">{code}, 0 to 100</th>{foot}</tr></tfoot>'
        "</table>"
    )


def _called(heads: Sequence[str]) -> list[str]:
    """Heads of the columns: a judge without its prompt where that names one alone."""
    short = ["People" if who == "people" else who.partition("@")[0] for who in heads]
    return [who if short.count(name) > 1 else name for who, name in zip(heads, short, strict=True)]


def _line(line: ScoreLine, heads: Sequence[str]) -> str:
    computed = line.gold if line.dimension in ("S5", "E5") else None
    values: dict[str, float | None] = dict.fromkeys(heads, computed)
    if "people" in values:
        values["people"] = line.gold
    values.update({name: value for name, value, _ in line.judges})
    differ = _differing(line)
    cells = "".join(
        f"<td>{differ if who == 'people' and differ else _dot(values[who])}</td>" for who in heads
    )
    return f"<tr><th>{line.dimension}</th><td>{escape(line.name)}</td>{cells}</tr>"


def _differing(line: ScoreLine) -> str:
    """What people gave where they differ and nobody decided, "" else."""
    if line.gold is not None:
        return ""
    given = sorted({value for _, value, _ in line.people if value is not None})
    words = " or ".join(f"{value:g}" for value in given)
    return f'<span class="none" title="people differ, not decided">{words}</span>' if given else ""


def _dot(value: float | None) -> str:
    if value is None:
        return '<span class="none">none</span>'
    dot = ""
    if value in (0.0, 0.5, 1.0):
        level = {0.0: "zero", 0.5: "half", 1.0: "one"}[value]
        dot = f'<i class="dot {level}"></i>'
    return f"{dot}<b>{value:g}</b>" if value in (0, 0.5, 1) else f"<b>{fixed(value, 2)}</b>"


def _mean(value: float | None) -> str:
    return "<b>–</b>" if value is None else f"<b>{fixed(value, 0)}</b>"


def origin_words(origin: Origin) -> list[tuple[str, str]]:
    """Where the error began and what it reached, as headings and texts."""
    found = [("Where the error began", f"Round {origin.round}, node {origin.node}: ")]
    found[0] = (found[0][0], found[0][1] + f"{origin.call} {origin.said}".removesuffix(".") + ".")
    if origin.cause:
        found.append(("Why", origin.cause))
    nodes = ", ".join(origin.reached[:24]) + (" and more" if len(origin.reached) > 24 else "")
    words = f"Node {origin.node} to {nodes}." if nodes else "No other node depends on it."
    found.append(("What the error reached", words))
    return found


def _aside(side: Side) -> str:
    if side.origin is None:
        return ""
    parts = "".join(
        f"<h3>{escape(head)}</h3><p>{escape(text)}</p>" for head, text in origin_words(side.origin)
    )
    return f'<div class="nt">{parts}</div>'


def note_rows(lines: Iterable[ScoreLine]) -> list[tuple[str, str, float | None, str]]:
    """Sub-dimension, who, score and note, of every score with a note; and where people differ."""
    found = []
    for line in lines:
        values = {value for _, value, _ in line.people if value is not None}
        for who, value, note in (*line.people, *line.judges):
            differ = len(values) > 1 and (who, value, note) in line.people
            if note or differ:
                found.append((line.dimension, who, value, note))
    return found


def _notes(lines: Sequence[ScoreLine]) -> str:
    rows = "".join(
        f"<tr><th>{dimension}</th><td>{escape(who)}</td>"
        f"<td>{'' if value is None else f'{value:g}'}</td><td>{escape(note)}</td></tr>"
        for dimension, who, value, note in note_rows(lines)
    )
    if not rows:
        return ""
    return (
        '<details class="notes"><summary>Notes on the scores</summary><table><tbody>'
        f"{rows}</tbody></table></details>"
    )


def _tools(case: Case) -> str:
    if not case.tools:
        return ""
    rows = "".join(
        f"<li><code>{escape(name)}</code> {escape(words)}</li>" for name, words in case.tools
    )
    return f'<section class="tools"><h3>Tools used</h3><ul>{rows}</ul></section>'


def _footer(case: Case) -> str:
    parts = [escape(". ".join(case.versions) + "." if case.versions else ""), escape(case.item)]
    return f'<footer class="colo"><span>{parts[0]}</span><span>{parts[1]}</span></footer>'
