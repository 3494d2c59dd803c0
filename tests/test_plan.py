"""Plans: every dialect of the published files, S5, frontier, layers, rounds, differences."""

import json
import time

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.plan import FieldChange, Node, Parameters, Plan, graph_fault, parameters


def task(id_, *deps, done=False, **fields):
    return {
        "id": id_,
        "name": "",
        "para": {},
        "desc": "",
        "dep": list(deps),
        "status": done,
    } | fields


def plan(*tasks):
    return Plan.parse({"tasks": list(tasks)})


DIAMOND = (
    task("root", done=True),
    task("1", "root", done=True, name="find", para={"q": "x"}),
    task("2", "1", name="left"),
    task("3", "1", name="right"),
    task("response", "2", "3"),
)

# --- dialects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda tasks: {"tasks": tasks}, id="object"),
        pytest.param(lambda tasks: tasks, id="bare list"),
        pytest.param(lambda tasks: json.dumps({"tasks": tasks}), id="json text"),
        pytest.param(lambda tasks: json.dumps({"tasks": tasks}, indent=2), id="indented"),
        pytest.param(lambda tasks: repr({"tasks": tasks}), id="python repr"),
        pytest.param(lambda tasks: "\ufeff " + json.dumps(tasks), id="byte order mark"),
        pytest.param(lambda tasks: f"```json\n{json.dumps({'tasks': tasks})}\n```", id="fence"),
        pytest.param(lambda tasks: f"<plan>{json.dumps({'tasks': tasks})}</plan>", id="plan tag"),
        pytest.param(lambda tasks: f"<PLAN>{json.dumps({'tasks': tasks})}", id="tag left open"),
        pytest.param(lambda tasks: f"Here it is: {json.dumps({'tasks': tasks})} Done.", id="prose"),
        pytest.param(
            lambda tasks: json.dumps(
                {"original_plan": json.dumps({"tasks": tasks}), "error": "Expecting ','"}
            ),
            id="wrapper of augmented files",
        ),
        pytest.param(lambda tasks: json.dumps({"tasks": json.dumps(tasks)}), id="tasks as text"),
        pytest.param(lambda tasks: {"tasks": tasks, "note": 1}, id="other keys"),
    ],
)
def test_reads_every_form_of_a_plan(form):
    given_ = form(list(DIAMOND))
    read = Plan.parse(given_)
    assert read.fault == ""
    assert [node.id for node in read.nodes] == ["root", "1", "2", "3", "response"]
    assert read.given == given_
    assert read.by_id["1"].parameters.named == {"q": "x"}


@pytest.mark.parametrize(
    ("para", "named", "positional"),
    [
        ({"url": "x"}, {"url": "x"}, ()),
        ({}, {}, ()),
        ([], {}, ()),
        (None, {}, ()),
        ("", {}, ()),
        (["{}"], {}, ()),
        (['{"array": [1, 2], "limit": 100}'], {"array": [1, 2], "limit": 100}, ()),
        (["{'py': 'dict'}"], {"py": "dict"}, ()),
        ([{"location": "village"}], {"location": "village"}, ()),
        ([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}, ()),
        (["quantity=500", "unit=g"], {"quantity": "500", "unit": "g"}, ()),
        (["name: kettle"], {"name": "kettle"}, ()),
        (
            ["location: 'Workshop, Room 1', date: '2023-10-20', time: '10:00 AM'"],
            {"location": "Workshop, Room 1", "date": "2023-10-20", "time": "10:00 AM"},
            (),
        ),
        (["main water valve"], {}, ("main water valve",)),
        ([10], {}, (10,)),
        ([0], {}, (0,)),
        (["3", ["a", "b"]], {}, ("3", ["a", "b"])),
        (["id", {"x": 1}], {"x": 1}, ("id",)),
        ([{"name": "n"}, "fine"], {"name": "n"}, ("fine",)),
        (["eggs", 12, "task4中的结果"], {}, ("eggs", 12, "task4中的结果")),
        ("3的值除以4的值", {}, ("3的值除以4的值",)),
        ([{"a": 1}, {"a": 2}], {"a": 1}, ({"a": 2},)),  # nothing is overwritten
        (["https://example.org/?a=1"], {}, ("https://example.org/?a=1",)),
        (["{broken"], {}, ("{broken",)),
        (0, {}, (0,)),
        (False, {}, (False,)),
        ('{"a": 1}', {"a": 1}, ()),
    ],
)
def test_reads_every_form_of_parameters(para, named, positional):
    assert parameters(para) == Parameters(named, positional)


