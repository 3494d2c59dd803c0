"""A case study as Markdown, with pictures beside it; what records say is never markup."""

import re
from collections.abc import Callable, Sequence

from pararecover_core.case_study.html import note_rows, origin_words
from pararecover_core.case_study.model import Case, RoundView, Side
from pararecover_core.case_study.svg import edge_words
from pararecover_core.figures import fixed

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~$&@]|:(?=//))")
_LEADING = re.compile(r"^(\d*)([-+=.)])(?=\s|$|[-=])")

PictureName = Callable[[int, int], str]
"""Name of the picture of a side (from 0) and a round number."""


def plain(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    flat = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return _LEADING.sub(r"\1\\\2", flat)


def _block(text: str) -> str:
    """A text of an author: paragraphs stay, nothing in it is markup."""
    parts = [plain(part) for part in text.replace("\r\n", "\n").split("\n\n")]
    return "\n\n".join(part for part in parts if part)


def _code(text: str) -> str:
    """A text as inline code, whatever backticks it holds."""
    flat = " ".join(text.split())
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _cell(text: str) -> str:
    return plain(text)


def markdown(case: Case, name: PictureName) -> str:
    """The text of a case study.

    Args:
        case: What to tell.
        name: Name of the picture file of each side and round.

    Returns:
        GitHub-flavoured Markdown.
    """
    parts = [f"# {plain(case.title)}"]
    if case.query:
        parts.append(f"**Query** {plain(case.query)}")
    if case.lead:
        parts.append(_block(case.lead))
    for place, side in enumerate(case.sides):
        parts += _side(case, side, place, name)
    edges = edge_words([one.picture for side in case.sides for one in side.rounds])
    if edges:
        parts.append(edges)
    if case.tools:
        tools = "\n".join(f"- {_code(tool)} {plain(words)}" for tool, words in case.tools)
        parts.append(f"## Tools used\n\n{tools}")
    foot = [plain(one) for one in (*case.versions, case.item) if one]
    if foot:
        parts.append("---\n\n" + ". ".join(foot) + ".")
    return "\n\n".join(parts) + "\n"


def _side(case: Case, side: Side, place: int, name: PictureName) -> list[str]:
    parts = [f"## {plain(side.agent)}"] if len(case.sides) > 1 else []
    if side.arithmetic:
        parts.append(f"**{plain(side.arithmetic)}** {plain(side.formula)}")
    elif side.formula:
        parts.append(plain(side.formula))
    if side.strip:
        words = ", ".join(f"{mark.number} {mark.kind}" for mark in side.strip)
        parts.append(f"Rounds: {words}")
    parts += [_round(one, name(place, one.number)) for one in side.rounds]
    if side.origin:
        parts += [f"**{head}** {plain(text)}" for head, text in origin_words(side.origin)]
    if side.scores:
        parts += [_scores(side), *_notes(side)]
    return parts


def _round(one: RoundView, picture: str) -> str:
    parts = [f"### Round {one.number}: {plain(one.caption)}"]
    parts.append(f"![{plain(one.picture['alt'])}]({picture})")
    if one.note:
        parts.append(_block(one.note))
    if one.observations:
        parts.append(
            "\n".join(
                f"- node {plain(call.node) or '?'}: {_code(f'{call.tool}({call.arguments})')} "
                f"{call.state} {_code(call.result) if call.result.strip() else ''}".rstrip()
                for call in one.observations
            )
        )
    if one.thought:
        parts.append(f"> {plain(one.thought)}")
    if one.changes:
        parts.append(plain(one.changes))
    return "\n\n".join(parts)


def figure_text(value: float | None) -> str:
    """A score as text, "" for none."""
    if value is None:
        return ""
    return f"{value:g}" if value in (0.0, 0.5, 1.0) else fixed(value, 2)


def score_table(side: Side) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the scores: sub-dimensions, then SI, DR and ES."""
    heads = list(side.means)
    rows = []
    for line in side.scores:
        values = dict.fromkeys(heads, line.gold if line.dimension in ("S5", "E5") else None)
        values |= {who: value for who, value, _ in line.judges}
        if "people" in values:
            values["people"] = line.gold
        rows.append([line.dimension, line.name, *(figure_text(values[who]) for who in heads)])
    for code in ("SI", "DR", "ES"):
        means = [side.means[who].get(code) for who in heads]
        rows.append([code, "0 to 100", *("" if m is None else fixed(m, 0) for m in means)])
    return ["", "Sub-dimension", *("People" if who == "people" else who for who in heads)], rows


def _scores(side: Side) -> str:
    heads, rows = score_table(side)
    return table(heads, rows, left=2)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A Markdown table; the first ``left`` columns are text, the others figures."""
    marks = ["---"] * left + ["---:"] * (len(heads) - left)
    lines = [[_cell(head) for head in heads], marks, *([_cell(c) for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _notes(side: Side) -> list[str]:
    rows = note_rows(side.scores)
    if not rows:
        return []
    made = [[dimension, who, figure_text(v), note] for dimension, who, v, note in rows]
    return ["**Notes on the scores**", table(["", "Who", "Score", "Note"], made, left=4)]
