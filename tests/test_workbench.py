import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from annotations import desk, outbox, queue, score_log
from annotations.batches import BatchPlan, create_batch
from annotations.blind import Reveal
from annotations.score_log import ScoreEntry
from annotations.store import Store
from annotations.workbench import content, full_text, proposals, rubric_data, undo_stack
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import (
    Instance,
    Replan,
    Round,
    Score,
    Source,
    ToolCall,
    Trajectory,
    parse_tools,
)
from pararecover_core.rubric import JUDGED, sde_rubric

BEFORE = [
    {"id": "root", "name": "root", "dep": [], "status": True},
    {"id": "1", "name": "find_depot", "para": {"city": "Lleida"}, "dep": ["root"], "status": True},
    {"id": "2", "name": "rail_route", "para": {"depart": "18 June"}, "dep": ["1"], "status": False},
    {"id": "response", "name": "response", "dep": ["2"], "status": False},
]
AFTER = [
    *BEFORE[:2],
    {**BEFORE[2], "status": True},
    {"id": "3", "name": "rail_route", "para": {"depart": "2026-06-18"}, "dep": ["1"]},
    {**BEFORE[3], "dep": ["3"]},
]
TOOLS = [
    {
        "name": "rail_route",
        "description": "Plans a train.",
        "parameters": {
            "depart": {"type": "string", "description": "A date"},
            "stops": {"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]},
        },
        "required": ["depart"],
    }
]


def instance(number: int = 1, **more: Any) -> Instance:
    values = {
        "key": f"i{number}",
        "id": str(number),
        "query_id": str(number),
        "level": 1,
        "source": Source.AUGMENTED,
        "query": "Move apples to Lyon",
        "tools": parse_tools(TOOLS),
        "plan": Plan.parse({"tasks": BEFORE}),
        "observations": (ToolCall("rail_route", {"depart": "18 June"}, "Error: bad date", "2"),),
        "tags": ("Parameter_Invalid",),
        "error_reason": "the date is no date",
        "round_gt": 3,
    }
    return Instance(**{**values, **more})


def replan(number: int = 1, **more: Any) -> Replan:
    values = {
        "key": f"r{number}",
        "instance": f"i{number}",
        "agent": "secret-agent",
        "thought": "Node 2 failed: rail_route wants a date.",
        "plan": Plan.parse({"tasks": AFTER}),
    }
    return Replan(**{**values, **more})


class Clock:
    """A clock that moves on by a second at every look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 6, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "scores.db", clock=Clock())
    records: list[Any] = [instance(n) for n in (1, 2, 3)] + [replan(n) for n in (1, 2, 3)]
    records.append(Score("r1", "D3", "judge:gpt@v1", 0.5, "half a cause"))
    made.ingest([Item(Place("test", n), record) for n, record in enumerate(records, 1)])
    return made


@pytest.fixture
def batch(store: Store) -> int:
    plan = BatchPlan("Pilot", replans=("r1", "r2", "r3"), annotators_per_item=2)
    return create_batch(store, plan).id


@pytest.fixture
def act(batch: int) -> Callable[..., dict[str, Any]]:
    count = iter(range(1, 1000))

    def made(kind: str = "score", item: str = "r1", **more: Any) -> dict[str, Any]:
        base = {"event": f"e{next(count)}", "kind": kind, "item": item, "batch": batch}
        return {**base, **more}

    return made


def log(store: Store, who: str = "human:Ana") -> list[tuple[Any, ...]]:
    with store.read() as db:
        rows = db.execute(
            "SELECT replan, dimension, value, revision, action, revealed FROM score_log"
            " WHERE scorer = ? ORDER BY entry",
            [who],
        )
        return [tuple(row) for row in rows]


# ---- content


def test_content_ties_observations_to_nodes_and_marks_the_thought():
    found = content(instance(), replan())
    assert found["observations"] == {
        "rows": [
            {
                "node": "2",
                "tool": "rail_route",
                "arguments": '{"depart":"18 June"}',
                "result": "Error: bad date",
                "state": "error",
            }
        ],
        "total": 1,
    }
    assert found["thought"]["segments"] == [
        "Node ",
        ["2", "node", "2"],
        " failed: ",
        ["rail_route", "tool", "rail_route"],
        " wants a date.",
    ]
    assert found["round"] == 2  # node 1 ran in round 1
    assert found["s5"] == {"value": 1, "reason": "ids are unique, no cycle"}
    assert (found["after"]["counts"]["added"], found["after"]["counts"]["newly_done"]) == (1, 1)


def test_content_describes_nodes_and_tools():
    found = content(instance(), replan())
    node = next(n for n in found["nodes"]["after"] if n["id"] == "3")
    assert node["parameters"] == [["depart", '"2026-06-18"']]
    assert (node["needs"], node["done"]) == (["1"], False)
    assert found["tools"]["rows"][0]["parameters"] == [
        {"name": "depart", "type": "string", "required": True, "description": "A date"},
        {
            "name": "stops",
            "type": "array of string",
            "required": False,
            "description": "; one of a, b".lstrip("; "),
        },
    ]


def test_long_texts_are_cut_and_given_whole_on_request():
    long = "x" * 2_000_000
    one = instance(
        query=long,
        observations=(ToolCall("rail_route", {"depart": long}, long, "2"),),
        plan=Plan.parse([{"id": "1", "name": "a", "para": {"p": long, "q": 1}, "dep": []}]),
    )
    answer = replan(thought=long, plan=Plan.parse(None), raw=long)
    found = content(one, answer)
    assert len(json.dumps(found)) < 100_000
    row = found["observations"]["rows"][0]
    assert row["result"]["length"] == 2_000_000
    for cut in (found["query"], row["result"], found["raw"], found["thought"]):
        assert full_text(one, answer, cut["field"]) == long
    assert long in full_text(one, answer, row["arguments"]["field"])
    parameter = found["nodes"]["before"][0]["parameters"][0][1]
    assert full_text(one, answer, parameter["field"]) == f'"{long}"'
    assert full_text(one, answer, "nothing:9") == full_text(one, answer, "result:9") == ""


def test_a_plan_of_5000_nodes_travels_in_little_time():
    chain = [{"id": "0", "name": "t", "dep": []}]
    chain += [{"id": str(n), "name": "t", "dep": [str(n - 1)]} for n in range(1, 5000)]
    one = instance(plan=Plan.parse(chain))
    found = content(one, replan(plan=Plan.parse(chain), thought="node 4999"))
    assert len(found["nodes"]["before"]) == 5000
    assert len(json.dumps(found)) < 2_000_000


def test_lone_surrogates_survive_as_json():
    found = content(instance(query="broken \ud83d"), replan())
    assert json.loads(json.dumps(found))["query"] == "broken \ud83d"


def test_proposes_what_the_edge_cases_say():
    assert proposals(replan()) == {}
    unparsed = proposals(replan(plan=Plan.parse("I give up")))
    assert set(unparsed) == {"S2", "S3", "S4", "E1", "E2", "E3", "E4"}
    assert unparsed["S2"] == [0.0, "the new plan does not parse"]
    assert set(proposals(replan(thought=" "))) == {"S1", "D1", "D2", "D3", "D4", "D5"}


def test_an_unsound_plan_keeps_its_raw_text_and_says_why():
    found = content(instance(), replan(plan=Plan.parse("no plan at all"), raw="I stop here"))
    assert found["raw"] == "I stop here"
    assert found["s5"]["value"] == 0
    assert found["s5"]["reason"]


def test_an_instance_without_an_answer_is_shown():
    found = content(instance(), None)
    assert (found["answer"], found["after"], found["s5"]) == (False, None, None)


def test_rubric_data_holds_the_anchors_word_for_word():
    data = rubric_data(sde_rubric())
    d3 = next(d for d in data["dimensions"] if d["id"] == "D3")
    anchors = sde_rubric().dimension("D3").anchors
    assert d3["anchors"] == [anchors.one, anchors.half, anchors.zero]
    assert [d["id"] for d in data["dimensions"] if not d["judged"]] == ["S5", "E5"]


# ---- acts


def test_acts_are_stored_once_in_order(store: Store, act: Callable[..., dict[str, Any]]):
    acts = [act(dimension="S1", value=1), act(dimension="S2", value=0.5)]
    first = outbox.apply(store, "Ana", acts)
    again = outbox.apply(store, "Ana", [*acts, act(dimension="S3", value=0)])
    assert log(store) == [
        ("r1", "S1", 1.0, 1, "score", 0),
        ("r1", "S2", 0.5, 1, "score", 0),
        ("r1", "S3", 0.0, 1, "score", 0),
    ]
    assert again.acks["e1"] == first.acks["e1"]
    assert first.acks["e1"]["revision"] == 1


def test_an_act_builds_on_one_that_had_no_answer_yet(
    store: Store, act: Callable[..., dict[str, Any]]
):
    one = act(dimension="S1", value=1)
    two = act(dimension="S1", value=0, after=one["event"])
    three = act("undo", dimension="S1", value=1, after=two["event"])
    outbox.apply(store, "Ana", [one, two, three])
    assert [row[2:5] for row in log(store)] == [
        (1.0, 1, "score"),
        (0.0, 2, "score"),
        (1.0, 3, "undo"),
    ]


def test_a_second_tab_is_refused_with_what_stands(store: Store, act: Callable[..., dict[str, Any]]):
    outbox.apply(store, "Ana", [act(dimension="D3", value=1)])
    late = act(dimension="D3", value=0)
    later = act(dimension="D3", value=0.5, after=late["event"])
    done = outbox.apply(store, "Ana", [late, later, act("submit")])
    assert done.acks[late["event"]]["refused"] == "Scored 1 in another tab; reload to continue"
    assert done.acks[late["event"]]["score"]["value"] == 1.0
    assert done.acks[later["event"]]["stale"] is True
    assert done.acks["e4"] == {"refused": "Not submitted: D3 was not saved."}
    assert len(log(store)) == 1


def test_notes_keep_scores_and_scores_keep_notes(
    store: Store, batch: int, act: Callable[..., dict[str, Any]]
):
    queue.open_item(store, batch, "Ana", "r1")
    outbox.apply(
        store,
        "Ana",
        [
            act("note", dimension="D1", note="vague"),
            act(dimension="D1", value=0.5, base=1),
            act("note", dimension="D1", note="vague, with a slip", base=2),
            act("note", note="odd sample"),
        ],
    )
    newest = [s for s in store.scores("r1") if s.scorer == "human:Ana"]
    assert [(s.value, s.note) for s in newest] == [(0.5, "vague, with a slip")]
    assert queue.open_item(store, batch, "Ana", "r1").note == "odd sample"


def test_bad_acts_are_refused_in_words(store: Store, act: Callable[..., dict[str, Any]]):
    acts = [
        act(dimension="S1", value=0.75),
        act(dimension="S9", value=1),
        act("dance"),
        act(dimension="S1", value=1, item="nobody"),
        {"kind": "score"},
        "noise",
    ]
    done = outbox.apply(store, "Ana", acts)
    assert "0.75" in done.acks["e1"]["refused"]
    assert "S9" in done.acks["e2"]["refused"]
    assert "dance" in done.acks["e3"]["refused"]
    assert "no such item" in done.acks["e4"]["refused"]
    assert len(done.acks) == 4
    assert log(store) == []


def test_a_database_error_asks_to_try_again(
    store: Store, act: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    one = act(dimension="S1", value=1)
    with monkeypatch.context() as patched:
        patched.setattr(score_log, "append", full)
        ack = outbox.apply(store, "Ana", [one]).acks["e1"]
    assert ack["retry"] is True
    assert "full disk" in ack["refused"]
    assert outbox.apply(store, "Ana", [one]).acks["e1"]["revision"] == 1


def test_undo_stack_follows_the_log(store: Store):
    def entry(event: str, dimension: str, value: float | None, base: int, action: str) -> None:
        who = "human:Ana"
        store.append([ScoreEntry(event, "r1", dimension, who, value, "", base, action=action)])  # type: ignore[arg-type]

    entry("a", "S1", 1.0, 0, "score")
    entry("b", "S2", 0.5, 0, "score")
    entry("c", "S1", 0.0, 1, "score")
    entry("d", "S1", 1.0, 2, "undo")
    mine = [e for e in store.history("r1") if e.scorer == "human:Ana"]
    assert undo_stack(mine) == [["S1", None, ""], ["S2", None, ""]]


# ---- the desk


def sit(store: Store, who: str = "Ana", **link: str) -> tuple[desk.Desk, dict[str, Any]]:
    return desk.respond(store, who, desk.open_desk(store, who, **link), {})


def test_the_first_answer_holds_the_item_and_the_next(store: Store, batch: int):
    at, feed = sit(store)
    assert (at.batch, at.item, at.previous, at.onward) == (batch, "r1", "", "r2")
    assert set(feed["contents"]) == set(feed["standings"]) == {"r1", "r2"}
    assert feed["standings"]["r1"]["dimensions"] == list(JUDGED)
    assert (feed["progress"]["mine_done"], feed["progress"]["batch_total"]) == (0, 6)


def test_a_score_costs_only_its_acknowledgement(
    store: Store, batch: int, act: Callable[..., dict[str, Any]]
):
    at, _ = sit(store)
    message = {"acts": [act(dimension="S1", value=1)], "have": ["r1", "r2"], "token": 0}
    at, feed = desk.respond(store, "Ana", at, message)
    assert (feed["contents"], feed["standings"]) == ({}, {})
    assert "progress" not in feed
    assert len(json.dumps(feed)) < 400


def test_blind_data_names_no_agent_judge_tag_or_other(
    store: Store, batch: int, act: Callable[..., dict[str, Any]]
):
    outbox.apply(store, "Bo", [act(dimension="D3", value=0, item="r1")])
    _, feed = sit(store)
    said = json.dumps(feed)
    for secret in ("secret-agent", "gpt", "half a cause", "Parameter_Invalid", "no date", "Bo"):
        assert secret not in said
    assert feed["standings"]["r1"]["revealed"] is None


def test_reveal_shows_and_marks_what_comes_after(
    store: Store, batch: int, act: Callable[..., dict[str, Any]]
):
    at, _ = sit(store)
    scores = [act(dimension=d, value=1) for d in JUDGED]
    before = desk.respond(store, "Ana", at, {"acts": [*scores, act("submit")], "have": ["r1"]})[1]
    assert before["standings"]["r1"]["shown"] == {"blind": True, "can_reveal": True}
    assert "secret-agent" not in json.dumps(before)
    _, feed = desk.respond(store, "Ana", at, {"acts": [act("reveal")], "have": ["r1"]})
    revealed = feed["standings"]["r1"]["revealed"]
    assert revealed["agent"] == "secret-agent"
    assert revealed["tags"] == ["Parameter_Invalid"]
    assert revealed["scorers"] == [{"name": "gpt", "scores": {"D3": [0.5, "half a cause"]}}]
    outbox.apply(store, "Ana", [act(dimension="D3", value=0.5, base=1)])
    assert log(store)[-1] == ("r1", "D3", 0.5, 2, "score", 1)


@pytest.mark.parametrize("kind", ["clear", "undo"])
def test_a_submitted_item_keeps_a_score_everywhere(
    store: Store, batch: int, act: Callable[..., dict[str, Any]], kind: str
):
    sit(store)
    outbox.apply(store, "Ana", [*(act(dimension=d, value=1) for d in JUDGED), act("submit")])
    ack = outbox.apply(store, "Ana", [act(kind, dimension="S1", base=1)]).acks.popitem()[1]
    assert ack["refused"].startswith("S1: got no value on a submitted item")
    assert [row[2] for row in log(store) if row[1] == "S1"] == [1.0]  # nothing was written
    assert queue.missing_scores(store, batch, "Ana", "r1") == ()
    changed = outbox.apply(store, "Ana", [act(dimension="S1", value=0, base=1)])
    back = outbox.apply(store, "Ana", [act("undo", dimension="S1", base=2)])
    assert [next(iter(done.acks.values()))["value"] for done in (changed, back)] == [0.0, 1.0]


def test_submit_names_what_is_missing(store: Store, batch: int, act: Callable[..., dict[str, Any]]):
    at, _ = sit(store)
    _, feed = desk.respond(store, "Ana", at, {"acts": [act("submit")], "have": ["r1", "r2"]})
    assert "S1, S2" in feed["acks"]["e1"]["refused"]


def test_moves_go_on_and_back(store: Store, batch: int):
    at, _ = sit(store)
    at, feed = desk.respond(store, "Ana", at, {"token": 1, "item": "r2", "step": 0, "have": ["r2"]})
    assert (at.item, at.previous, feed["token"]) == ("r2", "r1", 1)
    assert "r2" in feed["standings"]
    assert "r2" not in feed["contents"]
    at, _ = desk.respond(store, "Ana", at, {"token": 2, "item": "r2", "step": -1})
    assert at.item == "r1"
    at, feed = desk.respond(store, "Ana", at, {"token": 3, "item": "r1", "step": -1})
    assert (at.item, feed["notice"]) == ("r1", "This is your first item.")
    again, _ = desk.respond(store, "Ana", at, {"token": 3, "item": "r1", "step": 1})
    assert again.item == "r1"  # the same move twice is carried out once


def test_skipped_items_come_back_at_the_end(
    store: Store, batch: int, act: Callable[..., dict[str, Any]]
):
    at, _ = sit(store)
    seen = []
    for token in range(1, 5):
        message = {"acts": [act("skip", item=at.item)], "token": token, "item": at.item, "step": 2}
        at, _ = desk.respond(store, "Ana", at, message)
        seen.append(at.item)
    assert seen == ["r2", "r3", "r1", "r2"]


def test_links_open_batches_items_and_instances(store: Store, batch: int):
    assert sit(store, item="r3", batch=str(batch))[0].item == "r3"
    assert sit(store, item="i2")[0].item == "r2"
    at, feed = sit(store, item="nothing")
    assert (at.item, feed["notice"]) == ("r2", "There is no item nothing here.")
    store.ingest([Item(Place("test"), instance(9))])
    at, feed = sit(store, item="i9")
    assert (at.item, at.look) == ("i9", True)
    assert feed["standings"]["i9"]["why"] == "No answer yet"


@pytest.mark.parametrize("link", ["²", "-1", "../../x", "9" * 5000, "\N{PILE OF POO}"])
def test_a_rubbish_batch_in_a_link_opens_what_waits(store: Store, batch: int, link: str):
    at, _ = sit(store, batch=link)
    assert at.item == "r1"  # the newest batch with work


@pytest.mark.parametrize("field", ["result:²", "tool:9", "before:1:#²", "arguments:-1", "x", ""])
def test_a_field_that_names_nothing_is_empty(field: str):
    assert full_text(instance(), replan(), field) == ""


def test_nothing_to_score_says_what_to_do(tmp_path: Path, store: Store):
    _, feed = sit(Store(tmp_path / "empty.db"))
    assert feed["empty"]["title"] == "Nothing to score yet"
    at, feed = sit(store)
    assert feed["empty"]["ways"][0]["act"] == desk.SCORE_EVERYTHING
    wish = {"token": 5, "ask": desk.SCORE_EVERYTHING}
    at, feed = desk.respond(store, "Ana", at, wish)
    assert (at.item, feed["standings"]["r1"]["total"]) == ("r1", 3)


def test_an_empty_queue_looks_back(store: Store, batch: int, act: Callable[..., dict[str, Any]]):
    at, _ = sit(store)
    for token in range(1, 4):
        acts = [act(dimension=d, value=0, item=at.item) for d in JUDGED]
        acts.append(act("submit", item=at.item))
        message = {"acts": acts, "token": token, "item": at.item, "step": 2}
        at, feed = desk.respond(store, "Ana", at, message)
    assert feed["empty"]["title"] == "No item waits for you"
    assert feed["empty"]["lines"][0] == "In Pilot, 3 of 6 scorings are handed in."
    assert "Reveal 3 items" in [way["text"] for way in feed["empty"]["ways"]]
    at, feed = desk.respond(store, "Ana", at, {"token": 8, "ask": desk.REVEAL_ALL})
    assert len(feed["empty"]["lines"]) == 1
    assert all(queue.may_show(store, batch, "Ana", f"r{n}").judge for n in (1, 2, 3))
    assert not queue.may_show(store, batch, "Bo", "r1").judge
    at, feed = desk.respond(store, "Ana", at, {"token": 9, "ask": desk.LOOK_BACK})
    assert (at.item, feed["standings"]["r3"]["state"]) == ("r3", "submitted")


def test_two_annotators_share_out_and_a_third_only_looks(store: Store, batch: int):
    for who in ("Ana", "Bo"):
        assert sit(store, who, item="r1")[1]["standings"]["r1"]["can_score"]
    standing = sit(store, "Cy", item="r1")[1]["standings"]["r1"]
    assert (standing["can_score"], bool(standing["why"])) == (False, True)


def test_e5_is_computed_from_a_run_of_the_same_agent(store: Store, batch: int):
    done = Plan.parse({"tasks": [{**node, "status": True} for node in AFTER]})
    rounds = (Round(replan().plan), Round(replan().plan), Round(done))
    run = Trajectory("t1", "i1", "secret-agent", rounds, success=True)
    store.ingest([Item(Place("test"), run)])
    # G = 3; T = 2 rounds behind the new plan (nodes 1, then 2) + 3 rounds run from it
    e5 = sit(store)[1]["standings"]["r1"]["e5"]
    assert (e5["value"], e5["reason"]) == (0.6, "min(1, 3 / 5)")


def test_e5_waits_for_the_reveal_where_the_batch_says_so(store: Store):
    plan = BatchPlan("Blind", replans=("r1",), reveal=Reveal.NEVER, hide_outcome=True)
    made = create_batch(store, plan)
    store.ingest([Item(Place("test"), Score("r1", "E5", "program", 0.83, "min(1, 5 / 6)"))])
    assert sit(store, batch=str(made.id))[1]["standings"]["r1"]["e5"] is None


def test_a_whole_text_is_sent_on_request(store: Store, batch: int):
    at, _ = sit(store)
    wish = {"full": {"item": "r1", "field": "result:0"}, "have": ["r1", "r2"]}
    assert desk.respond(store, "Ana", at, wish)[1]["full"]["text"] == "Error: bad date"
