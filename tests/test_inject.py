import re
from functools import cache

import pytest

from pararecover_core.agents.builtin import Ignore
from pararecover_core.execute import run
from pararecover_core.generate import Mix, generate
from pararecover_core.inject import (
    INJECTORS,
    RETURNS,
    Scene,
    State,
    course,
    inject,
    make_instance,
    start,
)
from pararecover_core.inject.call_errors import twins
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE
from pararecover_core.records import Instance, Source
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.compose import Recipe, Shape, compose
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.sandbox.registry import tools
from pararecover_core.taxonomy import ErrorType

EACH = 6
"""Instances of each type and level."""


@cache
def instances(level):
    made = generate(level=level, count=EACH * len(ErrorType), seed="inject", mix=Mix.UNIFORM)
    return tuple(made)


def of_type(error_type, level=1):
    return [i for i in instances(level) if error_type.value in i.tags]


def truth(instance):
    made = instance.extra["sandbox"]["task"]
    recipe = Recipe(made["seed"], made["shape"] and Shape(made["shape"]), made["depth"])
    return recipe.task()


def unrepaired(plan, observations):
    """Run on by an agent that repairs nothing: failed calls, T, calls, right facts reached."""
    environment = SandboxEnvironment(plan)
    environment.learn(observations)
    begin = Instance("", "", "", 0, Source.SANDBOX, "", (), plan, observations)
    trajectory = run(begin, Ignore(), environment)
    behind = trajectory.rounds[-1].plan.ancestors(RESPONSE)
    results = {}
    for each in trajectory.rounds:
        for seen in each.observations:
            results[seen.node] = (seen.name, seen.result)
    for node in plan.nodes:
        if node.done and node.calls_tool:
            results[node.id] = (node.name, node.description.partition("Execution result: ")[2])
    failed = sum(result_state(text) is not ResultState.OK for _, text in results.values())
    answer = {results[node] for node in behind if node in results}
    return failed, trajectory.extra["rounds"], trajectory.extra["calls"], answer


def holds_goals(instance, answer):
    """Whether an answer holds what the instance says a right one holds."""
    return {(tool, dumps(value)) for tool, value in instance.extra["sandbox"]["goals"]} <= answer


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("error_type", list(ErrorType))
def test_an_error_that_nobody_repairs_costs_something(error_type, level):
    found = of_type(error_type, level)
    assert len(found) >= EACH
    for instance in found:
        task = truth(instance)
        assert (task.rounds, task.calls) == (instance.round_gt, instance.funcall_times_gt)
        failed, rounds, calls, answer = unrepaired(task.plan(), ())
        assert (failed, rounds, calls) == (0, task.rounds, task.calls)
        after = unrepaired(instance.plan, instance.observations)
        worse = (
            after[0] > 0
            or after[1] > rounds
            or after[2] > calls
            or not holds_goals(instance, after[3])
        )
        assert worse, (instance.id, instance.error_reason)
        assert holds_goals(instance, answer)


def injection(instance):
    (made,) = instance.extra["sandbox"]["injections"]
    return made


def before(instance):
    """The right node, in the faulty node's place."""
    return truth(instance).plan().by_id.get(injection(instance)["node"])


def test_every_level_1_instance_says_what_and_where():
    for instance in instances(1):
        made = injection(instance)
        assert instance.tags == (made["error_type"],)
        assert instance.error_reason == made["reason"]
        assert made["reason"].endswith(".")
        assert made["node"] in made["reason"]
        assert made["change"]
        assert instance.plan.s5 == 1
        assert made["round"] == instance.plan.executed_rounds() + 1


def test_level_2_errors_stand_in_two_or_three_rounds_in_order():
    sizes = set()
    for instance in instances(2):
        made = instance.extra["sandbox"]["injections"]
        rounds = [each["round"] for each in made]
        assert rounds == list(range(rounds[0], rounds[0] + len(rounds)))
        assert instance.tags == tuple(each["error_type"] for each in made)
        sizes.add(len(rounds))
    assert sizes == {2, 3}


def faulty(instance):
    return instance.plan.by_id[injection(instance)["node"]]


