"""Calls that the task does not need, calls that it needs and lacks, and near twins."""

import re
from collections.abc import Iterator
from functools import lru_cache

from rapidfuzz import fuzz

from pararecover_core.findings.model import Certainty, Finding
from pararecover_core.findings.scene import Scene, without_retry
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Node
from pararecover_core.records import Tool
from pararecover_core.taxonomy import ErrorType

_TRIES = 3
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_STOP = frozenset(
    {"a", "an", "the", "of", "to", "for", "in", "on", "at", "by", "with", "and", "or", "from", "my"}
    | {"get", "set", "do", "make", "use", "is", "be", "it", "this", "that", "me", "i", "you", "all"}
    | {"your", "please", "tool", "data", "info", "item", "items", "value", "result", "list", "new"}
    | {"some"}
)
_SAME = 96.0
_COMPARED = 4_000
"""Longest values, as text, that are compared letter by letter, and most of a query that is read."""
_TWIN = 0.5
_OPENING = 48
"""Characters of a step in which its verb and object stand."""
_TOLD = 0.2
"""A step that holds less than this share of a tool's description is about something else."""


def purpose(scene: Scene) -> Iterator[Finding]:
    """Findings about calls as a whole: repeated, missing, or of the wrong one of two tools."""
    yield from _repeated(scene)
    yield from _missing(scene)
    yield from _twins(scene)
    yield from _confessed(scene)


def _repeated(scene: Scene) -> Iterator[Finding]:
    by_tool: dict[str, list[Node]] = {}
    for node in scene.calls:
        by_tool.setdefault(without_retry(node.name), []).append(node)
    for nodes in by_tool.values():
        if len(nodes) > 1:
            yield from _repeats_of_tool(scene, nodes)


def _repeats_of_tool(scene: Scene, nodes: list[Node]) -> Iterator[Finding]:
    groups: dict[str, list[Node]] = {}
    for node in nodes[:50]:
        groups.setdefault(_values_of(node), []).append(node)
    for same in groups.values():
        if len(same) > 1:
            yield from _same_calls(scene, same)
    keys = list(groups)
    for index, key in enumerate(keys[1:], 1):
        later = groups[key][0]
        if later.done and later.id not in scene.states:
            continue
        for earlier_key in keys[:index]:
            earlier = groups[earlier_key][0]
            near = 30 < len(key) < _COMPARED and fuzz.ratio(key, earlier_key) >= _SAME
            if near and earlier.id not in scene.failed and _same_names(earlier, later):
                yield Finding(
                    ErrorType.TOOLCALL_REDUNDANCY,
                    "nearly the same call",
                    later.id,
                    f"Node {later.id} calls {later.name} almost as node {earlier.id} does.",
                    certainty=Certainty.POSSIBLE,
                    suggestion=earlier.id,
                )
                break


def _values_of(node: Node) -> str:
    """The values of a call as text, the same for the same values in any order of names."""
    return dumps(
        [
            sorted(node.parameters.named.items(), key=lambda pair: str(pair[0])),
            node.parameters.positional,
        ]
    )


def _same_names(one: Node, other: Node) -> bool:
    return set(one.parameters.named) == set(other.parameters.named)


def _same_calls(scene: Scene, same: list[Node]) -> Iterator[Finding]:
    """Calls of one tool with the same parameters, in the plan's order."""
    same = sorted(same, key=lambda node: not node.done)
    first, tries = same[0], sum(node.id in scene.failed for node in same)
    for node in same[1:]:
        past = node.done and node.id not in scene.states
        earlier = next((n for n in reversed(same[: same.index(node)])), first)
        failed = earlier.done and earlier.id in scene.failed
        if failed and (past or tries < _TRIES):
            continue
        if earlier.id in scene.failed:
            message = (
                f"Node {node.id} repeats the call of node {earlier.id} unchanged before its "
                "failure was dealt with."
            )
        else:
            message = f"Node {node.id} repeats the call of node {earlier.id} with the same values."
        hint = past or _changes_between(scene, earlier, node)
        yield Finding(
            ErrorType.TOOLCALL_REDUNDANCY,
            "repeated call",
            node.id,
            message,
            certainty=Certainty.POSSIBLE if hint else Certainty.LIKELY,
            suggestion=earlier.id,
        )


