"""Benchmark instances from the sandbox, in the paper's proportions and file format.

Source: paper section 2.1.3 and appendix F (tables 10 and 11: counts by type, level and round).
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from enum import StrEnum
from functools import partial
from typing import Any

from pararecover_core.errors import InputError
from pararecover_core.inject import make_instance
from pararecover_core.literals import dumps
from pararecover_core.parallel import ordered
from pararecover_core.records import Instance
from pararecover_core.rollout import rollout
from pararecover_core.sandbox.compose import Shape, compose
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.taxonomy import ErrorType

_TRIES = 400

_E = ErrorType
LEVEL_1: dict[ErrorType, int] = {
    _E.PARAMETER_MISSING: 333, _E.PARAMETER_INVALID: 341, _E.PARAMETER_ERROR: 276,
    _E.TYPE_ERROR: 322, _E.TOOL_NAME_ERROR: 258, _E.TOOL_SELECT_ERROR: 266,
    _E.TOOLCALL_MISSING: 307, _E.TOOLCALL_REDUNDANCY: 296, _E.DEPENDENCE_ERROR: 278,
    _E.DEPENDENCE_NULL: 252, _E.SERIAL_ERROR: 407, _E.PARALLELISM_ERROR: 268,
    _E.NULL_ERROR: 210, _E.TIMEOUT_ERROR: 219,
}  # fmt: skip
"""Table 10: instances by error type."""

LEVEL_2: dict[ErrorType, tuple[int, int, int]] = {
    _E.PARAMETER_MISSING: (429, 443, 198), _E.PARAMETER_INVALID: (528, 544, 204),
    _E.PARAMETER_ERROR: (428, 416, 187), _E.TYPE_ERROR: (598, 553, 197),
    _E.TOOL_NAME_ERROR: (554, 485, 181), _E.TOOL_SELECT_ERROR: (435, 370, 177),
    _E.TOOLCALL_MISSING: (558, 554, 203), _E.TOOLCALL_REDUNDANCY: (540, 530, 206),
    _E.DEPENDENCE_ERROR: (449, 483, 208), _E.DEPENDENCE_NULL: (395, 417, 203),
    _E.SERIAL_ERROR: (506, 494, 191), _E.PARALLELISM_ERROR: (353, 397, 214),
    _E.NULL_ERROR: (394, 456, 189), _E.TIMEOUT_ERROR: (426, 451, 191),
}  # fmt: skip
"""Table 11: instances by error type in the first, second and third round."""

_THIRD_ROUND_SHARE = 2750 / 6593


class Mix(StrEnum):
    """In what proportions error types occur."""

    PAPER = "paper"
    UNIFORM = "uniform"


def apportion(weights: dict[ErrorType, int], count: int) -> list[ErrorType]:
    """Types in the proportion of their weights, by largest remainder.

    Args:
        weights: A positive weight for each type.
        count: How many to give out, >= 0.

    Returns:
        ``count`` types, grouped; each type's number is within one of its exact share.
    """
    total = sum(weights.values())
    shares = {kind: count * weight / total for kind, weight in weights.items()}
    numbers = {kind: int(share) for kind, share in shares.items()}
    rest = sorted(shares, key=lambda kind: numbers[kind] - shares[kind])
    for kind in rest[: count - sum(numbers.values())]:
        numbers[kind] += 1
    return [kind for kind, number in numbers.items() for _ in range(number)]


def error_plan(level: int, count: int, seed: str, mix: Mix) -> list[tuple[ErrorType, ...]]:
    """Which error types each of ``count`` instances carries, in order of rounds.

    Raises:
        InputError: The level is neither 1 nor 2.
    """
    if level not in (1, 2):
        raise InputError("level", str(level), "1 or 2", "Choose one of the two levels")
    draw = Draw("types", seed, level)
    columns = [LEVEL_1] if level == 1 else [{k: v[i] for k, v in LEVEL_2.items()} for i in range(3)]
    if mix is Mix.UNIFORM:
        columns = [dict.fromkeys(ErrorType, 1) for _ in columns]
    counts = [count, count, round(count * _THIRD_ROUND_SHARE)][: len(columns)]
    drawn = [apportion(column, number) for column, number in zip(columns, counts, strict=True)]
    for types in drawn:
        draw.random.shuffle(types)
    return [tuple(types[index] for types in drawn if index < len(types)) for index in range(count)]


_DEPTHS = {1: 1, 2: 3, 3: 4}
"""Layers that a task must have to carry so many errors, one a round."""
_BRANCHING = frozenset({_E.SERIAL_ERROR, _E.DEPENDENCE_ERROR, _E.NULL_ERROR, _E.TIMEOUT_ERROR})
"""Errors that need a second branch, at the latest where another error came before them."""


def _shape(types: tuple[ErrorType, ...], name: str) -> Shape | None:
    """The shape of a task that can carry these errors; None where any will do."""
    single = len(types) == 1 and types[0] in (_E.NULL_ERROR, _E.TIMEOUT_ERROR)
    if single or (len(types) == 1 and types[0] not in _BRANCHING):
        return None
    return Draw("shape", name).choice((Shape.PARALLEL, Shape.PARALLEL_THEN_SEQUENCE))


def one_instance(job: tuple[int, tuple[ErrorType, ...]], *, seed: str, level: int) -> Instance:
    """The instance of one place in the file; it depends on its arguments alone.

    Args:
        job: Its place from 0, and its error types; no types for one from a rollout.
        seed: The file's seed.
        level: 1 or 2.

    Raises:
        InputError: None of many tasks can carry the errors.
    """
    index, types = job
    number, query_id = index + 1, f"{level}{index + 1:05d}"
    for attempt in range(_TRIES):
        name = f"{seed}/{level}/{index}/{attempt}"
        if types:
            task = compose(name, shape=_shape(types, name), depth=_DEPTHS[len(types)])
            made = make_instance(task, types, seed=name, number=number, query_id=query_id)
        else:
            task = compose(name, depth=1 + level)
            made = rollout(task, level=level, seed=name, number=number, query_id=query_id)
        if made is not None:
            return made
    wanted = ", ".join(types) or "a run that goes wrong"
    raise InputError(
        f"instance {index + 1}", f"no task that can carry {wanted}", "one in the sandbox",
        "Choose another seed",
    )  # fmt: skip


def generate(
    *,
    level: int,
    count: int,
    seed: str,
    mix: Mix = Mix.PAPER,
    rollouts: float = 0.0,
    executor: Executor | None = None,
) -> Iterator[Instance]:
    """Make instances in file order; the same arguments give the same instances.

    Args:
        level: 1 or 2.
        count: How many, >= 0.
        seed: Any text.
        mix: Proportions of error types among injected ones.
        rollouts: Share of instances from runs that went wrong by themselves, in [0, 1]; which
            errors these carry is not planned.
        executor: Where instances are made side by side; None for this thread.

    Yields:
        ``count`` instances; memory does not grow with them.

    Raises:
        InputError: The level is neither 1 nor 2.
    """
    by_themselves = round(rollouts * count)
    planned = error_plan(level, count - by_themselves, seed, mix)
    types: list[tuple[ErrorType, ...]] = [*planned, *[()] * by_themselves]
    if by_themselves:
        Draw("rollouts", seed, level).random.shuffle(types)
    jobs = enumerate(types)
    make = partial(one_instance, seed=seed, level=level)
    yield from ordered(make, jobs, executor)


def published(instance: Instance) -> dict[str, Any]:
    """An instance as a record of the paper's file format (nested values as JSON text).

    ``tag`` for LEVEL-1, ``tag_1`` to ``tag_3`` for LEVEL-2; ``error_reason`` and ``sandbox``
    (task seed, goal facts, injections) are ours.
    """
    tags: dict[str, Any] = {"tag": instance.tags[0]} if instance.level == 1 else {}
    if instance.level == 2:
        padded = [*instance.tags, None, None, None][:3]
        tags = {f"tag_{number + 1}": tag for number, tag in enumerate(padded)}
    calls = [
        {"name": call.name, "arguments": call.arguments, "results": call.result}
        for call in instance.observations
    ]
    given = instance.plan.given
    return {
        "id": int(instance.id) if instance.id.isdecimal() else instance.id,
        "query_id": instance.query_id,
        "tool_list": dumps([tool.given for tool in instance.tools]),
        "query": instance.query,
        "funcall_times_gt": str(instance.funcall_times_gt),
        "round_gt": str(instance.round_gt),
        **tags,
        "plan": given if isinstance(given, str) else dumps(given),
        "fun_call": dumps(calls),
        "error_reason": instance.error_reason,
        **instance.extra,
    }


def published_lines(instances: Iterable[Instance]) -> Iterator[str]:
    """JSON lines in the paper's file format, each with its line end."""
    for instance in instances:
        yield dumps(published(instance)) + "\n"
