"""The agent that is a model: it is shown the round, thinks, and writes the plan anew.

Source: paper section 2 (eq. 3), section 3.4 (few-shot) and appendix E (the planning prompt, here
in our own words).
"""

import re
from functools import cache
from typing import Any, NamedTuple

import json_repair
import msgspec

from pararecover_core.agents.choose import task_of
from pararecover_core.agents.oracle import Oracle
from pararecover_core.completions import (
    Completion,
    Endpoint,
    Request,
    Status,
    endpoint_from_environment,
    fenced,
)
from pararecover_core.execute import Agent, AgentError, Reply, UnavailableError, View
from pararecover_core.generate import one_instance
from pararecover_core.literals import dumps
from pararecover_core.llm import Model
from pararecover_core.loose_json import LooseJsonError, closing, objects, value, without_thinking
from pararecover_core.plan import Plan
from pararecover_core.prompt_files import agent_prompt
from pararecover_core.records import Instance, as_text
from pararecover_core.taxonomy import ErrorType

DEMONSTRATIONS = (ErrorType.PARAMETER_ERROR, ErrorType.NULL_ERROR, ErrorType.DEPENDENCE_ERROR)
"""What the three demonstrations recover from: a call, a tool's return, a dependency."""

_SEED = "demonstration"
_TAG = r"<\s*{0}\s*>(?P<inside>.*?)(?:<\s*/\s*{0}\s*>|\Z)"
_PLAN = re.compile(_TAG.format("(?:plan|replan|dag)"), re.S | re.I)
_THOUGHT = re.compile(_TAG.format("(?:thought|thinking|reasoning|analysis)"), re.S | re.I)
_LABEL = re.compile(r"\A\s*(?:#+\s*)?\**(?:thought|reasoning|思考)\**\s*[:：]?\**\s*", re.I)
_END = re.compile(
    r"(?:```[a-z]*|</?\w*>?|(?:#+\s*)?\**(?:new |updated )?(?:re)?plan\**\s*[:：]?\**)?\s*\Z", re.I
)


class Answer(NamedTuple):
    """Thought and plan of a model's text; the plan as text where it could not be read."""

    thought: str
    plan: Any


class LlmAgent:
    """A model that replans.

    Args:
        model: Where to ask.
        few_shot: Whether three solved cases go first.
        max_tokens: Length of an answer at most, reasoning included.
    """

    def __init__(self, model: Model, *, few_shot: bool = False, max_tokens: int = 8192) -> None:
        self.model, self._few_shot, self._max_tokens = model, few_shot, max_tokens
        self.name = agent_name(model.endpoint.model, few_shot)

    def replan(self, view: View) -> Reply:
        """Thought and new plan.

        Raises:
            UnavailableError: The endpoint failed.
            AgentError: The model refused or did not come to an end.
        """
        found = self.model.ask(self.request(view))
        if found.status in (Status.ENDPOINT_ERROR, Status.TIMED_OUT, Status.STOPPED):
            raise UnavailableError(f"{found.status}: {found.error}")
        if found.status is not Status.OK:
            raise AgentError(f"{found.status}: {found.error}")
        answer = read_answer(found.text)
        return Reply(answer.thought, answer.plan, found.text, _usage(found))

    def request(self, view: View) -> Request:
        """The question about a round."""
        prompt = agent_prompt("plan")
        shown = demonstrations() if self._few_shot else ()
        messages = (("system", prompt.text), *shown, ("user", view_text(view)))
        return Request(messages, max_tokens=self._max_tokens, version=prompt.name)


def agent_name(model: str, few_shot: bool = False) -> str:
    """What the agent is called in records."""
    return f"{model} few-shot" if few_shot else model


def _usage(found: Completion) -> dict[str, Any]:
    return {
        "prompt_tokens": found.usage.prompt,
        "completion_tokens": found.usage.completion,
        "seconds": round(found.seconds, 3),
    }


def view_text(view: View) -> str:
    """What an agent is shown of a round, every part fenced and named."""
    calls = "\n".join(
        f"node {seen.node or '?'}: {seen.name} {as_text(seen.arguments)} -> {seen.result}"
        for seen in view.observations
    )
    parts = (
        ("query", view.query),
        ("tools", as_text([_tool_data(tool) for tool in view.tools])),
        ("previous plan", as_text(view.plan.given)),
        ("observations", calls or "none"),
    )
    return "\n\n".join(fenced(label, text) for label, text in parts)


def _tool_data(tool: Any) -> Any:
    if tool.given is not None:
        return tool.given
    return {name: getattr(tool, name) for name in ("name", "description", "parameters", "required")}


