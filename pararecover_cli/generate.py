"""``pararecover generate``: benchmark instances from the sandbox."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from pararecover_cli.inputs import check_output
from pararecover_cli.record_file import STOPPED, executor_of, progress
from pararecover_core.generate import Mix, published_lines
from pararecover_core.generate import generate as make
from pararecover_core.records import Instance


def generate(
    level: Annotated[int, typer.Option(min=1, max=2, help="1: one faulty round; 2: two or three.")],
    count: Annotated[int, typer.Option(min=1, help="How many instances.")],
    seed: Annotated[str, typer.Option(help="Any text; the same seed gives the same bytes.")],
    out: Annotated[Path, typer.Option(help="File to write (JSON lines).")],
    mix: Annotated[
        Mix, typer.Option(help="Error types as in the paper's tables 10 and 11, or all alike.")
    ] = Mix.PAPER,
    rollouts: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of instances from runs that went wrong by themselves; their error types "
            "fall as they fall, so the counts of the paper's tables hold for the rest only.",
        ),
    ] = 0.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes; they change no byte.")] = 1,
) -> None:
    """Make benchmark instances in the paper's file format, from tasks that really run.

    Every error is proven by execution: without repair it fails a call, costs a round or a call,
    or changes the answer.

    Example: pararecover generate --level 2 --count 200 --seed 7 --out l2.jsonl
    """  # fmt: skip
    check_output(out)
    part = out.with_name(f"{out.name}.part")
    made: list[tuple[int, int]] = []
    types: Counter[str] = Counter()
    try:
        with (
            part.open("wb") as file,
            executor_of(workers) as executor,
            progress(f"LEVEL-{level}", count) as step,
        ):
            found = make(
                level=level, count=count, seed=seed, mix=mix, rollouts=rollouts,
                executor=executor,
            )  # fmt: skip
            for instance in found:
                file.write(next(iter(published_lines([instance]))).encode())
                types.update(instance.tags)
                made.append(_size(instance))
                step()
        part.replace(out)
    except KeyboardInterrupt:
        typer.echo(f"Stopped; {out} was not written.", err=True)
        raise typer.Exit(STOPPED) from None
    finally:
        part.unlink(missing_ok=True)
    typer.echo(summary(level, made, types), err=True)


def _size(instance: Instance) -> tuple[int, int]:
    return instance.funcall_times_gt or 0, instance.round_gt or 0


def summary(level: int, sizes: list[tuple[int, int]], types: Counter[str]) -> str:
    """What was made, in a few lines: error types, and how long the right plans are."""
    calls, rounds = (Counter(column) for column in zip(*sizes, strict=True))
    return "\n".join(
        [
            f"{len(sizes):,} LEVEL-{level} instances",
            "  error types: " + ", ".join(f"{name} {n:,}" for name, n in types.most_common()),
            "  calls of the right plan: " + _spread(calls),
            "  rounds of the right plan: " + _spread(rounds),
        ]
    )


def _spread(counts: Counter[int]) -> str:
    return ", ".join(f"{value}: {n:,}" for value, n in sorted(counts.items()))
