"""The agent that is a model: what it is shown, how its text is read, whole runs over HTTP."""

import json
import pickle

import pytest
from typer.testing import CliRunner

from pararecover_cli.main import cli
from pararecover_cli.with_model import choose_agent
from pararecover_core.agents.choose import task_of
from pararecover_core.agents.llm_agent import (
    LlmAgent,
    demonstrations,
    llm_agent,
    read_answer,
    view_text,
)
from pararecover_core.agents.oracle import Oracle
from pararecover_core.completions import Endpoint
from pararecover_core.errors import ConfigError, InputError
from pararecover_core.execute import AgentError, OutcomeKind, UnavailableError, View, run
from pararecover_core.formats import read
from pararecover_core.generate import one_instance
from pararecover_core.literals import dumps
from pararecover_core.llm import Model
from pararecover_core.plan import Plan
from pararecover_core.prompt_files import agent_prompt
from pararecover_core.records import Trajectory, to_data
from pararecover_core.runs import sandbox_for
from pararecover_core.taxonomy import ErrorType
from tests.model_server import chat, failure, in_turn, serving

PLAN = {"tasks": [{"id": "1", "name": "mix", "para": {"a": "it's"}, "dep": [], "status": True}]}
TEXT = dumps(PLAN)

READ = {
    "as asked": f"<thought>\nNode 1 is fine.\n</thought>\n<plan>\n{TEXT}\n</plan>",
    "capitals, text around": f"Sure!<Thought>Node 1 is fine.</Thought>\n<PLAN>{TEXT}</PLAN> Bye",
    "no end of the plan": f"<thought>Node 1 is fine.</thought><plan>{TEXT}",
    "fence in the plan": f"<thought>Node 1 is fine.</thought><plan>```json\n{TEXT}\n```</plan>",
    "no thought tags": f"Node 1 is fine.\n<plan>{TEXT}</plan>",
    "fence alone": f"Thought: Node 1 is fine.\n\n```json\n{TEXT}\n```",
    "labels": f"**Thought:** Node 1 is fine.\n\n**Plan:**\n{TEXT}",
    "headings": f"## Thought\nNode 1 is fine.\n## Plan\n{TEXT}",
    "one object": dumps({"thought": "Node 1 is fine.", "plan": PLAN}),
    "one object in a fence": f"```\n{dumps({'reasoning': 'Node 1 is fine.', 'plan': TEXT})}\n```",
    "thinking before": f"<think>{{}} hm</think><thought>Node 1 is fine.</thought><plan>{TEXT}",
    "list of tasks": f"Node 1 is fine. <plan>{dumps(PLAN['tasks'])}</plan>",
    "Python literal": f"Node 1 is fine. <plan>{PLAN!r}</plan>",
    "trailing commas": f"Node 1 is fine. <plan>{TEXT[:-1]},}}</plan>",
    "missing comma": "Node 1 is fine. <plan>" + TEXT.replace(',"para"', ' "para"') + "</plan>",
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_thought_and_plan_are_read(text):
    thought, plan = read_answer(text)
    assert thought == "Node 1 is fine."
    (node,) = Plan.parse(plan).nodes
    assert (node.id, node.name, node.parameters.named, node.done) == (
        "1", "mix", {"a": "it's"}, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"<thought>Node 1.</thought><plan>{TEXT[:-12]}",
        f"Node 1. {TEXT[:-12]}",
        "Node 1. I cannot plan.",
        f"<think>{TEXT}",
        "",
        "<plan></plan>",
        '<plan>{"tasks": "none"}</plan>',
    ],
    ids=["cut", "cut, no tags", "prose", "thinking alone", "empty", "empty plan", "no tasks"],
)
def test_what_is_no_whole_plan_is_not_completed(text):
    plan = Plan.parse(read_answer(text).plan)
    assert plan.s5 == 0
    assert plan.fault


@pytest.fixture(scope="module")
def instance():
    return one_instance((1, (ErrorType.PARAMETER_ERROR,)), seed="a test", level=1)


def view_of(instance):
    return View(instance.query, instance.tools, instance.plan, instance.observations)


def oracle_reply(instance):
    """What a model would say that knows the truth, from what it is shown."""
    oracle = Oracle(task_of(instance))
    plans = []

    def reply(call):
        text = call.text
        given = text.split("name='previous plan'>\n")[1].split("\n</data-")[0]
        plans.append(given)
        plan = Plan.parse(given)
        shown = text.split("name='observations'>\n")[1].split("\n</data-")[0]
        seen = tuple(s for s in _observed(shown) if s.node in plan.by_id)
        found = oracle.replan(View(instance.query, instance.tools, plan, seen))
        return chat(f"<thought>{found.thought}</thought><plan>{dumps(found.plan)}</plan>")

    return reply


