"""Runs by the five built-in agents, through one process and several.

Run: ``python benchmarks/bench_run.py [--instances 400] [--workers 2 4] [--times 4]``. Targets:
1,000 trajectories by five agents in under 60 s on 2 cores; 4 processes at least 1.7 times as fast
as one on 2 cores; memory flat in the number of instances. Workers are ready before the clock
starts: what is measured is work. A machine that others use gives several processes less than its
cores: what plain arithmetic gains from as many processes at the same moment says how much, and the
factor on two free cores is twice the share of it.
"""

import argparse
import os
import re
import time
from concurrent.futures import Executor
from functools import partial
from statistics import fmean, median

from bench_generate import memory_mb

from pararecover_core.agents.choose import BUILT_IN, agent_for
from pararecover_core.generate import generate
from pararecover_core.parallel import processes
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
    with processes(workers) as pool:
        list(pool.map(burn, [1] * parts))
        start = time.perf_counter()
        list(pool.map(burn, [2_000_000] * parts))
        together = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(parts):
        burn(2_000_000)
    return (time.perf_counter() - start) / together


E5 = re.compile(rb'"e5":([0-9.]+)')
INSTANCE = next(generate(level=1, count=1, seed="ready"))


def runs(instances: list[Instance], workers: int) -> tuple[float, float, dict[str, list[float]]]:
    """Wall-clock and processor seconds of all agents on all instances, and each agent's E5."""
    e5: dict[str, list[float]] = {}
    executor = processes(workers) if workers > 1 else None
    before = used(executor, workers) if executor else {}
    wall, spent = time.perf_counter(), time.process_time()
    for agent in BUILT_IN:
        made = run_lines(
            map(Job, instances), partial(agent_for, agent), sandbox_for, executor=executor
        )
        e5[agent] = [float(E5.search(line.text)[1]) for line in made]  # type: ignore[index]
    wall, spent = time.perf_counter() - wall, time.process_time() - spent
    if executor:
        after = used(executor, workers)
        spent += sum(after[worker] - before[worker] for worker in before)
        executor.shutdown()
    return wall, spent, e5


def _range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument(
        "--times", type=int, default=4, help="measurements, each beside one process"
    )
    given = parser.parse_args()
    half = given.instances // 2
    instances = [
        *generate(level=1, count=half, seed="bench"),
        *generate(level=2, count=given.instances - half, seed="bench"),
    ]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for workers in given.workers:
        times, given_times, spents = [], [], []
        for _ in range(given.times):
            alone, alone_spent, e5 = runs(instances, 1)
            wall, spent, _ = runs(instances, workers)
            times.append(alone / wall)
            given_times.append(machine(workers))
            spents.append(spent / alone_spent)
        share = median(times) / median(given_times)
        print(
            f"{len(instances) * len(BUILT_IN):,} runs, one process {alone:.1f} s, {workers} "
            f"processes {wall:.1f} s, memory {memory_mb():.0f} MB\n"
            f"  {median(times):.2f} times as fast ({_range(times)}), plain arithmetic "
            f"{median(given_times):.2f} times ({_range(given_times)}): {2 * share:.2f} on two free "
            f"cores\n  {median(spents):.2f} times the processor time ({_range(spents)})"
        )
    print("mean E5: " + ", ".join(f"{agent} {fmean(found):.3f}" for agent, found in e5.items()))


if __name__ == "__main__":
    main()
