"""The LLM judge: a model and a prompt that score replans, with reasons."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from pararecover_core.judges.answer import (
    PARSER_VERSION,
    Scored,
    UnparsableError,
    answer_schema,
    parse_answer,
)
from pararecover_core.judges.prompt import Prompt, item_text
from pararecover_core.llm import Completion, Model, Request, Status, Usage
from pararecover_core.records import Instance, Replan
from pararecover_core.rubric import JUDGED

CHARACTERS_PER_TOKEN = 4.0
"""Rough figure for forecasts; counted tokens replace it as soon as there are any."""


class Judgement(msgspec.Struct, frozen=True):
    """What a judge said of one replan.

    Attributes:
        scores: By sub-dimension; empty unless ``status`` is ``ok``.
        status: What became of the call: a failure is never a score.
        error: Why it is not ``ok``.
    """

    replan: str
    scorer: str
    scores: dict[str, Scored]
    status: Status = Status.OK
    error: str = ""
    usage: Usage = Usage()
    raw: str = ""
    seconds: float = 0.0
    cached: bool = False


class Item(NamedTuple):
    """What a judge is given."""

    instance: Instance
    replan: Replan


class LlmJudge:
    """A model with a prompt.

    Args:
        model: Where to ask.
        prompt: What to ask.
        dimensions: Which sub-dimensions, all 13 by default.
        sample: Which of k repeated runs this is, from 0 (self-consistency).
        max_tokens: Length of an answer at most.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        *,
        dimensions: Sequence[str] = JUDGED,
        sample: int = 0,
        max_tokens: int = 3000,
    ) -> None:
        self.model, self.prompt, self.sample = model, prompt, sample
        self.dimensions = tuple(dimensions)
        self._max_tokens = max_tokens
        self._system = prompt.instructions(self.dimensions)

    @property
    def scorer(self) -> str:
        """The scorer name: ``judge:MODEL@PROMPT``, with ``#K`` for repeated runs."""
        run = f"#{self.sample + 1}" if self.sample else ""
        return f"judge:{self.model.endpoint.model}@{self.prompt.name}{run}"

    def request(self, item: Item) -> Request:
        """The question about one item."""
        return Request(
            messages=(("system", self._system), ("user", item_text(*item))),
            schema=answer_schema(self.dimensions),
            max_tokens=self._max_tokens,
            version=PARSER_VERSION,
            sample=self.sample,
            temperature=0.7 if self.sample else 0.0,
        )

    def read(self, replan: str, completion: Completion) -> Judgement:
        """The judgement in an answer."""
        made: dict[str, Any] = {
            "usage": completion.usage,
            "raw": completion.raw,
            "seconds": completion.seconds,
            "cached": completion.cached,
        }
        if completion.status is not Status.OK:
            return Judgement(replan, self.scorer, {}, completion.status, completion.error, **made)
        try:
            scores = parse_answer(completion.text, self.dimensions)
        except UnparsableError as error:
            return Judgement(replan, self.scorer, {}, Status.UNPARSABLE, str(error), **made)
        return Judgement(replan, self.scorer, scores, **made)

    def forecast_tokens(self, items: Sequence[Item], total: int) -> Usage:
        """Tokens that ``total`` items will take, judged by a few of them."""
        if not items:
            return Usage()
        characters = sum(len(self._system) + len(item_text(*item)) for item in items) / len(items)
        answer = 60.0 * len(self.dimensions)
        return Usage(round(characters / CHARACTERS_PER_TOKEN * total), round(answer * total))


def judge_many(
    judge: LlmJudge,
    items: Iterable[Item],
    done: Callable[[Judgement], object],
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Judge many items; each judgement is handed over as soon as it is there.

    Args:
        judge: Who judges.
        items: Drawn as the model becomes free, so that memory does not grow with them.
        done: Called in this thread with each judgement.
        cancelled: Asked before every call.
    """
    judge.model.ask_many(
        ((item.replan.key, judge.request(item)) for item in items),
        lambda replan, completion: done(judge.read(replan, completion)),
        cancelled=cancelled,
    )
