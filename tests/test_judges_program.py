"""The program judge, rule by rule, on one small workflow whose truth is plain.

Round 1 ran node 1 (found) and node 2 (rejected: unknown parameter "town"). Node 3 takes both
results, the response takes node 3.
"""

import pytest

from pararecover_core.judges import Item, ProgramJudge
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source, Tool, ToolCall
from pararecover_core.rubric import JUDGED

WEATHER = Tool("get_weather", "Weather", {"city": {"type": "string"}}, ("city",))
EVENT = Tool("find_event", "Events", {"city": {"type": "string"}}, ("city",))
BOOK = Tool(
    "book_seat",
    "Books",
    {"event": {"type": "string"}, "note": {"type": "string"}},
    ("event", "note"),
)
REJECTED = "Error: unknown parameter 'town' for get_weather; it takes city."
CITED = (
    "Node 2 (get_weather) failed: it passes town=Oslo, and the parameter is called city. "
    "Node 3 waits for it. I add node 2_fix and let node 3 use its output; node 1 succeeded."
)


def task(id, name="", para=None, dep=("root",), status=False, desc=""):
    return {
        "id": id, "name": name, "para": para or {}, "dep": list(dep), "status": status,
        "desc": desc,
    }  # fmt: skip


ROOT = task("root", dep=(), status=True)
ONE = task("1", "find_event", {"city": "Oslo"})
TWO = task("2", "get_weather", {"town": "Oslo"})
THREE = task("3", "book_seat", {"event": "$1.event", "note": "$2.weather"}, ("1", "2"))
END = task("response", dep=("3",))
DONE_ONE = ONE | {"status": True, "desc": 'Execution result: {"event": "Jazz"}'}
DONE_TWO = TWO | {"status": True, "desc": f"Execution result: {REJECTED}"}
FIX = task("2_fix", "get_weather", {"city": "Oslo"}, ("2",))
THREE_FIXED = THREE | {
    "para": {"event": "$1.event", "note": "$2_fix.weather"},
    "dep": ["1", "2_fix"],
}
GOOD = [ROOT, DONE_ONE, DONE_TWO, FIX | {"dep": ["root"]}, THREE_FIXED, END]


def plan(*tasks):
    return Plan.parse({"tasks": list(tasks)})


def judged(tasks=GOOD, thought=CITED, observations=None):
    seen = (
        ToolCall("find_event", {"city": "Oslo"}, '{"event": "Jazz"}', "1"),
        ToolCall("get_weather", {"town": "Oslo"}, REJECTED, "2"),
    )
    instance = Instance(
        "i", "1", "q", 1, Source.UNKNOWN, "Book me a seat in Oslo", (WEATHER, EVENT, BOOK),
        plan(ROOT, ONE, TWO, THREE, END), seen if observations is None else observations,
    )  # fmt: skip
    replan = Replan("r", "i", "a", thought, tasks if isinstance(tasks, Plan) else plan(*tasks))
    return ProgramJudge().judge(Item(instance, replan)).scores


def score(dimension, **case):
    return judged(**case)[dimension].score


def replaced(old, *new):
    """The good plan with one task exchanged."""
    return [t for one in GOOD for t in (new if one is old else (one,))]


def test_a_good_answer_has_full_marks_and_a_reason_for_each():
    found = judged()
    assert {d: s.score for d, s in found.items()} == dict.fromkeys(JUDGED, 1.0)
    assert all(s.reason.endswith((".", "city.")) for s in found.values())


def test_the_same_answer_has_the_same_scores():
    assert judged() == judged()


# Edge cases of the rubric


def test_a_plan_that_does_not_parse_has_scores_for_the_thought_alone():
    found = judged(Plan.parse('{"tasks": [{"id": "1", "dep": ["9"]}]}'))
    scores = {d: s.score for d, s in found.items()}
    assert {scores[d] for d in ("S1", "S2", "S3", "S4", "E1", "E2", "E3", "E4")} == {0.0}
    assert {scores[d] for d in ("D1", "D2", "D3", "D4", "D5")} == {1.0}


def test_no_thought_means_no_diagnosis():
    found = judged(thought="  ")
    assert {found[d].score for d in ("S1", "D1", "D2", "D3", "D4", "D5")} == {0.0}
    assert {found[d].score for d in ("S2", "S3", "S4", "E1", "E2", "E3", "E4")} == {1.0}


def test_no_fault_wants_to_be_said():
    fine = (ToolCall("find_event", {"city": "Oslo"}, '{"event": "Jazz"}', "1"),)
    before = plan(
        ROOT, ONE, task("3", "book_seat", {"event": "$1.event", "note": "x"}, ("1",)), END
    )
    after = plan(ROOT, DONE_ONE, before.by_id["3"].given, END)
    instance = Instance(
        "i", "1", "q", 1, Source.UNKNOWN, "Book me a seat", (EVENT, BOOK), before, fine
    )
    replan = Replan("r", "i", "a", "Node 1 succeeded, nothing went wrong. I go on.", after)
    found = ProgramJudge().judge(Item(instance, replan)).scores
    assert {d: found[d].score for d in ("D3", "D4", "E1", "S4")} == dict.fromkeys(
        ("D3", "D4", "E1", "S4"), 1.0
    )


