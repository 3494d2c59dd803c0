"""What results say: time-outs, empty results, and errors that name their cause."""

from collections.abc import Iterator

import msgspec

from pararecover_core.findings.calls import nearest
from pararecover_core.findings.causes import (
    came_too_early,
    causes,
    changed_nothing,
    has_reservation,
)
from pararecover_core.findings.model import Certainty, Finding, Where
from pararecover_core.findings.scene import Scene
from pararecover_core.results import ResultState
from pararecover_core.taxonomy import ErrorType


def observed(scene: Scene) -> Iterator[Finding]:
    """Findings from the results of this round, and from failures noted in earlier nodes."""
    for call, state in scene.seen:
        node = call.node
        if call.name and scene.by_name and call.name not in scene.by_name:
            planned = scene.plan.by_id.get(node)
            if planned is None or planned.name in scene.by_name:
                yield _unlisted(scene, call.name, node)
        if state is ResultState.OK:
            yield from _remark(node, call.name, call.result)
        else:
            yield from _failure(scene, node, call.name, call.result, state)
    for node_id, text in scene.noted.items():
        state = scene.failed.get(node_id, ResultState.OK)
        if state is ResultState.OK or node_id in scene.retried:
            continue
        name = scene.plan.by_id[node_id].name
        yield from _failure(scene, node_id, name, text, state, Certainty.LIKELY)


def _unlisted(scene: Scene, name: str, node: str) -> Finding:
    near = nearest(name, list(scene.by_name))
    return Finding(
        ErrorType.TOOL_NAME_ERROR,
        "unknown tool",
        node,
        f"{_subject(node, name)} went to '{name}', which is not in the tool list."
        + (f" The nearest is '{near}'." if near else ""),
        where=Where.OBSERVATION,
        suggestion=near,
    )


def _subject(node: str, name: str) -> str:
    return f"The call of node {node}" if node else f"A call of {name or 'an unnamed tool'}"


def _failure(
    scene: Scene,
    node: str,
    name: str,
    text: str,
    state: ResultState,
    certainty: Certainty = Certainty.CERTAIN,
) -> Iterator[Finding]:
    subject = _subject(node, name)
    if state is ResultState.TIMEOUT:
        yield _of(
            ErrorType.TIMEOUT_ERROR, "timeout", node, f"{subject} ran into a time-out.", certainty
        )
        yield _of(
            ErrorType.NULL_ERROR,
            "no result after a timeout",
            node,
            f"{subject} gave no result, because it ran into a time-out.",
            Certainty.POSSIBLE,
        )
    elif state is ResultState.EMPTY:
        yield _of(
            ErrorType.NULL_ERROR, "empty result", node, f"{subject} gave nothing back.", certainty
        )
    else:
        for finding in _error(node, subject, text, certainty):
            known = finding.parameter in _parameters(scene, node, name)
            yield finding if known else msgspec.structs.replace(finding, parameter="")


def _parameters(scene: Scene, node: str, name: str) -> set[str]:
    """Parameters that a call gives or its tool defines."""
    planned = scene.plan.by_id.get(node)
    given = set(planned.parameters.named) if planned else set()
    return given.union(*(tool.parameters for tool in scene.by_name.get(name, ())))


def _of(
    kind: ErrorType | None, rule: str, node: str, message: str, certainty: Certainty
) -> Finding:
    return Finding(kind, rule, node, message, where=Where.OBSERVATION, certainty=certainty)


def _error(node: str, subject: str, text: str, certainty: Certainty) -> Iterator[Finding]:
    said = _shortened(text)
    message = f"{subject} failed: {said}"
    named = causes(text)
    for cause in named:
        sure = max(cause.certainty, certainty, key=lambda each: each.rank)
        finding = _of(cause.error_type, cause.rule, node, message, sure)
        yield msgspec.structs.replace(finding, parameter=cause.parameter)
    if came_too_early(text):
        early = f"{subject} failed as if it came too early: {said}"
        yield _of(ErrorType.PARALLELISM_ERROR, "too early", node, early, Certainty.POSSIBLE)
        yield _of(ErrorType.DEPENDENCE_ERROR, "too early", node, early, Certainty.POSSIBLE)
    elif not named:
        yield _of(None, "other error", node, message, certainty)


def _remark(node: str, name: str, text: str) -> Iterator[Finding]:
    """Hints in the text of a call that worked."""
    if changed_nothing(text):
        message = f"{_subject(node, name)} changed nothing: {_shortened(text)}"
        yield _of(ErrorType.TOOLCALL_REDUNDANCY, "nothing new", node, message, Certainty.POSSIBLE)
    if has_reservation(text):
        message = f"{_subject(node, name)} worked with a reservation: {_shortened(text)}"
        yield _of(ErrorType.TOOL_SELECT_ERROR, "reservation", node, message, Certainty.POSSIBLE)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    flat = flat if len(flat) <= 160 else flat[:157] + "..."
    return flat if flat.endswith((".", "!", "?", "。")) else flat + "."
