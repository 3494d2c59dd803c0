"""Whether a call is legal: listed tool, defined and complete parameters, types, values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rapidfuzz import fuzz, process

from pararecover_core.findings.model import Certainty, Finding
from pararecover_core.findings.values import invalid_value
from pararecover_core.literals import dumps
from pararecover_core.plan import ROOT, Node
from pararecover_core.records import Tool
from pararecover_core.references import ReferenceReader, is_placeholder, is_symbol
from pararecover_core.taxonomy import ErrorType

_NEAR = 60.0
"""Likeness in percent from which a name is offered as the one that was meant."""
_NAME = 200
"""A longer text is no name, and is not compared with any."""
_DEPTH = 4
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "float": (int, float),
    "integer": (int,),
    "int": (int,),
    "boolean": (bool,),
    "bool": (bool,),
    "array": (list, tuple),
    "list": (list, tuple),
    "object": (dict,),
    "dict": (dict,),
}
_ARTICLE = {"array": "an array", "object": "an object", "integer": "an integer"}


def tools_by_name(tools: Sequence[Tool]) -> dict[str, list[Tool]]:
    """Listed tools by name; a name may be listed twice."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(tool.name, []).append(tool)
    return found


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that is most like a wrong one, "" where none is."""
    if not known or not name or len(name) > _NAME:
        return ""
    best = process.extractOne(name, known, scorer=fuzz.WRatio, score_cutoff=_NEAR)
    return str(best[0]) if best else ""


def unknown_tool(node: Node, known: Sequence[str]) -> Finding:
    """The finding that a call names no listed tool."""
    near = nearest(node.name, known)
    hint = f" The nearest is '{near}'." if near else ""
    named_like_a_tool = node.name.isascii() and " " not in node.name.strip()
    return Finding(
        ErrorType.TOOL_NAME_ERROR,
        "unknown tool",
        node.id,
        f"Node {node.id} calls '{node.name}', which is not in the tool list.{hint}",
        certainty=Certainty.CERTAIN if named_like_a_tool else Certainty.LIKELY,
        suggestion=near,
    )


def check_call(node: Node, tools: Sequence[Tool], reader: ReferenceReader) -> list[Finding]:
    """What is wrong with the parameters of a call.

    Args:
        node: A node that names a listed tool.
        tools: The listed tools of that name; the one that fits best counts.
        reader: Finds references in the plan of the node.

    Returns:
        Findings, in the order of the tool's parameters; none where the call is legal.
    """
    found = [list(_check(node, tool, reader)) for tool in tools]
    return min(found, key=lambda each: (sum(f.certainty.rank < 2 for f in each), len(each)))


def _check(node: Node, tool: Tool, reader: ReferenceReader) -> Iterator[Finding]:
    named = dict(node.parameters.named)
    defined = list(tool.parameters)
    if node.parameters.positional:
        yield from _positional(node, tool, named)
    unknown = [name for name in named if name not in tool.parameters]
    missing = [name for name in tool.required if name not in named]
    if node.parameters.positional:
        missing = []
    missing.sort(key=lambda name: nearest(name, unknown) == "")
    for name in unknown:
        yield _unknown_parameter(node, name, missing or defined)
    for index, name in enumerate(missing):
        yield _missing(node, name, renamed=index < len(unknown))
    untyped = _is_untyped(node.given)
    for name, value in named.items():
        if name in tool.parameters:
            yield from _check_value(node, name, value, tool, reader, untyped=untyped)


def _positional(node: Node, tool: Tool, named: dict[str, Any]) -> Iterator[Finding]:
    """Values without names; they are taken in the order of the tool's parameters."""
    free = [name for name in tool.parameters if name not in named]
    values = node.parameters.positional
    if tool.parameters:
        listed = ", ".join(f"'{name}'" for name in free[: len(values)]) or "none left"
        count = "a value" if len(values) == 1 else f"{len(values)} values"
        yield Finding(
            ErrorType.PARAMETER_ERROR,
            "values without names",
            node.id,
            f"Node {node.id} gives {count} without a parameter name ({listed} would fit).",
            parameter=free[0] if free else "",
            certainty=Certainty.LIKELY,
        )
    for name, value in zip(free, values, strict=False):
        named[name] = value
    absent = [name for name in free[len(values) :] if name in tool.required]
    for name in absent:
        yield _missing(node, name)
    if not absent and any(name in tool.required for name in free[: len(values)]):
        yield Finding(
            ErrorType.PARAMETER_MISSING,
            "required name not given",
            node.id,
            f"Node {node.id} does not name the required parameter '{free[0]}' of {tool.name}.",
            parameter=free[0],
            certainty=Certainty.POSSIBLE,
        )