def test_values_keep_the_difference_between_zero_and_nothing():
    assert not parameters({})
    assert not parameters(None)
    assert parameters([0])
    assert parameters({"a": None})


@pytest.mark.parametrize(
    ("given_id", "read"),
    [("6A", "6A"), (6, "6"), (6.0, "6"), ("2.1", "2.1"), (2.1, "2.1"), (" 4-1 ", "4-1")],
)
def test_ids_are_texts(given_id, read):
    assert plan(task(given_id)).nodes[0].id == read


@pytest.mark.parametrize(
    ("status", "done"),
    [
        (True, True), (False, False), ("true", True), ("False", False), ("DONE", True),
        (1, True), (0, False), (None, False), ("pending", False), (" completed ", True),
    ],
)  # fmt: skip
def test_status_in_every_form(status, done):
    assert plan(task("1", status=status)).nodes[0].done is done


def test_other_key_names_are_understood():
    read = Plan.parse(
        [{"id": "1", "name": "f", "arguments": {"a": 1}, "description": "text", "deps": []}]
    )
    assert read.fault == ""
    assert read.nodes[0].parameters.named == {"a": 1}
    assert read.nodes[0].description == "text"


def test_missing_keys_of_root_and_response():
    """Rollout files give root and response without name and para."""
    read = Plan.parse(
        {
            "tasks": [
                {"id": "root", "desc": "q", "dep": [], "status": True},
                {"id": "response", "desc": "分析总结，进行回复", "dep": ["root"], "status": False},
            ]
        }
    )
    assert read.fault == ""
    assert read.nodes[0] == Node("root", description="q", done=True, given=read.nodes[0].given)
    assert not read.nodes[1].calls_tool


def test_a_root_that_names_a_tool_calls_it():
    assert plan(task("root", name="track_order")).nodes[0].calls_tool
    assert not plan(task("root", name="root")).nodes[0].calls_tool


def test_tasks_keep_what_was_given():
    odd = task("1", extra={"kept": True})
    assert plan(odd).nodes[0].given == odd


# --- S5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "fault"),
    [
        (None, "no plan was given"),
        ("", "the plan is empty"),
        ("  \n", "the plan is empty"),
        ("null", "no plan was given"),
        ("I cannot help with that.", "not JSON: "),
        ('{"tasks": [', "not JSON: "),
        ("{}", "no list of tasks under 'tasks'"),
        ("5", "'tasks' is a number, not a list"),
        ({"tasks": {"id": "1"}}, "no list of tasks under 'tasks'"),
        ({"tasks": None}, "no plan was given"),
        ({"tasks": []}, "the list of tasks is empty"),
        ({"tasks": ["1"]}, "task 1 is text, not an object"),
        ({"tasks": [None]}, "task 1 is missing, not an object"),
        ({"tasks": [task("1"), 7]}, "task 2 is a number, not an object"),
        ({"tasks": [task("")]}, "a node has no id"),
        ({"tasks": [task(None)]}, "a node has no id"),
        ({"tasks": [{"name": "f", "dep": []}]}, "a node has no id"),
        ({"tasks": [task("1"), task("1")]}, "two nodes have the id 1"),
        ({"tasks": [task("1"), task(1)]}, "two nodes have the id 1"),
        ({"tasks": [{"id": "1"}]}, "task 1: its 'dep' is missing, not a list of node ids"),
        ({"tasks": [task("1", dep="root")]}, "task 1: its 'dep' is text, not a list of node ids"),
        ({"tasks": [task("1", dep=None)]}, "task 1: its 'dep' is missing, not a list of node ids"),
        ({"tasks": [task("1", "9")]}, "node 1 depends on 9, which does not exist"),
        ({"tasks": [task("1", None)]}, "node 1 depends on an empty id, which does not exist"),
        ({"tasks": [task("1", "1")]}, "a cycle through node 1"),
        (
            {"tasks": [task("1", "2"), task("2", "1"), task("3", "2")]},
            "a cycle through node 1, 2, 3",
        ),
        ({"tasks": [task("root", "root"), task("1", "root")]}, "a cycle through node root, 1"),
    ],
)
def test_what_breaks_s5(given_, fault):
    read = Plan.parse(given_)
    assert read.fault.startswith(fault)
    assert read.s5 == 0
    assert read.given == given_


