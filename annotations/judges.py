"""Which judge a name means, and what a run of it would do: one way for the command and the app."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from platformdirs import user_cache_path

from annotations.answer_cache import AnswerCache
from annotations.judge_job import ModelJudge, Part, Program
from annotations.judging import Forecast, RunPlan, Scope, Work, find_work, foresee
from annotations.prompts import get_prompts
from annotations.store import Store
from pararecover_core.completions import Endpoint, Usage, endpoint_from_environment
from pararecover_core.errors import InputError
from pararecover_core.judges.llm_judge import LlmJudge, scorer_name
from pararecover_core.prices import price_of
from pararecover_core.rubric import JUDGED

PROGRAM = "program"
"""The judge that asks no model."""

ANSWERS = "answers.db"
"""File in the cache folder that holds answers of models."""

DEFAULT_PROMPT = "sde"

REPEATED_TEMPERATURE = 0.7
"""Of several runs of one judge, where none is asked for: at 0 they would be nearly the same run."""


class Order(msgspec.Struct, frozen=True):
    """What a person asks for.

    Attributes:
        judge: ``PROGRAM`` or the name of a model at the endpoint.
        prompt: Names of prompts with ``+`` between; an id alone means its newest version.
        samples: How often the same judge runs (self-consistency).
        retry_failed: Only calls that failed before.
        temperature: None for that of earlier runs of the same name, else 0, or
            ``REPEATED_TEMPERATURE`` where the judge runs several times.
    """

    judge: str
    prompt: str = DEFAULT_PROMPT
    dimensions: tuple[str, ...] = JUDGED
    scope: Scope = Scope()
    samples: int = 1
    concurrency: int = 8
    per_minute: int = 0
    timeout: float = 180.0
    max_tokens: int = 4096
    retry_failed: bool = False
    started_by: str = ""
    temperature: float | None = None


def order_of(
    *,
    judge: str,
    prompts: Sequence[str],
    batch: int | None,
    scored: bool,
    dimensions: Sequence[str],
    limit: int,
    **rest: Any,
) -> Order:
    """The order that a filled form means.

    Args:
        judge: ``PROGRAM`` or the name of a model, spaces around it passed over.
        prompts: Names of prompts; none means the usual one.
        batch: Only of this batch.
        scored: Only replans that people scored; of a batch not asked.
        dimensions: Sub-dimensions in any order.
        limit: Replans at most, 0 for all.
        rest: Further fields of ``Order``.
    """
    scope = Scope(batch=batch, scored=scored and batch is None, limit=limit or None)
    asked = tuple(d for d in JUDGED if d in dimensions)
    return Order(judge.strip(), "+".join(prompts) or DEFAULT_PROMPT, asked, scope, **rest)


class Prepared(msgspec.Struct, frozen=True):
    """A run that may begin.

    Attributes:
        works: What is to do, a sample each.
        forecast: Of all samples together; None for the program.
        endpoint: Who is asked; None for the program.
    """

    parts: list[Part]
    works: list[Work]
    forecast: Forecast | None
    endpoint: Endpoint | None = None

    @property
    def calls(self) -> int:
        """Calls to make."""
        return sum(len(part.todo) for part in self.parts)


def cache_folder() -> Path:
    """Where answers of models are kept: ``PARARECOVER_CACHE``, else the user's cache folder."""
    named = os.environ.get("PARARECOVER_CACHE", "").strip()
    if named:
        return Path(named).expanduser()
    return user_cache_path("pararecover", appauthor=False) / "answers"


def answers() -> AnswerCache:
    """Where every model's answers are kept."""
    return AnswerCache(cache_folder() / ANSWERS)


def prepare(store: Store, order: Order) -> Prepared:
    """Find out what a run would do, without asking anybody.

    Raises:
        InputError: A prompt or a number is not possible.
        ConfigError: No endpoint is set.
    """
    if order.samples < 1:
        raise InputError("samples", str(order.samples), "1 or more", "Correct the number")
    return _program(store, order) if order.judge == PROGRAM else _model(store, order)