def _unknown_parameter(node: Node, name: str, candidates: Sequence[str]) -> Finding:
    near = nearest(name, candidates)
    hint = f" The nearest is '{near}'." if near else ""
    return Finding(
        ErrorType.PARAMETER_ERROR,
        "unknown parameter",
        node.id,
        f"Node {node.id} gives the parameter '{name}', which {node.name} does not define.{hint}",
        parameter=name,
        suggestion=near,
    )


def _missing(node: Node, name: str, *, renamed: bool = False) -> Finding:
    return Finding(
        ErrorType.PARAMETER_MISSING,
        "missing parameter",
        node.id,
        f"Node {node.id} does not give the required parameter '{name}' of {node.name}.",
        parameter=name,
        certainty=Certainty.POSSIBLE if renamed else Certainty.CERTAIN,
    )


def _is_untyped(given: Any) -> bool:
    """Whether values come from ``key=value`` texts, where everything is text."""
    para = given.get("para") if isinstance(given, Mapping) else None
    if isinstance(para, str):
        return not para.lstrip().startswith("{")
    return isinstance(para, list) and any(
        isinstance(item, str) and not item.lstrip().startswith("{") for item in para
    )


def _check_value(
    node: Node, name: str, value: Any, tool: Tool, reader: ReferenceReader, *, untyped: bool
) -> Iterator[Finding]:
    schema = tool.parameters[name]
    if value is None or (isinstance(value, str) and not value.strip()):
        if name in tool.required:
            yield from _blank(node, name, value)
        return
    if isinstance(value, str):
        stands_in = _stand_in(node, name, value, schema, reader)
        if stands_in is not None:
            yield from stands_in
            return
    wrong = _type_fault(value, schema, name, untyped=untyped, depth=0)
    if wrong:
        path, got, expected, certainty = wrong
        yield Finding(
            ErrorType.TYPE_ERROR,
            "wrong type",
            node.id,
            f"Node {node.id} gives {got} for '{path}' of {node.name}, which must be {expected}.",
            parameter=path,
            certainty=certainty,
        )
        return
    if isinstance(value, list | dict) and not value and name in tool.required:
        kind = "list" if isinstance(value, list) else "object"
        yield Finding(
            ErrorType.PARAMETER_INVALID,
            "empty value",
            node.id,
            f"Node {node.id} gives an empty {kind} for '{name}' of {node.name}.",
            parameter=name,
            certainty=Certainty.POSSIBLE,
        )
    yield from _invalid(node, name, value, schema)


def _blank(node: Node, name: str, value: Any) -> Iterator[Finding]:
    """Null or a blank text: as good as missing; an empty text is an invalid value as well."""
    what = "null" if value is None else "an empty text"
    message = f"Node {node.id} gives {what} for the required parameter '{name}' of {node.name}."
    likely, possible = Certainty.LIKELY, Certainty.POSSIBLE
    yield Finding(
        ErrorType.PARAMETER_MISSING,
        "blank value",
        node.id,
        message,
        parameter=name,
        certainty=likely if value is None else possible,
    )
    if value is not None:
        yield Finding(
            ErrorType.PARAMETER_INVALID,
            "blank value",
            node.id,
            message,
            parameter=name,
            certainty=likely,
        )


def _stand_in(
    node: Node, name: str, text: str, schema: Any, reader: ReferenceReader
) -> list[Finding] | None:
    """Findings about a text that stands for a later value; None where it is a value itself."""
    expected = _declared(schema)
    references = [r for r in reader.in_text(text, name) if r.node != node.id]
    wants_text = not expected or "string" in expected or expected == ("enum",)
    if references and not wants_text:
        if text.strip().startswith("$"):
            return []
        target = references[0].node
        what = "the root" if target == ROOT else f"node {target}"
        return [_typed_stand_in(node, name, text, expected, f"refers to {what}")]
    if references and (references[0].sure or not text.strip().isdecimal()):
        plain = text.strip()
        tidy = plain.startswith(("$", "@")) or (plain.isascii() and " " not in plain)
        return [] if tidy else [_phrase(node, name, text)]
    echoes = text.strip().casefold().replace(" ", "_") == name.casefold()
    if echoes and not wants_text:
        return [_typed_stand_in(node, name, text, expected, "repeats the parameter's name")]
    if is_placeholder(text) or echoes:
        return [_placeholder(node, name, text)]
    if not wants_text and is_symbol(text):
        return [_typed_stand_in(node, name, text, expected, "names a value")]
    return None


def _typed_stand_in(
    node: Node, name: str, text: str, expected: tuple[str, ...], what: str
) -> Finding:
    return Finding(
        ErrorType.TYPE_ERROR,
        "placeholder where a typed value is expected",
        node.id,
        f"Node {node.id} gives the text {_shown(text)} for '{name}', which must be "
        f"{_kinds(expected)}; it {what}, so the type holds only if it is replaced before the call.",
        parameter=name,
        certainty=Certainty.POSSIBLE,
    )


