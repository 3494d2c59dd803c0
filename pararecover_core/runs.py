"""Many runs and answers, through any executor, each with its computed scores.

Source: paper sections 2.1.4 (E5, eq. 4) and 3.4 (judge-free metrics, table 8).
"""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec

from pararecover_core.agents.choose import AgentFactory
from pararecover_core.errors import InputError
from pararecover_core.execute import (
    ROUND_LIMIT,
    AgentError,
    Environment,
    replan,
    run,
)
from pararecover_core.literals import dumps
from pararecover_core.parallel import ordered
from pararecover_core.records import (
    Instance,
    Record,
    Replan,
    Trajectory,
    as_text,
    replan_key,
    to_data,
)
from pararecover_core.replay import ReplayEnvironment
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.sandbox.registry import tools
from pararecover_core.sandbox.success import correct
from pararecover_core.scores import BROKEN_OFF, run_efficacy, tool_use_efficiency

CHUNK = 10
"""Jobs that travel to a worker together: few, so that all workers end at about one time.

An instance that several of them share travels once.
"""

EnvironmentFactory = Callable[[Instance], Environment]
"""Makes what runs the calls of one instance."""


class EnvironmentKind(StrEnum):
    """What runs the calls; all but ``simulated`` need nothing but the instance."""

    SANDBOX = "sandbox"
    REPLAY = "replay"
    SIMULATED = "simulated"


def sandbox_for(instance: Instance) -> Environment:
    """The sandbox, with the results behind an instance known.

    Raises:
        InputError: The instance lists no tool of the sandbox.
    """
    if not any(tool.name in tools() for tool in instance.tools):
        where = f"instance {instance.id or instance.key}"
        cure = "Use --env replay or --env simulated, or instances that `generate` made"
        raise InputError(where, "none of the sandbox's tools", "a task of the sandbox", cure)
    environment = SandboxEnvironment(instance.plan)
    environment.learn(instance.observations)
    return environment


ENVIRONMENTS: dict[EnvironmentKind, EnvironmentFactory] = {
    EnvironmentKind.SANDBOX: sandbox_for,
    EnvironmentKind.REPLAY: ReplayEnvironment.of_instance,
}


class Job(msgspec.Struct, frozen=True):
    """One agent's work on one instance.

    Attributes:
        agent: Makes the agent.
        first: An answer that was already given, with which a run begins.
    """

    instance: Instance
    agent: AgentFactory
    first: Replan | None = None


def run_many(
    jobs: Iterable[Job],
    environment: EnvironmentFactory,
    *,
    round_limit: int = ROUND_LIMIT,
    executor: Executor | None = None,
    cancelled: Callable[[], bool] | None = None,
    chunk: int = CHUNK,
) -> Generator[Trajectory, None, None]:
    """Runs in the order of the jobs, with their scores; see ``measured``.

    Each run names the key of the answer that it begins with as ``replan`` in ``extra``.

    Args:
        jobs: N jobs, read as they are needed; those of one instance best one after another.
        environment: Makes the environment of an instance.
        round_limit: Rounds after which a run has failed, >= 1.
        executor: Where runs are made side by side; None for this thread.
        cancelled: Asked before every round; only for threads, a process cannot see it.
        chunk: Jobs that travel together; 1 where each waits for a model.

    Raises:
        InputError: An instance does not fit the agent or the environment.
    """
    work = partial(_run, environment=environment, round_limit=round_limit, cancelled=cancelled)
    yield from ordered(work, jobs, executor, chunk=chunk, ahead=_ahead(chunk))


class Line(msgspec.Struct, frozen=True):
    """A run as the line of a file, written where it was made: cheap to send between processes.

    Attributes:
        instance: Key of its instance.
        outcome: How it ended.
        said: What was said last, for runs that got no answer.
        text: The record as JSON, with its line end.
        answer: The run's first answer as another such line, b"" where it was given before.
        answer_key: Key of that answer, "" where there is none.
    """

    instance: str
    agent: str
    outcome: str
    said: str
    text: bytes
    answer: bytes = b""
    answer_key: str = ""


def as_line(trajectory: Trajectory, answer: Replan | None = None) -> Line:
    """A run as a line, its first answer as another."""
    return Line(
        trajectory.instance,
        trajectory.agent,
        trajectory.outcome,
        trajectory.rounds[-1].thought,
        line_of(trajectory),
        line_of(answer) if answer else b"",
        answer.key if answer else "",
    )


def line_of(record: Record) -> bytes:
    """A record as JSON with its line end."""
    return dumps(to_data(record)).encode("utf-8", "replace") + b"\n"