@cache
def demonstrations() -> tuple[tuple[str, str], ...]:
    """Three cases as chat messages, repaired by the agent that knows the truth."""
    messages: list[tuple[str, str]] = []
    for number, kind in enumerate(DEMONSTRATIONS, start=1):
        instance = one_instance((number, (kind,)), seed=_SEED, level=1)
        view = View(instance.query, instance.tools, instance.plan, instance.observations)
        reply = Oracle(task_of(instance)).replan(view)
        answer = f"<thought>\n{reply.thought}\n</thought>\n<plan>\n{dumps(reply.plan)}\n</plan>"
        messages += [("user", view_text(view)), ("assistant", answer)]
    return tuple(messages)


def read_answer(text: str) -> Answer:
    """Thought and plan of a model's text.

    Args:
        text: In the asked form, or with fences, labels or one JSON object instead of tags.

    Returns:
        The plan as an object where it could be read, else as the text that stands for it: S5
        then says what is wrong. A plan that was cut is never completed.
    """
    try:
        said = without_thinking(text)
    except LooseJsonError:
        return Answer("", "")
    tagged = _PLAN.search(said)
    if tagged:
        before = said[: tagged.start()] + said[tagged.end() :]
        return Answer(_thought(before), read_plan(tagged["inside"]))
    return _untagged(said)


def _untagged(text: str) -> Answer:
    try:
        for found in objects(text, "{["):
            whole = found.value
            if isinstance(whole, dict) and "tasks" not in whole:
                inner = next((whole[k] for k in ("plan", "replan", "dag") if whole.get(k)), None)
                if inner is not None:
                    said = next((whole[k] for k in _THOUGHT_KEYS if k in whole), "")
                    return Answer(as_text(said).strip(), inner)
            elif _is_plan(whole):
                return Answer(_thought(text[: found.start]), whole)
    except LooseJsonError:
        pass
    at = text.find("{")
    return Answer(_thought(text[:at]), read_plan(text[at:])) if at >= 0 else Answer("", text)


_THOUGHT_KEYS = ("thought", "thinking", "reasoning", "analysis")


def _is_plan(found: Any) -> bool:
    tasks = found.get("tasks") if isinstance(found, dict) else found
    return isinstance(tasks, list) and bool(tasks) and all(isinstance(t, dict) for t in tasks)


def _thought(text: str) -> str:
    tagged = _THOUGHT.search(text)
    said = tagged["inside"] if tagged else text
    return _END.sub("", _LABEL.sub("", said)).strip()


def read_plan(text: str) -> Any:
    """A plan's text as an object: JSON, JSON as models write it, a Python literal.

    Returns:
        The object; the text itself where it is cut or cannot be read.
    """
    places = [at for char in "{[" if (at := text.find(char)) >= 0]
    if not places or (end := closing(text, min(places))) < 0:
        return text.strip()
    inside = text[min(places) : end]
    try:
        found = value(inside)
    except LooseJsonError:
        return text.strip()
    if found is None:  # complete, but neither JSON nor Python: missing commas, bare names
        found = json_repair.loads(inside)
    return found if Plan.parse(found).nodes else text.strip()


class LlmAgents(msgspec.Struct, frozen=True):
    """Makes the agent of any instance; pickles, so that processes may make their own.

    Attributes:
        model: Its name at the endpoint that the environment names.
        few_shot: Whether three solved cases go first.
    """

    model: str
    few_shot: bool = False
    timeout: float = 300.0

    @property
    def name(self) -> str:
        """What the agent is called in records."""
        return agent_name(self.model, self.few_shot)

    def __call__(self, _: Instance) -> Agent:
        """The agent; all in a process share one endpoint and its pauses."""
        return LlmAgent(shared_model(self.model, self.timeout), few_shot=self.few_shot)


def llm_agent(model: str, few_shot: bool = False) -> LlmAgents:
    """The factory of a model's agents.

    Raises:
        ConfigError: No endpoint is set.
    """
    endpoint_from_environment(model)
    return LlmAgents(model, few_shot)


def shared_model(name: str, timeout: float) -> Model:
    """One door a process and endpoint, so that pauses and what it takes are known to all."""
    return _model(endpoint_from_environment(name, timeout=timeout).base_url, name, timeout)


@cache
def _model(base_url: str, name: str, timeout: float) -> Model:
    endpoint: Endpoint = endpoint_from_environment(name, timeout=timeout)
    return Model(msgspec.structs.replace(endpoint, base_url=base_url))