def _changes_between(scene: Scene, earlier: Node, later: Node) -> bool:
    """Whether a call without parameters may be meant twice: state can change in between."""
    return not later.parameters and scene.waits_for(later.id, earlier.id)


@lru_cache(maxsize=4096)
def words_of(text: str) -> frozenset[str]:
    """The words of a name or sentence, shortened to their stems."""
    return frozenset(
        _stem(word) for part in _WORDS.findall(text) if (word := part.casefold()) not in _STOP
    )


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _unused(scene: Scene) -> list[Tool]:
    called = {without_retry(node.name) for node in scene.calls} | {n.name for n in scene.calls}
    return [tool for tool in _first_listed(scene) if tool.name not in called]


def _first_listed(scene: Scene) -> list[Tool]:
    return [tools[0] for tools in scene.by_name.values()]


def _twin_of(tool: Tool, used: list[Tool]) -> Tool | None:
    """A used tool that an unused one could be mistaken for."""
    words = words_of(tool.name)
    for other in used:
        theirs = words_of(other.name)
        shared = len(words & theirs)
        named = shared / max(1, len(words), len(theirs))
        both = set(other.parameters) | set(tool.parameters)
        given = len(set(other.parameters) & set(tool.parameters)) / max(1, len(both))
        if shared and max(named, given) >= _TWIN and (given or not both):
            return other
    return None


def _missing(scene: Scene) -> Iterator[Finding]:
    """Listed tools that nothing calls, those that the query speaks of first."""
    if not scene.calls:
        return
    query = words_of(scene.query[:_COMPARED])
    wanted = []
    for tool in _unused(scene):
        words = words_of(tool.name)
        share = len(words & query) / len(words) if words else 0.0
        wanted.append((share, tool.name))
    if not wanted:
        return
    wanted.sort(reverse=True)
    share, name = wanted[0]
    others = ", ".join(f"'{other}'" for _, other in wanted[1:4])
    also = f" Neither is {others}." if others else ""
    yield Finding(
        ErrorType.TOOLCALL_MISSING,
        "objective without a call",
        "",
        f"No node calls '{name}'"
        + (", which the query speaks of." if share >= _TWIN else ", though it is listed.")
        + also,
        certainty=Certainty.POSSIBLE,
        suggestion=name,
    )


def _twins(scene: Scene) -> Iterator[Finding]:
    """A pending call of one tool where the words of the step fit its unused twin better."""
    unused = _unused(scene)
    query = words_of(scene.query[:_COMPARED])
    for node in scene.calls:
        if node.name not in scene.by_name or (node.done and node.id not in scene.states):
            continue
        tool = scene.by_name[node.name][0]
        task = words_of(node.description) if len(node.description) < 2_000 else frozenset()
        named = _named_in_step(scene, node, tool, task)
        if named is not None and not node.done:
            yield Finding(
                ErrorType.TOOL_SELECT_ERROR,
                "other tool named",
                node.id,
                f"Node {node.id} calls '{node.name}', but its description names what "
                f"'{named.name}' does.",
                certainty=Certainty.LIKELY,
                suggestion=named.name,
            )
            continue
        for other in unused:
            if _twin_of(other, [tool]) is None:
                continue
            gain = _gain(tool, other, task, query)
            if gain > 0:
                yield Finding(
                    ErrorType.TOOL_SELECT_ERROR,
                    "near twin",
                    node.id,
                    f"Node {node.id} calls '{node.name}', but the step reads more like "
                    f"'{other.name}', which nothing calls.",
                    certainty=Certainty.LIKELY if gain >= 1.5 else Certainty.POSSIBLE,
                    suggestion=other.name,
                )
                break


