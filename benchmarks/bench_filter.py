"""How long a filter takes: count and one page, with 10,626 instances x 17 agents loaded.

Run: python benchmarks/bench_filter.py [--db FILE] [--instances 10626] [--agents 17] [--repeat 5]
A database that is there already is used as it is, so that a second run starts at once.
"""

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from annotations.score_log import Summary, summarise
from annotations.search import Filter, Sort, facets, search
from annotations.search_table import table
from annotations.store import Store
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import (
    Instance,
    Replan,
    Source,
    ToolCall,
    content_key,
    instance_key,
    parse_tools,
    replan_key,
)
from pararecover_core.rubric import JUDGED
from pararecover_core.taxonomy import OTHER, ErrorType

SYLLABLES = ("ra", "to", "mi", "ne", "sho", "con", "ver", "tel", "pra", "est", "or", "ba", "qui")
VERBS = ("find", "book", "compare", "fetch", "send", "list", "check", "order")
THINGS = ("route", "room", "price", "weather", "caterer", "report", "ticket", "invoice", "recipe")


class Texts:
    """Made-up words in a Zipf-like mix, one text in five Chinese."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        made = ("".join(self.random.choices(SYLLABLES, k=1 + i % 4)) for i in range(40_000))
        self.words = list(dict.fromkeys(made))[:8_000]
        self.weights = list(itertools.accumulate(1 / (i + 1) for i in range(len(self.words))))
        self.signs = [chr(0x4E00 + self.random.randrange(2_000)) for _ in range(3_000)]

    def text(self, words: int, chinese: bool) -> str:
        """A text of so many words, or twice as many Chinese characters."""
        if chinese:
            return "".join(self.random.choices(self.signs, k=2 * words))
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=words))


def records(instances: int, agents: int) -> Iterator[Item]:
    texts = Texts(1)
    pick = texts.random
    for number in range(instances):
        tools = [f"{pick.choice(VERBS)}_{pick.choice(THINGS)}" for _ in range(6)]
        tasks = [
            {
                "id": str(i),
                "name": name,
                "para": {"where": texts.text(2, False)},
                "desc": texts.text(8, False),
                "dep": [str(i - 1)] if i else [],
                "status": i < 3,
            }
            for i, name in enumerate(tools)
        ]
        plan, query = {"tasks": tasks}, texts.text(40, number % 5 == 0)
        source = Source.ROLLOUT if number % 4 else Source.AUGMENTED
        level = 1 + (number % 5 == 4)
        key = instance_key(
            id=str(number), query_id=str(number // 2), level=level, source=source, query=query,
            plan=plan, calls=None,
        )  # fmt: skip
        kinds = list(ErrorType)
        tags = (kinds[number % 14].value, *([kinds[(number + 5) % 14].value] if level == 2 else []))
        instance = Instance(
            key, str(number), str(number // 2), level, source, query,
            parse_tools([{"name": name, "parameters": {}} for name in tools]),
            Plan.parse(plan), (ToolCall(tools[3], {}, "ok", "3"),), tags, round_gt=5,
        )  # fmt: skip
        yield Item(Place("made up", number + 1), instance)
        for agent in range(agents):
            thought = texts.text(130, (number + agent) % 5 == 0)
            answer = replan_key(instance=key, agent=f"agent-{agent}", thought=thought, plan=plan)
            yield Item(
                Place("made up", number + 1),
                Replan(answer, key, f"agent-{agent}", thought, Plan.parse(plan)),
            )


def score(store: Store, share: float) -> None:
    """Judge every replan and let a person score a share: straight into the tables."""
    pick, fields = random.Random(2), Summary._fields
    with store.write(durable=False) as db:
        keys = [row["key"] for row in db.execute("SELECT key FROM replan ORDER BY n")]
        update = f"UPDATE replan_summary SET {', '.join(f'{f} = ?' for f in fields)} WHERE replan=?"
        for key in keys:
            scored = pick.random() < share
            values = [(d, "judge:m@1", pick.choice((0.0, 0.5, 1.0))) for d in JUDGED]
            if scored:
                values += [(d, "human:a", pick.choice((0.0, 0.5, 1.0))) for d in JUDGED]
                db.executemany(
                    "INSERT INTO score_log (event, replan, dimension, scorer, revision, value, at,"
                    " action) VALUES (?, ?, ?, ?, 1, ?, '2026-01-01T00:00:00Z', 'import')",
                    [(content_key(key, d, s), key, d, s, v) for d, s, v in values],
                )
            db.execute(update, (*summarise(1, values), key))


CASES: dict[str, tuple[Filter, Sort]] = {
    "everything": (Filter(), Sort()),
    "level and source": (Filter(levels=(1,), sources=("rollout",)), Sort()),
    "one error type": (Filter(errors=("Type_Error",)), Sort()),
    "three types or other": (Filter(errors=("Type_Error", "Null_Error", OTHER)), Sort()),
    "four agents": (Filter(agents=tuple(f"agent-{i}" for i in range(4))), Sort()),
    "score range (judges)": (Filter(by="judges", low=20, high=60), Sort("total", True)),
    "gap at least 0.5": (Filter(gap=0.5), Sort("gap", True)),
    "sort all by rounds": (Filter(), Sort("rounds", True)),
    "sort all by ES": (Filter(), Sort("es", True)),
    "text: common word": (Filter(text="ra"), Sort()),
    "text: tool name": (Filter(text="find_weather"), Sort()),
    "text: rare word": (Filter(text="toramishoverra"), Sort()),
    "text: two words + agent": (Filter(text="ra tomi", agents=("agent-3",)), Sort("total", True)),
    "text: two Chinese signs": (Filter(text="一丁"), Sort()),
    "text: one Chinese sign": (Filter(text="一"), Sort()),
    "all fields at once": (
        Filter("ra", (1,), ("Type_Error",), ("rollout",), ("agent-1", "agent-2"), 1,
               by="judges", low=10, high=90),
        Sort("es", True),
    ),
}  # fmt: skip


def measure(store: Store, repeat: int) -> None:
    start = time.perf_counter()
    search(store, Filter())
    print(f"first search of the process: {1000 * (time.perf_counter() - start):.0f} ms")
    print(f"{'filter':26} {'rows':>8} {'median ms':>10} {'worst ms':>9} {'facets ms':>10}")
    slowest = 0.0
    for name, (wanted, sort) in CASES.items():
        times, facet_times = [], []
        for turn in range(repeat):
            with store.read() as db:
                table(store.path, db).texts.clear()  # as if each term was new
            start = time.perf_counter()
            found = search(store, wanted, sort, page=1 + turn)
            times.append(1000 * (time.perf_counter() - start))
            start = time.perf_counter()
            facets(store, wanted)
            facet_times.append(1000 * (time.perf_counter() - start))
        slowest = max(slowest, statistics.median(times))
        print(
            f"{name:26} {found.total:8,} {statistics.median(times):10.0f} {max(times):9.0f} "
            f"{statistics.median(facet_times):10.0f}"
        )
    print(f"slowest median {slowest:.0f} ms (wanted: under 300 ms)")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--db", type=Path)
    arguments.add_argument("--instances", type=int, default=10_626)
    arguments.add_argument("--agents", type=int, default=17)
    arguments.add_argument("--repeat", type=int, default=5)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.db or Path(folder) / "filter.db"
        new = not path.exists()
        store = Store(path)
        if new:
            start = time.perf_counter()
            report = store.ingest(records(asked.instances, asked.agents))
            print(f"loaded in {time.perf_counter() - start:.0f} s, {len(report.rejects)} rejects")
            score(store, 0.05)
            print(f"scored after {time.perf_counter() - start:.0f} s")
        print(f"{store.counts()}, {path.stat().st_size / 1e6:.0f} MB")
        measure(store, asked.repeat)


if __name__ == "__main__":
    main()
