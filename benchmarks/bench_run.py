"""Runs by the five built-in agents, through one process and several.

Run: ``python benchmarks/bench_run.py [--instances 200] [--workers 2 4] [--times 4]``. Targets:
1,000 trajectories by five agents in under 60 s on 2 cores; 4 processes at least 1.7 times as fast
as one on 2 cores; memory flat in the number of instances. Workers are ready before the clock
starts: what is measured is work. A machine that others use gives several processes less than its
cores, so the same work is also done by as many processes that share nothing: what working together
costs is the difference.
"""

import argparse
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from statistics import fmean, median

from bench_generate import memory_mb

from pararecover_core.agents.choose import BUILT_IN, agent_for
from pararecover_core.generate import generate
from pararecover_core.parallel import processes
from pararecover_core.records import Instance
from pararecover_core.runs import Job, run_lines, sandbox_for

AGENTS = {name: partial(agent_for, name) for name in BUILT_IN}
E5 = re.compile(rb'"e5":([0-9.]+)')


def runs(instances: Sequence[Instance], executor: Executor | None = None) -> dict[str, float]:
    """Mean E5 of each agent over all instances."""
    jobs = (Job(each, agent) for each in instances for agent in AGENTS.values())
    made = run_lines(jobs, sandbox_for, executor=executor)
    found: dict[str, list[float]] = {}
    for line in made:
        found.setdefault(line.agent, []).append(float(E5.search(line.text)[1]))  # type: ignore[index]
    return {agent: fmean(values) for agent, values in found.items()}


def seconds(work: partial[object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def apart(instances: Sequence[Instance], executor: Executor, workers: int) -> None:
    """Every process does everything."""
    list(executor.map(runs, [instances] * workers))


def several(instances: Sequence[Instance], workers: int, times: int) -> None:
    together, machine = [], []
    with processes(workers) as executor:
        apart(instances[:5], executor, workers)
        for _ in range(times):
            alone = seconds(partial(runs, instances))
            wall = seconds(partial(runs, instances, executor))
            together.append(alone / wall)
            machine.append(workers * alone / seconds(partial(apart, instances, executor, workers)))
    kept = median(one / most for one, most in zip(together, machine, strict=True))
    print(
        f"{len(instances) * len(BUILT_IN):,} runs, one process {alone:.1f} s, {workers} processes "
        f"{wall:.1f} s, memory {memory_mb():.0f} MB\n"
        f"  {median(together):.2f} times as fast ({min(together):.2f} to {max(together):.2f}); "
        f"processes that share nothing {median(machine):.2f} times ({min(machine):.2f} to "
        f"{max(machine):.2f}), {kept:.0%} of it kept"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--times", type=int, default=4, help="measurements, each beside the others")
    given = parser.parse_args()
    half = given.instances // 2
    instances = [
        *generate(level=1, count=half, seed="bench"),
        *generate(level=2, count=given.instances - half, seed="bench"),
    ]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for workers in given.workers:
        several(instances, workers, given.times)
    print("mean E5: " + ", ".join(f"{name} {value:.3f}" for name, value in runs(instances).items()))


if __name__ == "__main__":
    main()