@pytest.mark.parametrize(
    "error_type", [ErrorType.TOOL_SELECT_ERROR, ErrorType.NULL_ERROR, ErrorType.TIMEOUT_ERROR]
)
def test_what_leaves_the_answer_right_is_no_error(error_type):
    """Some wrong calls give what the right one gives, or what shows in nothing that is asked."""
    made = 0
    for number in range(160):
        task = compose(f"right/{number}", shape=Shape.PARALLEL)
        instance = make_instance(task, [error_type], seed="right", number=number, query_id="1")
        if instance is None:
            continue
        made += 1
        failed, rounds, _, answer = unrepaired(instance.plan, instance.observations)
        right = holds_goals(instance, answer)
        lost = error_type in RETURNS
        assert not right or (not lost and (failed or rounds > task.rounds)), instance.query
    assert made > 60


FAIL = {
    *("Parameter_Error", "Parameter_Missing", "Parameter_Invalid", "Type_Error"),
    *("Tool_name_Error", "Dependence_Error", "Dependence_Null", "Parallelism_Error"),
}
"""Errors that fail the call of their node."""


def test_errors_of_one_instance_stand_in_nodes_of_their_own_and_none_heals_another():
    found = generate(level=2, count=150, seed="own nodes", mix=Mix.UNIFORM)
    for instance in found:
        errors = instance.extra["sandbox"]["injections"]
        nodes = [each["node"] for each in errors]
        assert len(set(nodes)) == len(nodes), (instance.id, nodes)
        environment = SandboxEnvironment(instance.plan)
        environment.learn(instance.observations)
        trajectory = run(instance, Ignore(), environment)
        given = {c.node: c.result for each in trajectory.rounds for c in each.observations}
        for node in instance.plan.nodes:
            if node.done:
                given.setdefault(node.id, node.description.partition("Execution result: ")[2])
        for each in errors:
            if each["error_type"] in FAIL and each["node"] in given:
                assert result_state(given[each["node"]]) is not ResultState.OK, (instance.id, each)


def test_a_wrong_dependency_names_another_node():
    for instance in of_type(ErrorType.DEPENDENCE_ERROR):
        was, now = set(before(instance).dependencies), set(faulty(instance).dependencies)
        (gone,), (new,) = was - now, now - was
        assert f'"${gone}.' in str(faulty(instance).parameters.named).replace("'", '"')
        assert new not in ("root", gone)


def test_missing_dependencies_are_all_missing():
    for instance in of_type(ErrorType.DEPENDENCE_NULL):
        assert faulty(instance).dependencies == ()
        assert before(instance).dependencies not in ((), ("root",))


def test_wrongly_parallel_nodes_could_run_in_one_round():
    for instance in of_type(ErrorType.PARALLELISM_ERROR):
        (gone,) = set(before(instance).dependencies) - set(faulty(instance).dependencies)
        layers = instance.plan.layers
        assert layers[faulty(instance).id] <= layers[gone]


def test_wrongly_serial_nodes_need_nothing_of_each_other():
    for instance in of_type(ErrorType.SERIAL_ERROR):
        (new,) = set(faulty(instance).dependencies) - set(before(instance).dependencies)
        assert f"${new}." not in str(faulty(instance).parameters.named)
        assert instance.plan.layers["response"] > instance.round_gt


def test_a_wrong_parameter_name_is_not_defined_and_the_value_stays():
    for instance in of_type(ErrorType.PARAMETER_ERROR):
        wrong = injection(instance)["parameter"]
        tool = tools()[faulty(instance).name]
        assert wrong not in tool.inputs
        right = set(before(instance).parameters.named) - set(faulty(instance).parameters.named)
        assert (
            faulty(instance).parameters.named[wrong]
            == before(instance).parameters.named[right.pop()]
        )


def test_an_invalid_value_has_the_right_type():
    for instance in of_type(ErrorType.PARAMETER_INVALID):
        made = injection(instance)
        kind = tools()[faulty(instance).name].inputs[made["parameter"]].kind
        value = faulty(instance).parameters.named[made["parameter"]]
        types = {"string": str, "number": (int, float), "array": list}
        assert isinstance(value, types[kind.json_type])
        assert kind.check(value)


def test_a_missing_parameter_is_required():
    for instance in of_type(ErrorType.PARAMETER_MISSING):
        gone = injection(instance)["parameter"]
        assert gone in tools()[faulty(instance).name].required
        assert gone not in faulty(instance).parameters.named


