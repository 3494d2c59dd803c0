"""Errors in single calls and their returns: parameters, tools, empty results, time-outs.

Source: paper appendix C, table 12.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from pararecover_core.inject.model import (
    Change,
    Injection,
    Injector,
    Scene,
    change,
    edit,
    legal_tool,
    pick,
)
from pararecover_core.literals import dumps
from pararecover_core.plan import Node
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import Kind
from pararecover_core.sandbox.registry import SandboxTool, tools
from pararecover_core.taxonomy import ErrorType

TIMEOUT_TEXTS = (
    "Error: request timed out after 30 seconds.",
    "Timeout Error: the service did not answer within 30 seconds.",
    '{"error": "timeout", "message": "no answer after 30 s"}',
)
EMPTY_TEXTS = ("", "[]", "{}", "null")

_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda name: name.replace("_", "-") if "_" in name else f"{name}_value",
    lambda name: (
        "".join(p.capitalize() if i else p for i, p in enumerate(name.split("_")))
        if "_" in name
        else f"{name}Param"
    ),
    lambda name: f"input_{name}",
    lambda name: f"{name}s",
)


def parameter_error(scene: Scene, draw: Draw) -> Change | None:
    """A call gives a parameter that its tool does not define."""
    found = pick(draw, [n for n in scene.pending if n.parameters.named and legal_tool(n)])
    if found is None:
        return None
    right = draw.choice(sorted(found.parameters.named))
    wrong = draw.choice(_SPELLINGS)(right)
    para = {wrong if k == right else k: v for k, v in found.parameters.named.items()}
    return change(
        edit(scene.plan, found.id, para=para), ErrorType.PARAMETER_ERROR, found,
        f"{right} -> {wrong}",
        f"the parameter '{wrong}' is not defined for the tool; it should be '{right}'.", wrong,
    )  # fmt: skip


def parameter_missing(scene: Scene, draw: Draw) -> Change | None:
    """A call lacks a required parameter."""
    found = pick(draw, [n for n in scene.pending if (t := legal_tool(n)) and t.required])
    if found is None:
        return None
    gone = draw.choice(tools()[found.name].required)
    para = {k: v for k, v in found.parameters.named.items() if k != gone}
    return change(
        edit(scene.plan, found.id, para=para), ErrorType.PARAMETER_MISSING, found,
        f"without {gone}", f"the required parameter '{gone}' is missing.", gone,
    )  # fmt: skip


def _wrong_type(kind: Kind, value: Any, draw: Draw) -> Any:
    """The same value in a type that the parameter does not take."""
    if isinstance(value, str) and value.startswith("$"):
        wrapped: list[Any] = [{"value": value}, [value]]
        return wrapped[0] if kind.json_type == "array" else draw.choice(wrapped)
    if kind.json_type == "number":
        return draw.choice([f"{value:g}", [value]])
    if kind.json_type == "string":
        return draw.choice([[value], {"value": value}])
    return draw.choice(["item one, item two", 3])


def type_error(scene: Scene, draw: Draw) -> Change | None:
    """A parameter has a value of the wrong type."""
    found = pick(draw, [n for n in scene.pending if legal_tool(n) and n.parameters.named])
    if found is None:
        return None
    parameter = draw.choice(sorted(found.parameters.named))
    kind = tools()[found.name].inputs[parameter].kind
    value = _wrong_type(kind, found.parameters.named[parameter], draw)
    para = {**found.parameters.named, parameter: value}
    return change(
        edit(scene.plan, found.id, para=para), ErrorType.TYPE_ERROR, found,
        f"{parameter} = {dumps(value)}",
        f"the parameter '{parameter}' must be {kind.json_type}, but is {dumps(value)}.", parameter,
    )  # fmt: skip


_BAD_TEXTS: dict[str, tuple[str, ...]] = {
    "date": ("2026-02-30", "2026-13-04", "2026/02/32"),
    "time": ("25:61", "24:30", "9 o'clock"),
    "city": ("Atlantis", "El Dorado"),
    "email": ("someone(at)example", "no-address"),
    "currency": ("ZZZ", "coins"),
    "language": ("Klingon", "Elvish"),
}
_NO_CHOICE = ("unknown", "none_selected", "n/a")


def _bad_value(kind: Kind, draw: Draw) -> Any:
    """A value of the right type that the kind does not allow; None where it allows all."""
    if kind.json_type == "number":
        candidates: list[Any] = [-draw.integer(1, 90), 0, 10**9]
    elif kind.json_type == "array":
        candidates = [[]]
    else:
        known = _BAD_TEXTS.get(kind.name, ("XX-00000A",) if kind.sample is None else _NO_CHOICE)
        candidates = [*draw.sample(known, len(known)), ""]
    return next((value for value in candidates if kind.check(value)), None)


def parameter_invalid(scene: Scene, draw: Draw) -> Change | None:
    """A parameter has the right type but a value that cannot be."""
    places = [
        (n, parameter, value)
        for n in scene.pending
        if (made := legal_tool(n))
        for parameter in n.parameters.named
        if (value := _bad_value(made.inputs[parameter].kind, draw)) is not None
    ]
    if not places:
        return None
    found, parameter, value = draw.choice(places)
    kind = tools()[found.name].inputs[parameter].kind
    para = {**found.parameters.named, parameter: value}
    return change(
        edit(scene.plan, found.id, para=para), ErrorType.PARAMETER_INVALID, found,
        f"{parameter} = {dumps(value)}",
        f"the value {dumps(value)} of '{parameter}' is invalid; expected {kind.check(value)}.",
        parameter,
    )  # fmt: skip


def _misspelt(name: str, draw: Draw) -> str:
    parts = name.split("_")
    forms = [
        "".join(p.capitalize() if i else p for i, p in enumerate(parts)),
        "_".join(reversed(parts)),
        name[:-1] if len(name) > 4 else f"{name}x",
        f"{name}_tool",
        name[:2] + name[3] + name[2] + name[4:],
    ]
    legal = [form for form in forms if form not in tools()]
    return draw.choice(legal)


def tool_name_error(scene: Scene, draw: Draw) -> Change | None:
    """A call names a tool that is not listed."""
    found = pick(draw, [n for n in scene.pending if n.name in tools()])
    if found is None:
        return None
    wrong = _misspelt(found.name, draw)
    return change(
        edit(scene.plan, found.id, name=wrong), ErrorType.TOOL_NAME_ERROR, found,
        f"{found.name} -> {wrong}",
        f"the tool '{wrong}' is not in the tool list; it should be '{found.name}'.",
    )  # fmt: skip


def tool_select_error(scene: Scene, draw: Draw) -> Change | None:
    """A call uses a near twin of the right tool, which is listed beside it."""
    places = [n for n in scene.pending if legal_tool(n) and twins(n.name)]
    found = pick(draw, places)
    if found is None:
        return None
    near = twins(found.name)
    listed = [name for name in near if name in scene.task.tools]
    name = draw.choice(listed or near[:3])
    para = _mapped(found, tools()[found.name], tools()[name])
    if para is None:
        return None
    made = change(
        edit(scene.plan, found.id, name=name, para=para), ErrorType.TOOL_SELECT_ERROR, found,
        f"{found.name} -> {name}",
        f"the step needs '{found.name}', but the plan calls '{name}'.",
    )  # fmt: skip
    return made._replace(tools=(name,))


@cache
def twins(name: str) -> tuple[str, ...]:
    """Tools that could be taken for another one, the most alike first.

    A twin is called with values of the same kinds and gives a result of the same kinds, or does
    so within the same domain.
    """
    right = tools()[name]
    taken, given = _kinds(right), {kind.name for kind in right.outputs.values()}
    ranked = []
    for other in tools().values():
        theirs = {kind.name for kind in other.outputs.values()}
        likeness = 2 * len(given & theirs) / len(given | theirs) + (other.domain == right.domain)
        if other.name != name and _kinds(other) == taken and likeness >= 1:
            ranked.append((-likeness, other.name))
    return tuple(twin for _, twin in sorted(ranked))


def _kinds(found: SandboxTool) -> list[str]:
    """Kinds of the values that a call needs."""
    return sorted(found.inputs[parameter].kind.name for parameter in found.required)


def _mapped(found: Node, right: SandboxTool, other: SandboxTool) -> dict[str, Any] | None:
    """The values of a call under another tool's parameter names; None where kinds differ."""
    waiting = dict(found.parameters.named)
    para = {}
    for name in other.required:
        kind = other.inputs[name].kind
        fitting = [k for k in waiting if right.inputs[k].kind.name == kind.name]
        match = name if name in fitting else next(iter(fitting), None)
        if match is None:
            return None
        para[name] = waiting.pop(match)
    return para or None


def returned(kind: ErrorType, texts: tuple[str, ...], what: str) -> Injector:
    """An injector that lets a call of the round just run give one of ``texts`` instead."""

    def inject(scene: Scene, draw: Draw) -> Change | None:
        plan = scene.plan
        frontier = [n for n in scene.pending if n.id in plan.frontier()]
        if not frontier:
            return None
        found, text = draw.choice(frontier), draw.choice(texts)
        reason = f"Node {found.id} ({found.name}): the call {what}."
        injection = Injection(kind, found.id, "", f"returned {text!r}", reason)
        return Change(plan, injection, {found.id: text})

    return inject
