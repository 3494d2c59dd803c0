"""``pararecover export sft|dpo|kto|stepwise|few-shot``."""

import json

import pytest
from typer.testing import CliRunner

from pararecover_cli.export import export
from pararecover_core.errors import InputError
from pararecover_core.formats import InstanceRef
from tests.store_data import answer, items, plan_text
from tests.training_data import JUDGE, run_of, scored_store


@pytest.fixture
def db(tmp_path):
    return scored_store(tmp_path / "t.db", tasks=10).path


def run(db, *words):
    result = CliRunner().invoke(export, [*words, "--db", str(db), "--scorer", JUDGE])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stderr


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_what_lacks_scores_is_named(tmp_path):
    store = scored_store(tmp_path / "t.db", tasks=1)
    ref = InstanceRef(id="1")
    store.ingest(items(answer(agent="new", thought="I am new", plan=plan_text("mix"), ref=ref)))
    said = run(store.path, "sft", "--out", str(tmp_path / "sft.jsonl"))
    assert "left out: 1 not all 15 sub-dimensions scored" in said
    assert "Answers without any score of this scorer: 1." in said


def test_sft_and_its_card(db, tmp_path):
    out = tmp_path / "sft.jsonl"
    said = run(db, "sft", "--out", str(out))
    assert "10 tasks, 1 of them set apart for the test" in said
    assert "left out: 18 total too low" in said
    assert f"9 examples written to {out} (TRL, prompt and completion)" in said
    card = json.loads((tmp_path / "sft.jsonl.card.json").read_text())
    assert (card["scorer"], card["prompt"], card["examples"]) == (JUDGE, "plan-1", 9)
    assert len(lines(out)) == len(card["ids"]) == 9

    # the test set stays what it was, whatever the seed says
    held = ("--test-list", f"{out}.card.json", "--seed", "77")
    run(db, "dpo", "--out", str(tmp_path / "dpo.jsonl"), *held)
    again = json.loads((tmp_path / "dpo.jsonl.card.json").read_text())
    assert again["test_queries"] == card["test_queries"]
    run(db, "sft", "--out", str(tmp_path / "test.jsonl"), "--part", "test", *held)
    (row,) = lines(tmp_path / "test.jsonl")
    assert row not in lines(out)


def test_llama_factory_gets_its_entry(db, tmp_path):
    out = tmp_path / "pairs.jsonl"
    run(db, "dpo", "--out", str(out), "--format", "llama-factory-sharegpt", "--tools")
    entry = json.loads((tmp_path / "dataset_info.json").read_text())["pairs"]
    assert entry["ranking"] is True
    assert entry["columns"]["tools"] == "tools"
    assert set(lines(out)[0]) == {"conversations", "system", "chosen", "rejected", "tools"}
    with pytest.raises(InputError, match="--tools: got the format llama-factory-alpaca"):
        run(db, "dpo", "--out", str(out), "--format", "llama-factory-alpaca", "--tools")


def test_kto_stepwise_and_demonstrations(db, tmp_path):
    run(db, "kto", "--out", str(tmp_path / "k.jsonl"), "--test-share", "0")
    labels = [row["label"] for row in lines(tmp_path / "k.jsonl")]
    assert (labels.count(True), labels.count(False)) == (10, 10)

    run(db, "few-shot", "--out", str(tmp_path / "shots.json"))
    shots = json.loads((tmp_path / "shots.json").read_text())["demonstrations"]
    assert len(shots) == 3
    assert {shot["agent"] for shot in shots} == {"good"}
    assert "Bake" in shots[0]["shown"]
    assert shots[0]["answer"].startswith("<thought>\nI am good\n</thought>")

    from annotations.store import Store

    store = Store(db)
    with store.read() as open_db:
        key = open_db.execute("SELECT key FROM replan WHERE agent = 'poor'").fetchone()[0]
    store.ingest(items(run_of(store, store.replan(key), 0.5)))
    run(db, "stepwise", "--out", str(tmp_path / "s.jsonl"), "--test-share", "0")
    assert [row["labels"] for row in lines(tmp_path / "s.jsonl")] == [[False]]


def test_what_is_wrong_is_said(db, tmp_path):
    out = str(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match=r"--part: got 'dev', expected train or test"):
        run(db, "sft", "--out", out, "--part", "dev")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(InputError, match="no query ids"):
        run(db, "sft", "--out", out, "--test-list", str(tmp_path / "empty"))
    with pytest.raises(InputError, match="format: got 'csv'"):
        run(db, "sft", "--out", out, "--format", "csv")
    with pytest.raises(InputError, match="no folder"):
        run(db, "sft", "--out", str(tmp_path / "no" / "x.jsonl"))
    with pytest.raises(InputError, match="no file"):
        run(tmp_path / "none.db", "sft", "--out", out)