def first_answer(trajectory: Trajectory) -> Replan | None:
    """The answer that a run began with, None where the agent gave none that could be kept."""
    if len(trajectory.rounds) < 2 or trajectory.rounds[1].plan.given is None:
        return None
    first = trajectory.rounds[1]
    key = replan_key(
        instance=trajectory.instance,
        agent=trajectory.agent,
        thought=first.thought,
        plan=as_text(first.plan.given),
    )
    return Replan(key, trajectory.instance, trajectory.agent, first.thought, first.plan)


def run_lines(
    jobs: Iterable[Job],
    environment: EnvironmentFactory,
    *,
    round_limit: int = ROUND_LIMIT,
    executor: Executor | None = None,
    chunk: int = CHUNK,
) -> Generator[Line, None, None]:
    """As ``run_many``, each run as a line."""
    work = partial(_run_line, environment=environment, round_limit=round_limit, cancelled=None)
    yield from ordered(work, jobs, executor, chunk=chunk, ahead=_ahead(chunk))


def _run_line(
    job: Job,
    environment: EnvironmentFactory,
    round_limit: int,
    cancelled: Callable[[], bool] | None,
) -> Line:
    made = _run(job, environment, round_limit, cancelled)
    return as_line(made, first_answer(made) if job.first is None else None)


def _ahead(chunk: int) -> int:
    """Chunks under way at once: many small ones where each waits for a model."""
    return max(8, 256 // chunk)


def _run(
    job: Job,
    environment: EnvironmentFactory,
    round_limit: int,
    cancelled: Callable[[], bool] | None,
) -> Trajectory:
    trajectory = run(
        job.instance,
        job.agent(job.instance),
        environment(job.instance),
        first=job.first,
        round_limit=round_limit,
        cancelled=cancelled or _never,
    )
    scored = measured(job.instance, trajectory, round_limit)
    answer = job.first or first_answer(scored)
    if answer is None:
        return scored
    return msgspec.structs.replace(scored, extra={**scored.extra, "replan": answer.key})


def _never() -> bool:
    return False


class Failed(msgspec.Struct, frozen=True):
    """A job that came to no answer, and why."""

    reason: str


def replan_many(
    jobs: Iterable[Job], executor: Executor | None = None, *, chunk: int = CHUNK
) -> Generator[Replan | Failed, None, None]:
    """One answer for each job, in order.

    Raises:
        InputError: An instance does not fit the agent.
    """
    yield from ordered(_replan, jobs, executor, chunk=chunk, ahead=_ahead(chunk))


def _replan(job: Job) -> Replan | Failed:
    try:
        return replan(job.instance, job.agent(job.instance))
    except AgentError as error:
        return Failed(str(error))


def goals_of(instance: Instance) -> Sequence[Sequence[Any]] | None:
    """The facts that a right answer holds, None where the truth is not known."""
    made = instance.extra.get("sandbox")
    goals = made.get("goals") if isinstance(made, Mapping) else None
    return goals if isinstance(goals, list) and goals else None


def measured(
    instance: Instance, trajectory: Trajectory, round_limit: int = ROUND_LIMIT
) -> Trajectory:
    """A trajectory with its scores and what a report groups by, in ``extra``.

    ``correct`` is None where the truth is not known. ``e5`` and ``tool_use_efficiency`` are None
    where the optimum is not known. A run that was broken off has no scores.

    Source: paper section 2.1.4 (eq. 4) and table 8.
    """
    goals = goals_of(instance)
    right = None if goals is None else trajectory.success and correct(trajectory.rounds, goals)
    rounds, calls = int(trajectory.extra["rounds"]), int(trajectory.extra["calls"])
    e5 = run_efficacy(
        success=trajectory.success, correct=right, outcome=trajectory.outcome,
        optimal=instance.round_gt, rounds=rounds, limit=round_limit,
    )  # fmt: skip
    success = trajectory.success if right is None else right
    economy = tool_use_efficiency(
        success=success and calls > 0, optimal_calls=instance.funcall_times_gt or None, calls=calls
    )
    scores = {"correct": right, "e5": _known(e5), "tool_use_efficiency": _known(economy)}
    if trajectory.outcome in BROKEN_OFF:
        scores = dict.fromkeys(scores)
    about = {
        "id": instance.id,
        "query_id": instance.query_id,
        "level": instance.level,
        "source": instance.source.value,
        "tags": list(instance.tags),
        "round_gt": instance.round_gt,
        "funcall_times_gt": instance.funcall_times_gt,
        "round_limit": round_limit,
    }
    return msgspec.structs.replace(trajectory, extra={**trajectory.extra, **scores, **about})


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
