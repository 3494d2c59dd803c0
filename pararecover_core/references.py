"""Every convention by which a value refers to another node's output, and placeholders.

The sandbox writes ``"$ID"`` or ``"$ID.field"``. Published plans write ``task3_output``,
``output of task 3``, ``task3中输出的…``, ``3的结果``, ``output of getMeasurementTool``, ``@2``, a
bare id and more; some values name no node at all ("To be filled after user provides").

Source: the dialects of the published files; design section 6.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pararecover_core.plan import ROOT, Plan

_LONG = 120
"""A text longer than this is prose: "step 3" in it may be a step of the prose itself."""
_MAX_VALUES = 2_000

_ID = r"\d+(?:[.\-_]\d+)*[a-zA-Z]?(?:_?(?:retry|fix|fixed|new|v2)(?:_\d+)?)?"
_NUMBERED = rf"(?:tasks?|nodes?|steps?|任务|节点|步骤|第)(?:\s?ids?)?[\s_#:\-]{{0,2}}(?P<id>{_ID})"
_MORE = re.compile(rf"\s*(?:,|，|、|;|&|and|or|to|与|和|及|或|,\s*and)\s*(?P<id>{_ID})(?![\w.])")
_SIGNED = re.compile(r"(?<![\w$@])(?:\$\{?|@|\{\{\s*)(?P<id>[A-Za-z0-9_\-]+)")
_FIELD = re.compile(r"^\$\w+\.[A-Za-z_]\w*$")
_ANGLED = re.compile(r"<(?:[A-Za-z]+[ _\-])?(?P<id>[A-Za-z0-9_]+)(?:\.[\w.]+)?>")
_GENERATED = re.compile(r"<[A-Z_]+>-(?P<id>\w+)")
_NUMBERED_PATTERN = re.compile(rf"(?<![A-Za-z]){_NUMBERED}", re.I)
_OUTPUT_WORD = (
    r"(?:outputs?|results?|contents?|values?|responses?|returns?|data|ids?|answers?|details|info)"
)
_OUTPUT_OF = re.compile(
    rf"(?:{_OUTPUT_WORD}|[a-z]+)(?:[ _][a-z]+)?[ _](?:of"
    rf"|from)[ _](?:id[ _])?(?P<id>{_ID})(?![\w.])",
    re.I,
)
_OUTPUT_OF_NAME = re.compile(
    rf"{_OUTPUT_WORD}[ _](?:of|from)[ _](?:the[ _])?(?P<name>[A-Za-z_]\w{{2,}})", re.I
)
_ID_THEN_OUTPUT = re.compile(
    rf"(?<![\w.])(?P<id>{_ID})[ _]?(?:'s[ _])?{_OUTPUT_WORD}(?![a-z])", re.I
)
_CHINESE = re.compile(
    rf"(?<![A-Za-z0-9_.])(?P<id>{_ID})(?:步)?(?:中|的|里|所)?[^，。,;；]{{0,14}}?"
    r"(?:结果|输出|返回|生成|获取|组合|得到|提供|产生|值|信息|列表|内容)"
)
_CHINESE_NEAR = re.compile(rf"(?<![A-Za-z0-9_.])(?P<id>{_ID})(?:中|里)(?=[\u4e00-\u9fff])")
_SUFFIXED = re.compile(r"^(?P<word>[A-Za-z][A-Za-z_]*?)_?(?P<id>\d+)$")
_OUTPUT_NEAR = re.compile(rf"{_OUTPUT_WORD}|结果|输出|返回|中|的|_", re.I)
_HINT = re.compile(
    r"[$@{<]|task|node|step|output|result|from|of\b|root|任务|节点|步骤|第\d|\d+(?:步)?[中的里]",
    re.I,
)
_ROOT_OUTPUT = re.compile(r"^\W*root[._](?:output|result)s?\b", re.I)

_PLACEHOLDER = re.compile(
    r"place[ _\-]?holder(?![a-z])|(?<![a-z])to[ _]be[ _](?:filled|chosen|inserted|provided"
    r"|determined|decided|confirmed|added|specified|replaced|completed|selected|announced"
    r"|supplied)(?![a-z])"
    r"|\bpending (?:user|input|result|confirmation)|\bassumed[ _]|\bTBD\b|\bTBA\b|\bto-do\b"
    r"|^\W*(?:insert|enter|your|fill in)[ _][\w ]{2,30}[ _]here\W*$|^\w+_here$"
    r"|^\W*your[ _](?:[a-z]+[ _])?(?:id|name|e?-?mail|address|location|phone|number|token|key)\W*$"
    r"|^path/to/|/path/to/|^\[[A-Za-z][\w '\-]{2,40}\]$|^<[A-Za-z][\w '\-]{2,40}>$|^x{3,}$"
    r"|^\W*(?:example|sample|dummy|some|any)[ _](?:id|value|name|text|string|data|input|email)\W*$"
    r"|^user[ _]?(?:provided|supplied|specified|input)|\buser'?s? (?:current )?(?:location|input)$"
    r"|待(?:填|定|用户|确认|补充|提供)|占位|用户(?:提供|输入|指定)的|(?:当前|上一|前一)(?:个)?任务"
    r"|需要用户|由用户",
    re.I,
)
_NAMELESS = re.compile(
    r"(?:输出|返回|生成)的\S+$|^第[一二三四五六七八九十]\S{0,6}的\S+$|的(?:ID|邮箱地址|编号)$"
)
_SYMBOL = re.compile(r"^[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+$")


class Reference(msgspec.Struct, frozen=True):
    """A value, or a part of it, that stands for another node's output.

    Attributes:
        node: Id of the node meant; it need not exist.
        text: The text that refers.
        path: Where in the parameters, such as ``emails`` or ``order.items``.
        whole: Whether the value is nothing but the reference.
        sure: False for a form that may mean something else (a bare number, a step in prose).
    """

    node: str
    text: str
    path: str
    whole: bool = True
    sure: bool = True


class ReferenceReader:
    """Finds references in the values of one plan's calls.

    Args:
        plan: The plan whose node ids and tool names values may mention.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._ids = frozenset(plan.by_id)
        self._folded = {_fold_id(node_id): node_id for node_id in plan.by_id}
        names: dict[str, str] = {}
        for node in plan.nodes:
            if node.calls_tool:
                names.setdefault(node.name.casefold(), node.id)
        self._names = names
        special = [i for i in plan.by_id if len(i) > 2 and not i.isdecimal() and "_" in i]
        self._special = (
            re.compile(
                r"(?<![\w.])(?P<id>"
                + "|".join(re.escape(i) for i in _longest(special))
                + r")(?!\w)"
            )
            if special
            else None
        )

    def of_node(self, node_id: str) -> tuple[Reference, ...]:
        """The references in the parameters of a node, its own id left out."""
        node = self.plan.by_id[node_id]
        found: dict[tuple[str, str], Reference] = {}
        for path, value in _values(node.parameters.named, node.parameters.positional):
            for reference in self.in_text(value, path):
                if reference.node != node_id:
                    found.setdefault((reference.node, path), reference)
        return tuple(found.values())

    def in_text(self, text: str, path: str = "") -> Iterator[Reference]:
        """The references in one text value.

        Args:
            text: The value.
            path: Where it stands, kept in the references.
        """
        stripped = text.strip()
        if not stripped or len(stripped) > 20_000:
            return
        if stripped in self._ids:
            if stripped != ROOT:
                yield Reference(stripped, stripped, path, sure=not stripped.isdecimal())
            return
        hinted = _HINT.search(stripped)
        if not hinted and self._special is None:
            yield from self._symbolic(stripped, path)
            return
        seen: set[str] = set()
        for node, match, sure in self._matches(stripped):
            if node not in seen:
                seen.add(node)
                yield Reference(node, match, path, len(match) * 2 > len(stripped), sure)
        if not seen:
            yield from self._symbolic(stripped, path)

    def _matches(self, text: str) -> Iterator[tuple[str, str, bool]]:
        prose = len(text) > _LONG
        if _ROOT_OUTPUT.match(text):
            yield ROOT, text, True
        for match in _SIGNED.finditer(text):
            node = self._known(match["id"].rstrip("-_"))
            whole = match.start() == 0
            field = whole and _FIELD.match(text)
            if node or field or (whole and match[0][0] == "$" and not match["id"].isdecimal()):
                yield node or match["id"], match[0], True
        for pattern in (_ANGLED, _GENERATED):
            for match in pattern.finditer(text):
                if node := self._known(match["id"]):
                    yield node, match[0], True
        for match in _NUMBERED_PATTERN.finditer(text):
            yield from self._numbered(match, text, prose)
        for pattern in (_OUTPUT_OF, _ID_THEN_OUTPUT, _CHINESE, _CHINESE_NEAR):
            for match in pattern.finditer(text):
                if (node := self._known(match["id"])) and not _is_amount(text, match):
                    loose = pattern is _ID_THEN_OUTPUT or _WORD_FOLLOWS.match(text, match.end())
                    yield node, match[0], not loose
                    yield from self._listed(text, match.end("id"), not loose)
        for match in _OUTPUT_OF_NAME.finditer(text):
            if node := self._named(match["name"]):
                yield node, match[0], True
        if self._special:
            for match in self._special.finditer(text):
                yield match["id"], match[0], True

    def _numbered(
        self, match: re.Match[str], text: str, prose: bool
    ) -> Iterator[tuple[str, str, bool]]:
        """``task3`` and what follows it: ``task8, task9`` or ``tasks 8, 9 and 10``."""
        step = match[0][:1] in "sS步第"
        following = text[match.end() : match.end() + 12]
        says_output = bool(_OUTPUT_NEAR.search(following)) or match.start() > 0
        if step and prose:
            return
        node = self._known(match["id"])
        if node:
            yield (
                node,
                text[match.start() : match.end() + 16],
                not prose and not (step and not says_output),
            )
        elif not step and says_output and not prose:
            yield match["id"], match[0], False
        yield from self._listed(text, match.end(), not prose)

    def _listed(self, text: str, end: int, sure: bool) -> Iterator[tuple[str, str, bool]]:
        """Further ids after a reference: ``, 9 and 10``."""
        more = _MORE.match(text, end)
        while more:
            if node := self._known(more["id"]):
                yield node, more[0], sure
            more = _MORE.match(text, more.end())

    def _symbolic(self, text: str, path: str) -> Iterator[Reference]:
        """``interpretation3`` or ``photo_7``: a word that ends in a node's number."""
        match = _SUFFIXED.match(text)
        if match and len(match["word"]) > 3 and (node := self._known(match["id"])):
            yield Reference(node, text, path, sure=False)

    def _known(self, node_id: str) -> str:
        """The plan's spelling of an id, "" where the plan has no such node."""
        if node_id in self._ids:
            return node_id
        return self._folded.get(_fold_id(node_id), "")

    def _named(self, name: str) -> str:
        """The node that calls a tool of this name, or of a name that it begins."""
        folded = name.casefold().rstrip("_")
        if folded in self._names:
            return self._names[folded]
        if len(folded) >= 8:
            for full, node_id in self._names.items():
                if full.startswith(folded):
                    return node_id
        return ""


