"""How long agreement figures take: 13 x 400 cells, five scorers, and 180,000 scores in a store.

Run: python benchmarks/bench_agreement.py
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from annotations.pairs import Selection, choices, load, state
from annotations.store import ScoreEntry, Store
from pararecover_core.agreement import measure
from pararecover_core.agreement_groups import learning_curve, scale_agreement
from pararecover_core.agreement_means import powered_means
from pararecover_core.agreement_people import ceiling, may_replace
from pararecover_core.formats.items import Item, Place
from pararecover_core.pairing import Cell
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source
from pararecover_core.rubric import JUDGED, LEVELS

JUDGE = "judge:bench@v1"


def timed(label: str, action: Callable[[], Any], repeats: int = 3) -> Any:
    best, least, result = float("inf"), float("inf"), None
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        result = action()
        best = min(best, time.perf_counter() - start)
        least = min(least, time.process_time() - used)
    print(f"{label}: {1000 * best:.0f} ms, {1000 * least:.0f} ms of a processor ({repeats} runs)")
    return result


def cells(samples: int, rng: random.Random) -> list[Cell]:
    return [
        Cell(f"r{sample}", name, rng.choice(LEVELS), rng.choice(LEVELS))
        for sample in range(samples)
        for name in JUDGED
    ]


def everything(rng: random.Random) -> None:
    """Every figure of four judges and the people's ceiling on 13 x 400 cells."""
    people = [
        Cell(
            f"r{n}", name, 1.0, None, people=(("A", rng.choice(LEVELS)), ("B", rng.choice(LEVELS)))
        )
        for n in range(400)
        for name in JUDGED
    ]
    ceiling(people)
    for _ in range(4):
        judged = [msgspec.structs.replace(c, judge=rng.choice(LEVELS)) for c in people]
        measure(judged)
        scale_agreement(judged)
        may_replace(judged)
        learning_curve(judged)
        powered_means(judged, {cell.sample: ("agent",) for cell in judged})


def fill(store: Store, replans: int, rng: random.Random) -> None:
    """Replans that one person and one judge scored on all 13 sub-dimensions."""
    items = []
    for number in range(replans):
        key = f"{number:012x}"
        instance = Instance(
            f"i{key}", key, key, 1 + number % 2, Source.ROLLOUT, "q", (), Plan.parse(None), ()
        )
        items.append(Item(Place("bench"), instance))
        items.append(
            Item(Place("bench"), Replan(key, f"i{key}", f"agent {number % 17}", "", Plan.parse({})))
        )
    store.ingest(items)
    for start in range(0, replans, 500):
        store.append(
            [
                ScoreEntry(
                    f"{number}-{name}-{scorer}",
                    f"{number:012x}",
                    name,
                    scorer,
                    rng.choice(LEVELS),
                    note="A reason of the usual length, with a node and a tool named in it.",
                )
                for number in range(start, min(start + 500, replans))
                for name in JUDGED
                for scorer in ("human:Ann", JUDGE)
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replans", type=int, default=6_924, help="26 scores each: 180,024")
    args = parser.parse_args()
    rng = random.Random(1)
    small = cells(400, rng)
    timed("13 x 400 cells, 2,000 resamples", lambda: measure(small))
    timed("all figures of five scorers, 2,000 resamples", lambda: everything(rng))
    timed("the same for five scorers", lambda: [measure(small) for _ in range(5)])
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "bench.db")
        fill(store, args.replans, rng)
        print(f"store with {store.counts().scores:,} scores")
        timed("state of the store (every page run)", lambda: state(store))
        timed("choices", lambda: choices(store))
        large = timed("pairs from the store", lambda: load(store, Selection(judge=JUDGE)))
        timed(f"figures of {len(large):,} cells", lambda: measure(large))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory: {peak:.0f} MB")


if __name__ == "__main__":
    main()