def test_s5_of_sound_plans():
    assert plan(*DIAMOND).s5 == 1
    assert plan(task("2", "1"), task("1")).s5 == 1, "a dependency may stand below its node"
    assert plan(task("1", 1.0), task(1.5)).fault == "a cycle through node 1"
    assert plan(task("1"), task("2", 1)).s5 == 1, "a dependency written as a number"


def test_broken_plans_keep_the_nodes_that_could_be_read():
    read = plan(task("1", name="f"), "junk", task("2", "1"))
    assert [node.id for node in read.nodes] == ["1", "2"]


def test_dependencies_written_as_text_are_understood_though_s5_is_0():
    read = plan(task("1"), task("2"), task("3", dep="1, 2"), task("4", dep='["1"]'))
    assert read.dependencies("3") == {"1", "2"}
    assert read.dependencies("4") == {"1"}
    assert read.s5 == 0


# --- frontier, layers, rounds ---------------------------------------------------------------------


def test_frontier_holds_pending_nodes_whose_dependencies_are_done():
    assert plan(*DIAMOND).frontier() == ("2", "3")


def test_frontier_never_holds_a_node_with_a_dependency_that_is_missing():
    assert plan(task("root", done=True), task("1", "root", "99")).frontier() == ()


def test_frontier_of_an_independent_node():
    assert plan(task("root", done=True), task("1")).frontier() == ("1",)


def test_layers():
    assert plan(*DIAMOND).layers == {"root": 0, "1": 1, "2": 2, "3": 2, "response": 3}


def test_layers_without_root_start_at_1():
    assert plan(task("1"), task("2", "1")).layers == {"1": 1, "2": 2}


def test_layers_pass_over_missing_dependencies():
    read = plan(task("root"), task("1", "99"), task("2", "1", "98"), task("3"))
    assert read.layers == {"root": 0, "1": 1, "2": 2, "3": 1}


def test_layers_of_a_root_that_depends_on_itself():
    assert plan(task("root", "root"), task("1", "root")).layers == {"root": 0, "1": 1}


def test_nodes_in_or_behind_a_cycle_have_no_layer():
    read = plan(task("root"), task("1", "2"), task("2", "1"), task("3", "2"), task("4", "root"))
    assert read.layers == {"root": 0, "4": 1}


@pytest.mark.parametrize(
    ("done", "rounds"),
    [
        ((), 0),
        (("root",), 0),  # the root is no round
        (("root", "1"), 1),
        (("root", "1", "2"), 2),
        (("root", "1", "2", "3"), 2),  # 2 and 3 ran in the same round
        (("root", "1", "2", "3", "response"), 3),
    ],
)
def test_executed_rounds_are_peels_of_executed_nodes(done, rounds):
    tasks = [t | {"status": t["id"] in done} for t in DIAMOND]
    assert plan(*tasks).executed_rounds() == rounds


