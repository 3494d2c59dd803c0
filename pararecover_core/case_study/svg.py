"""A plan's picture as SVG: the same shapes, badges and marks as in the app, with text as text.

Colours are literal for a file that stands alone, or variables that a page defines.

Source: our design; what stands where comes from ``draw.picture``.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pararecover_core.draw import Picture, cut
from pararecover_core.plan import RESPONSE, ROOT

INK: dict[str, str] = {
    "surf": "#FFFFFF", "sunk": "#F0F3F6", "ink": "#18202B", "mute": "#525D6B",
    "line": "#D9DEE5", "edge": "#6B7685", "acc": "#0A5CA8", "acct": "#E5F0FA",
    "add": "#00694F", "addt": "#DFF3EB", "chg": "#86357A", "chgt": "#F8E9F5",
    "fail": "#AD3800", "failt": "#FDEBE0", "rem": "#5A6573", "done": "#E7EBF0",
}  # fmt: skip
"""Colours on paper, by role."""

LOOKS: dict[str, tuple[str, str, float, str]] = {
    "pending": ("surf", "edge", 1.25, ""),
    "done": ("done", "edge", 1.25, ""),
    "new": ("acct", "acc", 2.0, ""),
    "failed": ("failt", "fail", 2.25, ""),
    "added": ("addt", "add", 2.5, ""),
    "changed": ("chgt", "chg", 2.0, "7 2.5 1.5 2.5"),
    "removed": ("surf", "rem", 1.5, "3 3"),
    "ghost": ("none", "rem", 1.0, "2 3"),
    "missing": ("failt", "fail", 1.5, "2 3"),
}
"""Fill, line, width and dashes of each state of a node."""

EDGES: dict[str, tuple[str, float, str]] = {
    "": ("edge", 1.25, ""),
    "added": ("add", 2.5, ""),
    "removed": ("rem", 1.5, "3 3"),
    "broken": ("fail", 1.5, "2 3"),
    "cycle": ("fail", 2.0, "2 2"),
    "reached": ("fail", 2.0, "6 3"),
}
"""Line, width and dashes of each mark of an edge; "reached" lies on the way of a fault."""

INFERRED: dict[str, tuple[str, str]] = {"values": ("8 3", "dashed"), "order": ("1.5 3.5", "dotted")}
"""Dashes of an edge that was inferred, by its origin, and their name."""

FONT = "Arial, 'Liberation Sans', sans-serif"
_WIDE_FONT = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
_BADGE_FILL = {
    "failed": "fail", "added": "add", "changed": "chg", "removed": "rem", "new": "acc",
    "done": "edge",
}  # fmt: skip
_BADGE_LINES = {
    "failed": "M-2.6-2.6 2.6 2.6M2.6-2.6-2.6 2.6",
    "added": "M-3.2 0H3.2M0-3.2V3.2",
    "removed": "M-3.2 0H3.2",
    "changed": "M-4.2 1.2-1.6-1.6 1.6 1.6 4.2-1.2",
    "new": "M-3.2.2-1 2.5 3.2-2.1",
    "done": "M-3.2.2-1 2.5 3.2-2.1",
}
_NARROW, _BROAD = frozenset("iljtfrI.,;:'|!()[] "), frozenset("mwMWOQ%@")
_ILLEGAL = frozenset(range(32)) - {9, 10, 13} | {0xFFFE, 0xFFFF} | set(range(0xD800, 0xE000))


def escape(text: str) -> str:
    """Text for XML and HTML, in elements and attributes; what XML forbids becomes U+FFFD."""
    legal = "".join("\ufffd" if ord(c) in _ILLEGAL else c for c in text)
    return (
        legal.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", "&#39;")
    )


def wide(text: str) -> bool:
    """Whether a text has letters that a Latin font lacks, such as Chinese ones."""
    return any(unicodedata.east_asian_width(c) in "WF" for c in text)


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is in a sans font, in the unit of ``size``; never far too little."""
    units = 0.0
    for letter in text:
        if unicodedata.east_asian_width(letter) in "WF":
            units += 1.0
        elif letter in _NARROW:
            units += 0.31
        elif letter in _BROAD:
            units += 0.86
        else:
            units += 0.67 if letter.isupper() else 0.555
    return units * size * (1.06 if bold else 1.0)


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """A text cut with an ellipsis where it would not fit."""
    if text_width(text, size, bold=bold) <= room:
        return text
    kept = text
    while kept and text_width(f"{kept}…", size, bold=bold) > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def svg(
    picture: Picture,
    *,
    reached: Collection[str] = (),
    origin: str = "",
    ink: Mapping[str, str] = INK,
    alone: bool = True,
    label: str = "",
    prefix: str = "",
) -> str:
    """A picture as SVG.

    Args:
        picture: What ``draw.picture`` gave.
        reached: Ids of nodes that a fault reaches: hatched.
        origin: Id of the node where the fault began.
        ink: Colour of each role: a literal one, or ``var(--NAME)`` on a page that defines it.
        alone: Whether it is a file of its own: with a background and a font.
        label: Accessible name; the picture's own words by default.
        prefix: Starts the ids inside, so that several pictures share a page.

    Returns:
        One ``svg`` element; nodes carry ``data-id`` and ``data-tip``, edges ``data-from`` and
        ``data-to``.
    """
    width, height = max(picture["width"], 40.0), max(picture["height"], 30.0)
    marked = set(reached)
    parts = [_head(width, height, label or picture["alt"], ink, alone=alone, prefix=prefix)]
    parts += [_band(band, height, ink) for band in picture["bands"]]
    shown = {node["key"]: node for node in picture["nodes"]}
    parts += [
        _edge(edge, shown, marked | {origin}, marked, ink)
        for edge in picture["edges"]
        if edge["from"] in shown and edge["to"] in shown
    ]
    parts += [_node(node, node["id"] in marked, ink, prefix) for node in picture["nodes"]]
    if not shown:
        words = "No node of this plan could be read"
        parts.append(_text(8, 20, words, 12, ink["mute"]))
    return "".join([*parts, "</svg>"])


