"""Runs by the five built-in agents, through one process and several.

Run: ``python benchmarks/bench_run.py [--instances 200] [--workers 1 2 4]``. Targets: 1,000
trajectories by five agents in under 60 s on 2 cores; 4 processes at least 1.7 times as fast as
one on 2 cores; memory flat in the number of instances. Workers are ready before the clock starts:
what is measured is work. On a busy machine the factor says little by itself, so two figures stand
beside it: what plain arithmetic gains from as many processes at the same moment, and how much
processor time the work takes compared with one process (more than 1.18 times leaves no 1.7 on two
cores, whatever the machine).
"""

import argparse
import os
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import fmean

from bench_generate import memory_mb

from pararecover_core.agents.choose import BUILT_IN, agent_for
from pararecover_core.generate import generate
from pararecover_core.literals import loads
from pararecover_core.records import Instance
from pararecover_core.runs import Job, run_lines, sandbox_for


def ready(pause: float) -> tuple[int, float]:
    """A worker's id and the processor time that it has used; it has run each agent once."""
    for agent in BUILT_IN:
        list(run_lines([Job(INSTANCE)], partial(agent_for, agent), sandbox_for))
    spent = time.process_time()
    time.sleep(pause)  # so that the others get their share
    return os.getpid(), spent


def used(executor: Executor, workers: int) -> dict[int, float]:
    """Processor time that each worker has used."""
    found: dict[int, float] = {}
    while len(found) < workers:
        for worker, spent in executor.map(ready, [0.2] * workers):
            found.setdefault(worker, spent)
    return found


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
    before = used(executor, workers) if executor else {}
    wall, spent = time.perf_counter(), time.process_time()
    for agent in BUILT_IN:
        made = run_lines(
            map(Job, instances), partial(agent_for, agent), sandbox_for, executor=executor
        )
        e5[agent] = [loads(line.text)["extra"]["e5"] for line in made]
    wall, spent = time.perf_counter() - wall, time.process_time() - spent
    if executor:
        after = used(executor, workers)
        spent += sum(after[worker] - before[worker] for worker in before)
        executor.shutdown()
    return wall, spent, e5


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
    count, alone, alone_spent = len(instances) * len(BUILT_IN), 0.0, 0.0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {count:,} runs")
    for workers in given.workers:
        wall, spent, e5 = runs(instances, workers)
        alone, alone_spent = alone or wall, alone_spent or spent
        gives = f"; plain arithmetic {machine(workers):.2f} times" if workers > 1 else ""
        print(
            f"{workers} processes: {wall:.1f} s ({alone / wall:.2f} times one{gives}), "
            f"{spent:.1f} s of processor ({spent / alone_spent:.2f} times one), "
            f"memory {memory_mb():.0f} MB"
        )
    print("mean E5: " + ", ".join(f"{agent} {fmean(found):.3f}" for agent, found in e5.items()))


if __name__ == "__main__":
    main()
