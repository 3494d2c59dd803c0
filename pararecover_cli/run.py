"""``pararecover run`` and ``replan``: agents at work on instances."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pararecover_cli.check import printable
from pararecover_cli.record_file import (
    by_instance,
    check_input,
    executor_of,
    instances,
    lines_in,
    progress,
    record_file,
    stopped,
    waiting,
)
from pararecover_core.agents.choose import BUILT_IN, AgentFactory, agent_for
from pararecover_core.errors import InputError
from pararecover_core.execute import ROUND_LIMIT
from pararecover_core.records import Instance, Replan
from pararecover_core.runs import (
    ENVIRONMENTS,
    EnvironmentKind,
    Failed,
    Job,
    replan_many,
    run_many,
)

_AGENTS = f"Who replans: {', '.join(BUILT_IN)}."


def factory(agent: str) -> AgentFactory:
    """What makes the agent of an instance.

    Raises:
        InputError: There is no agent of this name.
    """
    if agent not in BUILT_IN:
        expected = f"one of {', '.join(BUILT_IN)}"
        raise InputError("--agent", repr(agent), expected, "Correct the name")
    return partial(agent_for, agent)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with instances.")],
    agent: Annotated[str, typer.Option(help=_AGENTS)],
    out: Annotated[Path, typer.Option(help="File to write (records, JSON lines).")],
    env: Annotated[
        EnvironmentKind,
        typer.Option(help="sandbox: run the tools; replay: give what was observed before."),
    ] = EnvironmentKind.SANDBOX,
    max_rounds: Annotated[
        int, typer.Option(min=1, help="Rounds after which a run has failed.")
    ] = ROUND_LIMIT,
    replans: Annotated[
        Path | None,
        typer.Option(help="Answers of `replan`: each run starts with its instance's answer."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    lean: Annotated[
        bool, typer.Option("--lean", help="Leave the instances themselves out of the file.")
    ] = False,
) -> None:
    """Carry every instance to its end, with E5, pass@1, correctness, rounds and calls.

    Instances that the agent has finished in the output file are passed over, so the same command
    goes on after a stop. `pararecover import` takes the file.

    Example: pararecover run l2.jsonl --agent patch --out t.jsonl
    """
    check_input(file)
    first = by_instance(replans) if replans else {}
    done = 0
    with record_file(out) as target, executor_of(workers) as executor:
        kept: dict[str, Instance] = {}
        jobs = _jobs(waiting(instances(file), target, agent), first, kept)
        runs = run_many(
            jobs, factory(agent), ENVIRONMENTS[env], round_limit=max_rounds, executor=executor
        )
        try:
            with progress(f"{agent} on {file.name}", lines_in(file)) as step:
                for trajectory in runs:
                    instance = kept.pop(trajectory.instance)
                    if not lean:
                        target.add(instance)
                    target.add(trajectory)
                    done += 1
                    step()
        except KeyboardInterrupt:
            runs.close()
            raise stopped(len(target.done), "runs", out) from None
        total = len(target.done)
    typer.echo(f"{done:,} runs by {agent}; {out} holds {total:,}", err=True)


def _jobs(
    found: Iterator[Instance], first: dict[str, Replan], kept: dict[str, Instance]
) -> Iterator[Job]:
    """Runs to make; their instances are kept until they are written."""
    for instance in found:
        kept[instance.key] = instance
        yield Job(instance, first.get(instance.key))


def replan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with instances.")],
    agent: Annotated[str, typer.Option(help=_AGENTS)],
    out: Annotated[Path, typer.Option(help="File to write (records, JSON lines).")],
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    lean: Annotated[
        bool, typer.Option("--lean", help="Leave the instances themselves out of the file.")
    ] = False,
) -> None:
    """Let an agent answer every instance once: what annotators and judges score.

    Example: pararecover replan l1.jsonl --agent patch --out answers.jsonl
    """
    check_input(file)
    done = 0
    with record_file(out) as target, executor_of(workers) as executor:
        kept: dict[str, Instance] = {}
        answers = replan_many(
            (job.instance for job in _jobs(waiting(instances(file), target, agent), {}, kept)),
            factory(agent),
            executor,
        )
        try:
            with progress(f"{agent} on {file.name}", lines_in(file)) as step:
                for answer in answers:
                    if isinstance(answer, Failed):
                        _say(answer)
                        kept.pop(answer.instance.key, None)
                        continue
                    instance = kept.pop(answer.instance)
                    if not lean:
                        target.add(instance)
                    target.add(answer)
                    done += 1
                    step()
        except KeyboardInterrupt:
            answers.close()
            raise stopped(len(target.done), "answers", out) from None
        total = len(target.done)
    typer.echo(f"{done:,} answers by {agent}; {out} holds {total:,}", err=True)


def _say(failed: Failed) -> None:
    where = failed.instance.id or failed.instance.key
    typer.echo(printable(f"instance {where}: no answer ({failed.reason})"), err=True)
