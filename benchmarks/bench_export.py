"""How long each export takes and what memory it needs, with 10,626 instances x 4 agents scored.

Every answer has 13 judged scores with reasons, and E5. Each export runs in a process of its own,
twice: whole, and of a database a quarter as large, which tells whether memory stays flat. Figures
to reach: under 60 s each; whole at most 1.5 times the memory of a quarter.

Run: python benchmarks/bench_export.py [--instances 10626] [--agents 4] [--keep FOLDER]
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

COUNT, AGENTS = 10_626, 4
TARGET_SECONDS, TARGET_GROWTH = 60.0, 1.5
JUDGE = "judge:m@sde-1"
CHANCES = (0.97, 0.8, 0.5, 0.25)
"""How likely each agent's scores are 1."""


def build(folder: Path, count: int, agents: int) -> Path:
    """A database of so many instances, agents' answers to each, all scored."""
    from annotations.store import Store
    from benchmarks.bench_import import write_file
    from pararecover_core.formats import read
    from pararecover_core.formats.items import Item, Place

    path = folder / f"export-{count}-{agents}.db"
    if path.exists():
        return path
    start = time.perf_counter()
    store = Store(path)
    write_file(folder / "instances.jsonl", count)
    store.ingest(read(folder / "instances.jsonl"))
    contents = _answers(store, agents)
    store.ingest(Item(Place("made up"), one) for one in contents)
    print(f"{store.counts()}, {path.stat().st_size / 1e6:,.0f} MB", end=", ")
    print(f"made in {time.perf_counter() - start:.0f} s")
    return path


def _answers(store: Any, agents: int) -> Iterator[Any]:
    """Answers with their scores, instance by instance."""
    from pararecover_core.literals import loads
    from pararecover_core.plan import Plan
    from pararecover_core.records import Replan, Score, replan_key
    from pararecover_core.rubric import JUDGED

    draw, at = random.Random(3), "2030-01-02T12:00:00Z"
    with store.read() as db:
        rows = db.execute("SELECT i.key, b.body FROM instance i JOIN instance_body b USING (n)")
        held = [(row[0], loads(row[1])["plan"]) for row in rows]
    for instance, plan in held:
        for number in range(agents):
            agent, thought = f"agent-{number}", f"Node 3 failed. 结果 {draw.randrange(10**9)} " * 9
            key = replan_key(instance=instance, agent=agent, thought=thought, plan=plan)
            yield Replan(key, instance, agent, thought, Plan.parse(plan))
            chance = CHANCES[number % len(CHANCES)]
            for dimension in JUDGED:
                value = 1.0 if draw.random() < chance else draw.choice((0.0, 0.5))
                note = f"{dimension}: the plan keeps what is done and repeats node 3, 好。"
                yield Score(key, dimension, JUDGE, value, note, at, "sde-1")
            yield Score(key, "E5", "program", draw.randrange(11) / 10, "", at)


def _scores(shape: str, form: str) -> Callable[[Any, Path], int]:
    def run(store: Any, out: Path) -> int:
        from annotations import exports

        return exports.take(store, out, shape, form, exports.Filter(), {}).rows

    return run


def _training(kind: str) -> Callable[[Any, Path], int]:
    def run(store: Any, out: Path) -> int:
        from annotations import training
        from pararecover_core.formats.training import form_for, write_training
        from pararecover_core.preferences import Rules, select

        found = training.candidates(store, JUDGE)
        chosen = select(found, Rules(), kind=kind)  # type: ignore[arg-type]
        texts = training.texts(store, chosen.examples)
        return write_training(texts, out, form_for(kind, "trl")).rows

    return run


RUNS = {
    "long CSV": _scores("long", "csv"),
    "long JSONL": _scores("long", "jsonl"),
    "long Parquet": _scores("long", "parquet"),
    "long XLSX": _scores("long", "xlsx"),
    "wide CSV": _scores("wide", "csv"),
    "wide XLSX": _scores("wide", "xlsx"),
    "records": _scores("records", "jsonl"),
    "log": _scores("log", "jsonl"),
    "sft": _training("sft"),
    "dpo": _training("dpo"),
}


SHEETS = ("long XLSX", "wide XLSX")
"""Left out unless asked for: nobody opens 600,000 rows in a spreadsheet, and writing takes long."""


class Figures(NamedTuple):
    """Of one run: rows, seconds, peak MB, MB of the file."""

    rows: int
    seconds: float
    peak: float
    size: float


def measure(run: str, db: Path) -> Figures:
    """One export in a process of its own."""
    command = [sys.executable, __file__, "--run", run, "--db", str(db)]
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    rows, *others = out.stdout.split()
    return Figures(int(rows), *map(float, others))


def one_run(run: str, db: Path) -> None:
    """In the child process: run, and print the figures."""
    from annotations.store import Store

    out = db.with_suffix(".out")
    start = time.perf_counter()
    rows = RUNS[run](Store(db), out)
    seconds, size = time.perf_counter() - start, out.stat().st_size / 1e6
    out.unlink()
    print(rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, size)


def compare(whole: Path, quarter: Path, runs: list[str]) -> None:
    """Measure every export and say which miss their figures."""
    print(f"{'export':13} {'rows':>9} {'MB':>6} {'seconds':>8} {'peak MB':>8} {'of a quarter':>13}")
    missed = []
    for name in runs:
        part, all_of_it = measure(name, quarter), measure(name, whole)
        print(
            f"{name:13} {all_of_it.rows:9,} {all_of_it.size:6,.0f} {all_of_it.seconds:8.1f} "
            f"{all_of_it.peak:8,.0f} {part.peak:13,.0f}"
        )
        if all_of_it.seconds > TARGET_SECONDS or all_of_it.peak > TARGET_GROWTH * part.peak:
            missed.append(name)
    print(f"misses {TARGET_SECONDS:g} s or flat memory: {', '.join(missed) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=COUNT)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--keep", type=Path, help="Folder for the databases (else temporary).")
    parser.add_argument("--only", choices=RUNS, help="This export alone.")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--db", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        one_run(options.run, options.db)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        sizes = (options.instances, max(options.instances // 4, 1))
        whole, quarter = (build(folder, size, options.agents) for size in sizes)
        names = [options.only] if options.only else [n for n in RUNS if n not in SHEETS]
        compare(whole, quarter, names)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
