"""``pararecover run`` and ``replan``: agents at work on instances."""

from collections.abc import Iterator
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
from pararecover_cli.with_model import AGENT_HELP, MODEL_HELP, choose_agent, choose_environment
from pararecover_core.execute import ROUND_LIMIT, OutcomeKind
from pararecover_core.records import Instance, Replan
from pararecover_core.runs import (
    CHUNK,
    EnvironmentKind,
    Failed,
    Job,
    replan_many,
    run_many,
)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with instances.")],
    agent: Annotated[str, typer.Option(help=AGENT_HELP)],
    out: Annotated[Path, typer.Option(help="File to write (records, JSON lines).")],
    env: Annotated[
        EnvironmentKind,
        typer.Option(
            help="sandbox: run the tools; replay: give what was observed before; "
            "simulated: a model plays the tools."
        ),
    ] = EnvironmentKind.SANDBOX,
    max_rounds: Annotated[
        int, typer.Option(min=1, help="Rounds after which a run has failed.")
    ] = ROUND_LIMIT,
    replans: Annotated[
        Path | None,
        typer.Option(help="Answers of `replan`: each run starts with its instance's answer."),
    ] = None,
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = "",
    few_shot: Annotated[
        bool, typer.Option("--few-shot", help="Show the model three solved cases first.")
    ] = False,
    tools_model: Annotated[
        str, typer.Option(help="Model of --env simulated, else OPENAI_MODEL.")
    ] = "",
    failure_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of simulated calls that fail on purpose.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Fixes which simulated calls fail.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; threads where a model is asked.")
    ] = 1,
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
    who = choose_agent(agent, model, few_shot)
    environment = choose_environment(env, tools_model, failure_rate, seed)
    waits = who.waits or env is EnvironmentKind.SIMULATED
    done = failed = 0
    with record_file(out) as target, executor_of(workers, threads=waits) as executor:
        kept: dict[str, Instance] = {}
        jobs = _jobs(waiting(instances(file), target, who.name), first, kept)
        runs = run_many(
            jobs, who.factory, environment, round_limit=max_rounds, executor=executor,
            chunk=1 if waits else CHUNK,
        )  # fmt: skip
        try:
            with progress(f"{who.name} on {file.name}", lines_in(file)) as step:
                for trajectory in runs:
                    instance = kept.pop(trajectory.instance)
                    if trajectory.outcome == OutcomeKind.UNAVAILABLE:
                        _say(Failed(instance, trajectory.rounds[-1].thought))
                        failed += 1
                        continue
                    if not lean:
                        target.add(instance)
                    target.add(trajectory)
                    done += 1
                    step()
        except KeyboardInterrupt:
            runs.close()
            raise stopped(len(target.done), "runs", out) from None
        total = len(target.done)
    typer.echo(f"{done:,} runs by {who.name}; {out} holds {total:,}", err=True)
    if failed:
        raise typer.Exit(1)


def _jobs(
    found: Iterator[Instance], first: dict[str, Replan], kept: dict[str, Instance]
) -> Iterator[Job]:
    """Runs to make; their instances are kept until they are written."""
    for instance in found:
        kept[instance.key] = instance
        yield Job(instance, first.get(instance.key))


def replan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with instances.")],
    agent: Annotated[str, typer.Option(help=AGENT_HELP)],
    out: Annotated[Path, typer.Option(help="File to write (records, JSON lines).")],
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = "",
    few_shot: Annotated[
        bool, typer.Option("--few-shot", help="Show the model three solved cases first.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; threads where a model is asked.")
    ] = 1,
    lean: Annotated[
        bool, typer.Option("--lean", help="Leave the instances themselves out of the file.")
    ] = False,
) -> None:
    """Let an agent answer every instance once: what annotators and judges score.

    Example: pararecover replan l1.jsonl --agent patch --out answers.jsonl
    """
    check_input(file)
    who = choose_agent(agent, model, few_shot)
    done = failed = 0
    with record_file(out) as target, executor_of(workers, threads=who.waits) as executor:
        kept: dict[str, Instance] = {}
        answers = replan_many(
            (job.instance for job in _jobs(waiting(instances(file), target, who.name), {}, kept)),
            who.factory,
            executor,
            chunk=1 if who.waits else CHUNK,
        )
        try:
            with progress(f"{who.name} on {file.name}", lines_in(file)) as step:
                for answer in answers:
                    if isinstance(answer, Failed):
                        _say(answer)
                        failed += 1
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
    typer.echo(f"{done:,} answers by {who.name}; {out} holds {total:,}", err=True)
    if failed:
        raise typer.Exit(1)


def _say(failed: Failed) -> None:
    where = failed.instance.id or failed.instance.key
    typer.echo(printable(f"instance {where}: no answer ({failed.reason})"), err=True)
