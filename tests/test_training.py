"""Training data from the store: totals by scorer, decisions, texts, files that trainers take."""

import io
import json
import math
import zipfile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotations import training, training_files
from annotations.store import Store
from annotations.training_files import Wanted
from pararecover_core.errors import InputError
from pararecover_core.formats.training import (
    TRAINING_FORMS,
    TrainingText,
    add_dataset_info,
    check_turns,
    dataset_entry,
    form_for,
    write_training,
)
from pararecover_core.preferences import Rules, select
from pararecover_core.rubric import JUDGED
from tests.store_data import entry, items
from tests.training_data import JUDGE, TOTALS, run_of, scored_store

ALL = Rules(test_share=0)


@pytest.fixture
def store(tmp_path):
    return scored_store(tmp_path / "t.db")


def by_agent(found):
    return {one.agent: one.total for one in found}


def test_totals_are_a_judges_13_with_the_programs_two(store):
    found = training.candidates(store, JUDGE)
    assert len(found) == 12
    assert by_agent(found) == TOTALS
    assert len({one.prompt for one in found}) == 4
    assert len({one.answer for one in found if one.agent == "good"}) == 1
    assert training.scorers(store) == [JUDGE, "program"]


def test_a_scorer_who_scored_nothing_is_named(store):
    with pytest.raises(InputError, match=r"scorer: got 'judge:x@y', expected one of judge:m@sde-1"):
        training.candidates(store, "judge:x@y")


def test_the_usual_scorer_has_the_most_totals(tmp_path):
    store = scored_store(tmp_path / "u.db", tasks=2)
    assert training.usual_scorer(store) == JUDGE
    key = training.candidates(store, JUDGE)[0].replan
    for dimension in JUDGED:
        store.append([entry(key, dimension, 1.0, scorer="human:ann")])
    assert training.usual_scorer(store) == JUDGE  # 6 answers against 1
    again = scored_store(tmp_path / "p.db", tasks=1, scorer="human:ann")
    assert training.usual_scorer(again) == "gold"
    assert training.usual_scorer(Store(tmp_path / "empty.db")) == ""


def test_an_archive_holds_file_card_and_entry(store):
    rules = Rules(test_share=0.25)
    for kind, form in (("sft", "trl"), ("dpo", "llama-factory-sharegpt")):
        wanted = Wanted(kind, JUDGE, rules, form)
        found = training.candidates(store, JUDGE)
        chosen = training_files.choose(wanted, found)
        data = training_files.zipped(store, wanted, found, chosen, f"{kind}.jsonl")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            made = {name: archive.read(name) for name in archive.namelist()}
        assert made[f"{kind}.jsonl"] == training_files.plain(store, wanted, found, chosen)
        assert made[f"{kind}.jsonl"].count(b"\n") == 3
        card = json.loads(made[f"{kind}.jsonl.card.json"])
        assert (card["kind"], card["examples"], card["test_tasks"]) == (kind, 3, 1)
        assert ("dataset_info.json" in made) == (kind == "dpo")
    entry = json.loads(made["dataset_info.json"])["dpo"]
    assert (entry["file_name"], entry["ranking"]) == ("dpo.jsonl", True)
    with pytest.raises(InputError, match="got the format llama-factory-alpaca"):
        training_files.form_of(Wanted("sft", JUDGE, form="llama-factory-alpaca", tools=True))


def test_digests_are_kept_over_new_scores(store, monkeypatch):
    memo = {}
    before = training.candidates(store, JUDGE, memo)
    monkeypatch.setattr(training, "_answer_digest", None)
    assert training.candidates(store, JUDGE, memo) == before


