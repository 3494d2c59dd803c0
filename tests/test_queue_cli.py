import json

import pytest
from typer.testing import CliRunner

from annotations import queue
from annotations.batches import get_batch
from pararecover_cli.batch import batch
from pararecover_core.errors import InputError
from tests.queue_data import make_store, score


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path, items=10, agents=("agent-a", "agent-b"))


def run(store, *arguments):
    return CliRunner().invoke(batch, [*arguments, "--db", str(store.path)])


def test_create_says_what_was_made(store):
    done = run(store, "create", "Pilot B", "--size", "6", "--annotators", "2", "--overlap", "0.5")
    assert done.exit_code == 0
    assert done.stdout == (
        "Made batch 1, Pilot B: 6 items of 20 that match, 9 scorings, 117 single scores.\n"
    )
    assert get_batch(store, 1).name == "Pilot B"


def test_create_as_json_with_filters(store):
    done = run(
        store,
        *("create", "A", "--level", "2", "--agent", "agent-a", "--error-type", "type error"),
        *("--dimension", "S1", "--dimension", "D3", "--reveal", "open", "--json"),
    )
    data = json.loads(done.stdout)
    assert (data["available"], data["items"], data["cells"]) == (5, 5, 10)
    assert data["short"] == "Only 5 replans exist, 100 were asked for; all of them are taken."
    assert (data["batch"]["dimensions"], data["batch"]["reveal"]) == (["S1", "D3"], "open")


def test_dry_run_makes_nothing(store):
    done = run(store, "create", "Paper", "--paper", "--dry-run")
    assert done.stdout.startswith("Batch Paper would have: 20 items of 20 that match, 24 scorings")
    assert "400 were asked for each sub-dimension" in done.stderr
    assert run(store, "list").stdout == "No batch yet: pararecover batch create NAME\n"


def test_create_from_a_list_of_keys(store, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("r2-b\nr1-a\n")
    run(store, "create", "A", "--replans", str(keys))
    assert queue.next_item(store, 1, "ann").replan == "r2-b"
    keys.write_text("")
    failed = run(store, "create", "B", "--replans", str(keys))
    assert isinstance(failed.exception, InputError)
    assert "keys.txt: got no key" in str(failed.exception)


def test_list(store):
    run(store, "create", "A", "--size", "3")
    run(store, "create", "Longer name", "--size", "12", "--dimension", "S1")
    today = get_batch(store, 1).created[:10]
    assert run(store, "list").stdout == (
        "id  name         items  submitted  asks     created\n"
        f" 2  Longer name     12    0 of 12     1  {today}\n"
        f" 1  A                3     0 of 3    13  {today}\n"
    )
    assert [one["name"] for one in json.loads(run(store, "list", "--json").stdout)] == [
        "Longer name",
        "A",
    ]


def _two_annotators(store):
    run(store, "create", "A", "--size", "2", "--dimension", "S1", "--annotators", "2")
    for name, value in (("ann", 1.0), ("bob", 0.5)):
        item = queue.next_item(store, 1, name)
        score(store, item.replan, name, value, ["S1"], batch=1)
        queue.submit(store, 1, name, item.replan, event=name)


def test_progress(store, monkeypatch):
    _two_annotators(store)
    done = run(store, "progress", "A").stdout.splitlines()
    assert done[0] == "A: 2 of 4 scorings submitted"
    assert " ".join(done[1].split()) == "annotator done at work flagged median s an hour too fast"
    assert done[2].split()[:5] == ["ann", "1", "0", "0", "0"]
    assert done[4] == (
        "Items by two or more: 1; pairs of scores: 1; exact match 0.000, mean difference 0.500;"
        " disagreements that wait for an adjudicator: 1"
    )


def test_progress_as_json(store):
    run(store, "create", "A", "--size", "2")
    data = json.loads(run(store, "progress", "1", "--json").stdout)
    assert data["annotators"] == []
    assert data["agreement"]["ema"] is None


def test_an_unknown_batch_is_named(store):
    failed = run(store, "progress", "Z")
    assert "batch: got 'Z', expected a batch (there is none yet). Check its name or id." in str(
        failed.exception
    )


def test_a_batch_may_hide_the_outcome(store):
    run(store, "create", "A", "--hide-outcome")
    run(store, "create", "B")
    assert [get_batch(store, n).plan["hide_outcome"] for n in (1, 2)] == [True, False]