def _head(
    width: float, height: float, label: str, ink: Mapping[str, str], *, alone: bool, prefix: str
) -> str:
    role = "img" if alone else "group"  # on a page its nodes can be chosen one by one
    space = 'xmlns="http://www.w3.org/2000/svg" ' if alone else ""
    size = f'width="{width:g}" height="{height:g}" ' if alone else ""
    font = f' font-family="{FONT}"' if alone else ""
    ground = f'<rect width="100%" height="100%" fill="{ink["surf"]}"/>' if alone else ""
    hatch = (
        f'<defs><pattern id="{prefix}hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="6" height="6" {_fill(ink["surf"])}/>'
        f'<rect width="2.6" height="6" {_fill(ink["failt"])}/></pattern></defs>'
    )
    return (
        f'<svg {space}{size}viewBox="0 0 {width:g} {height:g}" role="{role}" '
        f'aria-label="{escape(label)}"{font}>{hatch}{ground}'
    )


def _fill(colour: str) -> str:
    return f'style="fill:{colour}"'


def _stroke(colour: str, width: float, dashes: str, fill: str = "none") -> str:
    dashed = f";stroke-dasharray:{dashes}" if dashes else ""
    return f'style="fill:{fill};stroke:{colour};stroke-width:{width:g}{dashed}"'


def _text(
    x: float, y: float, text: str, size: float, colour: str, *, bold: bool = False, anchor: str = ""
) -> str:
    font = f' font-family="{_WIDE_FONT}"' if wide(text) else ""
    weight = ' font-weight="700"' if bold else ""
    side = f' text-anchor="{anchor}"' if anchor else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size:g}"'
    return f"<text {place}{weight}{side}{font} {_fill(colour)}>{escape(text)}</text>"