def test_people_count_where_they_agree_or_somebody_decided(tmp_path):
    store = scored_store(tmp_path / "p.db", tasks=1, scorer="human:ann")
    good = next(c for c in training.candidates(store) if c.agent == "good")
    assert good.total == 14.5
    store.append([entry(good.replan, "S1", 0.5, scorer="human:ben")])
    after = next(c for c in training.candidates(store) if c.agent == "good")
    assert math.isnan(after.total)
    assert after.missing == ("S1",)
    assert training.missing_counts([after]) == {"S1": 1}
    alone = next(c for c in training.candidates(store, "human:ann") if c.agent == "good")
    assert alone.total == 14.5
    with store.write() as db:
        db.execute(
            "INSERT INTO gold (event, replan, dimension, revision, value, adjudicator, at) "
            "VALUES ('g', ?, 'S1', 1, 0.5, 'cy', 't')",
            (good.replan,),
        )
    decided = next(c for c in training.candidates(store) if c.agent == "good")
    assert decided.total == 14.0


def test_a_withdrawn_score_is_no_score(store):
    one = next(c for c in training.candidates(store, JUDGE) if c.agent == "good")
    store.append([entry(one.replan, "S1", None, scorer=JUDGE, base=1, action="clear")])
    found = {c.replan: c for c in training.candidates(store, JUDGE)}
    assert found[one.replan].missing == ("S1",)


def test_e5_comes_from_the_run_where_no_score_says(tmp_path):
    store = scored_store(tmp_path / "e.db", tasks=1)
    good, fair = (
        next(r for r in store.replans_of(key) if r.agent == agent)
        for agent in ("good", "fair")
        for key in [training.candidates(store, JUDGE)[0].instance]
    )
    for replan in (good, fair):
        store.append([entry(replan.key, "E5", None, scorer="program", base=1, action="clear")])
    assert {c.agent for c in training.candidates(store, JUDGE) if c.missing} == {"good", "fair"}
    store.ingest(items(run_of(store, good, 0.25), run_of(store, fair, 0.75, named=False)))
    # 14.5 had 0.5 for E5: 14 + 0.25; 10 had 0
    assert by_agent(training.candidates(store, JUDGE)) == {"good": 14.25, "fair": 10.75, "poor": 4}


def test_e5_of_a_run_without_figures_follows_from_its_rounds(tmp_path):
    store = scored_store(tmp_path / "e.db", tasks=1, round_gt=2)
    for one in training.candidates(store, JUDGE):
        store.append([entry(one.replan, "E5", None, scorer="program", base=1, action="clear")])
        run = run_of(store, store.replan(one.replan), 0.0, named=False)
        # one that its endpoint broke off says nothing of its agent
        outcome = "endpoint not available" if one.agent == "fair" else "response"
        more = {"key": one.agent, "extra": {}, "outcome": outcome, "success": one.agent != "poor"}
        store.ingest(items(msgspec.structs.replace(run, **more)))
    found = by_agent(training.candidates(store, JUDGE))
    # best in 2 rounds; 1 lies behind the plan, 2 are of the run; 14.5 had 0.5 for E5
    assert found["good"] == pytest.approx(14 + 2 / 3)
    assert found["poor"] == 4
    assert math.isnan(found["fair"])


def test_decisions_are_kept_with_their_reason(store):
    chosen = select(training.candidates(store, JUDGE), ALL, kind="sft")
    first = chosen.examples[0].id
    with pytest.raises(InputError, match="reason: got nothing, expected a reason"):
        training.decide(store, "sft", first, keep=False, reason=" ", by="ann", event="1")
    for _ in range(2):
        training.decide(store, "sft", first, keep=False, reason=" dull ", by="ann", event="2")
    (made,) = training.decisions(Store(store.path))
    assert (made.kind, made.example, made.keep, made.reason, made.by) == (
        *("sft", first, False, "dull"),
        "ann",
    )
    again = select(
        training.candidates(store, JUDGE), ALL, kind="sft", decisions=training.decisions(store)
    )
    assert len(again.examples) == 3
    assert again.dropped[0].decision.reason == "dull"


def rows(store, kind, name, tmp_path, **more):
    chosen = select(training.candidates(store, JUDGE), ALL, kind="dpo" if kind == "dpo" else "sft")
    path = tmp_path / f"{kind}.jsonl"
    written = write_training(
        training.texts(store, chosen.examples, **more), path, form_for(kind, name)
    )
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert written.rows == len(found) == 4
    return found


GOOD = "<thought>\nI am good\n</thought>\n<plan>\n{"


