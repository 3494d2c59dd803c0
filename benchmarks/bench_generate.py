"""Making the benchmark at the paper's size, and how varied its tasks are.

Run: ``python benchmarks/bench_generate.py [--share 0.1] [--workers 2]``. With ``--share 1``
it makes all 10,626 instances. Targets: 10,626 in under 120 s on 2 cores, counts of tables 10 and
11 within 1%, at least 20,000 distinct tasks, memory flat.
"""

import argparse
import resource
import time
from collections import Counter
from contextlib import nullcontext

from pararecover_core.generate import LEVEL_1, LEVEL_2, Mix, error_plan, generate, published_lines
from pararecover_core.parallel import processes
from pararecover_core.sandbox.compose import compose

PAPER = {1: 4_033, 2: 6_593}


def made(level: int, count: int, workers: int) -> tuple[float, float, int]:
    """Wall-clock and processor seconds of one level, and its bytes."""
    wall, spent, size = time.perf_counter(), processor_seconds(), 0
    context = processes(workers) if workers > 1 else nullcontext()
    with context as executor:
        found = generate(level=level, count=count, seed="bench", executor=executor)
        for line in published_lines(found):
            size += len(line)
    return time.perf_counter() - wall, processor_seconds() - spent, size


def processor_seconds() -> float:
    """Processor time of this process and of its workers that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worst_count() -> float:
    """The largest relative distance of a planned count from tables 10 and 11, in percent."""
    found = Counter(types[0] for types in error_plan(1, PAPER[1], "bench", Mix.PAPER))
    off = [abs(found[kind] - n) / n for kind, n in LEVEL_1.items()]
    plan = error_plan(2, PAPER[2], "bench", Mix.PAPER)
    for place in range(3):
        counts = Counter(types[place] for types in plan if len(types) > place)
        off += [abs(counts[kind] - row[place]) / row[place] for kind, row in LEVEL_2.items()]
    return 100 * max(off)


def variety(count: int) -> None:
    tasks = [compose(f"variety {number}") for number in range(count)]
    distinct = len({str(task.steps) for task in tasks})
    print(f"{count:,} seeds give {distinct:,} distinct tasks")
    for name, values in (
        ("shape", (task.shape.value for task in tasks)),
        ("calls", (task.calls for task in tasks)),
        ("rounds", (task.rounds for task in tasks)),
        ("width", (task.width for task in tasks)),
    ):
        counts = Counter(values)
        shown = ", ".join(f"{v}: {n / count:.1%}" for v, n in sorted(counts.items()))
        print(f"  {name}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=0.1, help="of the paper's 10,626 instances")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=21_000)
    given = parser.parse_args()
    wall = spent = 0.0
    for level, whole in PAPER.items():
        count = round(whole * given.share)
        for part in (count // 2, count):
            seconds, processor, size = made(level, part, given.workers)
            print(
                f"LEVEL-{level}: {part:,} instances, {size / 1e6:.1f} MB, {seconds:.1f} s, "
                f"{processor:.1f} s of processor ({1000 * processor / part:.1f} ms each), "
                f"memory {memory_mb():.0f} MB"
            )
        wall, spent = wall + seconds / given.share, spent + processor / given.share
    print(f"10,626 instances: {wall:.0f} s, {spent:.0f} s of processor; target 120 s on 2 cores")
    print(f"farthest count from tables 10 and 11: {worst_count():.2f}%; target 1%")
    variety(given.tasks)


if __name__ == "__main__":
    main()
