"""Logs of one short journey, written for the tests, and short ways to read what they make.

The journey: round 1 looks up a train and the weather side by side, round 2 books with a wrong
call that fails, round 3 books again, then the agent answers.
"""

import json

from pararecover_core.records import Instance, Replan, Trajectory
from tests.formats_data import good, jsonl

QUERY = "Book a train from Lleida to Barcelona"
TRAIN = {"train": "T7731", "price": 23.5}
FAILED = "Error: missing passenger"
FIND = ("find_train", {"start": "Lleida"})
WEATHER = ("weather", {"city": "Barcelona"})
BOOK = ("book", {"train": "T7731"})
AGAIN = ("book", {"train": "T7731", "passenger": "Ada"})


def call(id, what):
    """A call as OpenAI's chat writes it."""
    name, arguments = what
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def result(id, value):
    text = value if isinstance(value, str) else json.dumps(value)
    return {"role": "tool", "tool_call_id": id, "content": text}


def assistant(text, *calls):
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


MESSAGES = [
    {"role": "system", "content": "You book trains."},
    {"role": "user", "content": QUERY},
    assistant("Both at once.", call("a", FIND), call("b", WEATHER)),
    result("b", "sunny"),  # in any order
    result("a", TRAIN),
    assistant("Book it.", call("a", BOOK)),  # the id occurs again
    result("a", FAILED),
    assistant("The passenger was missing.", call("c", AGAIN)),
    result("c", "booked"),
    assistant("You are booked."),
]


def read_all(data, **kwargs):
    """What a log holds; no reject among it."""
    text = data if isinstance(data, str | bytes) else json.dumps(data)
    return good(text, **kwargs)


def lines(*records):
    return jsonl(*records)


def parts(found):
    """The one instance, replan and trajectory of what was read; None where there is none."""
    kinds = {type(record): record for record in found}
    assert len(kinds) == len(found)
    return kinds.get(Instance), kinds.get(Replan), kinds[Trajectory]


def edges(plan):
    """Dependencies of a plan with their origin: {"3": {"1": "values"}}."""
    return {node.id: node.given["edge_origin"] for node in plan.nodes if _has_origin(node)}


def _has_origin(node):
    return "edge_origin" in node.given


def calls_of(one):
    """Name and result of each observation of a round."""
    return [(seen.name, seen.result) for seen in one.observations]


def check_journey(found, *, agent="imported", texts=True):
    """Assert that what was read is the journey, whatever the format."""
    instance, replan, run = parts(found)
    assert instance.query == QUERY
    assert (instance.level, instance.source, instance.tags) == (0, "unknown", ())
    assert [one.name for one in instance.observations] == ["book"]
    assert "missing passenger" in instance.observations[0].result
    assert replan.instance == run.instance == instance.key
    assert replan.agent == run.agent == agent
    assert replan.plan.given == run.rounds[2].plan.given
    assert instance.plan.given == run.rounds[1].plan.given
    assert [node.name for node in run.rounds[2].plan.nodes][1:] == [
        *("find_train", "weather", "book", "book"),
    ]
    assert edges(run.rounds[2].plan) == {"3": {"1": "values"}, "4": {"1": "values"}}
    assert [node.done for node in run.rounds[2].plan.nodes] == [True, True, True, True, False]
    assert run.rounds[1].plan.frontier() == ("3",)
    first = dict(calls_of(run.rounds[0]))
    assert first["weather"] == "sunny"
    assert json.loads(first["find_train"]) == TRAIN
    assert len(run.rounds) == 4
    assert run.rounds[3].plan.frontier() == ("response",)
    assert (run.success, run.outcome) == (True, "response")
    assert all(one.plan.s5 == 1 for one in run.rounds)
    if texts:
        assert "The passenger was missing." in replan.thought
        assert run.rounds[3].plan.by_id["response"].description == "You are booked."
