"""How quick the Annotate page is, in real Chromium with 10,626 instances loaded.

Makes a database through the importer and the queue, starts the app, scores items by real key
presses and prints medians: key to echo, key to acknowledged on disk (the tick), submit to the
next item on screen. Figures to reach: 16, 100 and 150 ms.

Run: python benchmarks/bench_keys.py [--count 10626] [--items 6] [--gap 250] [--db FILE]
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from bench_import import write_file

from annotations.batches import BatchPlan, Sampling, create_batch
from annotations.store import Store
from pararecover_core.formats import read
from pararecover_core.formats.items import Item
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, replan_key
from pararecover_core.rubric import JUDGED

TARGETS = {"echo": 16.0, "painted": 34.0, "stored": 100.0, "next item": 150.0}
_THOUGHT = (
    "Node {} failed because its call was refused. The nodes behind it have no input, so the "
    "answer would be incomplete. I mark it done, add a node with the parameter corrected, and "
    "let what follows wait for the new one. The other branches are not affected. "
)
_WATCH = """() => {
  const roots = (root) => [...root.querySelectorAll('*')].flatMap((node) =>
    node.shadowRoot ? [node.shadowRoot, ...roots(node.shadowRoot)] : []);
  const root = roots(document).find((found) => found.querySelector('.bench'));
  const seen = window.benchKeys = { runs: [], now: null };
  const state = () => {
    const now = seen.now;
    if (!now) return;
    const time = performance.now() - now.at;
    if (now.kind === 'score') {
      const row = root.querySelector(`.sr[data-dimension=${now.row}]`);
      if (row.querySelector('.tk').textContent === '✓') { now.stored = time; seen.now = null; }
    } else if (root.querySelector('.bar1 .id').textContent !== now.title) {
      now.next = time;
      seen.now = null;
    }
  };
  const all = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver(state).observe(root, all);
  window.addEventListener('keydown', (event) => {
    const row = root.querySelector('.sr.fx').dataset.dimension;
    const kind = event.key === 'Enter' ? 'next' : 'score';
    const title = root.querySelector('.bar1 .id').textContent;
    const run = { kind, row, at: event.timeStamp, title };
    seen.now = run;
    seen.runs.push(run);
  }, true);
  window.addEventListener('keydown', () => {
    const run = seen.runs.at(-1);
    const row = root.querySelector(`.sr[data-dimension=${run.row}] .ch button[aria-checked=true]`);
    if (run.kind === 'score' && row) run.echo = performance.now() - run.at;
    requestAnimationFrame(() => { run.painted ??= performance.now() - run.at; });
  });
}"""


def answers(instances: Iterator[Item]) -> Iterator[Item]:
    """One answer for each instance: pending nodes done, one of them with a new parameter."""
    for item in instances:
        yield item
        if isinstance(item.content, Instance):
            yield Item(item.place, _answer(item.content))


def _answer(instance: Instance) -> Replan:
    tasks = [
        {
            "id": node.id,
            "name": node.name,
            "para": {**node.parameters.named, "corrected": "yes"},
            "dep": list(node.dependencies),
            "status": True,
        }
        for node in instance.plan.nodes
    ]
    tasks[-1]["status"] = False
    plan = Plan.parse({"tasks": tasks})
    thought = _THOUGHT.format(instance.plan.nodes[min(1, len(tasks) - 1)].id) * 3
    key = replan_key(instance=instance.key, agent="bench", thought=thought, plan=plan.given)
    return Replan(key, instance.key, "bench", thought, plan)


def fill(db: Path, count: int) -> None:
    """Load ``count`` instances and answers, and make a batch of 400."""
    store = Store(db)
    if store.counts().instances >= count:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "LEVEL-1_augmented.jsonl"
        write_file(file, count)
        store.ingest(answers(read(file)))
    create_batch(store, BatchPlan("Bench", sampling=Sampling(min(400, count), seed=1)))


def serve(db: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the app; returns it and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "pararecover_cli", "app", "--db", str(db), "--port", str(port)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health"):
                return process, url
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the app did not start")


def drive(url: str, items: int, gap: int) -> tuple[list[dict[str, Any]], list[int], float]:
    """Score items by keys; returns the runs, bytes received per score, seconds to first use."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": "pararecover_annotator", "value": "bench", "url": url}])
        page = context.new_page()
        received: list[int] = []
        page.on("websocket", lambda s: s.on("framereceived", lambda f: received.append(len(f))))
        began = time.monotonic()
        page.goto(f"{url}/annotate")
        page.wait_for_selector(".bench:not(.loading) .sr.fx", timeout=60_000)
        usable = time.monotonic() - began
        page.wait_for_timeout(1500)
        page.evaluate(_WATCH)
        sizes = []
        for _ in range(items):
            for at in range(len(JUDGED)):
                received.clear()
                page.keyboard.press("150"[at % 3])
                page.wait_for_timeout(gap)
                sizes.append(sum(received))
            page.keyboard.press("Enter")
            page.wait_for_timeout(4 * gap)
        runs: list[dict[str, Any]] = page.evaluate("window.benchKeys.runs")
        browser.close()
    return runs, sizes, usable


def report(runs: list[dict[str, Any]], sizes: list[int], usable: float, megabytes: float) -> bool:
    """Print the figures; whether all targets are reached."""
    scores = [run for run in runs if run["kind"] == "score"]
    moves = [run for run in runs if run["kind"] == "next"]
    series = {
        "echo": [run["echo"] for run in scores if "echo" in run],
        "painted": [run["painted"] for run in scores if "painted" in run],
        "stored": [run["stored"] for run in scores if "stored" in run],
        "next item": [run["next"] for run in moves if "next" in run],
    }
    reached = True
    print(f"{len(scores)} scores, {len(moves)} submits; page usable after {usable:.1f} s")
    for name, found in series.items():
        if not found:
            print(f"{name:>10}: nothing measured")
            reached = False
            continue
        high = sorted(found)[int(0.95 * (len(found) - 1))]
        good = median(found) < TARGETS[name]
        reached &= good and len(found) >= (len(scores) if name == "stored" else 1)
        verdict = "reached" if good else "MISSED"
        print(
            f"{name:>10}: median {median(found):6.1f} ms, 95% {high:6.1f} ms, n {len(found)}"
            f" (target {TARGETS[name]:.0f} ms: {verdict})"
        )
    print(f"received per score: median {median(sizes):,.0f} bytes")
    print(f"server memory: {megabytes:.0f} MB")
    return reached


def _memory(process: subprocess.Popen[bytes]) -> float:
    """Resident memory of the server in MB."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.is_file():
        return float("nan")
    line = next(li for li in status.read_text().splitlines() if li.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class Options(msgspec.Struct):
    """The command line."""

    count: int
    items: int
    gap: int
    db: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_626)
    parser.add_argument("--items", type=int, default=6)
    parser.add_argument("--gap", type=int, default=250, help="ms between two keys")
    parser.add_argument("--db", default="", help="keep the database here")
    options = msgspec.convert(vars(parser.parse_args()), Options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db = Path(options.db) if options.db else folder / "bench.db"
        fill(db, options.count)
        process, url = serve(db, folder)
        try:
            figures = drive(url, options.items, options.gap)
            return 0 if report(*figures, _memory(process)) else 1
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(10)


if __name__ == "__main__":
    raise SystemExit(main())
