"""``pararecover judge`` as people use it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from pararecover_cli.main import cli
from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.formats.items import Mark
from pararecover_core.records import to_data
from tests.judge_data import filled, number, verdict
from tests.model_server import Answer, chat, serving


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    return filled(tmp_path / "study.db")


def run(*arguments, code=0):
    found = CliRunner().invoke(cli, ["judge", *map(str, arguments)])
    if isinstance(found.exception, Exception) and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == code, found.output
    return found


def test_the_program_judges_a_database(store):
    found = run("--db", store.path)
    assert found.stdout == "done: 3 of 3 calls (3 ok)\n"
    assert found.stderr.startswith("judge:program@1: 3 calls to make for 3 replans; 0 are there")
    assert run("--db", store.path).stdout == "done: 0 of 0 calls\n"
    assert sum(1 for _ in store.score_rows(scorer="judge:program@1")) == 39


def test_a_model_says_first_what_it_will_take(store, monkeypatch):
    with serving(verdict) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        dry = run("--db", store.path, "--judge", "gpt-4o", "--prompt", "d", "--dry-run")
        assert server.calls == []
        done = run("--db", store.path, "--judge", "gpt-4o", "--prompt", "d", "--yes")
    assert "judge:gpt-4o@d-1: 3 calls to make for 3 replans; 0 are there already" in dry.stderr
    assert "Forecast, roughly: " in dry.stderr
    assert " tokens in, 900 out, $0.0" in dry.stderr  # 3 x 5 sub-dimensions x 60 tokens
    assert dry.stdout == ""
    assert done.stdout == "done: 3 of 3 calls (3 ok)\n"
    unknown = run("--db", store.path, "--judge", "m", "--dry-run")
    assert "cost unknown (no price for this model)" in unknown.stderr


def test_without_a_terminal_money_is_spent_on_yes_alone(store, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="Say --yes"):
        run("--db", store.path, "--judge", "m")


def test_failures_are_listed_and_exit_1(store, tmp_path, monkeypatch):
    def reply(call):
        return chat("no") if number(call) == 1 else verdict(call)

    out = tmp_path / "scores.csv"
    with serving(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        arguments = ("--db", store.path, "--judge", "m", "--yes", "--dimensions", "S1,D3")
        found = json.loads(run(*arguments, "--json", "--out", out, code=1).stdout)
        again = run(*arguments, "--dry-run")
    assert (found["outcome"], found["statuses"]) == ("done", {"ok": 2, "unparsable": 1})
    (one,) = found["failures"]
    assert one["error"] == "no JSON object with the asked sub-dimensions"
    marks = [item.content for item in read(out)]
    assert all(isinstance(mark, Mark) for mark in marks)
    assert len(marks) == 6
    assert sum("unparsable: no JSON" in mark.note for mark in marks) == 2
    assert "Failed before: 1 unparsable (--retry-failed tries them again)" in again.stderr
    with serving(verdict) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run(*arguments, "--retry-failed")
    assert [number(call) for call in server.calls] == [1]


def test_a_file_alone_gives_a_file(tmp_path, store):
    path, out = tmp_path / "replans.jsonl", tmp_path / "scores.jsonl"
    with store.read() as db:
        keys = [row[0] for row in db.execute("SELECT key FROM replan")]
    records = [store.replan(key) for key in keys]
    records += [store.instance(record.instance) for record in records]
    path.write_text("".join(json.dumps(to_data(record)) + "\n" for record in records))
    run(path, "--out", out)
    assert sum(1 for _ in read(out)) == 39


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl"], "nothing.jsonl: got no file"),
        (["--db", "nothing.db"], "nothing.db: got no file, expected a database"),
        ([__file__], "judge: got a file without --out"),
        (["--dimensions", "S5"], "--dimensions: got 'S5', expected some of S1"),
        (["--out", "scores.txt"], "--out: got 'scores.txt'"),
        (["--batch", "none"], "none"),
    ],
)
def test_wrong_use_says_what_to_do(store, monkeypatch, arguments, message):
    monkeypatch.setenv("PARARECOVER_DB", str(store.path))
    with pytest.raises(InputError, match=message):
        run(*arguments)


def test_ctrl_c_stops_and_keeps_what_is_there(tmp_path, monkeypatch):
    store = filled(tmp_path / "many.db", 60)
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    command = [sys.executable, "-m", "pararecover_cli", "judge", "--db", str(store.path)]
    command += ["--judge", "m", "--yes", "--concurrency", "2"]
    with serving(lambda call: Answer(verdict(call), delay=0.1)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        until = time.monotonic() + 60
        while len(server.calls) < 5 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.startswith("cancelled: ")
    assert "Stopping; calls under way get a few seconds." in errors
    assert "Traceback" not in errors
    kept = sum(1 for _ in store.score_rows(scorer="judge:m@sde-1"))
    assert kept == 13 * len(server.calls)  # those under way were waited for