def _observed(shown):
    from pararecover_core.records import ToolCall

    for line in shown.splitlines():
        if line.startswith("node "):
            head, result = line.split(" -> ", 1)
            _, node, name, arguments = head.split(" ", 3)
            yield ToolCall(name, json.loads(arguments), result, node.rstrip(":"))


def test_the_model_is_shown_the_round_fenced_and_nothing_else(instance):
    with serving(in_turn(chat(READ["as asked"]))) as server:
        reply = LlmAgent(Model(Endpoint("m", server.url))).replan(view_of(instance))
    system, user = server.calls[0].body["messages"]
    assert system["content"] == agent_prompt("plan").text
    assert user["content"] == view_text(view_of(instance))
    assert instance.query in user["content"]
    assert instance.error_reason not in user["content"]
    assert all(tag not in user["content"] for tag in instance.tags)
    assert reply.usage["prompt_tokens"] == 10
    assert reply.raw == READ["as asked"]


def test_three_demonstrations_go_first_where_asked(instance):
    with serving(in_turn(chat(READ["as asked"]))) as server:
        agent = LlmAgent(Model(Endpoint("m", server.url)), few_shot=True)
        agent.replan(view_of(instance))
    assert agent.name == "m few-shot"
    roles = [message["role"] for message in server.calls[0].body["messages"]]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    for _, text in demonstrations()[1::2]:
        thought, plan = read_answer(text)
        assert thought.startswith("Node ")
        assert Plan.parse(plan).s5 == 1
    assert instance.query not in str(demonstrations())


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (chat(None, refusal="no"), AgentError),
        (chat("{", finish_reason="length"), AgentError),
        (failure(401, "wrong key"), UnavailableError),
        (failure(400, "no"), UnavailableError),
    ],
)
def test_a_model_that_does_not_answer_ends_the_run_with_the_reason(instance, reply, error):
    with serving(in_turn(reply)) as server:
        agent = LlmAgent(Model(Endpoint("m", server.url, retries=0)))
        with pytest.raises(error):
            agent.replan(view_of(instance))
        found = run(instance, agent, sandbox_for(instance))
    unavailable = error is UnavailableError
    assert (
        found.outcome == (OutcomeKind.UNAVAILABLE if unavailable else OutcomeKind.AGENT_ERROR).value
    )


def test_a_model_that_knows_the_truth_reaches_the_end(instance):
    with serving(oracle_reply(instance)) as server:
        found = run(instance, LlmAgent(Model(Endpoint("m", server.url))), sandbox_for(instance))
    assert found.success
    assert found.extra["rounds"] >= instance.round_gt


def test_the_factory_holds_no_secret_and_needs_an_endpoint(monkeypatch):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        llm_agent("m")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    made = llm_agent("m", few_shot=True)
    assert b"secret" not in pickle.dumps(made)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(InputError, match=r"expected --agent llm\. Leave --model out"):
        choose_agent("patch", "m")
    with pytest.raises(InputError, match="one of oracle, patch, retry, rebuild, ignore, llm"):
        choose_agent("gpt")


def write(path, *records):
    path.write_text("".join(dumps(to_data(record)) + "\n" for record in records))
    return path


def command(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)


def test_the_commands_take_a_model(tmp_path, instance, monkeypatch):
    file, answers = write(tmp_path / "i.jsonl", instance), tmp_path / "a.jsonl"
    runs = tmp_path / "t.jsonl"
    with serving(oracle_reply(instance)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        flags = ("--agent", "llm", "--model", "m", "--workers", 4)
        found = command("replan", file, *flags, "--out", answers)
        assert found.exit_code == 0
        assert "1 answers by m; " in found.stderr
        assert command("run", file, *flags, "--out", runs).exit_code == 0
        calls = len(server.calls)
        assert command("run", file, *flags, "--out", runs).exit_code == 0
        assert len(server.calls) == calls  # done already
    (made,) = [i.content for i in read(runs) if isinstance(i.content, Trajectory)]
    assert (made.agent, made.success) == ("m", True)
    assert made.extra["correct"] is True


def test_a_run_that_the_endpoint_broke_off_is_not_kept(tmp_path, instance, monkeypatch):
    file, runs = write(tmp_path / "i.jsonl", instance), tmp_path / "t.jsonl"
    with serving(in_turn(failure(401, "wrong key"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = command("run", file, "--agent", "llm", "--model", "m", "--out", runs)
    assert found.exit_code == 1
    assert "no answer (stopped: HTTP 401: " in found.stderr
    assert not [i for i in read(runs) if isinstance(i.content, Trajectory)]
