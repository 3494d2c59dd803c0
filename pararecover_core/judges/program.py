"""The program judge: a baseline that reads findings, plan differences and the thought's words.

It knows what a program can see and nothing more; it is documented as a baseline, needs no key
and gives the same scores every time.
"""

import re
from collections.abc import Callable
from functools import cached_property

from pararecover_core.execute import edited_executed
from pararecover_core.findings import Certainty, Finding, findings_of, instance_findings
from pararecover_core.judges.answer import Scored
from pararecover_core.judges.llm_judge import Item, Judgement
from pararecover_core.literals import dumps
from pararecover_core.mentions import Segment, segments
from pararecover_core.plan import RESPONSE, ROOT, FieldChange, Node
from pararecover_core.records import Instance, Replan, as_text
from pararecover_core.references import ReferenceReader
from pararecover_core.results import ResultState, result_state
from pararecover_core.rubric import JUDGED
from pararecover_core.taxonomy import ErrorGroup, ErrorType

VERSION = "1"

_NO_FAULT = re.compile(
    r"nothing (?:went )?wrong|no (?:error|fault|failure|problem)|all (?:calls )?succeeded"
    r"|没有(?:错误|问题)",
    re.I,
)
_FAILED = re.compile(
    r"fail|error|wrong|time[d -]*out|empty|nothing|reject|missing|失败|错误|超时", re.I
)
_REACH = re.compile(
    r"downstream|later|subsequent|following|depend|wait|everything|rest of|后续|下游|依赖", re.I
)
_CLAIM = re.compile(
    r"(?:node|task|step|节点|任务)\s*#?\s*([0-9][\w.\-]*|[A-Za-z0-9]+_(?:retry|fix|again)\w*)", re.I
)


_STATE = re.compile(
    r"status|done|pending|executed|succe|fail|depend|wait|parallel|serial|edge|before|after"
    r"|完成|成功|失败|依赖|并行|串行",
    re.I,
)
_AGAIN = re.compile(r"again|retr|repeat|once more|anew|re-?(?:run|call)|重试|重新|再次", re.I)
_BASE = re.compile(r"_(?:retry|fix|again|new|re)\w*$|_\d+$")
_WORDS = re.compile(r"[A-Za-z][a-z]+")
_SHOWN = 5
_LOOKED_AT = 30

_Call = tuple[str, str]
"""Tool and parameters of a call, the same for the same call."""


def _level(full: bool, half: bool) -> float:
    return 1.0 if full else 0.5 if half else 0.0


