"""How close a judging run comes to the ideal throughput, and how much memory it takes.

    python benchmarks/bench_judge.py [--full] [--replans N] [--concurrency 64] [--latency 0.2]

A server without a model answers every call after a fixed time, in a process of its own. The run
is the real one: replans from a database, three prompts a replan, answers read, scores and calls
written to the database, answers kept in the cache. To reach: 95% of concurrency / latency calls a
second, and under 400 MB for 10,626 replans x 3 calls (``--full``; the first question goes alone,
which a short run feels). Needs two free processor cores: on a busy machine look at the processor
time a call, which says what a free one would reach.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from annotations.judge_job import JudgeJob
from annotations.judges import Order, prepare
from annotations.store import Store
from pararecover_core.execute import replan
from pararecover_core.formats.items import Answer, InstanceRef, Item, Place

FULL, SOME = 10_626, 1_600
TARGET, MEGABYTES = 0.95, 400
PROMPTS = "s+d+e"


async def serve(port: int, latency: float) -> None:
    """Answer chat completions after a fixed time, until the process ends."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
                asked = await reader.readexactly(length)
                begin = asyncio.get_running_loop().time()
                names = sorted(set(re.findall(rb'\\"([SDE]\d)\\": \{\\"reason', asked)))
                body = _answer([name.decode() for name in names])
                await asyncio.sleep(latency - (asyncio.get_running_loop().time() - begin))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b"content-length: %d\r\n\r\n%s" % (len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", port, limit=1 << 22, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _answer(names: list[str]) -> bytes:
    scores = {
        name: {"reason": f"Node 3 decides {name}, as it stands.", "score": 1} for name in names
    }
    message = {"role": "assistant", "content": json.dumps(scores)}
    usage = {"prompt_tokens": 3000, "completion_tokens": 200, "total_tokens": 3200}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def fill(path: Path, count: int) -> Store:
    """A database with ``count`` replans to sandbox instances."""
    from pararecover_core.agents.choose import agent_for
    from pararecover_core.generate import generate

    base = list(generate(level=1, count=min(count, 300), seed="bench"))
    answers = [(one, replan(one, agent_for("retry", one))) for one in base]
    store = Store(path)

    def items():
        for number in range(count):
            one, said = answers[number % len(answers)]
            if number < len(answers):
                yield Item(Place("bench", 2 * number + 1), one)
            ref = InstanceRef(id=one.id)
            agent = f"agent-{number // len(answers)}"
            given = Answer(ref, agent, f"{said.thought} Case {number}.", said.plan.given)
            yield Item(Place("bench", 2 * number + 2), given)

    report = store.ingest(items())
    assert not report.rejects, report.rejects[0]
    return store


def run(replans: int, concurrency: int, latency: float) -> None:
    """Judge and print."""
    command = [sys.executable, __file__, "--serve", "--latency", str(latency)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        os.environ["PARARECOVER_CACHE"] = str(Path(folder) / "answers")
        try:
            store = fill(Path(folder) / "bench.db", replans)
            _judge(store, concurrency, latency)
        finally:
            server.kill()


def _judge(store: Store, concurrency: int, latency: float) -> None:
    began = time.monotonic()
    prepared = prepare(store, Order("m", PROMPTS, concurrency=concurrency))
    planned = time.monotonic() - began
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    job = JudgeJob(store, prepared.parts).start()
    job.wait()
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    calls = job.progress().done
    assert job.outcome == "done", job.message
    assert job.progress().failed == job.progress().cached == 0
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / calls
    ideal = calls * latency / concurrency
    megabytes = after.ru_maxrss / 1024
    print(f"{calls:,} calls, {concurrency} at once, {1000 * latency:.0f} ms each")
    print(f"  work found and forecast in {planned:.2f} s")
    print(f"  {wall:.1f} s, ideal {ideal:.1f} s: {ideal / wall:.1%} (to reach {TARGET:.0%})")
    print(f"  processor time {1000 * cpu:.2f} ms a call; the ideal leaves "
          f"{1000 * latency / concurrency:.2f} ms")  # fmt: skip
    print(f"  load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"  most memory {megabytes:.0f} MB (to stay under {MEGABYTES})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} replans")
    parser.add_argument("--replans", type=int, default=SOME)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(0, given.latency))
    else:
        run(FULL if given.full else given.replans, given.concurrency, given.latency)
