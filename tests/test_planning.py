"""The planning prompt, and answers in its form."""

from pararecover_core.agents.planning import (
    answer_text,
    instructions,
    prompt_messages,
    shown,
    tool_schema,
)
from pararecover_core.execute import View
from pararecover_core.formats.values import split_agent_text
from pararecover_core.plan import Plan
from pararecover_core.records import Tool, ToolCall

VIEW = View(
    "Miss Ōta: bake a cake",
    (Tool("mix", "Mixes", {"bowl": {"type": "number"}}, ("bowl",)), Tool("x", given="x()")),
    Plan.parse('{"tasks": [{"id": "1"}]}'),
    (ToolCall("mix", {"bowl": 1}, "结果", "1"),),
)


def test_everything_that_eq_3_names_is_shown():
    assert shown(VIEW) == (
        "# Request\nMiss Ōta: bake a cake\n\n"
        '# Tools\n[{"name":"mix","description":"Mixes","parameters":{"bowl":{"type":"number"}},'
        '"required":["bowl"]},"x()"]\n\n'
        '# Plan\n{"tasks": [{"id": "1"}]}\n\n'
        "# Results of the last round\n"
        '[{"node":"1","name":"mix","arguments":{"bowl":1},"result":"结果"}]'
    )
    assert "# Tools" not in shown(VIEW, with_tools=False)
    assert shown(View("q", (), Plan.parse(None), ())).endswith("last round\nnone")


def test_demonstrations_are_earlier_turns():
    messages = prompt_messages(VIEW, demonstrations=[("seen", "said")])
    assert [(one["role"], one["content"]) for one in messages] == [
        ("system", instructions()),
        ("user", "seen"),
        ("assistant", "said"),
        ("user", shown(VIEW)),
    ]


def test_our_reader_takes_an_answer_apart_again():
    text = answer_text(" It failed. ", {"tasks": []})
    assert text == '<thought>It failed.</thought>\n{"tasks":[]}'
    assert split_agent_text(text)[:2] == ("It failed.", '{"tasks":[]}')


def test_a_tool_as_json_schema():
    assert tool_schema(VIEW.tools[0])["function"]["parameters"] == {
        "type": "object",
        "properties": {"bowl": {"type": "number"}},
        "required": ["bowl"],
    }
