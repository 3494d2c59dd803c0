"""Judging by /v1/batches over HTTP: hand in, look, collect once, and what endpoints do instead."""

import json

import pytest
from typer.testing import CliRunner

from annotations.judge_batches import collect, hand_in, waiting
from annotations.judges import Order, prepare
from annotations.judging import list_runs, open_failures
from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core import llm_batch
from pararecover_core.completions import Endpoint, Request, Secret, Status
from pararecover_core.errors import ConfigError, InputError
from pararecover_core.llm_batch import BatchEndpoint
from tests.judge_data import filled, number, score_of, verdict
from tests.model_server import Answer, Call, chat, failure, serving

SCORER = "judge:m@sde-1"


class Batches:
    """An endpoint's batches: answers by ``answer`` once ``ready``."""

    def __init__(self, answer=verdict):
        self.answer, self.ready, self.files, self.lines = answer, False, {}, {}
        self.status = "completed"
        self.lost: set[int] = set()

    def __call__(self, call):
        path = call.path.removeprefix("/v1")
        if path == "/files":
            name = f"file-{len(self.files)}"
            self.files[name] = call.body
            return {"id": name, "object": "file", "purpose": "batch"}
        if path.startswith("/files/"):
            return Answer(self.files[path.split("/")[2]], kind="application/jsonl")
        if path == "/batches":
            name = f"batch-{len(self.lines)}"
            raw = self.files[call.body["input_file_id"]]
            found = [json.loads(x) for x in raw.splitlines() if x.startswith(b"{")]
            self.lines[name] = found
            return self._state(name)
        return self._state(path.split("/")[2])

    def _state(self, name):
        lines = self.lines[name]
        state = {"id": name, "object": "batch", "status": "in_progress"}
        counts = {"total": len(lines), "completed": 0, "failed": 0}
        if self.ready:
            counts["completed"] = len(lines)
            state |= {"status": self.status, "output_file_id": f"out-{name}"}
            self.files[f"out-{name}"] = b"".join(self._results(lines))
        return state | {"request_counts": counts}

    def _results(self, lines):
        for place, line in enumerate(lines):
            if place in self.lost:
                continue
            found = self.answer(Call(0.0, line["url"], {}, line["body"]))
            status, body = (found.status, found.body) if isinstance(found, Answer) else (200, found)
            response = {"status_code": status, "body": body}
            made = {"custom_id": line["custom_id"], "response": response, "error": None}
            yield json.dumps(made).encode() + b"\n"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    return filled(tmp_path / "study.db")


def prepared(store, server, monkeypatch, **fields):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return prepare(store, Order("m", **fields))


def scores(store):
    return {(row.replan, row.dimension): row.score for row in store.score_rows(scorer=SCORER)}


def test_a_batch_is_handed_in_and_collected_once(store, monkeypatch):
    batches = Batches()
    with serving(batches) as server:
        ready = prepared(store, server, monkeypatch)
        endpoint, part = BatchEndpoint(ready.endpoint), ready.parts[0]
        (name,) = hand_in(store, endpoint, part)
        (one,) = waiting(Store(store.path), [SCORER], server.url)  # another program sees it
        assert (one.id, one.calls) == (name, 3)
        assert not endpoint.state(name).ended
        batches.ready = True
        state = endpoint.state(name)
        assert (state.ended, state.done, state.total) == (True, 3, 3)
        assert collect(store, endpoint, state, part) == {"ok": 3}
        assert collect(store, endpoint, state, part) == {}
        assert waiting(store, [SCORER], server.url) == []
        assert prepared(store, server, monkeypatch).calls == 0
    with store.read() as db:
        order = [row[0] for row in db.execute("SELECT key FROM replan ORDER BY n")]
    assert scores(store) == {
        (key, d): score_of(n, d) for n, key in enumerate(order) for d in part.plan.dimensions
    }
    assert [run.outcome for run in list_runs(store)] == ["done"]
    body = batches.lines[name][0]["body"]
    assert body["response_format"]["type"] == "json_schema"
    assert body["model"] == "m"


def test_failed_and_lost_answers_are_failures(store, monkeypatch):
    def answer(call):
        kind = number(call)
        return failure(400, "too long") if kind == 0 else chat("no") if kind == 1 else verdict(call)

    batches = Batches(answer)
    batches.ready, batches.lost, batches.status = True, {2}, "expired"
    with serving(batches) as server:
        ready = prepared(store, server, monkeypatch)
        endpoint, part = BatchEndpoint(ready.endpoint), ready.parts[0]
        (name,) = hand_in(store, endpoint, part)
        counts = collect(store, endpoint, endpoint.state(name), part)
    assert counts == {"endpoint error": 2, "unparsable": 1}
    assert scores(store) == {}
    errors = [one.error for one in open_failures(store, SCORER)]
    assert "HTTP 400" in errors[0]
    assert errors[2] == "the batch ended as expired"


def test_many_questions_become_several_batches(store, monkeypatch):
    monkeypatch.setattr(llm_batch, "MOST_LINES", 2)
    batches = Batches()
    with serving(batches) as server:
        ready = prepared(store, server, monkeypatch)
        endpoint, part = BatchEndpoint(ready.endpoint), ready.parts[0]
        names = hand_in(store, endpoint, part)
        batches.ready = True
        counts = [collect(store, endpoint, endpoint.state(name), part) for name in names]
    assert [len(lines) for lines in batches.lines.values()] == [2, 1]
    assert counts == [{"ok": 2}, {"ok": 1}]
    assert len(scores(store)) == 39


def test_an_endpoint_without_batches_is_said_to_have_none(store, monkeypatch):
    with serving(lambda call: failure(404, "not found")) as server:
        ready = prepared(store, server, monkeypatch)
        with pytest.raises(
            ConfigError, match=r"/batches: got no batches there.*Leave --offline out"
        ):
            hand_in(store, BatchEndpoint(ready.endpoint), ready.parts[0])
    assert list_runs(store)[0].outcome == "failed"
    assert waiting(store, [SCORER], server.url) == []


def test_a_refusal_hides_the_key():
    key = "sk-very-secret-key"
    with serving(lambda call: failure(401, f"wrong key {key}")) as server:
        one = BatchEndpoint(Endpoint("m", server.url, Secret(key), retries=0))
        with pytest.raises(ConfigError) as caught:
            list(one.submit([("a", Request((("user", "hi"),)))]))
        with pytest.raises(ConfigError):
            one.state("batch-1")
        with pytest.raises(ConfigError):
            one.cancel("batch-1")
    assert key not in str(caught.value)


def test_a_damaged_line_is_an_endpoint_error():
    one = BatchEndpoint(Endpoint("m", "http://127.0.0.1:9/v1"))
    name, found = one._answer(b"{")
    assert (name, found.status, found.error) == ("", Status.ENDPOINT_ERROR, "no response")
    line = {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}}
    assert one._answer(json.dumps(line).encode())[1].status is Status.ENDPOINT_ERROR


def test_the_same_command_hands_in_and_collects(store, monkeypatch):
    batches = Batches()
    command = ["judge", "--db", str(store.path), "--judge", "m", "--offline", "--yes"]

    def run():
        found = CliRunner().invoke(cli, command, catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    with serving(batches) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run() == "handed in 3 calls as batch-0; the same command collects\n"
        assert run() == "batch-0: in_progress, 0 of 3 answered\n"
        batches.ready = True
        assert run() == "batch-0: completed; 3 ok\n"
        assert run() == ""
    assert len(batches.lines) == 1
    refused = CliRunner().invoke(cli, ["judge", "--db", str(store.path), "--offline"])
    assert isinstance(refused.exception, InputError)
