"""The environment in which a model plays the tools, for tool lists that nobody can run.

A call is checked against the tool list first: an illegal one is answered with an error and no
model is asked. Some legal calls fail on purpose, by chance that a seed fixes.

Source: paper section 2.1.1 and appendix E (the tool agent's prompt, here in our own words).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pararecover_core.agents.llm_agent import shared_model
from pararecover_core.completions import Request, Status, endpoint_from_environment, fenced
from pararecover_core.errors import ConfigError
from pararecover_core.execute import Environment, UnavailableError
from pararecover_core.findings.scene import result_in
from pararecover_core.literals import dumps
from pararecover_core.llm import Model
from pararecover_core.loose_json import LooseJsonError, objects, without_thinking
from pararecover_core.plan import Node, Plan
from pararecover_core.prompt_files import agent_prompt
from pararecover_core.records import Instance, Tool, ToolCall, as_text

FAILURES = (
    "Error: request timed out after 30 seconds.",
    "[]",
    "Error: the service is not available (503). Try again.",
)
"""What a call returns that fails on purpose: one of these."""

_SHOWN = 12
"""Earlier results that the model is shown, newest last."""

_REFERENCE = re.compile(
    r"\$\{?[\w.\-]+|(?:output|result)s? (?:of|from)\b|(?:node|task|step|节点|任务)\s*_?\d+.{0,40}"
    r"(?:output|result|输出|结果)|\{\{.+\}\}|<.+>",
    re.I | re.S,
)
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "str": (str,),
    "integer": (int,),
    "int": (int,),
    "number": (int, float),
    "float": (int, float),
    "boolean": (bool,),
    "bool": (bool,),
    "array": (list, tuple),
    "list": (list, tuple),
    "object": (Mapping,),
    "dict": (Mapping,),
}


def call_error(tools: Mapping[str, Tool], node: Node) -> str:
    """What is illegal about a call as its tool would say it, "" where nothing is.

    A reference to another node's output may stand for a value of any type.
    """
    tool = tools.get(node.name)
    if tool is None:
        return f"Error: unknown tool '{node.name}'."
    if node.parameters.positional:
        return f"Error: {tool.name} takes its parameters by name."
    given = node.parameters.named
    for name in given:
        if tool.parameters and name not in tool.parameters:
            known = ", ".join(tool.parameters)
            return f"Error: unknown parameter '{name}' for {tool.name}; it takes {known}."
    for name in tool.required:
        if name not in given or given[name] is None:
            return f"Error: missing required parameter '{name}' for {tool.name}."
    for name, value in given.items():
        problem = _type_problem(tool.parameters.get(name), value)
        if problem:
            return f"Error: parameter '{name}' of {tool.name} must be {problem}."
    return ""


def _type_problem(schema: Any, value: Any) -> str:
    """The type or the values that a schema wants where a value has another."""
    if not isinstance(schema, Mapping) or value is None:
        return ""
    if isinstance(value, str) and _REFERENCE.search(value):
        return ""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices and value not in choices:
        return f"one of {dumps(choices)}, not {dumps(value)}"
    wanted = str(schema.get("type", "")).casefold()
    types = _TYPES.get(wanted)
    right = types is None or (
        isinstance(value, types) and (not isinstance(value, bool) or bool in types)
    )
    return "" if right else f"{wanted}, not {type(value).__name__}"


class SimulatedEnvironment:
    """Plays the tools of one instance over one trajectory.

    The same call has the same answer as long as the trajectory lasts, unless it failed on
    purpose; then a repetition is a new chance.

    Args:
        model: Who plays.
        instance: Its tools and its query; results that it shows are known from the start.
        failure_rate: Share of legal calls that fail, in [0, 1].
        seed: Fixes which ones.
    """

    def __init__(
        self, model: Model, instance: Instance, *, failure_rate: float = 0.0, seed: int = 0
    ) -> None:
        self._model, self._query = model, instance.query
        self._tools = {tool.name: tool for tool in instance.tools}
        self._rate, self._seed = failure_rate, f"{seed}:{instance.key}"
        self._answers: dict[str, str] = {}
        self._results: dict[str, str] = {}
        self._calls = 0
        for node in instance.plan.by_id.values():
            noted = result_in(node.description) if node.done else None
            if noted:
                self._results[node.id] = f"{_written(node)} -> {noted}"
        for seen in instance.observations:
            self._results[seen.node] = f"{seen.name} {as_text(seen.arguments)} -> {seen.result}"

    def observe(self, plan: Plan, frontier: Sequence[str]) -> tuple[ToolCall, ...]:
        """Answer the calls of a round, all on what was known before it; see ``Environment``.

        Raises:
            UnavailableError: The model did not answer.
        """
        nodes = [node for node in map(plan.by_id.__getitem__, frontier) if node.calls_tool]
        results = {node.id: self._without_model(node) for node in nodes}
        asked = [node for node in nodes if results[node.id] is None]
        unique = {self._identity(node): node for node in asked}
        for identity, text in zip(unique, self._play(list(unique.values())), strict=True):
            self._answers[identity] = text
        seen = []
        for node in nodes:
            result = results[node.id]
            text = self._answers[self._identity(node)] if result is None else result
            seen.append(ToolCall(node.name, node.parameters.named or None, text, node.id))
            self._results[node.id] = f"{_written(node)} -> {text}"
        return tuple(seen)

    def _without_model(self, node: Node) -> str | None:
        self._calls += 1
        problem = call_error(self._tools, node)
        if problem:
            return problem
        chance, which = _chance(self._seed, self._calls, _written(node))
        if chance < self._rate:
            return FAILURES[which % len(FAILURES)]
        return self._answers.get(self._identity(node))

    def _identity(self, node: Node) -> str:
        """A call with what its references stand for now."""
        used = [self._results.get(dep, "") for dep in node.dependencies]
        text = _written(node)
        return dumps([text, used]) if _REFERENCE.search(text) else text

    def _play(self, nodes: Sequence[Node]) -> list[str]:
        requests = [self.request(node) for node in nodes]
        found = self._model.ask_all(requests) if requests else []
        for one in found:
            if one.status is not Status.OK:
                raise UnavailableError(f"the model that plays the tools: {one.status}: {one.error}")
        return [_result(one.text) for one in found]

    def request(self, node: Node) -> Request:
        """The question about one call."""
        prompt = agent_prompt("tools")
        tool = self._tools[node.name]
        earlier = list(self._results.items())[-_SHOWN:]
        parts = (
            ("what the user wants", self._query),
            ("tool", as_text(tool.given) if tool.given is not None else dumps(tool.parameters)),
            ("earlier results", "\n".join(f"node {i}: {text}" for i, text in earlier) or "none"),
            ("call", _written(node)),
        )
        user = "\n\n".join(fenced(label, text) for label, text in parts)
        return Request((("system", prompt.text), ("user", user)), version=prompt.name)


def _written(node: Node) -> str:
    return f"{node.name} {dumps(dict(sorted(node.parameters.named.items())))}"


def _chance(seed: str, number: int, call: str) -> tuple[float, int]:
    digest = hashlib.blake2b(f"{seed}:{number}:{call}".encode("utf-8", "replace"), digest_size=9)
    data = digest.digest()
    return int.from_bytes(data[:8], "big") / 2**64, data[8]


def _result(text: str) -> str:
    """The object in an answer as compact JSON; an answer without one as it is."""
    try:
        said = without_thinking(text).strip()
        found = next(iter(objects(said, "{[")), None)
    except LooseJsonError:
        return text.strip()
    return dumps(found.value) if found is not None and found.value is not None else said


class SimulatedEnvironments(msgspec.Struct, frozen=True):
    """Makes the simulated environment of any instance; pickles.

    Attributes:
        model: Who plays, by its name at the endpoint that the environment names.
    """

    model: str
    failure_rate: float = 0.0
    seed: int = 0
    timeout: float = 120.0

    def __call__(self, instance: Instance) -> Environment:
        """The environment of one trajectory."""
        model = shared_model(self.model, self.timeout)
        return SimulatedEnvironment(model, instance, failure_rate=self.failure_rate, seed=self.seed)


def simulated(model: str, *, failure_rate: float = 0.0, seed: int = 0) -> SimulatedEnvironments:
    """The factory of simulated environments.

    Raises:
        ConfigError: No endpoint is set, or the rate is no share.
    """
    if not 0.0 <= failure_rate <= 1.0:
        raise ConfigError("failure rate", str(failure_rate), "a number from 0 to 1", "Correct it")
    endpoint_from_environment(model)
    return SimulatedEnvironments(model, failure_rate, seed)
