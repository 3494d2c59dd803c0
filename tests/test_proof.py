"""Faults that were read off a run are proven by the run without them."""

from functools import cache

import pytest

from pararecover_core.agents.choose import task_of
from pararecover_core.generate import Mix, generate
from pararecover_core.inject import State, course, observe, start
from pararecover_core.literals import dumps
from pararecover_core.plan import Plan
from pararecover_core.proof import is_real, without
from pararecover_core.sandbox.compose import Shape, compose
from pararecover_core.taxonomy import ErrorType
from pararecover_core.truth import Fault, faults


@cache
def instances():
    return tuple(generate(level=1, count=84, seed="proof", mix=Mix.UNIFORM))


@pytest.mark.parametrize("error_type", list(ErrorType))
def test_an_instance_without_its_one_fault_runs_as_the_optimal_plan(error_type):
    found = [each for each in instances() if each.tags == (error_type.value,)]
    assert len(found) == 6
    for each in found:
        task, told = task_of(each), each.extra["sandbox"]["injections"][0]
        behind = each.plan.executed_rounds()
        state = State(each.plan, each.observations, behind + 1)
        fault = Fault(error_type, told["node"], told["parameter"], "")
        assert is_real(task, state, fault)
        mended = course(without(task, state, fault))
        assert mended.failed == ()
        assert mended.rounds + behind + 1 == task.rounds
        assert mended.calls == task.calls
        assert mended.answer == {dumps([task.steps[g].tool, task.results[g]]) for g in task.goals}


def with_dependency(task, node, dependency):
    tasks = [dict(each.given) for each in task.plan().nodes]
    for each in tasks:
        if each["id"] == node:
            each["dep"] = [dependency]
    return Plan.parse({"tasks": tasks})


def test_waiting_that_costs_no_round_is_not_real():
    """A short branch that starts late still ends before the long one."""
    task = next(
        made
        for number in range(200)
        if (made := compose(f"late/{number}", shape=Shape.PARALLEL)).layers.count(1) > 1
        and 0 in made.goals  # the first call is a branch of its own
        and max(made.layers) >= 3
    )
    first = str(1 + next(i for i, layer in enumerate(task.layers) if layer == 1 and i))
    last = str(1 + task.layers.index(max(task.layers)))
    fault = Fault(ErrorType.SERIAL_ERROR, "1", "", "")
    for waits_for, real in ((first, False), (last, True)):
        plan = with_dependency(task, "1", waits_for)
        assert [f.error_type for f in faults(task, plan, ())] == [ErrorType.SERIAL_ERROR]
        assert is_real(task, State(plan, observe(plan, {}), 1), fault) is real


def test_a_node_that_lost_a_value_still_needs_what_it_waits_for():
    task = compose("lost value", shape=Shape.SEQUENCE, depth=3)
    tasks = [dict(each.given) for each in task.plan().nodes]
    tasks[2] = {**tasks[2], "para": {}}  # the second call; it uses the first one's output
    plan = Plan.parse({"tasks": tasks})
    assert {f.error_type for f in faults(task, plan, ())} == {ErrorType.PARAMETER_MISSING}
    missing = Plan.parse(
        {"tasks": [each for each in task.plan().given["tasks"] if each["id"] != "2"]}
    )
    tasks = [dict(each.given) for each in missing.nodes]
    for each in tasks:
        each["dep"] = ["1" if dep == "2" else dep for dep in each["dep"]]
    found = {f.error_type for f in faults(task, Plan.parse({"tasks": tasks}), ())}
    assert found == {ErrorType.TOOLCALL_MISSING}


@pytest.mark.parametrize("level", [1, 2])
def test_labels_of_rollouts_are_faults_that_cost(level):
    for each in generate(level=level, count=30, seed="proof", rollouts=1.0):
        task, last = task_of(each), each.extra["sandbox"]["injections"][-1]
        state = State(each.plan, each.observations, last["round"])
        fault = Fault(ErrorType(last["error_type"]), last["node"], last["parameter"], "")
        assert is_real(task, state, fault), each.error_reason
        clean, now = course(start(task)), course(state)
        assert now._replace(rounds=now.rounds + state.round - 1).is_worse_than(clean)