def test_a_wrong_type_is_another_json_type():
    for instance in of_type(ErrorType.TYPE_ERROR):
        made = injection(instance)
        kind = tools()[faulty(instance).name].inputs[made["parameter"]].kind
        value = faulty(instance).parameters.named[made["parameter"]]
        names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
        assert names[type(value)] != kind.json_type


def test_lost_returns_are_lost_in_the_last_round():
    for error_type, state in (
        (ErrorType.NULL_ERROR, ResultState.EMPTY),
        (ErrorType.TIMEOUT_ERROR, ResultState.TIMEOUT),
    ):
        for instance in of_type(error_type):
            (seen,) = [o for o in instance.observations if o.node == injection(instance)["node"]]
            assert result_state(seen.result) is state


def test_a_wrong_tool_name_is_not_listed_and_close_to_one():
    for instance in of_type(ErrorType.TOOL_NAME_ERROR):
        listed = {tool.name for tool in instance.tools}
        assert faulty(instance).name not in listed
        assert faulty(instance).name not in tools()
        assert before(instance).name in listed


def test_a_wrong_tool_is_listed_beside_the_right_one_and_takes_the_same_kinds():
    for instance in of_type(ErrorType.TOOL_SELECT_ERROR):
        listed = {tool.name for tool in instance.tools}
        wrong, right = faulty(instance).name, before(instance).name
        assert {wrong, right} <= listed
        assert wrong in twins(right)


def test_a_missing_call_is_missing_and_listed():
    for instance in of_type(ErrorType.TOOLCALL_MISSING):
        gone = injection(instance)["node"]
        assert gone not in instance.plan.by_id
        assert before(instance).name in {tool.name for tool in instance.tools}


def test_a_needless_call_repeats_another_one():
    for instance in of_type(ErrorType.TOOLCALL_REDUNDANCY):
        extra, others = faulty(instance), instance.plan.nodes
        assert any(
            n.id != extra.id and (n.name, n.parameters) == (extra.name, extra.parameters)
            for n in others
        )


def test_twins_are_near():
    assert twins("search_hotels")[0] == "search_hostels"
    assert twins("search_film")[0] == "search_cinema"
    assert "subtract_amounts" in twins("add_amounts")


def test_an_injector_keeps_away_from_calls_that_fail_anyway():
    task = compose("doomed", shape=Shape.PARALLEL_THEN_SEQUENCE, depth=3)
    state = start(task)
    doomed = {n.id for n in state.plan.nodes}
    scene = Scene(state.plan, task, doomed)
    plan_only = [kind for kind in ErrorType if kind not in RETURNS]
    plan_only.remove(ErrorType.SERIAL_ERROR)  # it costs a round, whatever fails
    for error_type in plan_only:
        assert INJECTORS[error_type](scene, Draw("none")) is None, error_type


def test_no_error_where_a_task_has_no_place_for_it():
    # one chain: no two nodes could run in parallel, so none can be serialised by mistake
    task = compose("chain", shape=Shape.SEQUENCE)
    assert inject(start(task), ErrorType.SERIAL_ERROR, task, Draw("x")) is None


def test_the_course_is_what_an_agent_that_only_goes_on_would_run():
    for instance in [*instances(1)[:40], *instances(2)[:40]]:
        made = course(start(truth(instance)))
        assert (made.failed, made.calls, made.reached) == ((), instance.funcall_times_gt, True)
        assert made.rounds == instance.round_gt - 1
        environment = SandboxEnvironment(instance.plan)
        environment.learn(instance.observations)
        trajectory = run(instance, Ignore(), environment)
        done = instance.plan.executed_rounds() + 1
        faulty_course = course(State(instance.plan, instance.observations, done))
        assert faulty_course.rounds + done == trajectory.extra["rounds"]
        assert faulty_course.calls == trajectory.extra["calls"]
        assert faulty_course.reached == trajectory.success


def test_reasons_are_plain_sentences():
    for instance in [*instances(1), *instances(2)]:
        for made in instance.extra["sandbox"]["injections"]:
            assert re.match(r"Node \d+ \(\w[\w-]*\): ", made["reason"]), made["reason"]