class _Case:
    """An item with everything that the rules look at, computed once."""

    def __init__(self, instance: Instance, replan: Replan) -> None:
        self.instance, self.replan = instance, replan
        self.before, self.after = instance.plan, replan.plan
        self.thought = replan.thought.strip()
        self.difference = self.before.difference(self.after)

    @cached_property
    def faults(self) -> tuple[Finding, ...]:
        """What went wrong before, hints left out."""
        found = instance_findings(self.instance)
        return tuple(f for f in found if f.certainty is not Certainty.POSSIBLE)

    @cached_property
    def faulty(self) -> frozenset[str]:
        return frozenset(node for f in self.faults for node in (f.nodes or (f.node,)) if node)

    @cached_property
    def suspected(self) -> frozenset[str]:
        """Faulty nodes, and those with a hint of a fault."""
        found = instance_findings(self.instance)
        return frozenset(node for f in found for node in (f.nodes or (f.node,)) if node)

    @cached_property
    def reached(self) -> frozenset[str]:
        """What the faults reach in the previous plan, the faulty nodes aside."""
        reach: set[str] = set()
        for node in self.faulty | self.failed:
            reach |= self.before.impact(node)
        return frozenset(reach - self.faulty)

    @cached_property
    def remaining(self) -> tuple[Finding, ...]:
        """What is wrong with pending calls of the new plan; what ran cannot be repaired."""
        found = findings_of(
            self.after, self.instance.tools, (), query=self.instance.query, limit=_LOOKED_AT
        )
        waiting = {node.id for node in self.pending()}
        return tuple(f for f in found if not waiting.isdisjoint((f.node, *f.nodes)))

    @cached_property
    def failed(self) -> frozenset[str]:
        """Nodes whose call failed in the last round."""
        return frozenset(
            call.node
            for call in self.instance.observations
            if call.node and result_state(call.result) is not ResultState.OK
        )

    @cached_property
    def rejected(self) -> frozenset[_Call]:
        """Calls that were answered with an error: the same call again fails again."""
        return frozenset(
            _call_of(self.before.by_id[call.node])
            for call in self.instance.observations
            if call.node in self.before.by_id and result_state(call.result) is ResultState.ERROR
        )

    @cached_property
    def rewritten(self) -> tuple[str, ...]:
        """Nodes of the last round that make another call in the new plan, or are gone from it."""
        ran = [call.node for call in self.instance.observations if call.node in self.before.by_id]
        after = self.after.by_id
        return tuple(
            n for n in ran if n not in after or _call_of(after[n]) != _call_of(self.before.by_id[n])
        )

    @cached_property
    def repeats(self) -> tuple[str, ...]:
        """Pending nodes that make a rejected call again as it was."""
        return tuple(n.id for n in self.pending() if n.calls_tool and _call_of(n) in self.rejected)

    @cached_property
    def cited(self) -> frozenset[str]:
        """Node ids that the thought names."""
        ids = set(self.before.by_id) | set(self.after.by_id)
        return frozenset(s.target for s in self._segments(ids) if s.kind == "node")

    @cached_property
    def cited_tools(self) -> frozenset[str]:
        return frozenset(s.target for s in self._segments(set()) if s.kind == "tool")

    def _segments(self, ids: set[str]) -> list[Segment]:
        names = {n.name for n in (*self.before.nodes, *self.after.nodes) if n.calls_tool}
        names |= {tool.name for tool in self.instance.tools}
        return segments(self.thought, nodes=ids, tools=names)

    @cached_property
    def invented(self) -> frozenset[str]:
        """Node ids that the thought claims and neither plan has."""
        known = set(self.before.by_id) | set(self.after.by_id)
        claimed = (claim.rstrip(".-_") for claim in _CLAIM.findall(self.thought))
        return frozenset(
            c for c in claimed if known.isdisjoint((c, c.split("-")[0], _BASE.split(c)[0]))
        )

    @cached_property
    def touched(self) -> frozenset[str]:
        """Nodes that the new plan added, removed or redesigned, the response aside."""
        parts = (*self.difference.added, *self.difference.removed, *self.difference.redesigned())
        return frozenset(parts) - {RESPONSE, ROOT}

    @cached_property
    def recalled(self) -> frozenset[str]:
        """Touched nodes that make another call than before, not only wait for others."""
        return frozenset(
            n
            for n in self.touched
            if n not in self.difference.changed
            or any(c.field not in ("dependencies", "description") for c in self._changes(n))
        )

    def _changes(self, node_id: str) -> tuple[FieldChange, ...]:
        return tuple(self.difference.changed[node_id])

    def accounts_for(self, node_id: str) -> bool:
        """Whether the thought names a node: by id, by what it repeats, by its tool or its words."""
        node = self.after.by_id.get(node_id) or self.before.by_id[node_id]
        base = _BASE.split(node_id)[0]
        if node_id in self.cited or base in self.cited or node.name in self.cited_tools:
            return True
        if base != node_id and _AGAIN.search(self.thought):
            return True
        said = self.thought.casefold()
        words = (w.casefold() for w in _WORDS.findall(node.name))
        return any(word[:6] in said for word in words if len(word) > 3)

    def pending(self) -> list[Node]:
        """Nodes of the new plan that wait to be executed."""
        return [node for node in self.after.nodes if not node.done]

    def uses_failed(self, node: Node) -> bool:
        """Whether a pending call still takes the output of a failed one."""
        used = {ref.node for ref in self.references.of_node(node.id)}
        return bool(used & self.failed)

    @cached_property
    def references(self) -> ReferenceReader:
        return ReferenceReader(self.after)


_Rule = Callable[[_Case], Scored]


def _call_of(node: Node) -> _Call:
    given = node.parameters
    return node.name, dumps([sorted(given.named.items()), list(given.positional)])


def _all_said(count: int) -> str:
    if count < 2:
        return "The new call stands in the thought." if count else "There is no new call."
    return f"Each of the {count} new calls stands in the thought."


def _s1(case: _Case) -> Scored:
    if case.invented:
        shown = ", ".join(sorted(case.invented)[:_SHOWN])
        return Scored(0.5, f"The thought names node {shown}, which is in no plan.")
    unsaid = sorted(n for n in case.recalled if not case.accounts_for(n))
    if not unsaid:
        return Scored(1.0, _all_said(len(case.recalled)))
    half = len(unsaid) * 2 <= len(case.recalled)
    shown = ", ".join(unsaid[:_SHOWN])
    return Scored(_level(False, half), f"The thought does not account for node {shown}.")