def _named_in_step(scene: Scene, node: Node, tool: Tool, task: frozenset[str]) -> Tool | None:
    """A listed tool whose whole name opens the step, where no word of the called one's does.

    A tool whose output the call uses is named for that reason and does not count.
    """
    if not task or (words_of(tool.name) & task):
        return None
    opening = words_of(node.description[:_OPENING])
    used = {
        scene.plan.by_id[r.node].name
        for r in scene.references[node.id]
        if r.node in scene.plan.by_id
    }
    for other in _first_listed(scene):
        theirs = words_of(other.name)
        if other.name != tool.name and len(theirs) > 1 and theirs <= opening:
            ours = _share_told(tool, task)
            better = ours < _TOLD and _share_told(other, task) > 2 * ours
            return other if better and other.name not in used else None
    return None


def _share_told(tool: Tool, task: frozenset[str]) -> float:
    """Share of the words of a tool's description that stand in a step, in [0, 1]."""
    words = words_of(tool.description[:400])
    return len(words & task) / len(words) if words else 0.0


def _gain(tool: Tool, other: Tool, task: frozenset[str], query: frozenset[str]) -> float:
    """How much better an unused tool fits a step than the one it calls; above 0 is better."""
    mine, theirs = words_of(tool.name), words_of(other.name)
    by_name = _fit(theirs - mine, task, query) - _fit(mine - theirs, task, query)
    if by_name:
        return by_name
    mine, theirs = words_of(tool.description[:400]), words_of(other.description[:400])
    asked = task | query
    by_text = len((theirs - mine) & asked) - len((mine - theirs) & asked)
    return 1.0 if by_text >= 2 else 0.0


def _fit(words: frozenset[str], task: frozenset[str], query: frozenset[str]) -> float:
    """How far words that tell one tool from another occur in the step and in the query."""
    if not words:
        return 0.0
    return (len(words & task) + len(words & query)) / len(words)


_CONFESSIONS: tuple[tuple[ErrorType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        (ErrorType.TOOLCALL_REDUNDANCY, r"redundant|unnecessary (?:step|call)|duplicate|冗余|多余"
                                        r"|重复调用"),
        (ErrorType.TOOL_SELECT_ERROR, r"wrong tool|incorrect(?:ly)? (?:used|tool|selected)"
                                      r"|mistakenly us"
         r"|wrongly us|wrong (?:function|api)|错误(?:地)?(?:使用|选择)了?|选错"),
        (ErrorType.TYPE_ERROR, r"type (?:error|mismatch)|wrong type|incorrect type|类型错误"),
        (ErrorType.PARAMETER_MISSING, r"missing (?:the )?[\w ]{0,30}param\w*"
                                      r"|param\w* (?:is )?missing"
         r"|缺少[^，。]{0,12}参数|参数缺失"),
        (ErrorType.PARAMETER_ERROR, r"(?:wrong|incorrect|misspel\w+) param\w* name"
                                    r"|参数名(?:称)?错误"),
        (ErrorType.PARAMETER_INVALID, r"(?:invalid|illegal|negative) (?:[\w ]{0,20})(?:value|date"
                                      r"|param\w*"
         r"|quantity|amount|id)|\bis (?:negative|invalid)|参数值(?:非法|无效|错误)"),
        (ErrorType.DEPENDENCE_ERROR, r"(?:wrong|incorrect) depend|依赖错误"),
        (ErrorType.DEPENDENCE_NULL, r"(?:missing|lacks?|without) depend|依赖缺失|缺少依赖"),
    )
)  # fmt: skip


_ANY_CONFESSION = re.compile("|".join(p.pattern for _, p in _CONFESSIONS), re.I)


def _confessed(scene: Scene) -> Iterator[Finding]:
    """Pending calls whose own description names the fault."""
    for node in scene.calls:
        if node.done or node.id in (ROOT, RESPONSE) or not node.description:
            continue
        text = node.description[:400]
        if not _ANY_CONFESSION.search(text):
            continue
        for kind, pattern in _CONFESSIONS:
            match = pattern.search(text)
            if match:
                yield Finding(
                    kind,
                    "named in the description",
                    node.id,
                    f"The description of node {node.id} itself says '{match[0]}'.",
                    certainty=Certainty.POSSIBLE,
                )
