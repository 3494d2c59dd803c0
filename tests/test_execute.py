from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from importlib.util import find_spec
from multiprocessing import get_context

import msgspec
import pytest

from pararecover_core.agents.advance import advanced
from pararecover_core.agents.choose import agent_for
from pararecover_core.errors import InputError
from pararecover_core.execute import (
    AgentError,
    OutcomeKind,
    Reply,
    edited_executed,
    replan,
    run,
)
from pararecover_core.generate import generate
from pararecover_core.parallel import ordered
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source, ToolCall, from_data, to_data
from pararecover_core.replay import NOT_RECORDED, ReplayEnvironment
from pararecover_core.runs import (
    ENVIRONMENTS,
    EnvironmentKind,
    Failed,
    Job,
    goals_of,
    measured,
    replan_many,
    run_many,
    sandbox_for,
)
from pararecover_core.sandbox.environment import with_result


def node(node_id, name, para, dep, *, status=False, desc="Do it."):
    return {"id": node_id, "name": name, "para": para, "desc": desc, "dep": dep, "status": status}


def two_steps(*, second_dep=("1",)):
    return Plan.parse(
        {"tasks": [
            node("root", "", {}, [], status=True),
            node("1", "add_amounts", {"first": 1, "second": 2}, ["root"]),
            node("2", "add_amounts", {"first": "$1.total_amount", "second": 2}, list(second_dep)),
            node("response", "", {}, ["2"]),
        ]}
    )  # fmt: skip


def instance(plan=None, seen=True, **fields):
    plan = plan or two_steps()
    calls = (ToolCall("add_amounts", {"first": 1, "second": 2}, '{"total_amount":3}', "1"),)
    from pararecover_core.sandbox.registry import tools

    given = {"round_gt": 3, "funcall_times_gt": 2, "tags": ("Null_Error",), **fields}
    return Instance(
        "k1", "1", "q1", 1, Source.SANDBOX, "Add up.", (tools()["add_amounts"].record(),), plan,
        calls if seen else (), **given,
    )  # fmt: skip