def _band(band: Mapping[str, Any], height: float, ink: Mapping[str, str]) -> str:
    x0, x1 = band["x0"], band["x1"]
    return (
        f'<rect x="{x0:g}" y="0" width="{x1 - x0:g}" height="{height:g}" rx="5" '
        f"{_fill(ink['sunk'])}/>"
        + _text((x0 + x1) / 2, 13, band["caption"], 10.5, ink["mute"], anchor="middle")
    )


def path(
    edge: Mapping[str, Any], shown: Mapping[str, Mapping[str, Any]]
) -> list[tuple[tuple[float, float], ...]]:
    """The curve of an edge: a start, then cubic pieces (two handles and an end)."""
    start, end = shown[edge["from"]], shown[edge["to"]]
    if edge["mark"] == "cycle":
        return _loop(start, end)
    x, y = start["x"] + start["w"] / 2, start["y"]
    pieces: list[tuple[tuple[float, float], ...]] = [((x, y),)]
    stops = [(point["x"], point["y"]) for point in edge["via"]]
    for px, py in [*stops, (end["x"] - end["w"] / 2 - 1, end["y"])]:
        bend = (px - x) / 2
        pieces.append(((x + bend, y), (px - bend, py), (px, py)))
        x, y = px, py
    return pieces


def _loop(
    start: Mapping[str, Any], end: Mapping[str, Any]
) -> list[tuple[tuple[float, float], ...]]:
    x0, y0 = start["x"], start["y"] - start["h"] / 2
    x1, y1 = end["x"] + (8 if start is end else 0), end["y"] - end["h"] / 2 - 1
    top = min(y0, y1) - 26
    return [((x0, y0),), ((x0, top), (x1, top), (x1, y1))]


def edge_look(edge: Mapping[str, Any], *, hit: bool) -> tuple[str, float, str]:
    """Line, width and dashes of an edge; ``hit`` says that it lies on the way of a fault."""
    colour, width, dashes = EDGES.get("reached" if hit else edge["mark"], EDGES[""])
    origin = edge.get("origin", "")
    if not hit and edge["mark"] in ("", "added") and origin in INFERRED:
        dashes, width = INFERRED[origin][0], 1.0 if origin == "order" else width
    return colour, width, dashes


def edge_legend(pictures: Sequence[Picture]) -> list[tuple[str, str]]:
    """Origin of edges and what it means, where pictures show inferred ones."""
    return list(dict.fromkeys((kind, words) for one in pictures for kind, words in one["legend"]))


def edge_words(pictures: Sequence[Picture]) -> str:
    """The same in a sentence, "" where no edge is inferred."""
    lines = [
        f"{INFERRED[kind][1] if kind in INFERRED else 'solid'} {words}"
        for kind, words in edge_legend(pictures)
    ]
    return f"Edges: {', '.join(lines)}." if lines else ""


def _edge(
    edge: Mapping[str, Any],
    shown: Mapping[str, Mapping[str, Any]],
    sources: Collection[str],
    reached: Collection[str],
    ink: Mapping[str, str],
) -> str:
    ids = shown[edge["from"]]["id"], shown[edge["to"]]["id"]
    hit = ids[0] in sources and ids[1] in reached and edge["mark"] != "added"
    colour, width, dashes = edge_look(edge, hit=hit)
    pieces = path(edge, shown)
    curve = "M{:g} {:g}".format(*pieces[0][0]) + "".join(
        "C" + " ".join(f"{x:g} {y:g}" for x, y in piece) for piece in pieces[1:]
    )
    x, y = pieces[-1][-1]
    down = edge["mark"] == "cycle"
    tip = (
        f"M{x - 3.5:g} {y - 6:g}h7L{x:g} {y:g}z"
        if down
        else f"M{x - 6:g} {y - 3.5:g}v7L{x:g} {y:g}z"
    )
    return (
        f'<g class="e" data-from="{escape(edge["from"])}" data-to="{escape(edge["to"])}">'
        f'<path d="{curve}" {_stroke(ink[colour], width, dashes)}/>'
        f'<path d="{tip}" {_fill(ink[colour])}/></g>'
    )