def test_trl_sft(store, tmp_path):
    row = rows(store, "sft", "trl", tmp_path)[0]
    assert list(row) == ["prompt", "completion"]
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    assert "Bake 1 cakes" in row["prompt"][1]["content"]
    assert '{"name":"mix"}' in row["prompt"][1]["content"]
    (said,) = row["completion"]
    assert said["role"] == "assistant"
    assert said["content"].startswith(GOOD)
    whole = rows(store, "sft", "trl-messages", tmp_path)[0]["messages"]
    assert whole == [*row["prompt"], *row["completion"]]


def test_tools_may_stand_in_their_own_column(store, tmp_path):
    row = rows(store, "sft", "trl", tmp_path, tools_apart=True)[0]
    assert '{"name":"mix"}' not in row["prompt"][1]["content"]
    (tool,) = json.loads(row["tools"])
    assert tool["type"] == "function"
    assert tool["function"]["name"] == "mix"


def test_trl_dpo(store, tmp_path):
    # 14.5 against 4 is a gap of 10.5; against 10 it is 4.5
    for row in rows(store, "dpo", "trl", tmp_path):
        assert list(row) == ["prompt", "chosen", "rejected"]
        assert row["chosen"][0]["content"].startswith(GOOD)
        assert row["rejected"][0]["content"].startswith("<thought>\nI am poor\n</thought>")


def test_llama_factory_sharegpt(store, tmp_path):
    row = rows(store, "sft", "llama-factory-sharegpt", tmp_path)[0]
    assert [turn["from"] for turn in row["conversations"]] == ["human", "gpt"]
    assert row["system"].startswith("You steer a workflow")
    ranked = rows(store, "dpo", "llama-factory-sharegpt", tmp_path)[0]
    assert [turn["from"] for turn in ranked["conversations"]] == ["human"]
    assert ranked["chosen"]["from"] == ranked["rejected"]["from"] == "gpt"


def test_llama_factory_alpaca(store, tmp_path):
    row = rows(store, "sft", "llama-factory-alpaca", tmp_path)[0]
    assert (row["input"], row["output"][:5]) == ("", "<thou")
    ranked = rows(store, "dpo", "llama-factory-alpaca", tmp_path)[0]
    assert isinstance(ranked["chosen"], str)
    assert "output" not in ranked
    shots = TrainingText(
        [
            {"role": role, "content": f"{role}{n}"}
            for n, role in enumerate(("system", "user", "assistant", "user"))
        ],
        "a",
    )
    assert TRAINING_FORMS["llama-factory-alpaca"].row(shots)["history"] == [["user1", "assistant2"]]


def test_turns_that_llama_factory_would_skip_are_refused():
    turns = [{"from": "human"}, {"from": "gpt"}]
    check_turns(turns, ranking=False)
    check_turns(turns[:1], ranking=True)
    with pytest.raises(InputError, match="got 2 turns, expected human and gpt in turn, the last"):
        check_turns(turns, ranking=True)
    with pytest.raises(InputError, match="turn 1 out of turn"):
        check_turns(turns[::-1], ranking=False)


def test_dataset_info_keeps_what_is_there(tmp_path):
    (tmp_path / "dataset_info.json").write_text('{"mine": {"file_name": "m.json"}}')
    sharegpt, alpaca = (TRAINING_FORMS[f"llama-factory-{n}"] for n in ("sharegpt", "alpaca"))
    add_dataset_info(tmp_path, "p", dataset_entry(sharegpt, "dpo", "p.jsonl", tools=True))
    path = add_dataset_info(tmp_path, "s", dataset_entry(alpaca, "sft", "s.jsonl"))
    assert json.loads(path.read_text()) == {
        "mine": {"file_name": "m.json"},
        "p": {
            "file_name": "p.jsonl",
            "ranking": True,
            "formatting": "sharegpt",
            "columns": {
                "messages": "conversations",
                "system": "system",
                "chosen": "chosen",
                "rejected": "rejected",
                "tools": "tools",
            },
        },
        "s": {
            "file_name": "s.jsonl",
            "columns": {
                "prompt": "instruction",
                "query": "input",
                "system": "system",
                "response": "output",
            },
        },
    }
    path.write_text("[]")
    with pytest.raises(InputError, match="no JSON object"):
        add_dataset_info(tmp_path, "x", {})


