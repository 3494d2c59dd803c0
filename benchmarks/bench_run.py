"""Runs by the five built-in agents, through one process and several.

Run: ``python benchmarks/bench_run.py [--instances 200] [--workers 1 2 4]``. Targets: 1,000
trajectories by five agents in under 60 s on 2 cores; 4 processes at least 1.7 times as fast as
one on 2 cores; memory flat in the number of instances. On a busy machine the factor says little by
itself: beside it stands what plain arithmetic gains from as many processes at the same moment.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import fmean

from bench_generate import memory_mb, processor_seconds

from pararecover_core.agents.choose import BUILT_IN, agent_for
from pararecover_core.generate import generate
from pararecover_core.literals import loads
from pararecover_core.records import Instance
from pararecover_core.runs import Job, run_lines, sandbox_for


def ready(number: int) -> int:
    """Something to do for a worker that starts."""
    agent_for("ignore", INSTANCE)
    return number


def burn(rounds: int) -> int:
    """Plain arithmetic: what the machine gives to several processes at this moment."""
    total = 0
    for number in range(rounds):
        total += number * number
    return total


def machine(workers: int) -> float:
    """How many times as fast plain arithmetic is with several processes as with one."""
    parts = 4 * workers
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        list(pool.map(burn, [1] * parts))
        start = time.perf_counter()
        list(pool.map(burn, [2_000_000] * parts))
        together = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(parts):
        burn(2_000_000)
    return (time.perf_counter() - start) / together


INSTANCE = next(generate(level=1, count=1, seed="ready"))


def runs(instances: list[Instance], workers: int) -> tuple[float, float, dict[str, list[float]]]:
    """Wall-clock and processor seconds of all agents on all instances, and each agent's E5."""
    e5: dict[str, list[float]] = {}
    executor = ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else None
    if executor:
        list(executor.map(ready, range(4 * workers)))  # starting is not running
    wall, spent = time.perf_counter(), processor_seconds()
    for agent in BUILT_IN:
        made = run_lines(
            map(Job, instances), partial(agent_for, agent), sandbox_for, executor=executor
        )
        e5[agent] = [loads(line.text)["extra"]["e5"] for line in made]
    wall = time.perf_counter() - wall
    if executor:
        executor.shutdown()
    return wall, processor_seconds() - spent, e5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    half = given.instances // 2
    instances = [
        *generate(level=1, count=half, seed="bench"),
        *generate(level=2, count=given.instances - half, seed="bench"),
    ]
    count, alone = len(instances) * len(BUILT_IN), 0.0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {count:,} runs")
    for workers in given.workers:
        wall, spent, e5 = runs(instances, workers)
        alone = alone or wall
        gives = f"; plain arithmetic {machine(workers):.2f} times" if workers > 1 else ""
        print(
            f"{workers} processes: {wall:.1f} s ({alone / wall:.2f} times one{gives}), "
            f"{spent:.1f} s of processor, memory {memory_mb():.0f} MB"
        )
    print("mean E5: " + ", ".join(f"{agent} {fmean(found):.3f}" for agent, found in e5.items()))


if __name__ == "__main__":
    main()
