import inspect

import pytest

from pararecover_core.findings import findings_of
from pararecover_core.literals import loads
from pararecover_core.plan import Plan
from pararecover_core.records import ToolCall
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.draw_values import Draw, is_id
from pararecover_core.sandbox.environment import SandboxEnvironment, result_value, with_result
from pararecover_core.sandbox.kinds import CITY, DATE, EMAIL, list_kind
from pararecover_core.sandbox.registry import call, tool, tools, value_fault
from pararecover_core.taxonomy import ErrorType
from tests.sandbox_data import legal_call

ALL = sorted(tools().values(), key=lambda each: each.name)
named = pytest.mark.parametrize("made", ALL, ids=lambda each: each.name)
JSON_TYPES = {"string": str, "number": (int, float), "boolean": bool, "array": list}


def test_at_least_fifteen_domains_and_120_tools():
    assert len({made.domain for made in ALL}) >= 15
    assert len(ALL) >= 120


@named
def test_the_schema_comes_from_the_signature(made):
    schema = made.schema()
    signature = inspect.signature(made.function).parameters
    assert list(schema["parameters"]) == list(signature)
    assert schema["required"] == [n for n, p in signature.items() if p.default is p.empty]
    assert schema["description"]
    for parameter in schema["parameters"].values():
        assert parameter["type"] in JSON_TYPES
        assert parameter["description"]


@named
def test_a_legal_call_gives_json_of_the_declared_fields(made):
    given, outcome = legal_call(made)
    value = loads(outcome.text)
    assert list(value) == list(made.outputs)
    assert value == outcome.value
    for field, kind in made.outputs.items():
        assert isinstance(value[field], JSON_TYPES[kind.json_type]), field
        assert kind.check(value[field]) == "", (field, value[field])
    assert result_state(outcome.text) is ResultState.OK
    assert call(made.name, given).text == outcome.text  # pure, or on a seeded world


def finding_types(made, name, given, text):
    plan = Plan.parse(
        {"tasks": [
            {"id": "root", "name": "", "para": {}, "desc": "", "dep": [], "status": True},
            {"id": "1", "name": name, "para": given, "desc": "", "dep": ["root"], "status": False},
            {"id": "response", "name": "", "para": {}, "desc": "", "dep": ["1"], "status": False},
        ]}
    )  # fmt: skip
    seen = (ToolCall(name, given, text, "1"),)
    return {f.error_type for f in findings_of(plan, (made.record(),), seen)}


@named
def test_every_illegal_call_says_what_is_wrong_to_programs_and_people(made):
    given, _ = legal_call(made)
    first = next(iter(given))
    wrong = {"x": 1} if made.inputs[first].kind.json_type != "object" else "text"
    cases = {
        ErrorType.PARAMETER_ERROR: {**given, f"{first}_x": given[first]},
        ErrorType.PARAMETER_MISSING: {k: v for k, v in given.items() if k != first},
        ErrorType.TYPE_ERROR: {**given, first: wrong},
    }
    for kind, arguments in cases.items():
        text = call(made.name, arguments).text
        assert text.startswith("Error: ")
        assert first in text
        assert result_state(text) is ResultState.ERROR
        assert kind in finding_types(made, made.name, arguments, text)


@named
def test_an_unknown_tool_is_answered_with_the_nearest_name(made):
    wrong = f"{made.name}_tool"
    given, _ = legal_call(made)
    text = call(wrong, given).text
    assert text == f"Error: unknown tool '{wrong}'. Did you mean '{made.name}'?"
    assert ErrorType.TOOL_NAME_ERROR in finding_types(made, wrong, given, text)


BAD = {
    "city": "Atlantis",
    "date": "2026-02-30",
    "time": "25:61",
    "email": "someone(at)example",
    "money": -3,
    "flight_id": "FL-00000A",
}


@pytest.mark.parametrize(("kind", "value"), BAD.items())
def test_an_invalid_value_names_itself_and_what_was_expected(kind, value):
    made = next(t for t in ALL if any(i.kind.name == kind for i in t.inputs.values()))
    given, _ = legal_call(made)
    name = next(n for n, i in made.inputs.items() if i.kind.name == kind)
    text = call(made.name, {**given, name: value}).text
    assert text.startswith(f"Error: invalid value {loads_back(value)} for parameter '{name}'")
    assert "expected" in text
    assert result_state(text) is ResultState.ERROR
    found = finding_types(made, made.name, {**given, name: value}, text)
    assert ErrorType.PARAMETER_INVALID in found


