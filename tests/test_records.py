"""Records: reading tools and calls, tying calls to nodes, keys, and JSON without loss."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.literals import dumps, loads
from pararecover_core.plan import Plan
from pararecover_core.records import (
    KEY_LENGTH,
    Instance,
    Replan,
    Round,
    Score,
    Source,
    Tool,
    ToolCall,
    Trajectory,
    as_text,
    content_key,
    from_data,
    instance_key,
    match_calls,
    parse_calls,
    parse_tools,
    replan_key,
    to_data,
)

TOOL = {
    "name": "grow",
    "description": "Grows a plant.",
    "parameters": {"type": {"type": "string"}, "days": {"type": "number"}},
    "required": ["type"],
}


def node(id_, name="", para=None, dep=(), done=False):
    return {
        "id": id_,
        "name": name,
        "para": para or {},
        "desc": "",
        "dep": list(dep),
        "status": done,
    }


def plan(*tasks):
    return Plan.parse({"tasks": [node("root", done=True), *tasks]})


# --- tools ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_",
    [
        [TOOL],
        (TOOL,),
        json.dumps([TOOL]),
        repr([TOOL]),
        {"tools": [TOOL]},
        TOOL,
        [{"type": "function", "function": TOOL}],
    ],
    ids=["list", "tuple", "json", "repr", "wrapped", "single", "function"],
)
def test_reads_every_form_of_a_tool_list(given_):
    (tool,) = parse_tools(given_)
    assert (tool.name, tool.description) == ("grow", "Grows a plant.")
    assert tool.parameters == TOOL["parameters"], "a parameter may be named type"
    assert tool.required == ("type",)


def test_reads_an_openai_schema():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    (tool,) = parse_tools([{"name": "f", "parameters": schema}])
    assert tool.parameters == {"a": {"type": "string"}}
    assert tool.required == ("a",)


def test_tools_of_the_same_name_are_both_kept():
    assert [tool.name for tool in parse_tools([TOOL, TOOL])] == ["grow", "grow"]


@pytest.mark.parametrize("given_", [None, "", "[]", []])
def test_no_tools(given_):
    assert parse_tools(given_) == ()


def test_a_tool_with_odd_fields_is_kept():
    (tool,) = parse_tools([{"name": None, "parameters": "none", "required": "a"}])
    assert tool == Tool("", given={"name": None, "parameters": "none", "required": "a"})


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ("no tools", "line 1 column 1"),
        ("[1]", "a tool is int"),
        ("7", "not a list"),
        ([None], "NoneType"),
    ],
)
def test_refuses_what_is_no_tool_list(given_, message):
    with pytest.raises(ValueError, match=message):
        parse_tools(given_)


# --- observations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [list, json.dumps, repr, lambda calls: calls[0]], ids=["list", "json", "repr", "single"]
)
def test_reads_every_form_of_observations(form):
    calls = [{"name": "f", "arguments": {"a": 1}, "results": "超时错误："}]
    assert parse_calls(form(calls)) == (ToolCall("f", {"a": 1}, "超时错误："),)


def test_results_and_arguments_in_every_form():
    calls = parse_calls(
        [
            {"name": "f", "arguments": ["cake"], "results": {"ok": True}},
            {"name": " g ", "arguments": "text", "result": None},
            {"name": "h", "parameters": {"a": 1}, "results": 20},
        ]
    )
    assert calls == (
        ToolCall("f", ["cake"], '{"ok":true}'),
        ToolCall("g", "text", ""),
        ToolCall("h", {"a": 1}, "20"),
    )


@pytest.mark.parametrize("given_", ["nothing happened", "[1]", "3"])
def test_refuses_what_are_no_observations(given_):
    with pytest.raises(ValueError, match=r"line 1 column 1|int|not a list"):
        parse_calls(given_)


def matched(plan_, *calls):
    return [call.node for call in match_calls(plan_, calls)]


def test_calls_go_to_the_node_with_the_same_arguments():
    read = plan(node("1", "f", {"a": 1}, ["root"]), node("2", "f", {"a": 2}, ["root"]))
    assert matched(read, ToolCall("f", {"a": 2}), ToolCall("f", {"a": 1})) == ["2", "1"]


def test_calls_that_were_repaired_go_to_the_nodes_that_are_left():
    read = plan(node("1", "f", {"a": 1}, ["root"]), node("2", "f", ["valve"], ["root"]))
    assert matched(read, ToolCall("f", {"a": 1}), ToolCall("f", {"kind": "valve"})) == ["1", "2"]


def test_the_frontier_comes_before_executed_nodes():
    read = plan(node("1", "f", {"a": 1}, ["root"], done=True), node("2", "f", {"a": 9}, ["1"]))
    assert matched(read, ToolCall("f", {"a": 1})) == ["2"]


def test_a_history_of_calls_reaches_executed_nodes_too():
    read = plan(node("1", "f", {"a": 1}, ["root"], done=True), node("2", "g", {}, ["1"]))
    assert matched(read, ToolCall("f", {"a": 1}), ToolCall("g", {})) == ["1", "2"]


def test_two_calls_share_the_only_node_of_their_name():
    assert matched(plan(node("1", "f", dep=["root"])), ToolCall("f"), ToolCall("f")) == ["1", "1"]


def test_unknown_names_match_nothing():
    assert matched(plan(node("1", "f", dep=["root"])), ToolCall("F"), ToolCall("")) == ["", ""]


def test_a_node_that_is_named_already_is_kept():
    read = plan(node("1", "f", dep=["root"]), node("2", "f", dep=["root"]))
    assert matched(read, ToolCall("f", node="2"), ToolCall("f")) == ["2", "1"]
    assert matched(read, ToolCall("f", node="99")) == ["1"]


def test_thousands_of_twins_take_no_time():
    read = plan(*(node(str(i), "f", {"a": i}, ["root"]) for i in range(3000)))
    start = time.process_time()
    found = matched(read, *(ToolCall("f", {"a": i}) for i in range(3000)))
    assert found == [str(i) for i in range(3000)]
    assert time.process_time() - start < 5


# --- keys -----------------------------------------------------------------------------------------


def test_keys_depend_on_every_part_and_on_their_borders():
    assert content_key("ab", "c") != content_key("a", "bc")
    assert content_key("a") == content_key("a")
    assert len(content_key("a")) == KEY_LENGTH
    assert content_key("\ud800") != content_key("?")


def test_keys_stay_what_they_were():
    """Databases and exports of older versions name records by these."""
    assert content_key("a", "b") == "b9f1e0fd3ee1"
    key = instance_key(
        id="1", query_id="2", level=1, source="rollout", query=" q ", plan="{}", calls=[]
    )
    assert key == content_key("1", "2", "1", "rollout", "q", "{}", "[]")
    assert replan_key(instance=key, agent="a", thought="t", plan={"tasks": []}) == content_key(
        key, "a", "t", '{"tasks":[]}', ""
    )


def test_as_text():
    assert [as_text(value) for value in (None, "é", {"a": [1]}, 2.0)] == [
        "",
        "é",
        '{"a":[1]}',
        "2.0",
    ]


# --- to data and back -----------------------------------------------------------------------------

PLAN = Plan.parse(json.dumps({"tasks": [node("1", "grow", {"type": "fern"})]}))
CALL = ToolCall("grow", {"type": "fern"}, "Error: timed out", "1")
INSTANCE = Instance(
    "0123456789ab", "7", "3073", 2, Source.ROLLOUT, "Grow a fern.", parse_tools([TOOL]), PLAN,
    (CALL,), ("Type_Error", "", "异常应对错误"), "原因", 4, 5, {"note": "x"},
)  # fmt: skip
RECORDS = [
    INSTANCE,
    Instance("k", "", "", 0, Source.UNKNOWN, "", (), Plan.parse(None), ()),
    Instance("k", "", "", 0, Source.UNKNOWN, "", (), Plan.parse(""), ()),
    Replan("r", "k", "gpt", "I see \ud800", PLAN, "raw", {"total_tokens": 3}, {"a": None}),
    Replan("r", "k", "", "", Plan.parse("cannot")),
    Trajectory("t", "k", "gpt", (Round(PLAN, (CALL,), "th"), Round(PLAN)), False, "round limit"),
    Score("r", "D1", "human:ann", 0.5, "note", "2026-01-01T00:00:00Z", "1.0", {"revealed": True}),
    Score("r", "E5", "program", 0.0),
    Score("r", "D1", "human:ann", None),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_go_to_json_and_back(record):
    data = to_data(record)
    assert from_data(loads(dumps(data))) == record
    assert from_data(data) == record


def test_data_leaves_empty_fields_out():
    assert to_data(RECORDS[4]) == {"kind": "replan", "key": "r", "instance": "k", "plan": "cannot"}


def test_a_tool_that_was_made_is_written_with_its_fields():
    made = Instance(
        "k", "", "", 1, Source.SANDBOX, "q", (Tool("f", "d", {"a": {}}, ("a",)),), PLAN, ()
    )  # fmt: skip
    (tool,) = from_data(to_data(made)).tools
    assert (tool.name, tool.description, tool.parameters, tool.required) == (
        "f",
        "d",
        {"a": {}},
        ("a",),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "kind is None"),
        ({"kind": "plan"}, "kind is 'plan', not one of instance, replan, trajectory, score"),
        ({"kind": ["score"]}, "kind is"),
        ({"kind": "score", "replan": "r"}, "dimension: missing"),
        ({"kind": "replan", "key": "k"}, "instance: missing"),
        ({"kind": "replan", "key": 7, "instance": "i"}, "key: Expected `str`, got `int`"),
        ({"kind": "instance", "key": "k", "level": "1"}, "level: Expected `int`"),
        ({"kind": "instance", "key": "k", "source": "web"}, "source: Invalid enum value"),
        ({"kind": "instance", "key": "k", "colour": 1}, "unknown fields colour"),
        ({"kind": "instance", "key": "k", "observations": "x"}, "observations: not a list of obj"),
        ({"kind": "instance", "key": "k", "tools": "x"}, "unexpected character"),
        ({"kind": "trajectory", "key": "k", "instance": "i", "rounds": [1]}, "rounds: not"),
        (
            {"kind": "score", "replan": "r", "dimension": "D1", "scorer": "s", "value": True},
            "value: Expected `float | null`, got `bool`",
        ),
    ],
)  # fmt: skip
def test_from_data_says_which_field_is_wrong(data, message):
    with pytest.raises(ValueError, match="^" + message.replace("|", r"\|")):
        from_data(data)


texts = st.text(st.characters(exclude_categories=()), max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=8
)
calls = st.lists(st.builds(ToolCall, texts, values, texts, texts), max_size=3).map(tuple)
plans = (texts | values).map(Plan.parse)
keys = texts.filter(bool)
counts = st.none() | st.integers(0, 50)
tools = st.lists(st.fixed_dictionaries({"name": texts, "parameters": values})).map(parse_tools)
rounds = st.lists(st.builds(Round, plans, calls, texts), max_size=3).map(tuple)
records = st.one_of(
    st.builds(
        Instance, keys, texts, texts, st.integers(0, 2), st.sampled_from(Source), texts, tools,
        plans, calls, st.lists(texts, max_size=3).map(tuple), texts, counts, counts,
        st.dictionaries(texts, values, max_size=2),
    ),
    st.builds(Replan, keys, keys, texts, texts, plans, texts, st.dictionaries(texts, values)),
    st.builds(Trajectory, keys, keys, texts, rounds, st.booleans(), texts),
    st.builds(Score, keys, keys, keys, st.none() | st.floats(0, 1), texts, texts, texts),
)  # fmt: skip


@given(records)
def test_any_record_survives_json(record):
    assert from_data(loads(dumps(to_data(record)))) == record


@given(plans, calls)
def test_matching_keeps_every_call_in_order(read, given_):
    found = match_calls(read, given_)
    assert [(c.name, c.arguments, c.result) for c in found] == [
        (c.name, c.arguments, c.result) for c in given_
    ]
    assert all(c.node == "" or c.node in read.by_id for c in found)