def outline(node: Mapping[str, Any]) -> str:
    """The outline of a node as an SVG element without its closing, ready for a style."""
    x, y, w, h = node["x"] - node["w"] / 2, node["y"] - node["h"] / 2, node["w"], node["h"]
    if node["shape"] == "octagon":
        c = 8 if node.get("small") else 9
        return (
            f'<path d="M{x + c:g} {y:g}H{x + w - c:g}L{x + w:g} {y + c:g}V{y + h - c:g}'
            f'L{x + w - c:g} {y + h:g}H{x + c:g}L{x:g} {y + h - c:g}V{y + c:g}z"'
        )
    radius = h / 2 if node["shape"] == "pill" else 5
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius:g}"'


def _node(node: Mapping[str, Any], hit: bool, ink: Mapping[str, str], prefix: str) -> str:
    fill, line, width, dashes = LOOKS.get(node["state"], LOOKS["pending"])
    body = "none" if fill == "none" else ink[fill]
    if hit:
        body = f"url(#{prefix}hatch)"
        line, width = ("fail", max(width, 1.75)) if not dashes else (line, width)
    faint = ' opacity="0.72"' if node["state"] == "ghost" and not hit else ""
    parts = [
        f'<g class="n" data-key="{escape(node["key"])}" data-id="{escape(node["id"])}" '
        f'data-tip="{escape(node["tip"])}" tabindex="0" role="button" '
        f'aria-label="{escape(node["say"])}"{faint}><title>{escape(node["tip"])}</title>'
    ]
    if node["kind"] == "fold":
        behind = {**node, "x": node["x"] + 3, "y": node["y"] - 3}
        parts.append(f"{outline(behind)} {_stroke(ink[line], 1, '')}/>")
    parts.append(f'{outline(node)} class="sh" {_stroke(ink[line], width, dashes, body)}/>')
    parts += [*_words(node, ink), *_badges(node, ink), "</g>"]
    return "".join(parts)


def _words(node: Mapping[str, Any], ink: Mapping[str, str]) -> list[str]:
    x, y, w = node["x"], node["y"], node["w"]
    dim = {"ghost": "rem", "removed": "rem", "missing": "fail"}.get(node["state"])
    colour = ink[dim or "ink"]
    if node["shape"] == "pill" or node.get("small"):
        title = fitted(node["title"], 12, w - 4 if node.get("small") else w - 8)
        bold = bool(node.get("small")) and node["id"] != RESPONSE
        return [_text(x, y + 4, title, 12, colour, bold=bold, anchor="middle")]
    left, first = x - w / 2 + 8, y - 2 if node["sub"] else y + 4
    label = fitted(node["label"], 12, w - 20, bold=True)
    used = text_width(f"{label} ", 12, bold=True) if label else 0.0
    parts = [_text(left, first, label, 12, colour, bold=True)] if label else []
    title = fitted(node["title"], 12, w - 13 - used)
    parts.append(_text(left + used, first, title, 12, colour, bold=node["kind"] == "fold"))
    if node["state"] == "removed":
        long = used + text_width(title, 12)
        parts.append(f'<path d="M{left:g} {first - 4:g}h{long:g}" {_stroke(ink["rem"], 1.2, "")}/>')
    if node["sub"]:
        sub = fitted(node["sub"], 10.5, w - 13)
        parts.append(_text(left, y + 12, sub, 10.5, ink[dim or "mute"]))
    return parts


