"""Tools as typed Python functions: schema from the signature and docstring, calls with errors.

The schema is in the dialect of the published files: ``parameters`` maps a name straight to its
schema, ``required`` stands beside it.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeVar

import msgspec
from docstring_parser import DocstringStyle, parse
from rapidfuzz import process

from pararecover_core.literals import dumps
from pararecover_core.records import Tool
from pararecover_core.sandbox.kinds import Kind

F = TypeVar("F", bound=Callable[..., Mapping[str, Any]])

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_JSON_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array",
               dict: "object", type(None): "null"}  # fmt: skip


class NotFoundError(Exception):
    """A tool looked for something that is not there; the text is shown as the observation."""


class Input(NamedTuple):
    """A parameter of a tool."""

    kind: Kind
    required: bool
    description: str


class SandboxTool(msgspec.Struct, frozen=True):
    """An executable tool.

    Attributes:
        inputs: Parameter name to kind, in signature order.
        outputs: Field of the result to kind.
        says: Ways to ask for it in a query; ``{name}`` stands for each required parameter.
        makes: How a query speaks of its result: "the flight".
    """

    name: str
    domain: str
    description: str
    function: Callable[..., Mapping[str, Any]]
    inputs: dict[str, Input]
    outputs: dict[str, Kind]
    says: tuple[str, ...]
    makes: str

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the required parameters."""
        return tuple(name for name, given in self.inputs.items() if given.required)

    def schema(self) -> dict[str, Any]:
        """The tool as an entry of a tool list."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                name: {"type": given.kind.json_type, "description": given.description}
                for name, given in self.inputs.items()
            },
            "required": list(self.required),
        }

    def record(self) -> Tool:
        """The tool as a record."""
        schema = self.schema()
        return Tool(self.name, self.description, schema["parameters"], self.required, schema)


class Outcome(NamedTuple):
    """What a call gave: the observation as text, and the value behind it where it succeeded."""

    text: str
    value: dict[str, Any] | None


_TOOLS: dict[str, SandboxTool] = {}


def tool(*says: str, makes: str) -> Callable[[F], F]:
    """Register a function as a tool of its module's domain.

    Args:
        says: N >= 1 ways to ask for it; every required parameter stands in each as ``{name}``.
        makes: How a query speaks of the result.

    Returns:
        A decorator that gives the function back as it is.

    Raises:
        TypeError: The function is not fully typed with kinds, lacks a docstring entry, or a
            ``says`` does not name each required parameter.
    """

    def register(function: F) -> F:
        made = _describe(function, says, makes)
        if made.name in _TOOLS:
            raise TypeError(f"two tools are named {made.name}")
        _TOOLS[made.name] = made
        return function

    return register


def _describe(
    function: Callable[..., Mapping[str, Any]], says: tuple[str, ...], makes: str
) -> SandboxTool:
    name = function.__name__
    doc = parse(function.__doc__ or "", DocstringStyle.GOOGLE)
    described = {param.arg_name: param.description or "" for param in doc.params}
    hints = typing.get_type_hints(function, include_extras=True)
    inputs = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in described:
            raise TypeError(f"{name}: the docstring does not describe {parameter.name}")
        required = parameter.default is inspect.Parameter.empty
        kind = _kind(hints[parameter.name], f"{name}.{parameter.name}")
        inputs[parameter.name] = Input(kind, required, described[parameter.name])
    result = typing.get_type_hints(hints["return"], include_extras=True)
    outputs = {field: _kind(hint, f"{name} -> {field}") for field, hint in result.items()}
    made = SandboxTool(
        name=name,
        domain=function.__module__.rpartition(".")[2],
        description=doc.short_description or "",
        function=function,
        inputs=inputs,
        outputs=outputs,
        says=says,
        makes=makes,
    )
    for say in says:
        absent = [parameter for parameter in made.required if "{" + parameter + "}" not in say]
        if absent or not says:
            raise TypeError(f"{name}: {say!r} does not name {', '.join(absent)}")
    return made


def _kind(hint: Any, where: str) -> Kind:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Kind):
            return extra
    raise TypeError(f"{where}: the type {hint} has no kind")


@cache
def tools() -> dict[str, SandboxTool]:
    """All tools by name; the domains are loaded on first use."""
    package = import_module("pararecover_core.sandbox.domains")
    for module in sorted(iter_modules(package.__path__), key=lambda found: found.name):
        import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_TOOLS.items()))


def call(name: str, arguments: Any) -> Outcome:
    """Call a tool as the environment does: check first, then run.

    Args:
        name: The tool's name as the plan gives it.
        arguments: Its named values, references already resolved.

    Returns:
        The observation. A faulty call gives a text that begins with "Error:" and says which of
        these it is: unknown tool, unknown parameter, missing parameter, wrong type, invalid
        value, not found.
    """
    found = tools().get(name)
    if found is None:
        near = process.extractOne(name, tools().keys(), score_cutoff=60)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        return Outcome(f"Error: unknown tool '{name}'.{hint}", None)
    if not isinstance(arguments, Mapping):
        return Outcome(f"Error: {name} takes named parameters: {', '.join(found.inputs)}.", None)
    fault = call_fault(found, arguments)
    if fault:
        return Outcome(f"Error: {fault}", None)
    try:
        value = dict(found.function(**arguments))
    except NotFoundError as error:
        return Outcome(f"Error: {error}", None)
    return Outcome(dumps(value), value)


def call_fault(found: SandboxTool, arguments: Mapping[str, Any]) -> str:
    """Why a call is illegal, or "" where it is legal."""
    for name in arguments:
        if name not in found.inputs:
            return (
                f"unknown parameter '{name}' for {found.name}; "
                f"it takes {', '.join(found.inputs) or 'none'}."
            )
    for name in found.required:
        if name not in arguments:
            return f"missing required parameter '{name}' for {found.name}."
    faults = (value_fault(found, name, value) for name, value in arguments.items())
    return next(filter(None, faults), "")


def value_fault(found: SandboxTool, name: str, value: Any) -> str:
    """Why the value of a defined parameter is illegal, or "" where it is legal."""
    kind = found.inputs[name].kind
    is_bool = isinstance(value, bool) and kind.json_type != "boolean"
    if is_bool or not isinstance(value, _PYTHON_TYPES[kind.json_type]):
        given = _JSON_NAMES.get(type(value), type(value).__name__)
        return f"parameter '{name}' of {found.name} must be {kind.json_type}, got {given}."
    expected = kind.check(value)
    if expected:
        return f"invalid value {dumps(value)} for parameter '{name}': expected {expected}."
    return ""