def _by_findings(case: _Case, groups: Callable[[ErrorType], bool], what: str) -> Scored:
    found = [f for f in case.remaining if f.error_type and groups(f.error_type)]
    sure = [f for f in found if f.certainty is Certainty.CERTAIN]
    likely = [f for f in found if f.certainty is Certainty.LIKELY]
    if sure:
        return Scored(0.0, sure[0].message)
    if likely:
        return Scored(0.5, likely[0].message)
    return Scored(1.0, f"No fault was found in the {what} of pending nodes.")


def _s2(case: _Case) -> Scored:
    return _by_findings(case, lambda kind: kind.group is ErrorGroup.STRUCTURAL, "dependencies")


_CALL_FAULTS = (ErrorType.TOOL_NAME_ERROR,)


def _s3(case: _Case) -> Scored:
    def concerns(kind: ErrorType) -> bool:
        return kind.group is ErrorGroup.PARAMETER or kind in _CALL_FAULTS

    return _by_findings(case, concerns, "calls")


def _s4(case: _Case) -> Scored:
    observed = {call.node for call in case.instance.observations if call.node}
    wrong, unnoted = [], []
    for node in case.after.nodes:
        old = case.before.by_id.get(node.id)
        expected = node.id in observed or (old is not None and old.done) or node.id == ROOT
        if node.done != expected:
            wrong.append(node.id)
        elif node.id in observed and old is not None and node.description == old.description:
            unnoted.append(node.id)
    if wrong:
        return Scored(0.0, f"The status of node {', '.join(wrong[:_SHOWN])} is not what happened.")
    if unnoted:
        return Scored(0.5, f"The result of node {', '.join(unnoted[:_SHOWN])} is not noted.")
    return Scored(1.0, "Every status agrees with the last round.")


def _d1(case: _Case) -> Scored:
    cited = case.cited & set(case.before.by_id)
    if case.invented:
        return Scored(0.5 if cited else 0.0, "The thought names nodes that are in no plan.")
    shown = ", ".join(sorted(cited)[:_SHOWN]) or "no node"
    checkable = len(cited) >= 2 or (bool(cited) and bool(_STATE.search(case.thought)))
    return Scored(_level(checkable, bool(cited)), f"The thought names {shown}.")


def _quotes(case: _Case) -> bool:
    """Whether the thought repeats five words or a value of a failed or any observation."""
    calls = case.instance.observations
    failed = [c for c in calls if c.node in case.failed] or list(calls)
    for call in failed:
        words = call.result.split()
        runs = [" ".join(words[i : i + 4]) for i in range(max(1, len(words) - 3))]
        values = (
            [as_text(v) for v in (call.arguments or {}).values()]
            if isinstance(call.arguments, dict)
            else []
        )
        pieces = [p for p in (*runs, *values) if len(p) > 3]
        if any(piece in case.thought for piece in pieces):
            return True
    return False


def _d2(case: _Case) -> Scored:
    if not case.instance.observations:
        return Scored(1.0 if case.thought else 0.0, "The last round has no observations.")
    knows = bool(case.failed & case.cited) or bool(_FAILED.search(case.thought))
    tools = {call.name for call in case.instance.observations if call.node in case.failed}
    specific = _quotes(case) or (knows and bool(tools & case.cited_tools))
    said = "quotes" if specific else "mentions" if knows else "passes over"
    return Scored(_level(specific, knows), f"The thought {said} what came back.")


def _d3(case: _Case) -> Scored:
    if not case.faults:
        fine = bool(_NO_FAULT.search(case.thought))
        return Scored(_level(fine, not _FAILED.search(case.thought)), "No fault was found.")
    for finding in case.faults:
        words = [finding.parameter, finding.suggestion]
        named = finding.node in case.cited or not finding.node
        if named and any(word and word in case.thought for word in words):
            return Scored(1.0, f"The thought names the cause: {finding.message}")
    half = bool(case.faulty & case.cited)
    return Scored(_level(False, half), f"The cause is not named: {case.faults[0].message}")


def _d4(case: _Case) -> Scored:
    if not case.faults:
        return Scored(_level(not _REACH.search(case.thought), True), "No fault was found.")
    named = (case.reached & case.cited) - {ROOT}
    if named:
        return Scored(1.0, f"The thought names node {', '.join(sorted(named))}, which it reaches.")
    half = bool(_REACH.search(case.thought))
    return Scored(_level(False, half), "The thought names no node that the fault reaches.")


def _d5(case: _Case) -> Scored:
    plan, tools = _d1(case).score, _d2(case).score
    if case.invented:
        return Scored(0.0, "The thought builds on nodes that are in no plan.")
    reason = f"Evidence from the plan {plan:g}, from the observations {tools:g}."
    return Scored(_level(min(plan, tools) == 1, min(plan, tools) > 0), reason)