def _fold_id(node_id: str) -> str:
    """Ids without their customary prefix, so that ``3`` and ``task3`` are one."""
    return re.sub(r"^(?:task|node|step)[ _\-]?(?=\d)", "", node_id.casefold())


def _longest(ids: list[str]) -> list[str]:
    return sorted(ids, key=len, reverse=True)[:200]


_WORD_FOLLOWS = re.compile(r" (?!and\b|or\b|to\b)[a-z]{3,}")
_UNIT = re.compile(r"\s?(?:%|°|cm|mm|km|kg|g|ml|l|min|minutes?|hours?|days?|euros?|usd)\b", re.I)


def _is_amount(text: str, match: re.Match[str]) -> bool:
    """Whether a number is followed by a unit: ``5 minutes of data`` names no node."""
    return bool(_UNIT.match(text, match.end("id")))


def _values(named: Mapping[str, Any], positional: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Every text in the parameters with its path; iterative, so depth is no limit."""
    waiting: list[tuple[str, Any]] = [*named.items()]
    waiting += [(f"value {index + 1}", value) for index, value in enumerate(positional)]
    left = _MAX_VALUES
    while waiting and left:
        left -= 1
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            waiting += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(path, item) for item in value]
    return


def is_placeholder(text: str) -> bool:
    """Whether a text stands for a value that nobody has yet and names no node.

    Args:
        text: A value, such as "To be filled after user provides", "[Insert Date]", "待用户提供".
    """
    stripped = text.strip()
    if len(stripped) > _LONG:
        return False
    return bool(_PLACEHOLDER.search(stripped) or _NAMELESS.search(stripped))


def is_symbol(text: str) -> bool:
    """Whether a text looks like a variable's name, such as ``measured_flour``."""
    return bool(_SYMBOL.match(text.strip()))