def _badges(node: Mapping[str, Any], ink: Mapping[str, str]) -> list[str]:
    drawn = []
    shown = [kind for kind in node["badges"][:3] if kind != "done" or not node.get("small")]
    for back, kind in enumerate(shown[:1] if node.get("small") else shown):
        x, y = node["x"] + node["w"] / 2 - 4 - back * 18, node["y"] - node["h"] / 2
        style = f'style="fill:{ink[_BADGE_FILL[kind]]};stroke:{ink["surf"]};stroke-width:1.5"'
        shape = {
            "failed": f'<path d="M-3.2-7.5H3.2L7.5-3.2V3.2L3.2 7.5H-3.2L-7.5 3.2V-3.2z" {style}/>',
            "added": f'<rect x="-7.5" y="-7.5" width="15" height="15" rx="2" {style}/>',
            "changed": f'<path d="M0-9 9 0 0 9-9 0z" {style}/>',
        }.get(kind, f'<circle r="7.5" {style}/>')
        sign = (
            f'<path d="{_BADGE_LINES[kind]}" style="fill:none;stroke:{ink["surf"]};'
            'stroke-width:1.8;stroke-linecap:round"/>'
        )
        drawn.append(f'<g transform="translate({x:g} {y:g})">{shape}{sign}</g>')
    return drawn


_SMALL, _SMALL_GAP, _SMALL_ROW = 27.0, 17.0, 36.0 / 52.0


def compact(picture: Picture) -> Picture:
    """The same picture with nodes that show their ids alone: four of them fit beside each other."""
    titles = {node["key"]: _small_title(node) for node in picture["nodes"]}
    wide_as = {key: max(_SMALL, text_width(t, 12, bold=True) + 8) for key, t in titles.items()}
    widest: dict[int, float] = {}
    for node in picture["nodes"]:
        widest[node["layer"]] = max(widest.get(node["layer"], 0.0), wide_as[node["key"]])
    centre: dict[int, float] = {}
    left = 10.0
    for layer in range(len(picture["columns"])):
        centre[layer] = left + widest.get(layer, 0.0) / 2
        left += widest.get(layer, 0.0) + _SMALL_GAP
    nodes = [
        {
            **node,
            "x": centre[node["layer"]],
            "y": _small_y(node["y"]),
            "w": wide_as[node["key"]],
            "h": _SMALL,
            "shape": _small_shape(node),
            "title": titles[node["key"]],
            "small": True,
        }
        for node in picture["nodes"]
    ]
    edges = [
        {**edge, "via": [{"x": centre[at["layer"]], "y": _small_y(at["y"])} for at in edge["via"]]}
        for edge in picture["edges"]
    ]
    bands = [
        {
            **band,
            "x0": centre[band["layers"][0]] - widest.get(band["layers"][0], 0.0) / 2 - 6,
            "x1": centre[band["layers"][1]] + widest.get(band["layers"][1], 0.0) / 2 + 6,
        }
        for band in picture["bands"]
    ]
    size = {"width": left - _SMALL_GAP + 12, "height": _small_y(picture["height"]) + 6}
    return {**picture, "nodes": nodes, "edges": edges, "bands": bands, **size}


def _small_title(node: Mapping[str, Any]) -> str:
    if node["kind"] == "fold":
        return f"{len(node['ids'])} done"
    known = {ROOT: "", RESPONSE: "resp"}
    return known[node["id"]] if node["id"] in known else cut(node["id"], 9)


def _small_shape(node: Mapping[str, Any]) -> str:
    shape = {"failed": "octagon", "added": "box", "changed": "box"}.get(node["state"], "pill")
    return "pill" if node["id"] in (ROOT, RESPONSE) or node["kind"] == "fold" else shape


def _small_y(y: float) -> float:
    return 30 + (y - 49) * _SMALL_ROW + 5


def legend_states(pictures: Sequence[Picture], *, reached: bool) -> tuple[str, ...]:
    """The states that pictures show and a legend must explain, in a fixed order."""
    found = {
        badge if badge in _BADGE_FILL else node["state"]
        for picture in pictures
        for node in picture["nodes"]
        for badge in (*node["badges"], node["state"])
    }
    order = ("new", "failed", "added", "changed", "removed", "ghost", "missing")
    shown = tuple(state for state in order if state in found)
    return (*shown, "reached") if reached else shown
