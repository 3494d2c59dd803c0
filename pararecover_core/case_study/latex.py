r"""A case study as LaTeX: figures in TikZ, scores in a booktabs table; text is never a command.

Needs ``tikz`` and ``booktabs``; other scripts need XeLaTeX or LuaLaTeX.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pararecover_core.case_study.html import note_rows, origin_words
from pararecover_core.case_study.markdown import figure_text, score_table
from pararecover_core.case_study.model import Case, RoundView, Side
from pararecover_core.case_study.svg import INK, LOOKS, compact, edge_look, edge_words, path
from pararecover_core.draw import Picture
from pararecover_core.latex import NEEDS, definitions, tex

_POINT = 0.024
"""Centimetres of a pixel."""


def _paragraphs(text: str) -> str:
    parts = [tex(part) for part in text.replace("\r\n", "\n").split("\n\n")]
    return "\n\n".join(part for part in parts if part)


def latex(case: Case) -> str:
    r"""A ``figure*`` to put into a paper with ``\input``, the scores in a table after it."""
    body = [r"\begin{figure*}", r"\centering"]
    for side in case.sides:
        if len(case.sides) > 1:
            body.append(rf"\textbf{{{tex(side.agent)}}}\par\smallskip")
        body += [_minipage(one, side, len(side.rounds)) for one in side.rounds]
        body.append(r"\par\medskip")
    body += [rf"\caption{{{_caption(case)}}}", r"\label{fig:case-study}", r"\end{figure*}"]
    for side in case.sides:
        body += _scores(side, named=len(case.sides) > 1)
    source = "\n".join(body) + "\n"
    return "\n".join(
        [rf"{NEEDS} \usepackage{{tikz,booktabs}}", *definitions(source), *_COLOURS, source]
    )


_COLOURS = [rf"\definecolor{{pr{name}}}{{HTML}}{{{colour[1:]}}}" for name, colour in INK.items()]


def _caption(case: Case) -> str:
    parts = [rf"\textbf{{{tex(case.title)}.}}"]
    if case.query:
        parts.append(f"Query: {tex(case.query)}")
    if case.lead:
        parts.append(tex(case.lead))
    for side in case.sides:
        name = f"{tex(side.agent)}: " if len(case.sides) > 1 else ""
        if side.arithmetic:
            parts.append(f"{name}E5: {tex(side.arithmetic)}.")
        if side.origin:
            words = " ".join(f"{head}: {text}" for head, text in origin_words(side.origin))
            parts.append(tex(words))
    parts.append(edge_words([one.picture for side in case.sides for one in side.rounds]))
    foot = ". ".join(one for one in (*case.versions, case.item) if one)
    parts.append(f"{tex(foot)}." if foot else "")
    return " ".join(part for part in parts if part)


def _minipage(one: RoundView, side: Side, count: int) -> str:
    origin = side.origin.node if side.origin and one.number >= side.origin.round else ""
    share = {1: 0.95, 2: 0.48, 3: 0.32}.get(count, 0.24)
    small = compact(one.picture)
    width = 0.48 if small["width"] > 400 and share < 0.48 else share
    parts = [
        rf"\begin{{minipage}}[t]{{{width}\textwidth}}\small\raggedright",
        rf"\textbf{{Round {one.number}.}} {tex(one.caption)}\par\smallskip",
        rf"\resizebox{{{_scale(small)}\linewidth}}{{!}}{{%",
        tikz(small, reached=one.reached, origin=origin) + "}",
    ]
    if one.note:
        parts.append(r"\par\smallskip " + _paragraphs(one.note))
    if one.thought:
        parts.append(rf"\par\smallskip\emph{{{tex(one.thought)}}}")
    return "\n".join([*parts, r"\end{minipage}\hfill"])


def _scale(picture: Picture) -> str:
    return f"{min(1.0, max(0.35, picture['width'] / 330)):.2f}"


def tikz(picture: Picture, *, reached: Collection[str] = (), origin: str = "") -> str:
    """A picture as a ``tikzpicture``; colours are those that the preamble defines."""
    lines = [r"\begin{tikzpicture}[x=0.024cm,y=-0.024cm]"]
    shown = {node["key"]: node for node in picture["nodes"]}
    lines += [
        rf"\fill[prsunk,rounded corners=1pt] ({b['x0']:.1f},0) rectangle "
        rf"({b['x1']:.1f},{picture['height']:.1f});"
        rf"\node[prmute,font=\tiny] at ({(b['x0'] + b['x1']) / 2:.1f},8) {{{tex(b['caption'])}}};"
        for b in picture["bands"]
    ]
    for edge in picture["edges"]:
        if edge["from"] in shown and edge["to"] in shown:
            lines.append(_edge(edge, shown, set(reached), origin))
    lines += [_node(node, node["id"] in reached) for node in picture["nodes"]]
    return "\n".join([*lines, r"\end{tikzpicture}"])


def _edge(
    edge: Mapping[str, Any],
    shown: Mapping[str, Mapping[str, Any]],
    reached: Collection[str],
    origin: str,
) -> str:
    ids = shown[edge["from"]]["id"], shown[edge["to"]]["id"]
    hit = ids[0] in {*reached, origin} and ids[1] in reached and edge["mark"] != "added"
    colour, width, dashes = edge_look(edge, hit=hit)
    pieces = path(edge, shown)
    curve = _at(pieces[0][0]) + "".join(
        f" .. controls {_at(piece[0])} and {_at(piece[1])} .. {_at(piece[2])}"
        for piece in pieces[1:]
    )
    return rf"\draw[pr{colour},line width={width * 0.6:.2f}pt,->{_dashed(dashes)}] {curve};"


def _at(point: tuple[float, float]) -> str:
    return f"({point[0]:.1f},{point[1]:.1f})"


def _dashed(dashes: str) -> str:
    if not dashes:
        return ""
    steps = [float(step) * 0.5 for step in dashes.split()]
    words = " ".join(f"{'on' if i % 2 == 0 else 'off'} {step:g}pt" for i, step in enumerate(steps))
    return f",dash pattern={words}"


def _node(node: Mapping[str, Any], hit: bool) -> str:
    fill, line, width, dashes = LOOKS.get(node["state"], LOOKS["pending"])
    body = "prfailt" if hit else "none" if fill == "none" else f"pr{fill}"
    colour = "fail" if hit and not dashes else line
    x, y, w, h = node["x"], node["y"], node["w"], node["h"]
    style = f"draw=pr{colour},fill={body},line width={width * 0.6:.2f}pt{_dashed(dashes)}"
    if node["shape"] == "octagon":
        c, left, top = 8, x - w / 2, y - h / 2
        points = [
            *((left + c, top), (left + w - c, top), (left + w, top + c), (left + w, top + h - c)),
            *((left + w - c, top + h), (left + c, top + h), (left, top + h - c), (left, top + c)),
        ]
        shape = rf"\filldraw[{style}] {' -- '.join(map(_at, points))} -- cycle;"
    else:
        round_ = (h / 2 if node["shape"] == "pill" else 5) * _POINT
        corners = _at((x - w / 2, y - h / 2)) + " rectangle " + _at((x + w / 2, y + h / 2))
        shape = rf"\filldraw[{style},rounded corners={round_:.3f}cm] {corners};"
    bold = r"\bfseries" if node["id"] != "response" else ""
    words = rf"\node[font=\scriptsize{bold},prink] at {_at((x, y))} {{{tex(node['title'])}}};"
    return shape + words + "".join(_badge(kind, x + w / 2, y - h / 2) for kind in _signs(node))


def _signs(node: Mapping[str, Any]) -> list[str]:
    return [kind for kind in node["badges"] if kind in _SIGNS][:1]


_SIGNS = {
    "failed": ("fail", r"$\times$"), "added": ("add", "$+$"), "changed": ("chg", r"$\sim$"),
    "removed": ("rem", "$-$"), "new": ("acc", r"$\checkmark$"),
}  # fmt: skip


def _badge(kind: str, x: float, y: float) -> str:
    colour, sign = _SIGNS[kind]
    if kind == "new":  # a tick needs no symbol font
        place = f"({x - 3:.1f},{y:.1f}) -- ({x - 1:.1f},{y + 3:.1f}) -- ({x + 4:.1f},{y - 3:.1f})"
        return (
            rf"\fill[pr{colour}] {_at((x, y))} circle[radius=0.17cm];"
            rf"\draw[white,line width=0.7pt] {place};"
        )
    return (
        rf"\fill[pr{colour}] {_at((x, y))} circle[radius=0.17cm];"
        rf"\node[white,font=\tiny\bfseries,inner sep=0pt] at {_at((x, y))} {{{sign}}};"
    )


def _scores(side: Side, *, named: bool) -> list[str]:
    if not side.scores:
        return []
    heads, rows = score_table(side)
    lines = [" & ".join(map(tex, row)) + r" \\" for row in rows]
    title = f"Scores of {side.agent}" if named else "Scores"
    found = [
        "", r"\begin{table}", r"\centering\small",
        rf"\begin{{tabular}}{{ll{'r' * (len(heads) - 2)}}}", r"\toprule",
        " & ".join(map(tex, heads)) + r" \\", r"\midrule", *lines[:-3], r"\midrule", *lines[-3:],
        r"\bottomrule", r"\end{tabular}", rf"\caption{{{tex(title)}}}", r"\end{table}",
    ]  # fmt: skip
    notes = note_rows(side.scores)
    if notes:
        found += ["", r"\begin{itemize}"]
        found += [
            rf"\item[{tex(d)}] {tex(who)} {figure_text(value)}: {tex(note)}"
            for d, who, value, note in notes
        ]
        found.append(r"\end{itemize}")
    return found