def test_formats_by_kind():
    assert form_for("dpo", "trl").name == "trl-preference"
    assert form_for("kto", "trl").name == "trl-kto"
    with pytest.raises(InputError, match=r"format: got 'trl-messages', expected one of trl-pref"):
        form_for("dpo", "trl-messages")


def test_kto_labels(store, tmp_path):
    chosen = select(training.candidates(store, JUDGE), Rules(test_share=0, above=0), kind="sft")
    texts = list(training.texts(store, chosen.examples, good=10))
    assert [one.label for one in texts] == [True, False, False] * 4
    row = form_for("kto", "trl").row(texts[1])
    assert (list(row), row["label"]) == (["prompt", "completion", "label"], False)


def test_stepwise_takes_runs_whose_every_round_is_labelled(tmp_path):
    store = scored_store(tmp_path / "s.db", tasks=1)
    found = training.candidates(store, JUDGE)
    replans = [store.replan(one.replan) for one in found]
    store.ingest(items(*(run_of(store, one, n / 10) for n, one in enumerate(replans))))
    steps = list(training.stepwise(store, found, 10))
    assert [(len(one.steps), one.labels) for one in steps] == [
        (1, (True,)),
        (1, (False,)),
        (1, (False,)),
    ]
    row = form_for("stepwise", "trl").row(steps[0])
    assert list(row) == ["prompt", "completions", "labels"]
    assert row["completions"][0].startswith(GOOD)
    assert list(training.stepwise(store, [], 10)) == []


def test_lone_surrogates_are_named_by_line(tmp_path):
    path = tmp_path / "x.jsonl"
    texts = [
        TrainingText([{"role": "user", "content": text}], "a")
        for text in ("结果", "a\ud800b", "\\ud800")
    ]
    written = write_training(texts, path, form_for("sft", "trl"))
    assert (written.rows, written.repaired) == (3, (2,))
    lines = path.read_text("utf-8").splitlines()
    assert "结果" in lines[0]
    said = [json.loads(line)["prompt"][0]["content"] for line in lines]
    assert said == ["结果", "a\ufffdb", "\\ud800"]


def told(row):
    """Every text of a row in the order system, user, answer, worse answer."""
    if "conversations" in row:
        turns = [row["system"], *(turn["value"] for turn in row["conversations"])]
        return [*turns, *(row[side]["value"] for side in ("chosen", "rejected") if side in row)]
    if "instruction" in row:
        names = ("system", "instruction", "output", "chosen", "rejected")
        return [row[name] for name in names if name in row]
    if "completions" in row:
        return [*row["prompt"].split("\n\n", 1), *row["completions"]]
    lists = (row.get(n, ()) for n in ("messages", "prompt", "completion", "chosen", "rejected"))
    return [message["content"] for messages in lists for message in messages]


ANY = st.text(st.characters(exclude_categories=[]), min_size=1)


@given(texts=st.tuples(ANY.map(lambda t: t.replace("\n", " ")), ANY, ANY, ANY), label=st.booleans())
def test_any_text_reaches_every_format(tmp_path_factory, texts, label):
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    system, user, answer, worse = texts
    prompt = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    for form in TRAINING_FORMS.values():
        for kind in form.kinds:
            pair = kind == "dpo"
            more = {"steps": (answer, worse), "labels": (label, True)} if kind == "stepwise" else {}
            one = TrainingText(prompt, answer, worse if pair else "", label, **more)
            written = write_training([one, one], path, form)
            lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
            given = texts if pair or kind == "stepwise" else texts[:3]
            whole = [t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in given]
            for line in lines:
                assert told(json.loads(line)) == whole, form.name
            assert written.repaired == ((1, 2) if list(given) != whole else ())
            assert json.loads(line).get("label", label) == label
            assert json.loads(line).get("labels", [label, True]) == [label, True]
