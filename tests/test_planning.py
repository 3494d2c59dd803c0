"""Prompt and answer of an agent as training text."""

from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.agents.llm_agent import LlmAgent, read_answer
from pararecover_core.agents.planning import answer_text, prompt_messages, shown, tool_schema
from pararecover_core.execute import View
from pararecover_core.formats.values import split_agent_text
from pararecover_core.plan import Plan
from pararecover_core.records import Tool, ToolCall

VIEW = View(
    "Miss Ōta: bake a cake",
    (Tool("mix", "Mixes", {"bowl": {"type": "number"}}, ("bowl",)),),
    Plan.parse('{"tasks": [{"id": "1"}]}'),
    (ToolCall("mix", {"bowl": 1}, "结果", "1"),),
)


class Named:
    """A model that is only asked its name."""

    class endpoint:
        model = "m"


def test_training_sees_what_the_agent_asks():
    asked = LlmAgent(Named()).request(VIEW)
    assert [(m["role"], m["content"]) for m in prompt_messages(VIEW)] == list(asked.messages)
    assert "Mixes" in shown(VIEW)
    assert "Mixes" not in shown(VIEW, with_tools=False)


def test_demonstrations_are_earlier_turns():
    messages = prompt_messages(VIEW, demonstrations=[("seen", "said")])
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "user"]
    assert [one["content"] for one in messages[1:3]] == ["seen", "said"]


def test_our_readers_take_an_answer_apart_again():
    text = answer_text(" It failed. ", {"tasks": [{"id": "1"}]})
    plan = '{"tasks":[{"id":"1"}]}'
    assert text == f"<thought>\nIt failed.\n</thought>\n<plan>\n{plan}\n</plan>"
    assert split_agent_text(text)[:2] == ("It failed.", plan)
    assert tuple(read_answer(text)) == ("It failed.", {"tasks": [{"id": "1"}]})


@given(
    st.text("ab \n.", min_size=1).filter(str.strip),
    st.lists(st.sampled_from("123"), min_size=1, unique=True),
)
def test_what_is_learned_can_be_read(thought, ids):
    plan = {"tasks": [{"id": one} for one in ids]}
    answer = read_answer(answer_text(thought, plan))
    assert answer.thought == thought.strip()
    assert answer.plan == plan


def test_a_tool_as_json_schema():
    assert tool_schema(VIEW.tools[0])["function"]["parameters"] == {
        "type": "object",
        "properties": {"bowl": {"type": "number"}},
        "required": ["bowl"],
    }
