"""Where a thought names nodes and tools of the plan, so that a page can mark them.

A bare number is marked only where the text says that it is a node: after a word such as "node" or
"节点", in a list that such a word opens, in an arrow chain, or in backticks. A tool whose name is
a plain word ("compare") is marked only where it is written as a name.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

MAX_SEGMENTS = 4_000
"""Marks beyond this many are left as plain text."""

_WORD = (
    r"(?:nodes?|tasks?|steps?|sub-?tasks?|dependenc(?:y|ies)(?: on)?|depends? on|"
    r"节点|任务|步骤|依赖于?)"
)
_ID = r"(?>[A-Za-z0-9]+(?:[._\-][A-Za-z0-9]+)*)"
_QUOTE = "[\"'`“”‘’「」]?"
_OPENER = re.compile(
    rf"(?<![A-Za-z]){_WORD}[\s_]*+(?:ids?[\s:]*+)?[#:：(（\[]?\s*+{_QUOTE}(?P<id>{_ID})", re.I
)
_MORE = re.compile(
    rf"{_QUOTE}\s*+(?:,|、|，|/|&|\+|->|→|⇒|-(?=\s*\d)|"
    r"(?:,\s*)?\b(?:and|or|to|through|then)\b|和|与|及|或|到|至)\s*+"
    rf"(?:(?:and|or)\s+)?(?:{_WORD}\s*+)?{_QUOTE}(?P<id>{_ID})",
    re.I,
)
_CHAIN = re.compile(rf"(?<![\w.\-]){_ID}(?:\s*+(?:->|→|⇒|-->)\s*+{_ID})+")
_BEFORE_NODE = re.compile(
    rf"{_QUOTE}(?<![\w.\-])(?P<id>{_ID}){_QUOTE}\s++(?:nodes?|tasks?)\b", re.I
)
_TICKED = re.compile(r"`([^`\n]{1,200})`")
_ASSIGNED = re.compile(
    r"(?<![\w.])[A-Za-z_]\w{0,40}\s?=\s?(?:\"[^\"\n]{0,120}\"|'[^'\n]{0,120}'|[\w$][\w.$\-]{0,60})"
)
_TOKEN = re.compile(r"[A-Za-z_$][\w]*(?:[.\-][\w]+)*|[0-9]+(?:\.[0-9]+)*[A-Za-z_]\w*")
_DOTTED = re.compile(
    r"(?<![\w.$€£¥=<>~\-])\d+(?:\.\d+)+(?![\w.]*\w)"
    r"(?!\s?(?:%|°|€|h|km|kg|m|cm|mm|s|ms|GB|MB|EUR|USD)(?!\w))"
)
_NAMED = re.compile(r"[_A-Z0-9]")
_ORDINARY = frozenset({"root", "response", "a", "i", "the", "and", "or", "to", "no"})


class Segment(NamedTuple):
    """A stretch of text.

    Attributes:
        text: As written.
        kind: "" for plain text, "node", "tool" or "code".
        target: The node id or tool name that is meant, "" for plain text and code.
    """

    text: str
    kind: str = ""
    target: str = ""


class _Span(NamedTuple):
    start: int
    end: int
    kind: str
    target: str = ""


def segments(text: str, *, nodes: Collection[str], tools: Collection[str]) -> list[Segment]:
    """Cut a text at the nodes and tools that it names.

    Args:
        text: Any text.
        nodes: N node ids of the plans at hand.
        tools: N tool names, listed or called.

    Returns:
        Segments in order; joined, they are the text.
    """
    ids, names = set(nodes) - {""}, set(tools) - {""}
    spans = [*_node_spans(text, ids), *_word_spans(text, ids, names), *_code_spans(text)]
    return _joined(text, _disjoint(spans))


def _node_spans(text: str, ids: set[str]) -> list[_Span]:
    spans: list[_Span] = []
    for match in _OPENER.finditer(text):
        if spans and match.start() < spans[-1].end:
            continue  # the list that an earlier word opened holds it
        found = _known(match["id"], match.start("id"), ids)
        while found:
            spans.append(found)
            following = _MORE.match(text, found.end)
            found = following and _known(following["id"], following.start("id"), ids)
    for match in _CHAIN.finditer(text):
        parts = list(re.finditer(_ID, match[0]))
        if all(part[0] in ids for part in parts):
            spans += [
                _Span(match.start() + p.start(), match.start() + p.end(), "node", p[0])
                for p in parts
            ]
    for match in _BEFORE_NODE.finditer(text):
        if match["id"] in ids and not match["id"].isdigit():
            spans.append(_Span(match.start("id"), match.end("id"), "node", match["id"]))
    return spans


def _known(found: str, start: int, ids: set[str]) -> _Span | None:
    """The longest beginning of ``found`` that is an id: "3-5" may mean 3, "6A" is 6A."""
    ends = [len(found), *(m.start() for m in re.finditer(r"[._\-]", found))]
    for end in sorted(ends, reverse=True):
        head = found[:end]
        if head in ids and (head.lower() not in _ORDINARY or head in ("root", "response")):
            return _Span(start, start + end, "node", head)
    return None


def _word_spans(text: str, ids: set[str], tools: set[str]) -> list[_Span]:
    spans = []
    for match in _TOKEN.finditer(text):
        word, start, end = match[0], match.start(), match.end()
        if word in tools and _is_named(text, word, start, end):
            spans.append(_Span(start, end, "tool", word))
        elif word in ids and _NAMED.search(word) and re.search("[A-Za-z]", word) and len(word) > 1:
            spans.append(_Span(start, end, "node", word))
        elif (head := re.match(r"(?:task|node|step)_?([A-Za-z0-9]+?)(?=_|$)", word, re.I)) and (
            head[1] in ids
        ):
            spans.append(_Span(start, start + head.end(), "node", head[1]))
    for match in _DOTTED.finditer(text):
        if match[0] in ids:
            spans.append(_Span(match.start(), match.end(), "node", match[0]))
    for name in (name for name in tools if not name.isascii()):
        spans += [
            _Span(m.start(), m.end(), "tool", name) for m in re.finditer(re.escape(name), text)
        ]
    for match in _TICKED.finditer(text):
        inside = match[1].strip()
        if inside in ids or inside in tools:
            kind = "node" if inside in ids else "tool"
            at = match.start(1) + match[1].index(inside)
            spans.append(_Span(at, at + len(inside), kind, inside))
    return spans


def _is_named(text: str, word: str, start: int, end: int) -> bool:
    """Whether a tool name is more than a plain word here."""
    if _NAMED.search(word) or "." in word or "-" in word:
        return True
    before, after = text[max(0, start - 6) : start], text[end : end + 6]
    return (
        after.startswith("(")
        or before.endswith(("`", '"', "'", "“"))
        or bool(re.match(r"\s+(?:tool|call)", after))
        or bool(re.search(r"(?:tool|call|工具)\s$", before))
    )


def _code_spans(text: str) -> list[_Span]:
    found = [*_TICKED.finditer(text), *_ASSIGNED.finditer(text)]
    return [_Span(match.start(), match.end(), "code") for match in found]


def _disjoint(spans: list[_Span]) -> list[_Span]:
    """Spans that do not overlap; a node goes before a tool, a tool before code."""
    rank = {"node": 0, "tool": 1, "code": 2}
    taken: list[_Span] = []
    occupied: set[int] = set()
    for span in sorted(spans, key=lambda s: (rank[s.kind], s.start, -s.end)):
        if not occupied.intersection(range(span.start, span.end)):
            occupied.update(range(span.start, span.end))
            taken.append(span)
    return sorted(taken)[:MAX_SEGMENTS]


def _joined(text: str, spans: list[_Span]) -> list[Segment]:
    parts, at = [], 0
    for span in spans:
        if span.start > at:
            parts.append(Segment(text[at : span.start]))
        parts.append(Segment(text[span.start : span.end], span.kind, span.target))
        at = span.end
    if at < len(text):
        parts.append(Segment(text[at:]))
    return parts