# Structure


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        (CITED, 1.0),
        ("get_weather was called wrongly and booking must use it", 1.0),  # tool and its words
        ("Node 1 is fine.", 0.0),
        ("I ask for the weather again.", 0.5),  # node 3 uses another value, unsaid
        ("Node 7 is wrong, so node 2_fix and node 3 change.", 0.5),  # there is no node 7
    ],
)
def test_s1_looks_for_each_new_call_in_the_thought(thought, value):
    assert score("S1", thought=thought) == value


@pytest.mark.parametrize(
    ("three", "value"),
    [
        (THREE_FIXED, 1.0),
        (THREE_FIXED | {"dep": ["2_fix"]}, 0.5),  # uses $1 and does not wait for it
        (THREE_FIXED | {"dep": ["1", "2_fix", "2"]}, 0.5),  # needs nothing of node 2
    ],
)
def test_s2_wants_the_dependencies_that_values_need(three, value):
    found = judged(replaced(THREE_FIXED, three))["S2"]
    assert (found.score < 1) is (value < 1)


@pytest.mark.parametrize(
    ("para", "value"),
    [
        ({"city": "Oslo"}, 1.0),
        ({"town": "Oslo"}, 0.0),
        ({}, 0.0),
        ({"city": ["Oslo"]}, 0.0),
    ],
)
def test_s3_wants_legal_calls(para, value):
    assert score("S3", tasks=replaced(GOOD[3], GOOD[3] | {"para": para})) == value


def test_s3_wants_a_listed_tool():
    assert score("S3", tasks=replaced(GOOD[3], GOOD[3] | {"name": "getWeather"})) == 0.0


@pytest.mark.parametrize(
    ("old", "change", "value"),
    [
        (DONE_TWO, {"status": False}, 0.0),  # it ran, though it failed
        (THREE_FIXED, {"status": True}, 0.0),  # it has not run
        (END, {"status": True}, 0.0),
        (DONE_TWO, {"desc": ""}, 0.5),  # its result is not noted
    ],
)
def test_s4_wants_statuses_that_agree_with_the_round(old, change, value):
    assert score("S4", tasks=replaced(old, old | change)) == value


# Diagnosis


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        ("Node 2 failed.", 1.0),  # a node and its status
        ("Node 1 and node 2.", 1.0),
        ("Look at node 2.", 0.5),
        ("Something went wrong.", 0.0),
        ("Node 8 failed.", 0.0),  # invented
    ],
)
def test_d1_wants_parts_of_the_plan(thought, value):
    assert score("D1", thought=thought) == value


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        ("It says: unknown parameter 'town' for get_weather.", 1.0),
        ("get_weather failed.", 1.0),
        ("A call failed.", 0.5),
        ("I go on as planned.", 0.0),
    ],
)
def test_d2_wants_what_came_back(thought, value):
    assert score("D2", thought=thought) == value


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        ("Node 2 calls its parameter town, it is city.", 1.0),
        ("Node 2 failed.", 0.5),
        ("Node 1 is slow.", 0.0),
    ],
)
def test_d3_wants_the_cause(thought, value):
    assert score("D3", thought=thought) == value


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        ("Node 2 failed, node 3 needs it.", 1.0),
        ("Node 2 failed, later steps suffer.", 0.5),
        ("Node 2 failed.", 0.0),
    ],
)
def test_d4_wants_what_the_fault_reaches(thought, value):
    assert score("D4", thought=thought) == value


@pytest.mark.parametrize(
    ("thought", "value"),
    [
        (CITED, 1.0),
        ("Node 2 failed; a call went wrong.", 0.5),
        ("get_weather failed.", 0.0),  # no evidence from the plan
        ("Node 2 failed because of node 8.", 0.0),  # there is none
    ],
)
def test_d5_wants_two_kinds_of_evidence(thought, value):
    assert score("D5", thought=thought) == value


# Repair


def test_e1_wants_the_fault_alone_changed():
    assert score("E1", tasks=[ROOT, DONE_ONE, DONE_TWO, THREE, END]) == 0.0  # untouched
    edited = replaced(DONE_ONE, DONE_ONE | {"para": {"city": "Bergen"}})
    assert score("E1", tasks=edited) == 0.0
    more = [*GOOD[:4], task("4", "find_event", {"city": "Bergen"}), *GOOD[4:]]
    assert score("E1", tasks=more) == 0.5
    again = replaced(GOOD[3], GOOD[3] | {"para": {"town": "Oslo"}})
    assert score("E1", tasks=again) == 0.0  # the rejected call once more


def test_e2_wants_everything_that_was_reached_repaired():
    assert score("E2", tasks=replaced(THREE_FIXED, THREE)) == 0.5  # still uses node 2
    assert score("E2", tasks=[ROOT, DONE_ONE, DONE_TWO, END | {"dep": ["1"]}]) == 0.0  # gives up
    assert score("E2", tasks=GOOD[:-1]) == 0.0  # no response
    again = replaced(GOOD[3], GOOD[3] | {"para": {"town": "Oslo"}})
    assert score("E2", tasks=again) == 0.0 or "unknown" in judged(again)["E2"].reason


def test_e3_wants_every_objective_kept():
    assert score("E3", tasks=[*GOOD[:4], END | {"dep": ["1", "2_fix"]}]) == 0.5  # no booking
    assert score("E3", tasks=GOOD[:-1]) == 0.0


def test_e4_wants_no_call_twice():
    again = task("1_again", "find_event", {"city": "Oslo"})
    assert score("E4", tasks=[*GOOD, again]) == 0.5
    third = again | {"id": "1_again_2"}
    assert score("E4", tasks=[*GOOD, again, third]) == 0.0
