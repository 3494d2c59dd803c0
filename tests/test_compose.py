import re
from functools import cache

import pytest

from pararecover_core.plan import Plan
from pararecover_core.sandbox.compose import MAX_CALLS, MAX_DEPTH, MAX_WIDTH, Recipe, Shape, compose
from pararecover_core.sandbox.environment import SandboxEnvironment
from pararecover_core.sandbox.registry import call, tools
from pararecover_core.sandbox.steps import Link
from tests.sandbox_data import legal_call

COUNT = 1_000


@cache
def tasks():
    return [compose(f"test {number}") for number in range(COUNT)]


def test_sizes_stay_within_limits_and_all_shapes_occur():
    for task in tasks():
        assert 2 <= task.calls <= MAX_CALLS
        assert max(task.layers) <= MAX_DEPTH
        assert task.width <= MAX_WIDTH
    assert {task.shape for task in tasks()} == set(Shape)
    assert {task.calls for task in tasks()} == set(range(2, MAX_CALLS + 1))
    assert max(max(task.layers) for task in tasks()) == MAX_DEPTH
    assert max(task.width for task in tasks()) == MAX_WIDTH


def test_the_optimal_plan_runs_and_gives_the_results():
    for task in tasks()[:200]:
        plan, environment = task.plan(), SandboxEnvironment(task.plan())
        assert plan.s5 == 1
        for layer in range(1, max(task.layers) + 1):
            ids = [str(i + 1) for i, at in enumerate(task.layers) if at == layer]
            environment.observe(plan, ids)
        for index, result in enumerate(task.results):
            assert environment.values[str(index + 1)] == result


def test_no_plan_with_fewer_rounds_gets_the_data_it_needs():
    """Run every node beside each node it needs: the call fails; so the longest chain is needed."""
    for task in tasks():
        plan = task.plan()
        chain = []
        for index, step in enumerate(task.steps):
            chain.append(1 + max((chain[needed] for needed in step.needs), default=0))
            for needed in step.needs:
                others = [str(i + 1) for i in step.needs if i != needed]
                environment = SandboxEnvironment(plan)
                for other in others:
                    environment.values[other] = task.results[int(other) - 1]
                seen = environment.observe(plan, [str(needed + 1), str(index + 1)])
                assert seen[1].result.startswith("Error: $")
        assert max(chain) == task.rounds - 1
        assert plan.layers["response"] == task.rounds


def literals(task):
    for step in task.steps:
        for name, value in step.arguments.items():
            kind = tools()[step.tool].inputs[name].kind
            if not isinstance(value, Link):
                yield kind.say(value)


def test_the_query_holds_every_literal_value():
    for task in tasks():
        for said in literals(task):
            assert re.search(rf"(?<!\w){re.escape(said)}(?!\w)", task.query), (said, task.query)


def test_no_linked_value_stands_in_the_query():
    for task in tasks():
        words = re.findall(r"[\w.:\-]*\w", task.query)
        for step in task.steps:
            for value in step.arguments.values():
                if isinstance(value, Link):
                    made = task.results[value.step][value.field]
                    if isinstance(made, int | float):
                        assert f"{made:g}" not in words
                    else:
                        assert str(made) not in task.query


def test_linked_values_have_the_kind_that_is_asked_for():
    for task in tasks()[:200]:
        for step in task.steps:
            for name, value in step.arguments.items():
                if isinstance(value, Link):
                    made = tools()[task.steps[value.step].tool].outputs[value.field]
                    assert made.name == tools()[step.tool].inputs[name].kind.name


def test_goals_are_what_nothing_else_uses():
    for task in tasks()[:200]:
        used = {needed for step in task.steps for needed in step.needs}
        assert task.goals == tuple(i for i in range(task.calls) if i not in used)
        assert set(task.plan().by_id["response"].dependencies) == {str(g + 1) for g in task.goals}


def test_tools_are_listed_with_distractors_and_unique():
    for task in tasks()[:200]:
        needed = {step.tool for step in task.steps}
        assert needed < set(task.tools)
        assert len(set(task.tools)) == len(task.tools) == len(needed) + 4


def test_two_thousand_seeds_give_two_thousand_tasks():
    made = {str(compose(f"distinct {number}").steps) for number in range(2_000)}
    assert len(made) == 2_000


def test_a_recipe_gives_the_same_task_again():
    recipe = Recipe("again", Shape.PARALLEL, depth=3)
    one, other = recipe.task(), recipe.task()
    assert one == other
    assert one.recipe == recipe
    assert one.shape is Shape.PARALLEL
    assert max(one.layers) >= 3


def test_a_query_reads_like_sentences():
    for task in tasks():
        assert "  " not in task.query
        assert "{" not in task.query
        assert "_" not in re.sub(r"\S*@\S*|\S+\.\w{2,4}\b", "", task.query)
        assert not re.search(r"\ba [aeio]", task.query)
        assert task.query.endswith(".")
        assert not re.search(r"\b(\w+ \w+) of the \1\b", task.query)


def test_two_results_of_one_name_are_told_apart():
    """Where two steps give the same thing and a third uses one, its words say which."""
    checked = 0
    for task in tasks():
        plan = task.plan()
        for index, step in enumerate(task.steps):
            for value in step.arguments.values():
                if not isinstance(value, Link):
                    continue
                kind = tools()[task.steps[value.step].tool].outputs[value.field]
                makes = tools()[task.steps[value.step].tool].makes
                same = [
                    i
                    for i, s in enumerate(task.steps)
                    if tools()[s.tool].makes == makes
                    and any(k.names_a_thing for k in tools()[s.tool].outputs.values())
                ]
                if kind.names_a_thing and len(same) == 2:
                    ordinal = "first" if same[0] == value.step else "second"
                    description = plan.by_id[str(index + 1)].description
                    assert f"the {ordinal} {makes.removeprefix('the ')}" in description
                    checked += 1
    assert checked > 20


@pytest.mark.parametrize("shape", list(Shape))
def test_a_shape_can_be_asked_for(shape):
    task = compose("shape", shape=shape)
    assert task.shape is shape
    if shape is Shape.SEQUENCE:
        assert task.width == 1


def test_a_step_in_words_names_what_it_uses():
    # a hotel, its details by id: "the hotel"; the nightly rate is a part of it
    task = next(t for t in tasks() if any(s.tool == "get_hotel_details" for s in t.steps))
    plan: Plan = task.plan()
    step = next(n for n in plan.nodes if n.name == "get_hotel_details")
    assert re.fullmatch(r"Get the details of the (\w+ )?hotel\.", step.description)


def test_a_made_up_identifier_is_refused():
    given, _ = legal_call(tools()["get_hotel_details"])
    wrong = given["hotel_id"][:-1] + "?"
    assert call("get_hotel_details", {"hotel_id": wrong}).value is None