def test_executed_rounds_pass_over_nodes_that_were_not_executed():
    # 3 is executed behind a pending 2: the peel counts 1 and 3 alone, side by side
    read = plan(task("root", done=True), task("1", "root", done=True), task("2", "1"),
                task("3", "2", done=True))  # fmt: skip
    assert read.executed_rounds() == 1


def test_executed_rounds_of_the_case_of_a_retry():
    # rounds: 1, then 2 (failed), then its retry 2_retry; 3 waits
    read = plan(task("root", done=True), task("1", "root", done=True), task("2", "1", done=True),
                task("2_retry", "2", done=True), task("3", "2_retry"))  # fmt: skip
    assert read.executed_rounds() == 3


def test_impact_and_ancestors():
    read = plan(*DIAMOND)
    assert read.impact("1") == {"2", "3", "response"}
    assert read.ancestors("2") == {"1", "root"}
    assert read.impact("99") == frozenset() == read.ancestors("99")


def test_impact_in_a_cycle_leaves_the_node_itself_out():
    assert plan(task("1", "2"), task("2", "1")).impact("1") == {"2"}


# --- difference -----------------------------------------------------------------------------------


def test_difference_names_every_change():
    before = plan(*DIAMOND)
    after = plan(
        task("root", done=True),
        task("1", "root", done=True, name="find", para={"q": "y"}, desc="Result: 3"),
        task("2", "1", name="left", done=True),
        task("4", "1", name="new"),
        task("response", "4", "2"),
    )
    found = before.difference(after)
    assert found.added == ("4",)
    assert found.removed == ("3",)
    assert found.changed == {
        "1": (
            FieldChange("parameters", Parameters({"q": "x"}), Parameters({"q": "y"})),
            FieldChange("description", "", "Result: 3"),
        ),
        "response": (FieldChange("dependencies", ["2", "3"], ["2", "4"]),),
    }
    assert found.newly_done == ("2",)
    assert found.reopened == ()
    assert found.unchanged == ("root",)
    assert found.redesigned() == ("1", "response")
    assert found.edges_added == (("1", "4"), ("4", "response"))
    assert found.edges_removed == (("1", "3"), ("3", "response"))


def test_difference_sees_reopened_nodes_and_ignores_the_order_of_dependencies():
    before = plan(task("1", done=True), task("2"), task("3", "1", "2"))
    after = plan(task("1"), task("2"), task("3", "2", "1"))
    found = before.difference(after)
    assert found.reopened == ("1",)
    assert found.unchanged == ("2", "3")
    assert found.changed == {}


def test_a_new_description_alone_is_no_redesign():
    found = plan(task("1")).difference(plan(task("1", desc="Result: ok")))
    assert set(found.changed) == {"1"}
    assert found.redesigned() == ()


# --- anything at all ------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)
ids = st.sampled_from(["root", "1", "2", "3", "4", "5", "response", "", 3, None])
tasks_ = st.fixed_dictionaries(
    {"id": ids, "dep": st.lists(ids, max_size=4) | json_values, "status": json_values},
    optional={"name": json_values, "para": json_values, "desc": json_values},
)
plans = st.lists(tasks_ | json_values, max_size=8).map(lambda tasks: Plan.parse({"tasks": tasks}))
good_ids = st.sampled_from([str(n) for n in range(8)])
dags = st.lists(
    st.tuples(good_ids, st.sets(good_ids), st.booleans()), unique_by=lambda t: t[0]
).map(
    lambda rows: plan(
        *(
            task(i, *sorted(d for d in deps if d < i and d in {r[0] for r in rows}), done=done)
            for i, deps, done in rows
        )
    )
)


@given(json_values | st.text() | st.binary())
def test_no_input_crashes_parsing(value):
    read = Plan.parse(value)
    assert read.s5 == (0 if read.fault else 1)


@given(plans)
def test_no_plan_crashes_what_is_asked_of_it(read):
    read.frontier(), read.layers, read.executed_rounds(), read.difference(read)
    for node in read.nodes:
        read.impact(node.id), read.ancestors(node.id)
    assert (read.fault == "") or read.s5 == 0


