"""How long a table of the leaderboard takes on 10,626 instances x 17 scored replans.

    python benchmarks/bench_report.py

To reach: under 1 s, intervals of 500 resamples included.
"""

import time

import numpy as np

from pararecover_core.report import Scored, leaderboard

INSTANCES, AGENTS, RUNS, TARGET = 10_626, 17, 3, 1.0


def scored() -> Scored:
    """Random scores; three instances share a query."""
    n = INSTANCES * AGENTS
    rng = np.random.default_rng(0)
    return Scored(
        agents=tuple(f"m{i}" for i in range(AGENTS)),
        agent=np.repeat(np.arange(AGENTS), INSTANCES),
        level=np.tile(1 + (np.arange(INSTANCES) % 2), AGENTS),
        cluster=np.tile(np.arange(INSTANCES) // 3, AGENTS),
        instance=np.tile(np.arange(INSTANCES), AGENTS),
        errors=np.zeros(n, np.int64),
        values=rng.choice([0, 0.5, 1], size=(n, 15)),
        passed=np.ones(n),
    )


def main() -> None:
    """Measure and print."""
    given = scored()
    taken = []
    for _ in range(RUNS):
        began, used = time.perf_counter(), time.process_time()
        leaderboard(given)
        taken.append((time.perf_counter() - began, time.process_time() - used))
    wall, processor = min(taken)
    reached = "reached" if wall < TARGET else "missed"
    print(
        f"leaderboard of {len(given.agent):,} replans: {wall:.2f} s, {processor:.2f} s of "
        f"processor (to reach {TARGET:g} s: {reached})"
    )


if __name__ == "__main__":
    main()
