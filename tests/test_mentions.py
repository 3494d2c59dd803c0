import time

from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.mentions import Segment, segments

IDS = ["root", "1", "2", "3", "5", "6", "6A", "2.1", "response"]
TOOLS = ["rail_route", "compare", "getWeather"]


def named(text: str, kind: str = "node") -> list[str]:
    return [s.target for s in segments(text, nodes=IDS, tools=TOOLS) if s.kind == kind]


def test_marks_an_id_after_a_word_for_node():
    assert named("Node 3 failed, node 2 and task 1 are fine; step 5 waits") == ["3", "2", "1", "5"]
    assert named("节点3失败,任务 2 成功") == ["3", "2"]
    assert named("task3 gave task2_output") == ["3", "2"]


def test_marks_the_ids_of_a_list():
    assert named("nodes 5, 6 and 1 lack it") == ["5", "6", "1"]
    assert named("节点5、6和1") == ["5", "6", "1"]
    assert named("depends on 2 or node 3") == ["2", "3"]


def test_leaves_bare_numbers_alone():
    assert named("3 of 5 trains cost 6 euros on 2 June") == []
    assert named("node 3 took 5 hours") == ["3"]
    assert named("node 9 is no node here") == []


def test_knows_ids_with_letters_and_points():
    assert named("node 6A feeds node 2.1.") == ["6A", "2.1"]
    assert named("6A is late") == ["6A"]
    assert named("2.1 is good; 2.1 kg, $2.1 and 2.1.5 are not it; do 2.1.") == ["2.1", "2.1"]
    assert [s.target for s in segments("as 3_retry.", nodes=["3_retry"], tools=[]) if s.kind] == [
        "3_retry"
    ]
    assert named("the chain 1 -> 2 -> 3 -> response breaks") == ["1", "2", "3", "response"]


def test_the_word_response_is_a_node_only_where_it_says_so():
    assert named("the response was empty") == []
    assert named("the response node waits for node root") == ["response", "root"]
    assert named("`response` stays") == ["response"]


def test_marks_tools_written_as_names():
    assert named("rail_route rejected it, getWeather too", "tool") == ["rail_route", "getWeather"]
    assert named("I compare prices", "tool") == []
    assert named("call `compare` or compare(a)", "tool") == ["compare", "compare"]


def test_marks_code():
    found = segments('it sent depart="18 June" to it', nodes=[], tools=[])
    assert found == [
        Segment("it sent "),
        Segment('depart="18 June"', "code"),
        Segment(" to it"),
    ]


@given(st.text(alphabet='node 3,and6A`="->任务节点task_x.', max_size=80))
def test_segments_joined_are_the_text(text: str):
    found = segments(text, nodes=IDS, tools=TOOLS)
    assert "".join(s.text for s in found) == text
    assert all(s.target in (*IDS, *TOOLS) for s in found if s.kind in ("node", "tool"))


def test_hostile_text_is_read_in_little_time():
    began = time.process_time()
    for text in ("a-" * 6_000, "node" + " " * 12_000, "1 -> " * 3_000, "node 1, " * 2_000):
        segments(text, nodes=IDS, tools=TOOLS)
    assert time.process_time() - began < 2