def loads_back(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_what_is_not_there_is_said_in_a_sentence():
    text = call("search_flights", {"origin": "Oslo", "destination": "Oslo", "date": "2026-05-01"})
    assert text.text == "Error: no flight goes from Oslo to itself."
    assert result_state(text.text) is ResultState.ERROR


def test_values_without_names_are_refused():
    assert call("add_amounts", [1, 2]).text == (
        "Error: add_amounts takes named parameters: first, second."
    )


def test_a_true_is_no_number():
    assert "must be number, got boolean" in call("add_amounts", {"first": True, "second": 2}).text


def test_lists_are_checked_to_their_items():
    assert list_kind("s", "the s", float).check([1, 2.5]) == ""
    assert list_kind("s", "the s", float).check([[1]]) == "a list of numbers that is not empty"
    assert list_kind("s", "the s", str).check([]) == "a list of texts that is not empty"


def test_kinds_know_their_values():
    assert CITY.check("Oslo") == ""
    assert DATE.check("2026/01/02") == "a date as YYYY-MM-DD"
    assert EMAIL.check("a@b.org") == ""


def test_an_identifier_carries_its_own_check():
    made = Draw("x").id("FL")
    assert is_id("FL", made)
    assert not is_id("HT", made)
    assert not is_id("FL", made[:-1] + ("A" if made[-1] != "A" else "B"))


def test_a_tool_must_be_typed_described_and_asked_for():
    with pytest.raises(TypeError, match="does not describe amount"):

        @tool("do {amount}", makes="x")
        def undescribed(amount: float) -> dict:
            """Do."""

    with pytest.raises(TypeError, match="has no kind"):

        @tool("do {amount}", makes="x")
        def untyped(amount: float) -> dict:
            """Do.

            Args:
                amount: Amount.
            """


def test_value_fault_of_a_single_value():
    made = tools()["add_amounts"]
    assert value_fault(made, "first", 3) == ""
    assert value_fault(made, "first", "3") == (
        "parameter 'first' of add_amounts must be number, got string."
    )


def plan_of(*tasks):
    root = {"id": "root", "name": "", "para": {}, "desc": "", "dep": [], "status": True}
    return Plan.parse({"tasks": [root, *tasks]})


def node(node_id, name, para, dep=("root",), *, status=False, desc="Do it."):
    return {"id": node_id, "name": name, "para": para, "desc": desc, "dep": list(dep),
            "status": status}  # fmt: skip


def test_calls_of_a_round_run_on_what_was_known_before_it():
    plan = plan_of(
        node("1", "add_amounts", {"first": 1, "second": 2}),
        node("2", "add_amounts", {"first": "$1.total_amount", "second": 2}),
    )
    first, second = SandboxEnvironment(plan).observe(plan, ["1", "2"])
    assert first.result == '{"total_amount":3}'
    assert second.result == (
        "Error: $1.total_amount refers to a result that is not there: "
        "node 1 has not been executed or has failed."
    )


def test_noted_results_are_known_from_the_start():
    done = node("1", "add_amounts", {}, status=True, desc=with_result("Add.", '{"total_amount":3}'))
    plan = plan_of(done, node("2", "add_amounts", {"first": "$1", "second": 2}, ["1"]))
    (seen,) = SandboxEnvironment(plan).observe(plan, ["2"])
    assert seen.arguments == {"first": 3, "second": 2}
    assert seen.result == '{"total_amount":5}'


def test_a_field_that_is_not_there_is_named():
    done = node("1", "add_amounts", {}, status=True, desc=with_result("Add.", '{"total_amount":3}'))
    plan = plan_of(done, node("2", "add_amounts", {"first": "$1.sum", "second": 2}, ["1"]))
    (seen,) = SandboxEnvironment(plan).observe(plan, ["2"])
    assert "refers to a field that node 1 does not have" in seen.result


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "Error: no", '{"error": "timeout"}', "{"])
def test_only_a_good_result_has_a_value(text):
    assert result_value(text) is None
