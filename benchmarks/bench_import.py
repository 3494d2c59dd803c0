"""How long an import takes, beside plain ``json.loads`` of the same text; and its peak memory.

Makes 10,626 instances of 6 KB in the published format, then measures in turns, each in a process
of its own: ``json.loads`` of every line and of the texts nested in it, and a whole import into a
new database. Figures to reach: at most 8 times as long, under 500 MB. Processor time is printed
too: on a busy machine its ratio is the steadier one.

Run: python benchmarks/bench_import.py [--count 10626] [--rounds 5] [--keep FOLDER]
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

COUNT, SIZE = 10_626, 6_000
TARGET_RATIO, TARGET_MB = 8.0, 500.0

_THINGS = (
    *("order", "ticket", "recipe", "sensor", "parcel", "garden", "invoice", "lesson"),
    *("flight", "robot", "photo", "song"),
)
_VERBS = (
    *("find", "book", "check", "list", "send", "update", "cancel", "measure"),
    *("compare", "reserve", "water", "pay"),
)
_WORDS = (
    *("please", "the", "before", "after", "evening", "morning", "with", "two", "friends", "and"),
    *("quiet", "table", "near", "window", "for", "seven", "people", "who", "like", "tea", "a"),
    *("bring", "umbrella", "because", "rain", "is", "expected", "café", "naïve", "25°C"),
)
_TAGS = (
    *("Parameter_Error", "Type_Error", "Parameter_Invalid", "Parameter_Missing"),
    *("Toolcall_Missing", "Toolcall_Redundancy", "Null_Error", "Timeout_Error"),
    *("Tool_name_Error", "Serial_Error", "Dependence_Error", "Dependence_Null"),
    *("Parallelism_Error", "Tool_select_Error"),
)


def write_file(path: Path, count: int, seed: int = 1) -> None:
    """Write ``count`` records in the form of the published augmented file."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, count + 1):
            file.write(json.dumps(_record(number, draw), ensure_ascii=False) + "\n")


def _record(number: int, draw: random.Random) -> dict[str, Any]:
    tools = [_tool(name) for name in _names(draw, 5)]
    tasks, calls = _tasks(tools, draw), []
    for task in tasks[1:-1]:
        if task["status"]:
            result = f"Result {draw.randrange(10**6)}: {_sentence(draw, 12)}"
            calls.append({"name": task["name"], "arguments": task["para"], "results": result})
    record = {
        "id": number,
        "query_id": str(1 + number % 2_000),
        "tool_list": json.dumps(tools, ensure_ascii=False),
        "query": f"Task {number}: {_sentence(draw, 30)}",
        "funcall_times_gt": str(len(tasks) - 2),
        "round_gt": str(draw.randrange(3, 9)),
        "tag": _TAGS[number % len(_TAGS)],
    }
    fun_call = json.dumps(calls, ensure_ascii=False)
    missing = SIZE - len(json.dumps(record)) - len(fun_call)
    missing -= len(json.dumps(json.dumps({"tasks": tasks}, ensure_ascii=False, indent=2)))
    tasks[-1]["desc"] += " " + _sentence(draw, max(missing, 0) // 6)
    record["plan"] = json.dumps({"tasks": tasks}, ensure_ascii=False, indent=2)
    return record | {"fun_call": fun_call}


def _names(draw: random.Random, count: int) -> list[str]:
    return [f"{draw.choice(_VERBS)}_{draw.choice(_THINGS)}_{place}" for place in range(count)]


def _tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"Does what {name.replace('_', ' ')} says and reports it.",
        "parameters": {
            "item": {"type": "string", "description": "Which one"},
            "count": {"type": "number", "description": "How many"},
        },
        "required": ["item"],
    }


def _tasks(tools: list[dict[str, Any]], draw: random.Random) -> list[dict[str, Any]]:
    size = draw.randrange(5, 12)
    tasks = [{"id": "root", "name": "", "para": {}, "desc": "Start", "dep": [], "status": True}]
    for number in range(1, size):
        earlier = [str(draw.randrange(1, number))] if number > 2 else ["root"]
        tasks.append(
            {
                "id": str(number),
                "name": draw.choice(tools)["name"],
                "para": {"item": _sentence(draw, 2), "count": draw.randrange(100)},
                "desc": _sentence(draw, 14),
                "dep": earlier,
                "status": number < size // 2,
            }
        )
    last = {"id": "response", "name": "", "para": {}, "desc": "Answer", "status": False}
    return [*tasks, last | {"dep": [str(size - 1)]}]


def _sentence(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(words))


def run_baseline(path: Path) -> None:
    """Plain ``json.loads`` of every line and of the texts nested in it."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            for field in ("tool_list", "plan", "fun_call"):
                json.loads(record[field])


def run_import(path: Path) -> None:
    """A whole import into a new database beside the file."""
    from annotations.store import Store
    from pararecover_core.formats import read

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        report = Store(Path(folder) / "p.db").ingest(read(path))
    if report.rejects:
        sys.exit(str(report.rejects[0]))


RUNS = {"baseline": run_baseline, "import": run_import}


class Figures(NamedTuple):
    """Of one run: seconds by the clock, seconds of the processor, peak MB."""

    wall: float
    processor: float
    megabytes: float


def measure(run: str, path: Path) -> Figures:
    """One run in a process of its own; loading of modules is left out of the times."""
    command = [sys.executable, __file__, "--run", run, "--keep", str(path.parent)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Figures(*map(float, out.split()))


def one_run(run: str, path: Path) -> None:
    """In the child process: run, and print the figures."""
    import pararecover_core.formats  # noqa: F401

    start, processor = time.perf_counter(), time.process_time()
    RUNS[run](path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - start, time.process_time() - processor, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="Folder for the file (else a temporary one).")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        one_run(options.run, options.keep / "instances.jsonl")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        path = folder / "instances.jsonl"
        if not path.exists():
            write_file(path, options.count)
        compare(path, options.rounds)


def compare(path: Path, rounds: int) -> None:
    """Measure both in turns and print the figures."""
    size = path.stat().st_size / 1e6
    print(f"{path.name}: {size:.1f} MB")
    plain: list[Figures] = []
    whole: list[Figures] = []
    for number in range(1, rounds + 1):
        plain.append(measure("baseline", path))
        whole.append(measure("import", path))
        print(f"  round {number}: json.loads {_times(plain[-1:])}, import {_times(whole[-1:])}")
    print(f"medians: json.loads {_times(plain)}, import {_times(whole)}")
    wall = median(one.wall for one in whole) / median(one.wall for one in plain)
    processor = median(one.processor for one in whole) / median(one.processor for one in plain)
    peak = max(one.megabytes for one in whole)
    print(f"ratio {wall:.1f}, of processor time {processor:.1f} (target {TARGET_RATIO:g})")
    print(f"peak {peak:.0f} MB (target {TARGET_MB:g})")


def _times(runs: list[Figures]) -> str:
    wall, processor = median(one.wall for one in runs), median(one.processor for one in runs)
    return f"{wall:.2f} s (processor {processor:.2f} s)"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