def _e1(case: _Case) -> Scored:
    edited = (*edited_executed(case.before, case.after), *case.rewritten)
    if edited:
        return Scored(0.0, f"It edits executed node {', '.join(edited[:_SHOWN])}.")
    if (case.faults or case.failed) and not case.touched:
        return Scored(0.0, "It changes nothing, though there is a fault.")
    if case.repeats:
        shown = ", ".join(case.repeats[:_SHOWN])
        return Scored(0.0, f"It leaves the fault as it is: node {shown} makes the same call again.")
    allowed = case.suspected | case.reached
    needless = [n for n in case.touched if n not in allowed and n not in case.difference.added]
    extra = max(0, len(case.difference.added) - max(1, len(case.faulty | case.failed)))
    count = len(needless) + extra
    reason = f"{count} of {len(case.touched)} changes go beyond the fault and what it reaches."
    return Scored(_level(count == 0, count == 1), reason)


def _e2(case: _Case) -> Scored:
    stuck = [node.id for node in case.pending() if case.uses_failed(node)]
    stuck += [node_id for node_id in case.repeats if node_id not in stuck]
    faults = [f for f in case.remaining if f.certainty is Certainty.CERTAIN]
    if RESPONSE not in case.after.by_id:
        return Scored(0.0, "The new plan has no response.")
    if case.failed and case.recalled.isdisjoint(case.after.by_id):
        return Scored(0.0, "A call failed, and no new call makes up for it.")
    if case.repeats and not faults and len(stuck) == len(case.repeats):
        shown = ", ".join(case.repeats[:_SHOWN])
        return Scored(0.0, f"Node {shown} makes a rejected call again as it was.")
    if not stuck and not faults:
        return Scored(1.0, "No pending node waits for a failed result or carries a sure fault.")
    if stuck:
        reason = f"Node {', '.join(stuck[:_SHOWN])} still uses a failed result."
    else:
        reason = faults[0].message
    return Scored(_level(False, len(stuck) + len(faults) == 1), reason)


def _e3(case: _Case) -> Scored:
    wanted = {n.name for n in case.before.nodes if n.calls_tool and n.name in _listed(case)}
    kept = {n.name for n in case.after.nodes if n.calls_tool}
    lost = sorted(wanted - kept)
    if RESPONSE not in case.after.by_id:
        return Scored(0.0, "The new plan has no response.")
    if not lost:
        return Scored(1.0, "Every tool that the previous plan used is still called.")
    return Scored(_level(False, len(lost) == 1), f"No call of {', '.join(lost[:_SHOWN])} is left.")


def _listed(case: _Case) -> set[str]:
    return {tool.name for tool in case.instance.tools}


def _e4(case: _Case) -> Scored:
    known = {_call_of(n) for n in case.after.nodes if n.done and n.calls_tool} | case.rejected
    lost = {_call_of(n) for n in case.after.nodes if n.id in case.failed} - case.rejected
    again = []
    for node_id in case.difference.added:
        call = _call_of(case.after.by_id[node_id])
        if call in known - lost:
            again.append(node_id)
        known, lost = known | {call}, lost - {call}
    if not again:
        return Scored(1.0, "No added call repeats one that is there already.")
    reason = f"Node {', '.join(again[:_SHOWN])} repeats a call that is there already."
    return Scored(_level(False, len(again) == 1), reason)


_RULES: dict[str, _Rule] = {
    "S1": _s1, "S2": _s2, "S3": _s3, "S4": _s4, "D1": _d1, "D2": _d2, "D3": _d3, "D4": _d4,
    "D5": _d5, "E1": _e1, "E2": _e2, "E3": _e3, "E4": _e4,
}  # fmt: skip
_BY_THOUGHT = ("D1", "D2", "D3", "D4", "D5")


class ProgramJudge:
    """Scores the 13 judged sub-dimensions by rules, with a reason for each."""

    scorer = f"judge:program@{VERSION}"

    def judge(self, item: Item) -> Judgement:
        """The judgement of one item; ties and edge cases as the rubric has them."""
        case = _Case(item.instance, item.replan)
        scores = {dimension: self._score(case, dimension) for dimension in JUDGED}
        return Judgement(item.replan.key, self.scorer, JUDGED, scores)

    def _score(self, case: _Case, dimension: str) -> Scored:
        if not case.thought and dimension in (*_BY_THOUGHT, "S1"):
            return Scored(0.0, "There is no thought.")
        if case.after.fault and dimension not in _BY_THOUGHT:
            return Scored(0.0, f"The new plan does not parse: {case.after.fault}.")
        return _RULES[dimension](case)
