"""``pararecover run`` and ``replan``: agents at work on instances."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pararecover_cli.check import printable
from pararecover_cli.inputs import check_input
from pararecover_cli.record_file import (
    RecordFile,
    by_instance,
    executor_of,
    instances,
    lines_in,
    progress,
    record_file,
    stopped,
    waiting,
)
from pararecover_cli.with_model import (
    AGENT_HELP,
    MODEL_HELP,
    Chosen,
    choose_agent,
    choose_environment,
)
from pararecover_core.execute import ROUND_LIMIT, OutcomeKind
from pararecover_core.records import Instance, Replan
from pararecover_core.runs import (
    CHUNK,
    EnvironmentKind,
    Failed,
    Job,
    Line,
    replan_many,
    run_lines,
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="File with instances.")]
_Agents = Annotated[list[str], typer.Option(help=f"{AGENT_HELP} May be repeated.")]
_Out = Annotated[Path, typer.Option(help="File to write (records, JSON lines).")]
_Model = Annotated[str, typer.Option(help=MODEL_HELP)]
_FewShot = Annotated[
    bool, typer.Option("--few-shot", help="Show the model three solved cases first.")
]
_Limit = Annotated[int, typer.Option(min=0, help="Only the first N instances; 0: all.")]
_Workers = Annotated[int, typer.Option(min=1, help="Processes; threads where a model is asked.")]
_Lean = Annotated[
    bool,
    typer.Option("--lean", help="Leave instances, and the first answers of runs, out of the file."),
]


def run(
    file: _File,
    agent: _Agents,
    out: _Out,
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
    model: _Model = "",
    few_shot: _FewShot = False,
    tools_model: Annotated[
        str, typer.Option(help="Model of --env simulated, else OPENAI_MODEL.")
    ] = "",
    failure_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of simulated calls that fail on purpose.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Fixes which simulated calls fail.")] = 0,
    limit: _Limit = 0,
    workers: _Workers = 1,
    lean: _Lean = False,
) -> None:
    """Carry every instance to its end, with E5, pass@1, correctness, rounds and calls.

    Instances that the agent has finished in the output file are passed over, so the same command
    goes on after a stop. `pararecover import` takes the file.

    Example: pararecover run l2.jsonl --agent patch --out t.jsonl
    """
    check_input(file)
    first = by_instance(replans) if replans else {}
    environment = choose_environment(env, tools_model, failure_rate, seed)
    simulated = env is EnvironmentKind.SIMULATED

    def work(who: Chosen, found: Iterator[Instance], executor: Executor | None) -> _Made:
        return run_lines(
            (Job(each, first.get(each.key)) for each in found),
            who.factory,
            environment,
            round_limit=max_rounds,
            executor=executor,
            chunk=1 if who.waits or simulated else CHUNK,
        )

    who = [choose_agent(name, model, few_shot) for name in agent]
    threads = simulated or any(each.waits for each in who)
    _write(
        _Target(file, out, limit, lean, "runs", "trajectory"), who, work, workers, threads=threads
    )


def replan(
    file: _File,
    agent: _Agents,
    out: _Out,
    model: _Model = "",
    few_shot: _FewShot = False,
    limit: _Limit = 0,
    workers: _Workers = 1,
    lean: _Lean = False,
) -> None:
    """Let an agent answer every instance once: what annotators and judges score.

    Example: pararecover replan l1.jsonl --agent patch --out answers.jsonl
    """
    check_input(file)

    def work(who: Chosen, found: Iterator[Instance], executor: Executor | None) -> _Made:
        return replan_many(found, who.factory, executor, chunk=1 if who.waits else CHUNK)

    who = [choose_agent(name, model, few_shot) for name in agent]
    threads = any(each.waits for each in who)
    _write(
        _Target(file, out, limit, lean, "answers", "replan"), who, work, workers, threads=threads
    )


_Made = (
    Generator[Line, None, None] | Generator[Replan | Failed, None, None]
)  # what an agent made of its instances, in their order


class _Target(NamedTuple):
    """Which instances to work on, and where what comes of them goes."""

    file: Path
    out: Path
    limit: int
    lean: bool
    what: str
    kind: str


def _write(
    target: _Target,
    agents: list[Chosen],
    work: Callable[[Chosen, Iterator[Instance], Executor | None], _Made],
    workers: int,
    *,
    threads: bool,
) -> None:
    """Let each agent work on what it has not finished; exit 1 where some got no answer."""
    failed = 0
    with (
        record_file(target.out) as records,
        executor_of(workers, threads=threads) as executor,
    ):
        for who in agents:
            kept: dict[str, Instance] = {}
            found = islice(instances(target.file), target.limit or None)
            made = work(
                who, _keeping(waiting(found, records, target.kind, who.name), kept), executor
            )
            try:
                done, lost = _take(target, who.name, made, kept, records)
            except KeyboardInterrupt:
                made.close()
                raise stopped(records.count(target.kind), target.what, target.out) from None
            failed += lost
            held = f"{target.out} holds {records.count(target.kind):,}"
            typer.echo(f"{done:,} {target.what} by {who.name}; {held}", err=True)
    if failed:
        raise typer.Exit(1)


def _keeping(found: Iterator[Instance], kept: dict[str, Instance]) -> Iterator[Instance]:
    """Instances on their way; each is kept until what comes of it is written."""
    for instance in found:
        kept[instance.key] = instance
        yield instance


def _take(
    target: _Target, name: str, made: _Made, kept: dict[str, Instance], records: RecordFile
) -> tuple[int, int]:
    """Write what an agent made as it comes; how much it was, and how many got no answer."""
    done = failed = 0
    total = target.limit or lines_in(target.file)
    with progress(f"{name} on {target.file.name}", total) as step:
        for record in made:
            step()
            if isinstance(record, Line) and record.outcome == OutcomeKind.UNAVAILABLE:
                record = Failed(kept[record.instance], record.said)
            if isinstance(record, Failed):
                _say(record)
                kept.pop(record.instance.key, None)
                failed += 1
                continue
            instance = kept.pop(record.instance)
            if not target.lean:
                records.add(instance)
            if isinstance(record, Line):
                records.add_line(record, answers=not target.lean)
            else:
                records.add(record)
            done += 1
    return done, failed


def _say(failed: Failed) -> None:
    where = failed.instance.id or failed.instance.key
    typer.echo(printable(f"instance {where}: no answer ({failed.reason})"), err=True)
