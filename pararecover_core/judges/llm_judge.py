"""The LLM judge: a model and one prompt or several that score replans, with reasons."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pararecover_core.completions import Completion, Request, Status, Usage
from pararecover_core.judges.answer import (
    PARSER_VERSION,
    Scored,
    UnparsableError,
    answer_schema,
    parse_answer,
)
from pararecover_core.judges.prompt import Prompt, item_text
from pararecover_core.records import Instance, Replan
from pararecover_core.rubric import JUDGED

if TYPE_CHECKING:
    from pararecover_core.llm import Model

CHARACTERS_PER_TOKEN = 3.5
"""Rough figure for forecasts; counted tokens replace it as soon as there are any."""

ANSWER_TOKENS = 60
"""Tokens of one score with its reason, roughly."""


class Judgement(msgspec.Struct, frozen=True):
    """What one call of a judge gave.

    Attributes:
        dimensions: Sub-dimensions that were asked.
        scores: By sub-dimension; empty unless ``status`` is ``ok``.
        status: What became of the call: a failure is never a score.
        error: Why it is not ``ok``.
        prompt: Name of the prompt, "" for the program.
    """

    replan: str
    scorer: str
    dimensions: tuple[str, ...]
    scores: dict[str, Scored]
    status: Status = Status.OK
    error: str = ""
    prompt: str = ""
    usage: Usage = Usage()
    raw: str = ""
    seconds: float = 0.0
    cached: bool = False


class Item(NamedTuple):
    """What a judge is given."""

    instance: Instance
    replan: Replan


class Task(NamedTuple):
    """One call to make.

    Attributes:
        attempt: How often it failed before.
    """

    item: Item
    prompt: Prompt
    dimensions: tuple[str, ...]
    attempt: int = 0


def scorer_name(model: str, prompts: Sequence[Prompt], sample: int = 0) -> str:
    """``judge:MODEL@PROMPT``, prompts joined by ``+``, ``#K`` for the K-th of repeated runs."""
    run = f"#{sample}" if sample else ""
    return f"judge:{model}@{'+'.join(prompt.name for prompt in prompts)}{run}"


class LlmJudge:
    """A model with its prompts.

    Args:
        model: Where to ask.
        prompts: What to ask; each its own call, no sub-dimension in two of them.
        sample: Which of repeated runs this is, from 1 (self-consistency); 0 for a single run.
        temperature: As the endpoint takes it; repeated runs at 0 are nearly the same run.
        max_tokens: Length of an answer at most, reasoning included; a cut one gets more once.
    """

    def __init__(
        self,
        model: "Model",
        prompts: Sequence[Prompt],
        *,
        sample: int = 0,
        temperature: float = 0.0,
        max_tokens: int = 4096,
    ) -> None:
        self.model, self.prompts, self.sample = model, tuple(prompts), sample
        self.scorer = scorer_name(model.endpoint.model, prompts, sample)
        self._max_tokens, self._temperature = max_tokens, temperature
        self._instructions: dict[tuple[str, tuple[str, ...]], str] = {}
        self._shown: tuple[Item | None, str] = None, ""

    def tasks(self, item: Item, dimensions: Iterable[str] = JUDGED) -> list[Task]:
        """The calls that score these sub-dimensions of an item."""
        wanted = frozenset(dimensions)
        asked = ((p, tuple(d for d in p.dimensions if d in wanted)) for p in self.prompts)
        return [Task(item, prompt, some) for prompt, some in asked if some]

    def request(self, task: Task) -> Request:
        """The question of a call."""
        return Request(
            messages=(("system", self._system(task)), ("user", self._user(task.item))),
            schema=answer_schema(task.dimensions),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            version=PARSER_VERSION,
            sample=self.sample,
            attempt=task.attempt,
        )

    def _system(self, task: Task) -> str:
        key = task.prompt.name, task.dimensions
        if key not in self._instructions:
            self._instructions[key] = task.prompt.instructions(task.dimensions)
        return self._instructions[key]

    def _user(self, item: Item) -> str:
        """The item as text; calls of one item follow each other and share it."""
        if self._shown[0] is not item:
            self._shown = item, item_text(*item)
        return self._shown[1]

    def read(self, task: Task, completion: Completion) -> Judgement:
        """The judgement in an answer."""
        return self.read_for(task.item.replan.key, task.prompt, task.dimensions, completion)

    def read_for(
        self, replan: str, prompt: Prompt, dimensions: tuple[str, ...], completion: Completion
    ) -> Judgement:
        """The judgement in an answer about a replan that is known by its key."""
        status, error = completion.status, completion.error
        scores: dict[str, Scored] = {}
        if status is Status.OK:
            try:
                scores = parse_answer(completion.text, dimensions)
            except UnparsableError as problem:
                status, error = Status.UNPARSABLE, str(problem)
        made: dict[str, Any] = {
            name: getattr(completion, name) for name in ("usage", "raw", "seconds", "cached")
        }
        return Judgement(
            replan, self.scorer, dimensions, scores, status, error, prompt.name, **made
        )


def forecast(tasks: Iterable[Task]) -> Usage:
    """Tokens that calls will take, roughly: from the length of their texts."""
    prompt = completion = 0.0
    lengths: dict[tuple[str, tuple[str, ...]], int] = {}
    for task in tasks:
        key = task.prompt.name, task.dimensions
        if key not in lengths:
            lengths[key] = len(task.prompt.instructions(task.dimensions))
        prompt += (lengths[key] + len(item_text(*task.item))) / CHARACTERS_PER_TOKEN
        completion += ANSWER_TOKENS * len(task.dimensions)
    return Usage(round(prompt), round(completion))


def judge_many(
    judge: LlmJudge,
    tasks: Iterable[Task],
    done: Callable[[Judgement], object],
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Make many calls; each judgement is handed over as soon as it is there.

    Args:
        judge: Who judges.
        tasks: Drawn as the model becomes free, so that memory does not grow with them.
        done: Called in this thread with each judgement.
        cancelled: Looked at often; true ends the run.
    """
    judge.model.ask_many(
        ((task, judge.request(task)) for task in tasks),
        lambda task, completion: done(judge.read(task, completion)),
        cancelled=cancelled,
    )
