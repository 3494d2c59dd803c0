"""Each kind of finding on a plan written for it, and what must not be found."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pararecover_cli.main import cli
from pararecover_core.findings import Certainty, Where, findings_of, instance_findings
from pararecover_core.formats import read
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, match_calls, parse_calls, parse_tools
from pararecover_core.taxonomy import ErrorType

DATA = Path(__file__).parents[1] / "data"
REAL = Path(__file__).parents[2] / "shared" / "real"


def tool(name, required=None, **types):
    parameters = {p: t if isinstance(t, dict) else {"type": t} for p, t in types.items()}
    required = list(parameters) if required is None else required
    return {"name": name, "description": "", "parameters": parameters, "required": required}


TOOLS = [
    tool("find_plants", city="string", limit="number"),
    tool("rank_plants", plants="array"),
    tool("order_plant", plant_id="string", count="number", options="object", required=["plant_id"]),
    tool("send_note", email="string", text="string"),
]


def node(id, name, para, dep=("root",), status=False, desc=""):
    return {
        "id": id, "name": name, "para": para, "dep": list(dep), "status": status, "desc": desc,
    }  # fmt: skip


def look(*nodes, calls=(), tools=TOOLS, query="", end=None):
    ends = [n["id"] for n in nodes] if end is None else end
    tasks = [{"id": "root", "dep": [], "status": True}, *nodes]
    tasks.append({"id": "response", "dep": ends, "status": False})
    plan = Plan.parse({"tasks": tasks})
    seen = match_calls(plan, parse_calls(list(calls)))
    return findings_of(plan, parse_tools(tools), seen, query=query)


def call(name, arguments, results):
    return {"name": name, "arguments": arguments, "results": results}


def of(found, kind, rule=None):
    return [f for f in found if f.error_type is kind and rule in (None, f.rule)]


def one(found, kind, rule=None):
    (only,) = of(found, kind, rule)
    return only


GOOD = node("1", "find_plants", {"city": "Ghent", "limit": 3})


def hints_aside(found):
    return [f for f in found if f.certainty is not Certainty.POSSIBLE]


class TestCalls:
    def test_a_legal_call_gives_nothing(self):
        assert hints_aside(look(GOOD)) == []

    def test_unknown_tool_with_the_nearest_name(self):
        finding = one(look(node("1", "find_plant", {"city": "Ghent"})), ErrorType.TOOL_NAME_ERROR)
        assert finding.node == "1"
        assert finding.suggestion == "find_plants"
        assert finding.certainty is Certainty.CERTAIN
        assert finding.message == (
            "Node 1 calls 'find_plant', which is not in the tool list. "
            "The nearest is 'find_plants'."
        )

    def test_a_question_to_the_user_is_less_certain(self):
        found = look(node("1", "用户提供城市", {}))
        assert one(found, ErrorType.TOOL_NAME_ERROR).certainty is Certainty.LIKELY

    def test_without_a_tool_list_names_are_not_judged(self):
        assert hints_aside(look(node("1", "anything", {}), tools=[])) == []

    def test_unknown_parameter_with_the_nearest_and_a_weaker_missing_one(self):
        found = look(node("1", "find_plants", {"town": "Ghent", "limits": 3}))
        town, *_ = of(found, ErrorType.PARAMETER_ERROR, "unknown parameter")
        assert (town.parameter, town.where) == ("town", Where.PLAN)
        found = look(node("1", "find_plants", {"city": "Ghent", "limits": 3}))
        limits = one(found, ErrorType.PARAMETER_ERROR)
        assert (limits.parameter, limits.suggestion) == ("limits", "limit")
        assert one(found, ErrorType.PARAMETER_MISSING).certainty is Certainty.POSSIBLE

    def test_missing_parameter(self):
        finding = one(
            look(node("1", "find_plants", {"city": "Ghent"})), ErrorType.PARAMETER_MISSING
        )
        assert (finding.node, finding.parameter) == ("1", "limit")
        assert finding.certainty is Certainty.CERTAIN
        assert finding.message == (
            "Node 1 does not give the required parameter 'limit' of find_plants."
        )

    @pytest.mark.parametrize(
        ("value", "words"),
        [("three", "the text 'three'"), ("3", "the text '3'"), (True, "the boolean true"),
         ([3], "a list"), ({"n": 3}, "an object")],
    )  # fmt: skip
    def test_wrong_type_for_a_number(self, value, words):
        found = look(node("1", "find_plants", {"city": "Ghent", "limit": value}))
        finding = one(found, ErrorType.TYPE_ERROR)
        assert finding.parameter == "limit"
        assert finding.certainty is Certainty.CERTAIN
        assert finding.message == (
            f"Node 1 gives {words} for 'limit' of find_plants, which must be a number."
        )

    @pytest.mark.parametrize(
        ("tool_name", "para"),
        [("find_plants", {"city": 123, "limit": 3}), ("rank_plants", {"plants": "rose, lily"}),
         ("order_plant", {"plant_id": "p", "options": ["a"]})],
    )  # fmt: skip
    def test_other_wrong_types(self, tool_name, para):
        found = look(node("1", tool_name, para))
        assert one(found, ErrorType.TYPE_ERROR).certainty is Certainty.CERTAIN

    def test_wrong_type_inside_an_object(self):
        inner = {"type": "object", "properties": {"length": {"type": "number"}}}
        found = look(
            node("1", "mark", {"area": {"length": "ten"}}), tools=[tool("mark", area=inner)]
        )
        assert one(found, ErrorType.TYPE_ERROR).parameter == "area.length"

    def test_values_of_key_value_texts_are_untyped(self):
        assert not of(
            look(node("1", "find_plants", ["city=Ghent", "limit=3"])), ErrorType.TYPE_ERROR
        )
        found = look(node("1", "find_plants", ["city=Ghent", "limit=many"]))
        assert one(found, ErrorType.TYPE_ERROR).parameter == "limit"

    @pytest.mark.parametrize(
        "reference", ["task1_output", "task1中输出的植物", "output of find_plants"]
    )
    def test_a_reference_for_an_array_is_a_weaker_finding(self, reference):
        found = look(GOOD, node("2", "rank_plants", {"plants": reference}, ["1"]))
        finding = one(found, ErrorType.TYPE_ERROR)
        assert finding.rule == "placeholder where a typed value is expected"
        assert finding.certainty is Certainty.POSSIBLE

    def test_the_sandbox_s_own_references_have_any_type(self):
        assert not of(
            look(GOOD, node("2", "rank_plants", {"plants": "$1.plants"}, ["1"])),
            ErrorType.TYPE_ERROR,
        )

    @pytest.mark.parametrize(
        ("name", "value", "certainty"),
        [("date", "2023-07-32", Certainty.CERTAIN), ("date", "30-02-2026", Certainty.CERTAIN),
         ("start_time", "25:10", Certainty.CERTAIN), ("email", "ann.example.com", Certainty.LIKELY),
         ("quantity", -200, Certainty.LIKELY), ("shelf", "nonexistent_shelf_999", Certainty.LIKELY),
         ("latitude", 123.4, Certainty.CERTAIN), ("color", "grene", Certainty.CERTAIN),
         ("stars", 9, Certainty.LIKELY), ("level", 11, Certainty.CERTAIN),
         ("text", "To be filled after user provides", Certainty.LIKELY),
         ("text", "text", Certainty.LIKELY)],
    )  # fmt: skip
    def test_invalid_value(self, name, value, certainty):
        schema = {"type": "string" if isinstance(value, str) else "number"}
        extra = {
            "color": {"enum": ["green", "red"]},
            "stars": {"description": "Lowest rating, 1 to 5."},
            "level": {"minimum": 0, "maximum": 10},
        }.get(name, {})
        found = look(node("1", "do", {name: value}), tools=[tool("do", **{name: schema | extra})])
        finding = one(found, ErrorType.PARAMETER_INVALID)
        assert finding.parameter == name
        assert finding.certainty == certainty

    @pytest.mark.parametrize(
        ("name", "value"),
        [("date", "2024-02-29"), ("date", "31/12/2026"), ("time", "23:59"), ("quantity", 2),
         ("email", "ann@example.com"), ("temperature", -12), ("year", 1890), ("ratio", "16:90"),
         ("title", "An unknown path")],
    )  # fmt: skip
    def test_valid_value(self, name, value):
        kind = "string" if isinstance(value, str) else "number"
        assert (
            hints_aside(look(node("1", "do", {name: value}), tools=[tool("do", **{name: kind})]))
            == []
        )

    def test_blank_and_null_values(self):
        blank = look(node("1", "find_plants", {"city": "", "limit": 3}))
        assert of(blank, ErrorType.PARAMETER_MISSING, "blank value")
        assert of(blank, ErrorType.PARAMETER_INVALID, "blank value")
        null = look(node("1", "find_plants", {"city": None, "limit": 3}))
        assert one(null, ErrorType.PARAMETER_MISSING).certainty is Certainty.LIKELY

    def test_values_without_names(self):
        finding = one(look(node("1", "find_plants", ["Ghent", 3])), ErrorType.PARAMETER_ERROR)
        assert finding.message == (
            "Node 1 gives 2 values without a parameter name ('city', 'limit' would fit)."
        )

    def test_of_two_tools_with_one_name_the_fitting_one_counts(self):
        twice = [tool("write", text="string"), tool("write", subject="string", body="string")]
        assert (
            hints_aside(look(node("1", "write", {"subject": "a", "body": "b"}), tools=twice)) == []
        )

    def test_a_parameter_may_be_called_type(self):
        tools = [tool("flour", type="string", quantity="number")]
        assert (
            hints_aside(look(node("1", "flour", {"type": "rye", "quantity": 2}), tools=tools)) == []
        )

    def test_executed_calls_are_judged_by_their_result_alone(self):
        fine = node("1", "find_plants", {"town": 3}, status=True, desc="Find. Result: 3 plants")
        assert hints_aside(look(fine)) == []
        failed = node("1", "find_plants", {"town": 3}, status=True, desc="Find. Result: Error: no")
        assert of(look(failed), ErrorType.PARAMETER_ERROR, "unknown parameter")

    def test_a_failure_that_was_tried_again_is_past(self):
        failed = node("1", "find_plant", {"city": "Ghent"}, status=True, desc="Result: Error: none")
        again = node("1_retry", "find_plants", {"city": "Ghent", "limit": 3}, ["1"])
        assert hints_aside(look(failed, again)) == []

    def test_a_root_that_names_a_listed_tool_is_a_call(self):
        plan = Plan.parse(
            {"tasks": [{"id": "root", "name": "find_plants", "para": {"city": "Ghent"}, "dep": []},
                       {"id": "response", "dep": ["root"]}]}
        )  # fmt: skip
        found = findings_of(plan, parse_tools(TOOLS), ())
        assert one(found, ErrorType.PARAMETER_MISSING).node == "root"


class TestResults:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("Error: Request timed out after 30 seconds", ErrorType.TIMEOUT_ERROR),
            ("超时错误：服务器没有响应", ErrorType.TIMEOUT_ERROR),
            ("[]", ErrorType.NULL_ERROR),
            ("", ErrorType.NULL_ERROR),
            ("Error: unknown tool 'find_plants'", ErrorType.TOOL_NAME_ERROR),
            ("错误：工具'find_plants'不存在。", ErrorType.TOOL_NAME_ERROR),
            ("Error: Missing required parameter 'city'", ErrorType.PARAMETER_MISSING),
            ("错误：缺少必要参数 city", ErrorType.PARAMETER_MISSING),
            ("Error: unknown parameter 'town'", ErrorType.PARAMETER_ERROR),
            ("Error: Invalid parameter 'town'. Expected 'city'.", ErrorType.PARAMETER_ERROR),
            ("错误：参数'town'不被接受。期望的参数是'city'。", ErrorType.PARAMETER_ERROR),
            ("Error: 'limit' must be a number, got the string 'x'", ErrorType.TYPE_ERROR),
            ('{"error": "Parameter type mismatch"}', ErrorType.TYPE_ERROR),
            ("错误：参数类型错误，limit应为数字", ErrorType.TYPE_ERROR),
            ("Error: Invalid date format", ErrorType.PARAMETER_INVALID),
            ("Error: invalid value -3: expected a number from 1 to 9", ErrorType.PARAMETER_INVALID),
            ("错误：limit的值无效", ErrorType.PARAMETER_INVALID),
        ],
    )
    def test_what_a_result_says(self, text, kind):
        found = look(GOOD, calls=[call("find_plants", {"city": "Ghent", "limit": 3}, text)])
        finding = of(found, kind)[0]
        assert finding.where is Where.OBSERVATION
        assert finding.node == "1"
        strong = {f.error_type for f in found if f.certainty is not Certainty.POSSIBLE}
        assert strong == {kind}

    def test_other_errors_have_no_type(self):
        found = look(GOOD, calls=[call("find_plants", {}, "Error: the shop is on fire.")])
        (finding,) = hints_aside(found)
        assert finding.error_type is None
        assert finding.message == "The call of node 1 failed: Error: the shop is on fire."

    def test_a_time_out_leaves_no_result_as_a_weaker_finding(self):
        found = look(GOOD, calls=[call("find_plants", {}, "Timeout Error: 30 s")])
        assert one(found, ErrorType.NULL_ERROR).certainty is Certainty.POSSIBLE

    def test_a_call_that_went_to_an_unlisted_tool(self):
        found = look(GOOD, calls=[call("find_plantz", {}, "Timeout")])
        assert one(found, ErrorType.TOOL_NAME_ERROR).where is Where.OBSERVATION

    def test_success_and_talk_of_errors_give_nothing(self):
        good = "Successfully found 3 plants; no errors."
        assert hints_aside(look(GOOD, calls=[call("find_plants", {}, good)])) == []

    @pytest.mark.parametrize(
        "desc",
        ["Find plants. Execution result: TimeoutError: 30 s", "查找植物。错误：工具调用超时。",
         "查找植物，返回结果：请求超时", "Find plants. Error: Request timed out after 30 seconds."],
    )  # fmt: skip
    def test_results_noted_in_descriptions(self, desc):
        found = look(node("1", "find_plants", {"city": "G", "limit": 3}, status=True, desc=desc))
        assert one(found, ErrorType.TIMEOUT_ERROR).certainty is Certainty.LIKELY


class TestDependencies:
    def test_no_dependency(self):
        found = look(GOOD, node("2", "rank_plants", {"plants": "task1_output"}, []))
        finding = one(found, ErrorType.DEPENDENCE_NULL, "no dependency")
        assert (finding.node, finding.suggestion) == ("2", "1")
        assert finding.certainty is Certainty.CERTAIN

    def test_dependency_that_does_not_exist(self):
        found = look(GOOD, node("2", "rank_plants", {"plants": []}, ["7"]))
        finding = one(found, ErrorType.DEPENDENCE_ERROR, "dependency that does not exist")
        assert finding.message == "Node 2 depends on node 7, which is not in the plan."

    def test_wrongly_parallel(self):
        found = look(GOOD, node("2", "rank_plants", {"plants": "task1_output"}))
        finding = one(found, ErrorType.PARALLELISM_ERROR)
        assert (finding.node, finding.suggestion, finding.parameter) == ("2", "1", "plants")
        assert finding.certainty is Certainty.LIKELY

    def test_wrong_dependency(self):
        found = look(
            GOOD,
            node("2", "rank_plants", {"plants": "task1_output"}, ["1"]),
            node("3", "order_plant", {"plant_id": "$2.best"}, ["1"]),
            node("4", "send_note", {"email": "a@b.be", "text": "$3.order"}, ["2"]),
        )
        assert one(found, ErrorType.DEPENDENCE_ERROR, "wrong dependency").node == "4"
        assert one(found, ErrorType.PARALLELISM_ERROR, "wrongly parallel").node == "3"

    def test_needless_dependency_where_references_are_explicit(self):
        found = look(
            GOOD,
            node("2", "rank_plants", {"plants": "$1.plants"}, ["1"]),
            node("3", "find_plants", {"city": "Bonn", "limit": 2}, ["2"]),
        )
        finding = one(found, ErrorType.SERIAL_ERROR)
        assert (finding.node, finding.suggestion) == ("3", "2")
        assert finding.certainty is Certainty.LIKELY

    def test_needless_dependency_is_a_mere_hint_where_values_are_copied(self):
        found = look(GOOD, node("2", "find_plants", {"city": "Bonn", "limit": 2}, ["1"]))
        assert one(found, ErrorType.SERIAL_ERROR).certainty is Certainty.POSSIBLE

    def test_a_copied_result_is_data(self):
        done = node("1", "find_plants", {"city": "Ghent", "limit": 1}, status=True,
                    desc='Find. Execution result: ["rosa-17"]')  # fmt: skip
        found = look(done, node("2", "order_plant", {"plant_id": "rosa-17"}, ["1"]))
        assert not of(found, ErrorType.SERIAL_ERROR)

    def test_a_lost_call_behind_a_reference(self):
        found = look(GOOD, node("3", "rank_plants", {"plants": "$2.plants"}, ["1"]))
        finding = one(found, ErrorType.TOOLCALL_MISSING)
        assert finding.rule == "reference to a missing node"
        assert finding.certainty is Certainty.LIKELY

    def test_nobody_waits_for_a_call(self):
        found = look(GOOD, node("2", "send_note", {"email": "a@b.be", "text": "hi"}), end=["1"])
        assert one(found, ErrorType.DEPENDENCE_ERROR, "nobody waits for it").node == "2"

    def test_a_retry_beside_its_first_try(self):
        failed = node("1", "find_plants", {"city": "G", "limit": 3}, desc="Find. Error: timed out")
        found = look(failed, node("1_retry", "find_plants", {"city": "G", "limit": 3}))
        assert (
            one(found, ErrorType.PARALLELISM_ERROR, "retry beside its first try").node == "1_retry"
        )

    def test_a_call_that_needed_what_ran_beside_it(self):
        found = look(
            GOOD,
            node("2", "order_plant", {"plant_id": "plant id"}),
            calls=[
                call("find_plants", {"city": "Ghent", "limit": 3}, '{"plant_id": "rosa-17"}'),
                call("order_plant", {"plant_id": "plant id"}, "Error: no plant 'plant id'"),
            ],
        )
        assert one(found, ErrorType.PARALLELISM_ERROR, "needs what ran beside it").suggestion == "1"

    def test_a_self_dependency(self):
        found = look(node("1", "find_plants", {"city": "G", "limit": 3}, ["1"]))
        assert of(found, ErrorType.DEPENDENCE_ERROR, "cycle")


class TestPurpose:
    def test_the_same_call_twice(self):
        found = look(GOOD, node("2", "find_plants", {"limit": 3, "city": "Ghent"}))
        finding = one(found, ErrorType.TOOLCALL_REDUNDANCY)
        assert finding.rule == "repeated call"
        assert finding.certainty is Certainty.LIKELY

    def test_a_retry_after_a_failure_is_no_redundancy_a_third_one_is(self):
        tries = [
            node(str(n), "find_plants", {"city": "G", "limit": 3}, [before],
                 status=True, desc="Find. Result: Error: offline")
            for n, before in ((1, "root"), (2, "1"))
        ]  # fmt: skip
        again = node("9", "find_plants", {"city": "G", "limit": 3}, ["1"])
        assert not of(look(tries[0], again), ErrorType.TOOLCALL_REDUNDANCY)
        third = dict(tries[0], id="3", dep=["2"])
        assert of(look(*tries, third, dict(again, dep=["3"])), ErrorType.TOOLCALL_REDUNDANCY)

    def test_an_objective_with_no_call(self):
        found = look(GOOD, query="Find plants in Ghent and send a note to Ann.")
        finding = one(found, ErrorType.TOOLCALL_MISSING)
        assert finding.suggestion == "send_note"
        assert finding.certainty is Certainty.POSSIBLE

    def test_a_near_twin(self):
        tools = [tool("boil_rice", rice="string"), tool("cook_rice", rice="string")]
        found = look(
            node("1", "boil_rice", {"rice": "basmati"}), tools=tools, query="Cook the rice."
        )
        finding = one(found, ErrorType.TOOL_SELECT_ERROR)
        assert (finding.node, finding.suggestion) == ("1", "cook_rice")

    def test_a_description_that_names_the_fault(self):
        step = node(
            "1", "find_plants", {"city": "Ghent", "limit": 3}, desc="Search (redundant step)"
        )
        assert one(look(step), ErrorType.TOOLCALL_REDUNDANCY).rule == "named in the description"


class TestWhole:
    def test_repeats_are_folded_into_one(self):
        nodes = [node(str(n), "find_plants", {"city": f"City {n}"}) for n in range(1, 6)]
        finding = one(look(*nodes), ErrorType.PARAMETER_MISSING)
        assert finding.nodes == ("1", "2", "3", "4", "5")
        assert finding.message.endswith(" The same holds for nodes 2, 3, 4, 5.")

    def test_the_most_certain_come_first_and_the_limit_holds(self):
        plan = Plan.parse({"tasks": [node(str(n), f"tool{n}", {"x": "TBD"}, []) for n in range(9)]})
        found = findings_of(plan, parse_tools(TOOLS), (), limit=2)
        assert len(found) == 2
        ranks = [f.certainty.rank for f in look(GOOD, node("2", "find_plantz", {}, ["9"]))]
        assert ranks == sorted(ranks)

    def test_data_has_the_documented_fields(self):
        data = look(node("1", "find_plants", {"city": "Ghent"}))[0].data()
        assert {"error_type", "node", "parameter", "where", "certainty", "message"} <= set(data)
        assert data["error_type"] == "Parameter_Missing"
        assert data["where"] == "plan"

    def test_a_plan_that_does_not_parse(self):
        assert findings_of(Plan.parse('{"tasks": [{"id": '), parse_tools(TOOLS), ()) == ()

    def test_a_plan_of_5000_nodes_takes_seconds_not_minutes(self):
        nodes = [node(str(n), "find_plants", {"city": "G", "limit": "x"}, [str(max(0, n - 1))])
                 for n in range(1, 5001)]  # fmt: skip
        started = time.process_time()
        look(*nodes)
        assert time.process_time() - started < 8

    def test_a_name_of_2_mb_is_cut_in_the_message(self):
        (finding,) = hints_aside(look(node("1", "a" * 2_000_000, {"b" * 2_000_000: 1})))
        assert len(finding.message) == 500
        assert finding.suggestion == ""

    def test_values_and_results_of_2_mb_take_no_time(self):
        big = "x" * 1_000_000 + '"a1b2c3d4", ' * 90_000
        started = time.process_time()
        look(
            node("1", "find_plants", {"city": big, "limit": 3}, desc=big),
            node("2", "find_plants", {"city": big + "y", "limit": 3}, ["1"]),
            calls=[call("find_plants", {"city": big, "limit": 3}, big)],
            query=big,
        )
        assert time.process_time() - started < 5

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )

    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(
            st.fixed_dictionaries(
                {"id": st.sampled_from(["1", "2", "root", "response", "2_retry", ""]),
                 "name": st.sampled_from(["find_plants", "order_plant", "zzz", "", "root"]),
                 "para": json_values | st.dictionaries(
                     st.sampled_from(["city", "limit", "plant_id", "x"]), json_values),
                 "dep": json_values | st.lists(st.sampled_from(["1", "2", "root"]), max_size=3),
                 "status": st.booleans(), "desc": st.text(max_size=60)}
            ),
            max_size=5,
        ),
        st.text(max_size=80),
    )  # fmt: skip
    def test_no_input_crashes_it(self, tasks, result):
        plan = Plan.parse({"tasks": tasks})
        seen = match_calls(plan, parse_calls([call("find_plants", None, result)]))
        for finding in findings_of(plan, parse_tools(TOOLS), seen, query=result):
            assert finding.message
            json.dumps(finding.data())


class TestCommand:
    def test_one_object_a_line(self):
        path = str(DATA / "sample_level1.jsonl")
        result = CliRunner().invoke(cli, ["check", path, "--json"])
        assert result.exit_code == 0
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(rows) == 23
        assert rows[0]["id"] == "1"
        assert rows[0]["tags"] == ["Parameter_Error"]
        assert rows[0]["s5"] == 1
        assert rows[2]["s5"] == 0
        assert rows[2]["fault"].startswith("a cycle")
        assert "Parameter_Error" in [f["error_type"] for f in rows[0]["findings"]]
        assert result.stderr.startswith("23 instances, ")

    def test_for_people(self):
        result = CliRunner().invoke(cli, ["check", str(DATA / "sample_level2.jsonl")])
        assert (
            "201 (query 8201) LEVEL-2 labelled Parameter_Error, Parallelism_Error" in result.stdout
        )
        assert result.stdout.splitlines()[-1].startswith("11 instances, ")

    def test_rejects_go_to_stderr_and_strict_exits_1(self, tmp_path):
        path = tmp_path / "bad.jsonl"
        first = (DATA / "sample_level1.jsonl").read_text(encoding="utf-8").splitlines()[0]
        path.write_text(first + '\n{"id": 3, "plan"\n', encoding="utf-8")
        result = CliRunner().invoke(cli, ["check", str(path), "--json"])
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == 1
        assert "bad.jsonl, line 2" in result.stderr
        assert CliRunner().invoke(cli, ["check", str(path), "--strict"]).exit_code == 1

    def test_control_characters_are_written_out(self, tmp_path):
        path = tmp_path / "evil.jsonl"
        plan = {"tasks": [node("1", "find\x1b[31m", {})]}
        row = {"id": "\x1b[2J", "query_id": "1", "query": "q", "plan": plan, "tag": "",
               "tool_list": TOOLS, "fun_call": []}  # fmt: skip
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
        result = CliRunner().invoke(cli, ["check", str(path)])
        assert "\x1b" not in result.stdout
        assert "\\x1b[31m" in result.stdout

    def test_a_file_without_an_instance_is_refused(self, tmp_path):
        path = tmp_path / "list.jsonl"
        path.write_text('{"milk": 1}\n', encoding="utf-8")
        result = CliRunner().invoke(cli, ["check", str(path)])
        assert "list.jsonl: got no instance" in str(result.exception)

    def test_no_file(self):
        result = CliRunner().invoke(cli, ["check", "/no/such/file"])
        assert result.exit_code != 0


SEVEN = {"Parameter_Error", "Parameter_Missing", "Type_Error", "Tool_name_Error", "Null_Error",
         "Timeout_Error", "Dependence_Null"}  # fmt: skip


@pytest.mark.skipif(not REAL.is_dir(), reason="the published records are not here")
def test_published_records():
    found = [
        item.content
        for path in sorted(REAL.glob("*.jsonl"))
        for item in read(path)
        if isinstance(item.content, Instance)
    ]
    assert found
    hits, total = 0, 0
    for instance in found:
        types = {f.error_type.value for f in instance_findings(instance) if f.error_type}
        total += len(SEVEN & set(instance.tags))
        hits += len(SEVEN & set(instance.tags) & types)
    assert hits >= 0.75 * total
