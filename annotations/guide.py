"""The guidelines that annotators read: rubric, keys, edge cases, worked examples.

The words of rubric and edge cases stand in the rubric file; the worked examples in
``annotations/guidelines/examples.json``, their plans in the sample data that ships with us.
"""

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from annotations.sample import written_files
from pararecover_core import draw
from pararecover_core.formats import read
from pararecover_core.formats.items import Answer, InstanceRef
from pararecover_core.plan import Plan
from pararecover_core.records import Instance
from pararecover_core.rubric import LEVELS, Rubric, sde_rubric

KEYS: tuple[tuple[str, str], ...] = (
    ("1 5 0", "score 1, 0.5 or 0 and move on"),
    ("↑ ↓", "move between sub-dimensions"),
    ("Backspace", "clear the score"),
    ("[ ] or ← →", "previous and next item"),
    ("U", "undo"),
    ("N", "note on the sub-dimension, Shift N on the sample"),
    ("K", "skip: the item comes back at the end"),
    ("F", "flag for whoever runs the batch"),
    ("Q", "open and close the query"),
    ("Enter", "submit, then the next item"),
    ("S", "send again what waits"),
    ("Esc", "clear the selection, close"),
    ("?", "this list, on the Annotate page"),
)
"""Keys of the Annotate page, as its help lists them."""

Data = dict[str, Any]


class ExampleScore(msgspec.Struct, frozen=True):
    """What one sub-dimension of a worked example earns, and why."""

    dimension: str
    score: float
    reason: str


class ExampleInstance(msgspec.Struct, frozen=True):
    """Which instance of the sample data an example is about."""

    id: str
    query_id: str
    level: int


class Example(msgspec.Struct, frozen=True):
    """A worked example: what is wrong, what the agent did about it, what that earns."""

    title: str
    instance: ExampleInstance
    agent: str
    fault: str
    answer: str
    scores: tuple[ExampleScore, ...]


class _Examples(msgspec.Struct, frozen=True):
    examples: tuple[Example, ...]


@cache
def examples() -> tuple[Example, ...]:
    """The worked examples, in order."""
    source = files("annotations").joinpath("guidelines", "examples.json")
    return msgspec.json.decode(source.read_bytes(), type=_Examples).examples


def guide(rubric: Rubric | None = None) -> Data:
    """Everything that the Guidelines page shows, as JSON data."""
    chosen = rubric or sde_rubric()
    return {
        "version": chosen.version,
        "groups": [
            {
                "id": group.id,
                "name": group.name,
                "code": group.code,
                "question": group.question,
                "dimensions": [
                    {
                        "id": d.id,
                        "name": d.name,
                        "short": d.short,
                        "question": d.question,
                        "judged": d.judged,
                        "anchors": [[f"{level:g}", d.anchors.of(level)] for level in LEVELS],
                    }
                    for d in chosen.dimensions
                    if d.group == group.id
                ],
            }
            for group in chosen.groups
        ],
        "edge_cases": list(chosen.edge_cases),
        "keys": [list(key) for key in KEYS],
        "examples": worked_examples(),
    }


@cache
def worked_examples() -> list[Data]:
    """The worked examples with the query, the thought and both plans as pictures."""
    instances, answers = _sample_records()
    return [_worked(example, instances, answers) for example in examples()]


def _worked(
    example: Example, instances: dict[ExampleInstance, Instance], answers: list[Answer]
) -> Data:
    instance = instances.get(example.instance)
    answer = next((a for a in answers if _answers(a, example)), None)
    data: Data = {
        "title": example.title,
        "level": example.instance.level,
        "fault": example.fault,
        "answer": example.answer,
        "scores": [[s.dimension, f"{s.score:g}", s.reason] for s in example.scores],
    }
    if instance is not None and answer is not None:
        after = Plan.parse(answer.plan)
        pictures = draw.pair(instance.plan, after, instance.observations)
        data |= {"query": instance.query, "thought": answer.thought}
        data |= {"before": pictures[0], "after": pictures[1]}
    return data


def _answers(answer: Answer, example: Example) -> bool:
    wanted, ref = example.instance, answer.ref
    named = InstanceRef(id=ref.id, query_id=ref.query_id, level=ref.level)
    return answer.agent == example.agent and named == InstanceRef(
        id=wanted.id, query_id=wanted.query_id, level=wanted.level
    )


def _sample_records() -> tuple[dict[ExampleInstance, Instance], list[Answer]]:
    """Instances and answers of the shipped sample data."""
    instances: dict[ExampleInstance, Instance] = {}
    answers: list[Answer] = []
    for path in written_files():
        for item in read(path):
            if isinstance(item.content, Instance):
                one = item.content
                instances[ExampleInstance(one.id, one.query_id, one.level)] = one
            elif isinstance(item.content, Answer):
                answers.append(item.content)
    return instances, answers