def _placeholder(node: Node, name: str, text: str) -> Finding:
    return Finding(
        ErrorType.PARAMETER_INVALID,
        "placeholder",
        node.id,
        f"Node {node.id} gives the placeholder {_shown(text)} for '{name}' of {node.name}.",
        parameter=name,
        certainty=Certainty.LIKELY,
    )


def _phrase(node: Node, name: str, text: str) -> Finding:
    return Finding(
        ErrorType.PARAMETER_INVALID,
        "phrase where a value is expected",
        node.id,
        f"Node {node.id} gives the phrase {_shown(text)} for '{name}' of {node.name}; it is no "
        "value unless it is replaced before the call.",
        parameter=name,
        certainty=Certainty.POSSIBLE,
    )


def _invalid(node: Node, name: str, value: Any, schema: Any) -> Iterator[Finding]:
    fault = invalid_value(name, value, schema)
    if fault:
        yield Finding(
            ErrorType.PARAMETER_INVALID,
            "invalid value",
            node.id,
            f"Node {node.id} gives {_shown(fault.value)} for '{fault.path}' of {node.name}: "
            f"{fault.reason}.",
            parameter=fault.path,
            certainty=fault.certainty,
            suggestion=fault.suggestion,
        )


_TypeFault = tuple[str, str, str, Certainty]


def _declared(schema: Any) -> tuple[str, ...]:
    """Declared types, lower case; () where anything goes."""
    kind = schema.get("type") if isinstance(schema, Mapping) else schema
    if isinstance(kind, str):
        kinds: tuple[Any, ...] = (kind.strip().casefold(),)
    elif isinstance(kind, list | tuple):
        kinds = tuple(str(k).casefold() for k in kind)
    else:
        return ()
    return kinds if all(k in _TYPES or k == "enum" for k in kinds) else ()


def _kinds(expected: Sequence[str]) -> str:
    words = [_ARTICLE.get(k, "a text" if k in ("string", "enum") else f"a {k}") for k in expected]
    return " or ".join(words)


def _type_fault(
    value: Any, schema: Any, path: str, *, untyped: bool, depth: int
) -> _TypeFault | None:
    """Path, what was given, what is expected and how certain; None where the type is right."""
    expected = _declared(schema)
    if not expected or depth > _DEPTH:
        return None
    if not any(_is_a(value, kind, schema) for kind in expected):
        if untyped and isinstance(value, str) and _could_be(value, expected):
            return None
        sure = depth == 0 and not (untyped and set(expected) & {"object", "dict"})
        certainty = Certainty.CERTAIN if sure else Certainty.LIKELY
        return path, _described(value), _kinds(expected), certainty
    return _inner_fault(value, schema, path, untyped=untyped, depth=depth)


def _inner_fault(
    value: Any, schema: Any, path: str, *, untyped: bool, depth: int
) -> _TypeFault | None:
    if not isinstance(schema, Mapping):
        return None
    if isinstance(value, Mapping) and isinstance(schema.get("properties"), Mapping):
        for key, inner in schema["properties"].items():
            given = value.get(key)
            if given is not None and not _refers(given):
                fault = _type_fault(given, inner, f"{path}.{key}", untyped=untyped, depth=depth + 1)
                if fault:
                    return fault
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value[:20]):
            if item is not None and not _refers(item):
                fault = _type_fault(
                    item, schema["items"], f"{path}[{index}]", untyped=untyped, depth=depth + 1
                )
                if fault:
                    return fault
    return None


def _refers(value: Any) -> bool:
    """A text inside of a value that may stand for an output: its type says nothing."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    looks = text.startswith(("$", "@", "task", "output", "result")) or "中" in text or "的" in text
    return looks or is_symbol(text) or is_placeholder(text)


def _is_a(value: Any, kind: str, schema: Any) -> bool:
    if kind == "enum":
        return not isinstance(value, Mapping | list)
    if isinstance(value, bool):
        return kind in ("boolean", "bool")
    if kind in ("integer", "int") and isinstance(value, float):
        return value.is_integer()
    if kind == "string" and isinstance(schema, Mapping) and schema.get("enum"):
        return isinstance(value, str) or value in schema["enum"]
    return isinstance(value, _TYPES[kind])


def _could_be(text: str, expected: Sequence[str]) -> bool:
    """Whether an untyped text could be read as one of the types."""
    text = text.strip()
    for kind in expected:
        if kind in ("number", "float", "integer", "int"):
            try:
                float(text)
            except ValueError:
                continue
            return True
        if kind in ("boolean", "bool") and text.casefold() in ("true", "false"):
            return True
        if kind in ("array", "list") and text.startswith("["):
            return True
        if kind in ("object", "dict") and (text.startswith("{") or is_symbol(text)):
            return True
    return False


def _described(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {_shown(value)}"
    if isinstance(value, bool):
        return f"the boolean {dumps(value)}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list | tuple) else "an object"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value)
    text = " ".join(text.split())
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
