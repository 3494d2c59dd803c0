"""``pararecover run`` and ``replan``: agents at work on instances."""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
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
    agents = _chosen(agent, model, few_shot)
    order = _Order(file, out, limit, lean, agents, "runs", "trajectory", first)
    work = partial(run_lines, environment=environment, round_limit=max_rounds)
    waits = env is EnvironmentKind.SIMULATED or any(who.waits for who in agents.values())
    _write(order, work, workers, waits=waits)


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
    agents = _chosen(agent, model, few_shot)
    order = _Order(file, out, limit, lean, agents, "answers", "replan")
    _write(order, replan_many, workers, waits=any(who.waits for who in agents.values()))


def _chosen(names: list[str], model: str, few_shot: bool) -> dict[str, Chosen]:
    """Agents by what they are called in records, each once."""
    chosen = [choose_agent(name, model, few_shot) for name in names]
    return {who.name: who for who in chosen}


_Made = Line | Replan | Failed  # what comes of a job


class _Order(NamedTuple):
    """What which agents are to make of which instances, and where it goes.

    Attributes:
        agents: By name, as they are called in records.
        first: Answers that were given before, by their instance's key.
    """

    file: Path
    out: Path
    limit: int
    lean: bool
    agents: dict[str, Chosen]
    what: str
    kind: str
    first: Mapping[str, Replan] = {}

    def jobs(self, records: RecordFile, under_way: deque[tuple[Instance, str]]) -> Iterator[Job]:
        """What is not in the file yet, by instance, so that a stop leaves all agents equally far.

        Each job's instance and agent wait in ``under_way`` for what comes of it.
        """
        for instance in islice(instances(self.file), self.limit or None):
            for name, who in self.agents.items():
                if (self.kind, instance.key, name) not in records.done:
                    under_way.append((instance, name))
                    yield Job(instance, who.factory, self.first.get(instance.key))


def _write(
    order: _Order, work: Callable[..., Generator[_Made, None, None]], workers: int, *, waits: bool
) -> None:
    """Let the agents do what is not done; exit 1 where some got no answer."""
    under_way: deque[tuple[Instance, str]] = deque()
    with (
        record_file(order.out) as records,
        executor_of(workers, threads=waits) as executor,
    ):
        jobs = order.jobs(records, under_way)
        with closing(work(jobs, executor=executor, chunk=1 if waits else CHUNK)) as made:
            try:
                done, failed = _take(order, made, under_way, records)
            except KeyboardInterrupt:
                raise stopped(records.count(order.kind), order.what, order.out) from None
        count = records.count(order.kind)
    by_agent = ", ".join(f"{done[name]:,} {order.what} by {name}" for name in order.agents)
    typer.echo(f"{by_agent}; {order.out} holds {count:,}", err=True)
    if failed:
        raise typer.Exit(1)


def _take(
    order: _Order,
    made: Iterator[_Made],
    under_way: deque[tuple[Instance, str]],
    records: RecordFile,
) -> tuple[Counter[str], int]:
    """Write what is made as it comes; how much by each agent, and how often there was no answer."""
    done: Counter[str] = Counter()
    failed = 0
    total = order.limit or lines_in(order.file)
    agents = ", ".join(order.agents)
    with progress(f"{agents} on {order.file.name}", total and total * len(order.agents)) as step:
        for record in made:
            step()
            instance, name = under_way.popleft()
            if isinstance(record, Line) and record.outcome == OutcomeKind.UNAVAILABLE:
                record = Failed(record.said)
            if isinstance(record, Failed):
                where = f"instance {instance.id or instance.key}, agent {name}"
                typer.echo(printable(f"{where}: no answer ({record.reason})"), err=True)
                failed += 1
                continue
            if not order.lean:
                records.add(instance)
            if isinstance(record, Line):
                records.add_line(record, answers=not order.lean)
            else:
                records.add(record)
            done[name] += 1
    return done, failed
