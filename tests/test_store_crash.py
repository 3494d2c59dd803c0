"""Nothing that was acknowledged is lost: kill -9, many threads, two processes, a race to create."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotations.score_log import replay
from annotations.store import Store
from pararecover_core.errors import StaleScoreError
from tests.store_data import entry, instance, items, one_replan

ROOT = Path(__file__).parents[1]

SCORE = """
import sys
from annotations.store import Store
from tests.store_data import entry
path, replan, scorer, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
store = Store(path)
for base in range(count):
    value = (0.0, 0.5, 1.0)[base % 3]
    saved = store.append([entry(replan, "S1", value, base=base, scorer=scorer)])[0]
    print(saved.event, saved.revision, saved.value, flush=True)
"""
IMPORT = """
import sys
from annotations.store import Store
from tests.store_data import answer, instance, items
store = Store(sys.argv[1])
print("go", flush=True)
for number in range(int(sys.argv[2])):
    one = instance(f"{sys.argv[3]}{number}")
    store.ingest(items(one, answer(one.id)))
print("done", flush=True)
"""
SLOW_IMPORT = """
import sys, time
from annotations.store import Store
from tests.store_data import instance, items
def slowly():
    for number in range(2_000):
        yield from items(instance(str(number)))
        if number == 600:
            print("half way", flush=True)
            time.sleep(60)
Store(sys.argv[1]).ingest(slowly())
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def test_kill_9_in_the_middle_of_scoring_loses_nothing_acknowledged(tmp_path):
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)
    for turn in range(3):
        scorer = f"human:turn{turn}"
        process = start(SCORE, store.path, replan, scorer, 100_000)
        acknowledged = [process.stdout.readline() for _ in range(20 + 7 * turn)]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        process.stderr.close()

        log = [one for one in store.history(replan) if one.scorer == scorer]
        found = [f"{one.event} {one.revision} {one.value}\n" for one in log]
        whole = [line for line in acknowledged if line.endswith("\n")]
        assert len(whole) >= 20
        # on disk is what was acknowledged, and at most one more that could not be said any more
        assert found[: len(whole)] == whole
        assert len(found) - len(whole) <= 1
        assert replay(log)[replan, "S1", scorer].value == log[-1].value
    with store.read() as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_kill_9_in_the_middle_of_an_import_leaves_no_part_of_it(tmp_path):
    store = Store(tmp_path / "p.db")
    one_replan(store, "before")
    process = start(SLOW_IMPORT, store.path)
    assert process.stdout.readline() == "half way\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert store.counts().instances == 1
    assert store.ingest(items(instance("after"))).kinds == {"instance": 1}


def test_two_processes_and_25_threads_at_once_lose_nothing(tmp_path):
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)
    count = 12
    importer = start(IMPORT, store.path, 40, "x")
    scorer = start(SCORE, store.path, replan, "human:other", 60)

    def score(number: int) -> int:
        mine = Store(store.path)
        for base in range(count):
            mine.append([entry(replan, "S1", 0.5, base=base, scorer=f"human:{number}")])
            assert len(mine.scores(replan)) >= 1
        return count

    with ThreadPoolExecutor(25) as pool:
        assert sum(pool.map(score, range(25))) == 25 * count
    assert finish(importer) == "go\ndone\n"
    assert len(finish(scorer).splitlines()) == 60

    log = store.history(replan)
    assert len(log) == 25 * count + 60
    assert len(replay(log)) == 26
    assert store.counts().instances == 41
    with store.read() as db:
        query = "SELECT humans FROM replan_summary WHERE replan = ?"
        assert db.execute(query, (replan,)).fetchone()[0] == 26


def test_of_25_who_score_the_same_revision_one_wins(tmp_path):
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)

    def score(number: int) -> str:
        try:
            store.append([entry(replan, "S1", 0.5, event=f"tab {number}")])
        except StaleScoreError:
            return "refused"
        return "stored"

    with ThreadPoolExecutor(25) as pool:
        outcomes = list(pool.map(score, range(25)))
    assert outcomes.count("stored") == 1
    assert len(store.history(replan)) == 1


def test_the_same_event_from_many_threads_is_stored_once(tmp_path):
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)
    one = entry(replan, "S1", 0.5)
    with ThreadPoolExecutor(12) as pool:
        saved = set(pool.map(lambda _: store.append([one])[0].revision, range(24)))
    assert saved == {1}
    assert len(store.history(replan)) == 1


def test_many_may_create_the_database_at_once(tmp_path):
    path = tmp_path / "new" / "p.db"
    processes = [start(IMPORT, path, 2, name) for name in ("a", "b", "c")]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: Store(path).counts().replans, range(8)))
    assert all(count >= 0 for count in counts)
    for process in processes:
        finish(process)
    assert Store(path).counts().instances == 6


def test_a_score_waits_for_an_import_that_takes_longer_than_a_reader_waits(tmp_path, monkeypatch):
    # readers never wait: they see the state before the import
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)
    with store.write() as db, ThreadPoolExecutor(1) as pool:
        db.execute("INSERT INTO event_log (event, at, annotator, kind) VALUES ('e', '', 'a', 'x')")
        waiting = pool.submit(store.append, [entry(replan)])
        assert store.counts().scores == 0
        time.sleep(0.3)
        assert not waiting.done()
        db.execute("COMMIT")
        assert waiting.result(timeout=10)[0].revision == 1
        db.execute("BEGIN")


def test_a_lock_that_never_ends_is_named(tmp_path, monkeypatch):
    store = Store(tmp_path / "p.db")
    replan = one_replan(store)
    monkeypatch.setattr("annotations.database.WRITE_WAIT", 0.05)
    with store.write(), pytest.raises(Exception, match="stayed locked for") as caught:
        store.append([entry(replan)])
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
