"""From an agent's rounds to a case study: which rounds tell it, where the error began, what for.

Source: paper appendix B and eq. (4); how rounds are chosen and marked is ours.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from pararecover_core.case_study.model import (
    HIDEABLE,
    LEAD_LIMIT,
    MOST_ROUNDS,
    NOTE_LIMIT,
    TITLE_LIMIT,
    Case,
    Mark,
    Observed,
    Origin,
    RoundView,
    Side,
    Source,
    Spec,
    Subject,
)
from pararecover_core.case_study.scoring import judges_of, means, score_lines
from pararecover_core.draw import Picture, cut, parameter_text, picture
from pararecover_core.errors import InputError
from pararecover_core.figures import fixed
from pararecover_core.findings import findings_of
from pararecover_core.literals import dumps
from pararecover_core.plan import parameters
from pararecover_core.records import Instance, Round, Tool, ToolCall, as_text
from pararecover_core.results import ResultState, result_state
from pararecover_core.scores import run_efficacy

_THOUGHT, _RESULT, _CALLS, _TOOLS = 1_500, 240, 12, 24
_STORY = 4
"""Rounds of a story that is chosen by itself."""


def build(subject: Subject, spec: Spec) -> Case:
    """Put a case study together.

    Args:
        subject: The instance and one or two agents' rounds on it.
        spec: What its author chose.

    Returns:
        All that is shown; what ``spec.hide`` names is not in it.

    Raises:
        InputError: A round is asked for that there is not, too many are, or a word is unknown.
    """
    _check(subject, spec)
    hide = frozenset(spec.hide)
    if "observations" in hide:
        subject = msgspec.structs.replace(
            subject, sources=tuple(map(_without_results, subject.sources))
        )
    instance = subject.instance
    sides = [_side(source, instance, spec, hide) for source in subject.sources]
    if "agent" in hide:
        sides = [_renamed(side, place, len(sides)) for place, side in enumerate(sides)]
    used = {call.name for s in subject.sources for r in s.rounds for call in r.observations}
    return Case(
        title=clean(spec.title, TITLE_LIMIT) or _title(sides),
        lead=spec.lead.strip()[:LEAD_LIMIT],
        query="" if "query" in hide else instance.query.strip()[:LEAD_LIMIT],
        tools=() if "tools" in hide else _tools(instance.tools, used),
        item="" if "item" in hide else _item(instance),
        sides=tuple(sides),
        versions=() if "versions" in hide else _versions(subject, hide),
        hidden=tuple(name for name in HIDEABLE if name in hide),
    )


_STAND_INS = {"ok": "ok", "error": "Error", "timeout": "Timeout Error", "empty": ""}


def _without_results(source: Source) -> Source:
    """The same rounds; of each result stays whether the call worked."""
    rounds = tuple(
        msgspec.structs.replace(
            one,
            observations=tuple(
                msgspec.structs.replace(call, result=_STAND_INS[str(result_state(call.result))])
                for call in one.observations
            ),
        )
        for one in source.rounds
    )
    return msgspec.structs.replace(source, rounds=rounds)


def _check(subject: Subject, spec: Spec) -> None:
    unknown = sorted(set(spec.hide) - set(HIDEABLE))
    if unknown:
        expected = f"some of {', '.join(HIDEABLE)}"
        raise InputError("what to hide", ", ".join(unknown), expected, "Correct the words")
    if not 1 <= len(subject.sources) <= 2 or not all(s.rounds for s in subject.sources):
        got = f"{len(subject.sources)} agents' rounds"
        raise InputError("case study", got, "one or two with rounds", "Choose an item with rounds")
    there = {number for source in subject.sources for number in source.numbers}
    missing = [str(number) for number in spec.rounds if number not in there]
    if missing:
        got, expected = f"round {', '.join(missing)}", f"rounds {min(there)} to {max(there)}"
        raise InputError("rounds of the case study", got, expected, "Choose rounds that exist")
    if len(set(spec.rounds)) > MOST_ROUNDS:
        got = f"{len(set(spec.rounds))} rounds"
        cure = "Leave some out; the strip shows all of them anyway"
        raise InputError("rounds of the case study", got, f"at most {MOST_ROUNDS}", cure)


def clean(text: str, limit: int) -> str:
    """A text on one line, cut to a limit."""
    return re.sub(r"\s+", " ", text).strip()[:limit]


def _renamed(side: Side, place: int, count: int) -> Side:
    name = f"Agent {'AB'[place]}" if count > 1 else "The agent"
    return msgspec.structs.replace(side, agent=name)


def _title(sides: Sequence[Side]) -> str:
    first = sides[0]
    if len(sides) > 1:
        return f"{first.agent} and {sides[1].agent} on the same task"
    if first.taken and first.optimal and first.taken > first.optimal:
        return f"{first.taken} rounds for a task of {first.optimal}"
    return f"How {first.agent} went on"


def _item(instance: Instance) -> str:
    parts = [f"Item {instance.id or instance.key}"]
    if instance.level:
        parts.append(f"LEVEL-{instance.level}")
    if instance.tags:
        parts.append(", ".join(clean(tag, 60) for tag in instance.tags))
    return ", ".join(parts)


def _tools(tools: Iterable[Tool], used: set[str]) -> tuple[tuple[str, str], ...]:
    known = {tool.name: clean(tool.description, 160) for tool in tools}
    names = [name for name in known if name in used]
    names += sorted(name for name in used if name and name not in known)
    return tuple((cut(name, 80), known.get(name, "not in the list of tools")) for name in names)[
        :_TOOLS
    ]


def _versions(subject: Subject, hide: frozenset[str]) -> tuple[str, ...]:
    scores = [score for source in subject.sources for score in source.scores]
    found: list[str] = []
    rubrics = sorted({score.rubric for score in scores if score.rubric})
    if rubrics:
        found.append(f"Rubric {', '.join(rubrics)}")
    if "judge" not in hide:
        for name in judges_of(scores):
            model, _, prompt = name.removeprefix("judge:").partition("@")
            found.append(f"Judge {model}" + (f", prompt {prompt}" if prompt else ""))
    if "agent" not in hide:
        found += [f"Agent {source.agent}" for source in subject.sources if source.agent]
    return tuple(clean(one, 200) for one in found)


def _side(source: Source, instance: Instance, spec: Spec, hide: frozenset[str]) -> Side:
    begun = origin(source, instance, spec.origin)
    chosen = [n for n in source.numbers if n in set(spec.rounds)] or story(source, begun)
    value = _efficacy(source, instance)
    arithmetic, formula = _arithmetic(source, instance, value)
    kinds = marks(source)
    secret = "efficacy" in hide
    lines = score_lines(source, value, hide=hide, names=spec.names)
    return Side(
        agent=clean(source.agent, 120) or "The agent",
        rounds=tuple(_round(source, number, spec, begun, hide) for number in chosen),
        strip=()
        if "strip" in hide
        else tuple(
            Mark(number, kind, number in chosen)
            for number, kind in zip(source.numbers, kinds, strict=True)
        ),
        optimal=None if secret else instance.round_gt,
        taken=None if secret else source.taken,
        success=source.success,
        outcome=source.outcome,
        efficacy=None if secret or math.isnan(value) else value,
        arithmetic="" if secret else arithmetic,
        formula="" if secret else formula,
        origin=None if "origin" in hide else begun,
        scores=lines,
        means=means(lines),
    )


def _efficacy(source: Source, instance: Instance) -> float:
    if source.success is None or source.taken is None:
        return math.nan
    return run_efficacy(
        success=source.success, correct=source.correct, outcome=source.outcome,
        optimal=instance.round_gt, rounds=source.taken, limit=source.limit,
    )  # fmt: skip


def _arithmetic(source: Source, instance: Instance, value: float) -> tuple[str, str]:
    """E5 as a sum anyone can check, and the formula with its numbers."""
    taken, optimal = source.taken, instance.round_gt
    if source.success is None or taken is None:
        return "", ""
    if not source.success:
        return "E5 = 0", f"S = 0: {clean(source.outcome, 60) or 'the run failed'}"
    if source.correct is False:
        return "E5 = 0", "S = 0: the response was reached, but its answer is not right"
    if math.isnan(value) or not optimal:
        return "", "E5 unknown: the optimal number of rounds is not given"
    if value == 0:
        return "E5 = 0", f"{taken} rounds reach the limit, which counts as a failure"
    words = f"{optimal} / {taken} = {fixed(optimal / taken, 2)}"
    formula = f"E5 = S × min(1, G / T) = 1 × min(1, {optimal} / {taken})"
    return (words if optimal <= taken else "E5 = 1"), formula


def _bad(call: ToolCall) -> bool:
    return result_state(call.result) is not ResultState.OK


def origin(source: Source, instance: Instance, wanted: str = "") -> Origin | None:
    """Where the error began: the first call that failed, or that of the named node.

    Args:
        source: An agent's rounds.
        instance: For the tools, which say what a call should have been.
        wanted: Id of a node, "" to look for the first failed call.

    Returns:
        Round, node, call, what came back, the cause as far as the program can tell, and the ids
        that depend on the node in any plan; None where no call failed.
    """
    for number, one in zip(source.numbers, source.rounds, strict=True):
        for call in one.observations:
            if (call.node == wanted) if wanted else (_bad(call) and call.node):
                return _begun(source, instance, number, one, call)
    for number, one in zip(source.numbers, source.rounds, strict=True):
        if wanted and wanted in one.plan.by_id:
            node = one.plan.by_id[wanted]
            call = ToolCall(node.name, node.parameters.named, "", node.id)
            return _begun(source, instance, number, one, call, ran=False)
    if wanted:
        cure = "Name a node of these rounds, or leave it empty"
        raise InputError("node where the error began", repr(wanted), "a node's id", cure)
    return None


def _begun(
    source: Source,
    instance: Instance,
    number: int,
    one: Round,
    call: ToolCall,
    *,
    ran: bool = True,
) -> Origin:
    after = source.rounds[source.numbers.index(number) :]
    order: dict[str, None] = {}
    for later in after:
        hit = later.plan.impact(call.node)
        order.update((node, None) for node in later.plan.by_id if node in hit)
    found = [
        finding
        for finding in findings_of(one.plan, instance.tools, one.observations, query="")
        if call.node in (finding.node, *finding.nodes) and finding.where.value == "plan"
    ]
    words = {"ok": "returned a result", "error": "failed", "timeout": "ran out of time"}
    state = str(result_state(call.result))
    said = words.get(state, "returned nothing") if ran else "has not run yet"
    result = clean(call.result, _RESULT)
    return Origin(
        round=number,
        node=call.node,
        call=cut(f"{call.name}({_arguments(call)})", 300),
        said=said + (f": {result}" if result else ""),
        cause=cut(found[0].message, 300) if found else "",
        reached=tuple(order),
    )


def _arguments(call: ToolCall) -> str:
    return parameter_text(parameters(call.arguments))


def marks(source: Source) -> list[str]:
    """What each round did: "on", "failed", "repeat", "repair" or "end" (nothing was run).

    A repeat asks for what an earlier call of the same tool gave already (same arguments or same
    result); a repair is a call that works where the last one of that tool had failed.
    """
    broken: set[str] = set()
    answered: set[tuple[str, str, str]] = set()
    found = []
    for one in source.rounds:
        calls = one.observations
        repaired = any(not _bad(call) and call.name in broken for call in calls)
        repeats = bool(calls) and all(_asked(call) & answered for call in calls)
        if not calls:
            kind = "end"
        elif any(map(_bad, calls)):
            kind = "failed"
        elif repeats:
            kind = "repeat"
        else:
            kind = "repair" if repaired else "on"
        found.append(kind)
        for call in calls:
            (broken.add if _bad(call) else broken.discard)(call.name)
            answered |= _asked(call) if not _bad(call) else set()
    return found


def _asked(call: ToolCall) -> set[tuple[str, str, str]]:
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments)
    return {(call.name, "arguments", arguments), (call.name, "result", call.result)}


def story(source: Source, begun: Origin | None) -> list[int]:
    """The rounds that tell what happened: the fault, the answer to it, the next fault, the end."""
    numbers = list(source.numbers)
    if len(numbers) <= _STORY:
        return numbers
    if begun is None:
        places = range(1, len(numbers))
        turned = [numbers[i] for i in places if _redesigned(source.rounds, i)]
        return sorted({numbers[0], *turned[: _STORY - 2], numbers[-1]})
    at = numbers.index(begun.round)
    kinds = marks(source)
    later = [n for n, kind in zip(numbers, kinds, strict=True) if kind == "failed"]
    again = [n for n in later if n > begun.round + 1]
    chosen = {begun.round, numbers[min(at + 1, len(numbers) - 1)], *again[:1], numbers[-1]}
    return sorted(chosen)


def _redesigned(rounds: Sequence[Round], place: int) -> bool:
    """Whether a plan differs from the one before in more than what was executed."""
    found = rounds[place - 1].plan.difference(rounds[place].plan)
    return bool(found.added or found.removed or found.redesigned() or found.reopened)


def _round(
    source: Source, number: int, spec: Spec, begun: Origin | None, hide: frozenset[str]
) -> RoundView:
    place = source.numbers.index(number)
    now = source.rounds[place]
    drawn = draw_round(source.rounds, place)
    shown = () if "observations" in hide else now.observations[:_CALLS]
    return RoundView(
        number=number,
        caption=clean(spec.captions.get(number, ""), TITLE_LIMIT)
        or _caption(source, place, begun, hide),
        note=spec.notes.get(number, "").strip()[:NOTE_LIMIT],
        thought="" if "thoughts" in hide else now.thought.strip()[:_THOUGHT],
        observations=tuple(_observed(call) for call in shown),
        picture=drawn,
        reached=() if begun is None or "origin" in hide else _reached(source, place, begun, drawn),
        changes=_changes(drawn, {call.node for call in now.observations if _bad(call)}),
    )


def draw_round(rounds: Sequence[Round], place: int) -> Picture:
    """The plan of a round with what changed since the round before and what its calls gave.

    Failed calls of earlier rounds stay marked; a node whose call worked this round is "new".
    """
    now = rounds[place]
    before = rounds[place - 1].plan if place else None
    calls = [call for one in rounds[: place + 1] for call in one.observations]
    drawn = picture(now.plan, before=before, after=now.plan, observations=calls, role="after")
    ran = {call.node for call in now.observations if not _bad(call)}
    for node in drawn["nodes"]:
        _mark_run(node, ran)
    if now.observations:
        for band in drawn["bands"]:
            band["caption"] = "ran"
    return drawn


def _mark_run(node: dict[str, object], ran: set[str]) -> None:
    badges = [badge for badge in node["badges"] if badge != "new"]  # type: ignore[attr-defined]
    if node["id"] in ran and "failed" not in badges:
        badges = [*(badge for badge in badges if badge != "done"), "new"]
    elif not badges and node["state"] == "new":
        badges = ["done"]
    looks = {"failed": "failed", "added": "added", "changed": "changed", "new": "new"}
    if node["state"] in ("new", "pending", "done"):
        fallback = "done" if node["state"] == "new" else node["state"]
        node["state"] = next((looks[b] for b in badges if b in looks), fallback)
    node["badges"] = badges


def _reached(source: Source, place: int, begun: Origin, drawn: Picture) -> tuple[str, ...]:
    """Which drawn nodes wait for the fault: not before it began, not once the task is done."""
    start = source.numbers.index(begun.round)
    last = place == len(source.rounds) - 1 and bool(source.success)
    if place < start or last:
        return ()
    hit: set[str] = set()
    for one in source.rounds[start : place + 1]:
        hit |= one.plan.impact(begun.node)
    waiting = ("pending", "ghost", "added", "changed", "missing")
    return tuple(
        node["id"]
        for node in drawn["nodes"]
        if node["id"] in hit and node["state"] in waiting and node["state"] != "added"
    )


def _caption(source: Source, place: int, begun: Origin | None, hide: frozenset[str]) -> str:
    number = source.numbers[place]
    last = place == len(source.rounds) - 1
    if begun is not None and number == begun.round and "origin" not in hide:
        return "The error begins"
    if begun is not None and place and source.numbers[place - 1] == begun.round:
        return "The answer to it"
    if last and source.success is not None:
        return "The goal" if source.success else f"The end: {clean(source.outcome, 60)}"
    kind = marks(source)[place]
    if kind == "on" and place and _redesigned(source.rounds, place):
        return "The plan changes"
    words = {"failed": "A call fails", "repeat": "Work is repeated", "repair": "A true repair"}
    return words.get(kind, "The task moves on")


def _observed(call: ToolCall) -> Observed:
    return Observed(
        node=cut(call.node, 40),
        tool=cut(call.name, 80),
        arguments=cut(_arguments(call) or as_text(call.arguments), _RESULT),
        result=cut(call.result, _RESULT),
        state=str(result_state(call.result)),
    )


_COUNTED = ("failed", "added", "changed", "removed")


def _changes(drawn: Picture, failed: Collection[str]) -> str:
    """The nodes that failed this round, came, changed or went, in words."""
    groups: dict[str, list[str]] = {}
    for node in drawn["nodes"]:
        for badge in node["badges"] or [node["state"]]:
            word = "removed" if badge == "ghost" else badge
            if word in _COUNTED and (word != "failed" or node["id"] in failed):
                groups.setdefault(word, []).append(cut(node["id"], 20) or "(no id)")
    parts = [f"{word}: {', '.join(groups[word][:12])}" for word in _COUNTED if word in groups]
    return "; ".join(parts)
