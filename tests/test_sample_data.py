"""The committed sample data: what it covers, and that it is sound."""

import json
from collections import Counter
from pathlib import Path

import pytest

from pararecover_core.findings import instance_findings
from pararecover_core.formats import read
from pararecover_core.formats.items import Answer, Mark, Reject
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Trajectory
from pararecover_core.rubric import JUDGED, LEVELS
from pararecover_core.scores import efficacy, total_rounds
from pararecover_core.taxonomy import BAD_REACTION, ErrorType

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data"
FILES = ("level1.jsonl", "level2.jsonl", "replans.csv", "scores.csv", "trajectories.jsonl")


def contents(name):
    return [item.content for item in read(DATA / f"sample_{name}")]


@pytest.fixture(scope="module")
def instances():
    return [*contents("level1.jsonl"), *contents("level2.jsonl")]


@pytest.fixture(scope="module")
def answers():
    return contents("replans.csv")


@pytest.fixture(scope="module")
def marks():
    return contents("scores.csv")


@pytest.fixture(scope="module")
def rows():
    lines = (DATA / "sample_level1.jsonl").read_text(encoding="utf-8").splitlines()
    lines += (DATA / "sample_level2.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_file_is_read_without_a_reject():
    kinds = [Instance, Instance, Answer, Mark, Trajectory]
    for name, kind in zip(FILES, kinds, strict=True):
        found = contents(name)
        assert not [c for c in found if isinstance(c, Reject)]
        assert {type(c) for c in found} == {kind}


def test_counts(instances, answers, marks):
    assert Counter(i.level for i in instances) == {1: 23, 2: 11}
    assert Counter(i.source.value for i in instances) == {"augmented": 22, "rollout": 12}
    assert len(answers) == 68
    assert {a.agent for a in answers} == {"agent-a", "agent-b"}
    assert {m.scorer for m in marks} == {"human:ann", "human:ben", "judge:judge-a@v1"}


def test_all_error_types_and_a_clean_control(instances):
    tags = {tag for i in instances for tag in i.tags}
    assert tags == {kind.value for kind in ErrorType} | {BAD_REACTION}
    assert [i.id for i in instances if not i.tags] == ["15"]
    assert max(len(i.tags) for i in instances if i.level == 2) == 3


def test_every_dialect_occurs(rows):
    paras, ids, plans, text = [], set(), [], json.dumps(rows, ensure_ascii=False)
    for row in rows:
        given = json.loads(row["plan"])
        plans.append(given)
        tasks = json.loads(given["original_plan"])["tasks"] if "original_plan" in given else (
            given["tasks"]
        )  # fmt: skip
        paras += [task.get("para", "absent") for task in tasks]
        ids |= {task["id"] for task in tasks}
    lists = [para for para in paras if isinstance(para, list) and para]
    assert any(isinstance(para, dict) for para in paras)
    assert None in paras
    assert "absent" in paras
    assert any(isinstance(para[0], dict) for para in lists)
    assert any(isinstance(para[0], str) and para[0].startswith("{") for para in lists)
    assert any(isinstance(para[0], str) and "=" in para[0] for para in lists)
    assert any(isinstance(para[0], str) and ": '" in para[0] for para in lists)
    assert any(isinstance(para[0], int | float) for para in lists)
    assert {"6A", "2.1", "4-1", "2_retry", "task1", "user_provide_address"} <= ids
    assert any("original_plan" in plan for plan in plans)
    assert any(row["tool_list"].startswith("[{'") for row in rows)
    assert {type(row["query_id"]) for row in rows} == {int, str}
    assert {type(row["fun_call"]) for row in rows} == {list, str}
    assert "中" in text


def test_odd_plans_are_understood(instances):
    plans = {i.id: i.plan for i in instances}
    assert "response" not in plans["7"].by_id
    assert plans["3"].fault.startswith("a cycle")
    assert plans["16"].s5 == 1
    assert {i.id for i in instances if not i.plan.s5} == {"3", "204"}


def test_answers_in_every_wrapping(answers):
    texts = {(a.ref.id, a.agent): a.plan for a in answers}
    plans = {key: Plan.parse(text) for key, text in texts.items()}
    broken = {key: plan.fault for key, plan in plans.items() if not plan.s5}
    assert set(broken) == {("205", "agent-a"), ("205", "agent-b"), ("104", "agent-b")}
    assert broken["205", "agent-a"].startswith("a cycle")
    assert broken["205", "agent-b"].startswith("not JSON")
    raw = (DATA / "sample_replans.csv").read_text(encoding="utf-8")
    assert "```json" in raw
    assert "<plan>" in raw
    assert "{'tasks': " in raw
    assert all(a.thought.strip() for a in answers)


def test_two_answers_to_each_instance(instances, answers):
    assert Counter(a.ref.id for a in answers) == {i.id: 2 for i in instances}


def test_scores_are_legal_and_complete(answers, marks):
    assert {m.value for m in marks} == set(LEVELS)
    by_scorer = Counter((m.ref.instance.id, m.ref.agent, m.scorer) for m in marks)
    assert set(by_scorer.values()) == {len(JUDGED)}
    assert {m.dimension for m in marks} == set(JUDGED)
    scored = {(m.ref.instance.id, m.ref.agent) for m in marks}
    known = {(a.ref.id, a.agent) for a in answers}
    assert scored < known
    assert len(known - scored) == 10


def test_the_edge_cases_of_the_rubric_are_kept(marks):
    """A plan that does not parse: S2, S3, S4 and E1 to E4 are 0 for the people."""
    zero = {"S2", "S3", "S4", "E1", "E2", "E3", "E4"}
    people = [m for m in marks if m.ref.instance.id == "205" and m.scorer.startswith("human:")]
    assert {m.value for m in people if m.dimension in zero} == {0.0}
    clean = [m for m in marks if (m.ref.instance.id, m.ref.agent) == ("15", "agent-a")]
    assert {m.value for m in clean if m.scorer == "human:ann"} == {1.0}


def test_people_and_judge_agree_often_and_not_always(marks):
    values = {(m.ref.instance.id, m.ref.agent, m.dimension, m.scorer): m.value for m in marks}

    def share(one, other):
        pairs = [
            (value, values[(*key[:3], other)])
            for key, value in values.items()
            if key[3] == one and (*key[:3], other) in values
        ]
        return sum(a == b for a, b in pairs) / len(pairs)

    assert 0.75 <= share("human:ann", "judge:judge-a@v1") <= 0.85
    assert 0.85 <= share("human:ann", "human:ben") <= 0.97


def test_the_judge_gives_reasons_and_the_people_some_notes(marks):
    assert all(m.note for m in marks if m.scorer.startswith("judge:"))
    assert sum(bool(m.note) for m in marks if m.scorer == "human:ann") > 50
    assert sum(bool(m.note) for m in marks if m.scorer == "human:ben") > 10


def test_trajectories_start_from_instances_of_the_sample(instances):
    known = {i.key: i for i in instances}
    found = contents("trajectories.jsonl")
    assert all(t.instance in known for t in found)
    lengths = [(known[t.instance].id, t.agent, len(t.rounds), t.outcome) for t in found]
    assert lengths == [
        ("106", "agent-b", 18, "response"),
        ("106", "agent-a", 6, "response"),
        ("1", "agent-a", 6, "response"),
        ("205", "agent-b", 2, "unparsable"),
        ("5", "agent-b", 40, "round limit"),
    ]
    for trajectory in found:
        assert trajectory.rounds[0].plan.nodes == known[trajectory.instance].plan.nodes


def test_each_round_runs_the_frontier_of_its_plan():
    for trajectory in contents("trajectories.jsonl"):
        for each in trajectory.rounds:
            if each.plan.s5:
                called = {n for n in each.plan.frontier() if n != "response"}
                assert {call.node for call in each.observations} == called


def test_the_long_run_has_the_efficacy_of_appendix_b(instances):
    """G = 6 optimal rounds, T = 18 and 6 rounds: 6 / 18 = 0.33 and 6 / 6 = 1."""
    tent = next(i for i in instances if i.id == "106")
    long, short, *_ = contents("trajectories.jsonl")
    assert tent.round_gt == 6
    scores = [
        efficacy(
            success=run.success,
            optimal=tent.round_gt,
            rounds=total_rounds(run.rounds[0].plan, len(run.rounds)),
        )
        for run in (long, short)
    ]
    assert scores == [pytest.approx(6 / 18), 1.0]


def test_findings_see_most_of_the_faults(instances):
    """Semantic faults (a wrong tool that worked) stay with people; the rest is found."""
    labels = [(i, tag) for i in instances for tag in i.tags if tag != BAD_REACTION]
    hits = sum(
        tag in {f.error_type.value for f in instance_findings(i) if f.error_type}
        for i, tag in labels
    )
    assert hits / len(labels) > 0.8


def test_worked_examples_agree_with_the_sample(answers, marks):
    path = ROOT / "annotations" / "guidelines" / "examples.json"
    examples = json.loads(path.read_text(encoding="utf-8"))["examples"]
    assert len(examples) == 2
    people = {
        (m.ref.instance.id, m.ref.instance.query_id, m.ref.agent, m.dimension): m.value
        for m in marks
        if m.scorer == "human:ann"
    }
    for example in examples:
        assert [score["dimension"] for score in example["scores"]] == list(JUDGED)
        where = example["instance"]["id"], example["instance"]["query_id"], example["agent"]
        for score in example["scores"]:
            assert people[(*where, score["dimension"])] == score["score"]
            assert score["reason"].endswith(".")


def test_nothing_looks_like_a_real_person_or_address():
    text = "".join((DATA / f"sample_{name}").read_text(encoding="utf-8") for name in FILES)
    for part in text.split("@")[1:]:
        assert part.startswith(("example.", "v1", "1", "2", "3")), part[:40]