def _program(store: Store, order: Order) -> Prepared:
    judge = Program()
    work = find_work(
        store,
        judge.scorer,
        [JUDGED],
        scope=order.scope,
        dimensions=order.dimensions,
        retry_failed=order.retry_failed,
    )
    plan = _plan(order, judge.scorer, "")
    return Prepared([Part(judge, work.todo, plan)], [work], None)


def _model(store: Store, order: Order) -> Prepared:
    from pararecover_core.llm import Model  # takes a third of a second to import

    prompts = get_prompts(store, order.prompt)
    if not any(d in order.dimensions for prompt in prompts for d in prompt.dimensions):
        asked = ", ".join(d for prompt in prompts for d in prompt.dimensions)
        got = ", ".join(order.dimensions) or "none"
        raise InputError("dimensions", got, f"some of {asked}", "Choose another prompt")
    endpoint = endpoint_from_environment(
        order.judge,
        concurrency=order.concurrency,
        per_minute=order.per_minute,
        timeout=order.timeout,
    )
    model, price = Model(endpoint, cache=answers()), price_of(order.judge)
    parts, works = [], []
    repeated = order.samples > 1
    heat = _temperature(store, scorer_name(order.judge, prompts), order, repeated=repeated)
    for sample in range(1, order.samples + 1) if repeated else (0,):
        judge = LlmJudge(
            model, prompts, sample=sample, temperature=heat, max_tokens=order.max_tokens
        )
        work = find_work(
            store,
            judge.scorer,
            [prompt.dimensions for prompt in prompts],
            scope=order.scope,
            dimensions=order.dimensions,
            names=[prompt.name for prompt in prompts],
            retry_failed=order.retry_failed,
        )
        plan = _plan(order, judge.scorer, endpoint.base_url, heat)
        parts.append(Part(ModelJudge(judge, price), work.todo, plan))
        works.append(work)
    return Prepared(parts, works, forecast_of(store, parts), endpoint)


def _plan(order: Order, scorer: str, base_url: str, heat: float = 0.0) -> RunPlan:
    scope = {
        name: value
        for name, value in msgspec.structs.asdict(order.scope).items()
        if value and name not in ("replans", "cells")
    }
    settings: dict[str, Any] = {"prompt": order.prompt if base_url else "", "scope": scope}
    settings |= {"retry_failed": order.retry_failed, "max_tokens": order.max_tokens}
    if base_url:
        settings["temperature"] = heat
    return RunPlan(scorer, base_url, order.dimensions, settings, order.started_by)


def _temperature(store: Store, scorer: str, order: Order, *, repeated: bool) -> float:
    """The temperature of a run; a judge has one, and another one when it runs repeatedly.

    Raises:
        InputError: The judge has scored at another temperature.
    """
    query = (
        "SELECT DISTINCT COALESCE(json_extract(settings, '$.temperature'), 0) FROM judge_run r "
        f"WHERE {'substr(scorer, 1, length(?1) + 1)' if repeated else 'scorer'} = ?1 || ?2 "
        "AND EXISTS (SELECT 1 FROM judgement j WHERE j.run = r.id)"
    )
    with store.read() as db:
        values = (scorer, "#" if repeated else "")
        known = [float(row[0]) for row in db.execute(query, values)]
    asked = order.temperature
    if asked is None:
        usual = REPEATED_TEMPERATURE if repeated else 0.0
        return known[0] if known else usual
    if known and asked not in known:
        cure = "Ask for that temperature, or let the judge run several times: these have own names"
        raise InputError(f"temperature of {scorer}", f"{asked:g}", f"{known[0]:g} as before", cure)
    return asked


def forecast_of(store: Store, parts: Sequence[Part]) -> Forecast | None:
    """What the parts of a run by a model will take together; None where there are none."""
    found = [
        foresee(store, part.todo, judge.scorer, judge.judge.prompts, judge.known_price)
        for part in parts
        if isinstance(judge := part.judge, ModelJudge)
    ]
    return _together(found) if found else None


def _together(forecasts: Sequence[Forecast]) -> Forecast:
    costs = [one.cost for one in forecasts]
    return Forecast(
        sum(one.calls for one in forecasts),
        sum((one.usage for one in forecasts), start=Usage()),
        None if None in costs else sum(c for c in costs if c is not None),
        min(one.counted for one in forecasts),
    )