@given(st.text(alphabet="{}[]\"'`:,\\ <>/planktsu1\n=", max_size=60))
def test_no_text_like_a_plan_crashes_parsing(text):
    Plan.parse(text)
    parameters([text])


@given(plans)
def test_a_plan_does_not_differ_from_itself(read):
    found = read.difference(read)
    assert found.added + found.removed + found.newly_done + found.reopened == ()
    assert found.edges_added + found.edges_removed == ()


@given(dags)
def test_a_sound_plan_does_not_differ_from_itself_at_all(read):
    assert read.difference(read).unchanged == tuple(read.by_id)


@given(dags, dags)
def test_difference_backwards_is_the_inverse(one, other):
    there, back = one.difference(other), other.difference(one)
    assert set(there.added) == set(back.removed)
    assert set(there.removed) == set(back.added)
    assert set(there.newly_done) == set(back.reopened)
    assert set(there.edges_added) == set(back.edges_removed)
    assert set(there.changed) == set(back.changed)


@given(dags)
def test_s5_layers_and_frontier_agree_with_networkx(read):
    if not read.nodes:
        return
    assert read.fault == ""
    assert nx.is_directed_acyclic_graph(read.graph)
    depth = {
        n: 1 + max((read.layers[d] for d in read.dependencies(n)), default=0) for n in read.by_id
    }
    assert read.layers == depth
    done = {n.id for n in read.nodes if n.done}
    assert set(read.frontier()) == {
        n for n in read.by_id if n not in done and read.dependencies(n) <= done
    }


@given(
    st.lists(
        st.tuples(good_ids, st.lists(good_ids, max_size=3)), min_size=1, unique_by=lambda t: t[0]
    )
)
def test_cycles_are_found_wherever_networkx_finds_one(rows):
    known = {row[0] for row in rows}
    nodes = [Node(i, dependencies=tuple(d for d in deps if d in known)) for i, deps in rows]
    graph = nx.DiGraph((d, n.id) for n in nodes for d in n.dependencies)
    assert bool(graph_fault(nodes)) is not nx.is_directed_acyclic_graph(graph)


# --- hostile input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"tasks":' * 1_000_000,
        '{"tasks": [{"id": "1", "dep": [], "para": ' + "[" * 1000 + "]" * 1000 + "}]}",
        "<plan>" * 300_000,
        "```" + " " * 1_000_000,
        "(" * 1_000_000,
        "-" * 1_000_000,
        '{"tasks": [' + '{"id": "1"},' * 100_000,
    ],
    ids=["lists", "objects", "parameters", "open tags", "open fence", "parens", "minus", "cut off"],
)
def test_hostile_texts_are_a_fault_within_seconds(text):
    start = time.process_time()
    assert Plan.parse(text).s5 == 0
    assert time.process_time() - start < 5


def test_deep_objects_are_a_fault():
    value = []
    for _ in range(100_000):
        value = [value]
    assert Plan.parse({"tasks": value}).fault == "nested deeper than 200 levels"


def test_five_thousand_nodes_in_a_row():
    tasks = [task("0")] + [task(str(i), str(i - 1), done=i < 4000) for i in range(1, 5000)]
    start = time.process_time()
    read = Plan.parse(json.dumps(tasks))
    assert read.fault == ""
    assert read.layers["4999"] == 5000
    assert read.frontier() == ("0", "4000")
    assert len(read.impact("0")) == 4999
    assert time.process_time() - start < 5


@pytest.mark.parametrize("text", ["a=" + " " * 9_000 + "b", "a: " + ", x" * 3_000, "a='" * 3_000])
def test_odd_pairs_take_no_time(text):
    start = time.process_time()
    parameters([text])
    assert time.process_time() - start < 1


def test_a_large_string_survives():
    text = "x" * 2_000_000
    assert plan(task("1", desc=text)).nodes[0].description == text