class Scripted:
    """Answers one thing after another; the last one again and again."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers = list(answers)

    def replan(self, view):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(view) if callable(answer) else answer


def go_on(view):
    return Reply("I go on.", advanced(view.plan, view.observations).given())


def ran(agent, start=None, **given):
    start = start or instance()
    return run(start, agent, sandbox_for(start), **given)


def test_a_run_by_hand():
    # round 1 was run before; round 2 runs node 2, round 3 the response: T = 3
    trajectory = ran(Scripted(go_on))
    assert trajectory.success
    assert trajectory.outcome == "response"
    assert trajectory.extra == {"rounds": 3, "calls": 2, "answers": 2, "invalid": 0}
    assert [o.result for r in trajectory.rounds for o in r.observations] == [
        '{"total_amount":3}',
        '{"total_amount":5}',
    ]
    assert trajectory.rounds[0].plan == two_steps()


def edits(view):
    draft = advanced(view.plan, view.observations)
    draft["1"]["para"] = {"first": 9, "second": 9}
    return Reply("Better so.", draft.given())


def drops(view):
    draft = advanced(view.plan, view.observations)
    draft.remove("1")
    draft["2"]["dep"] = ["root"]
    return Reply("Gone.", draft.given())


def cycle(view):
    return Reply("Round and round.", two_steps(second_dep=("response",)).given)


DEEP: list = []
for _ in range(2_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([go_on, edits], OutcomeKind.EDITED_EXECUTED),
        ([go_on, drops], OutcomeKind.EDITED_EXECUTED),
        ([Reply("?", "no plan at all")], OutcomeKind.UNPARSABLE),
        ([Reply("?", {"tasks": "none"})], OutcomeKind.UNPARSABLE),
        ([Reply("?", 17)], OutcomeKind.UNPARSABLE),
        ([Reply("?", {1, 2})], OutcomeKind.UNPARSABLE),
        ([Reply("?", DEEP)], OutcomeKind.UNPARSABLE),
        ([cycle], OutcomeKind.UNPARSABLE),
        ([Reply("", None)], OutcomeKind.NO_PLAN),
        ([Reply("", "")], OutcomeKind.NO_PLAN),
        ([Reply("", "x" * 10_000_000)], OutcomeKind.TOO_LONG),
        ([Reply("y" * 10_000_000, {"tasks": []})], OutcomeKind.TOO_LONG),
        ([AgentError("no answer")], OutcomeKind.AGENT_ERROR),
        ([ZeroDivisionError("oops")], OutcomeKind.AGENT_ERROR),
        ([None], OutcomeKind.AGENT_ERROR),
        (["text"], OutcomeKind.AGENT_ERROR),
        ([Reply(None, {})], OutcomeKind.AGENT_ERROR),
        ([Reply("?", {}, raw=5)], OutcomeKind.AGENT_ERROR),
        ([Reply("?", {}, usage=5)], OutcomeKind.AGENT_ERROR),
        ([SystemExit(3)], OutcomeKind.AGENT_ERROR),
    ],
)
def test_whatever_an_agent_does_ends_its_run_and_no_more(answers, outcome):
    trajectory = ran(Scripted(*answers))
    assert trajectory.outcome == outcome
    assert not trajectory.success
    if outcome is OutcomeKind.UNPARSABLE:
        assert trajectory.extra["invalid"] == 1
    assert measured(instance(), trajectory).extra["e5"] == 0.0
    written = to_data(trajectory)
    assert len(str(written)) < 100_000
    assert from_data(written).outcome == outcome


def test_a_broken_agent_is_quoted():
    assert ran(Scripted(ZeroDivisionError("oops"))).rounds[-1].thought == "ZeroDivisionError: oops"
    assert "gave NoneType" in ran(Scripted(None)).rounds[-1].thought


def test_a_plan_that_can_go_nowhere_is_stuck():
    def stuck(view):
        return Reply("Wait.", {"tasks": [node("root", "", {}, [], status=True)]})

    begin = instance(Plan.parse({"tasks": [node("root", "", {}, [], status=True)]}), seen=False)
    assert ran(Scripted(stuck), begin).outcome == OutcomeKind.STUCK


def test_a_run_ends_at_the_round_limit():
    def again(view):
        draft = advanced(view.plan, view.observations)
        new = draft.fresh_id("1", "more")
        last = view.observations[0].node if view.observations else "1"
        draft.insert(node(new, "add_amounts", {"first": 1, "second": 1}, [last]))
        draft["2"]["dep"] = [*draft["2"]["dep"], new]
        return Reply("Once more.", draft.given())

    trajectory = ran(Scripted(again), round_limit=7)
    assert trajectory.outcome == OutcomeKind.ROUND_LIMIT
    assert trajectory.extra["rounds"] == 7
    assert measured(instance(), trajectory, 7).extra["e5"] == 0.0


def test_a_run_can_be_cancelled_and_then_has_no_scores():
    asked = iter([False, True])
    trajectory = ran(Scripted(go_on), cancelled=lambda: next(asked))
    assert trajectory.outcome == OutcomeKind.CANCELLED
    extra = measured(instance(), trajectory).extra
    assert (extra["e5"], extra["correct"], extra["tool_use_efficiency"]) == (None, None, None)


def test_edited_executed_names_the_nodes():
    done = advanced(two_steps(), instance().observations)
    before = Plan.parse(done.given())
    done["1"]["status"] = False
    assert edited_executed(before, Plan.parse(done.given())) == ("1",)


def test_an_answer_that_was_given_before_comes_first():
    draft = advanced(two_steps(), instance().observations)
    draft["2"]["para"] = {"first": "$1.total_amount", "second": 40}
    first = Replan("r1", "k1", "other", "Forty.", Plan.parse(draft.given()))
    (trajectory,) = run_many([Job(instance(), partial(agent_for, "ignore"), first)], sandbox_for)
    assert trajectory.rounds[1].thought == "Forty."
    assert trajectory.rounds[1].observations[0].result == '{"total_amount":43}'
    assert trajectory.extra["replan"] == "r1"


def goal(value):
    return {"sandbox": {"goals": [["add_amounts", {"total_amount": value}]]}}


@pytest.mark.parametrize(("value", "right", "e5"), [(5, True, 1.0), (6, False, 0.0)])
def test_success_of_e5_is_a_right_answer_where_the_truth_is_known(value, right, e5):
    start = instance(extra=goal(value))
    extra = measured(start, ran(Scripted(go_on), start)).extra
    assert (extra["correct"], extra["e5"], extra["tool_use_efficiency"]) == (right, e5, e5)


def test_without_a_known_truth_reaching_the_response_counts():
    start = instance()
    assert goals_of(start) is None
    extra = measured(start, ran(Scripted(go_on), start)).extra
    assert (extra["correct"], extra["e5"]) == (None, 1.0)


def test_e5_of_a_run_with_one_round_too_many():
    # G = 3; a needless node between 1 and 2 makes T = 4: 3 / 4, calls 2 / 3
    def detour(view):
        draft = advanced(view.plan, view.observations)
        if "x" not in draft:
            draft.insert(node("x", "add_amounts", {"first": 7, "second": 7}, ["1"]))
            draft["2"]["dep"] = ["1", "x"]
        return Reply("A detour.", draft.given())

    start = instance(extra=goal(5))
    extra = measured(start, ran(Scripted(detour), start)).extra
    assert extra["rounds"] == 4
    assert extra["e5"] == 0.75
    assert extra["tool_use_efficiency"] == pytest.approx(2 / 3)


def test_an_unknown_optimum_leaves_e5_open():
    start = instance(round_gt=None, funcall_times_gt=None)
    extra = measured(start, ran(Scripted(go_on), start)).extra
    assert (extra["e5"], extra["tool_use_efficiency"]) == (None, None)


def test_replan_keeps_what_is_judged_and_refuses_what_cannot_be_kept():
    answer = replan(instance(), Scripted(go_on))
    assert (answer.agent, answer.thought, answer.plan.s5) == ("scripted", "I go on.", 1)
    with pytest.raises(AgentError, match="longer than 2,000,000 characters"):
        replan(instance(), Scripted(Reply("x" * 3_000_000, {})))
    with pytest.raises(AgentError, match="nested deeper"):
        replan(instance(), Scripted(Reply("", DEEP)))


def test_an_agent_without_an_answer_is_listed_and_the_others_go_on():
    def make(start):
        return Scripted(AgentError("quota") if start.id == "1" else go_on)

    other = msgspec.structs.replace(instance(), key="k2", id="2")
    one, two = replan_many([Job(instance(), make), Job(other, make)])
    assert isinstance(one, Failed)
    assert one.reason == "quota"
    assert two.instance == "k2"


def test_the_sandbox_refuses_tools_that_it_does_not_have():
    foreign = msgspec.structs.replace(instance(), tools=())
    with pytest.raises(InputError, match="none of the sandbox's tools"):
        sandbox_for(foreign)


# --- replay ---------------------------------------------------------------------------------------


def test_replay_gives_what_was_observed_and_says_what_was_not():
    start = instance()
    environment = ENVIRONMENTS[EnvironmentKind.REPLAY](start)
    one, two = environment.observe(start.plan, ["1", "2"])
    assert one.result == '{"total_amount":3}'
    assert two.result == (
        NOT_RECORDED + ': add_amounts with {"first":"$1.total_amount","second":2}.'
    )


def test_replay_knows_noted_results():
    done = node("1", "f", {"a": 1}, [], status=True, desc=with_result("Do.", "seven"))
    again = node("9", "f", {"a": 1}, [])
    plan = Plan.parse({"tasks": [done, again]})
    environment = ReplayEnvironment.of_instance(instance(plan, seen=False))
    assert environment.observe(plan, ["9"])[0].result == "seven"


def test_replay_prefers_the_same_node():
    calls = [ToolCall("f", {"a": 1}, "one", "1"), ToolCall("f", {"a": 1}, "two", "2")]
    plan = Plan.parse({"tasks": [node(n, "f", {"a": 1}, []) for n in "123"]})
    seen = ReplayEnvironment(calls).observe(plan, ["1", "2", "3"])
    assert [each.result for each in seen] == ["one", "two", "two"]


# --- executors ------------------------------------------------------------------------------------


@cache
def sample():
    return tuple(generate(level=2, count=12, seed="executors"))


def texts(executor=None):
    jobs = (Job(each, partial(agent_for, "patch")) for each in sample())
    runs = run_many(jobs, sandbox_for, executor=executor)
    return [str(to_data(run)) for run in runs]


def test_any_executor_gives_the_same_runs_in_the_same_order():
    alone = texts()
    with ThreadPoolExecutor(3) as threads:
        assert texts(threads) == alone
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert texts(processes) == alone


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_a_cluster_of_two_workers_gives_the_same_runs():
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        assert texts(client.get_executor()) == texts()


def test_jobs_are_read_as_they_are_needed():
    taken = []

    def jobs():
        for number in range(1_000):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(2) as threads:
        results = ordered(abs, jobs(), threads, chunk=5, ahead=2)
        assert next(results) == 0
        assert len(taken) <= 15
        results.close()
    assert len(taken) <= 15


def test_an_error_in_the_work_comes_out():
    with ThreadPoolExecutor(2) as threads, pytest.raises(ZeroDivisionError):
        list(ordered(lambda x: 1 // x, [1, 0], threads))
