"""Tasks composed from atomic tool calls: in sequence, in parallel, in parallel then in sequence.

Two calls are joined where an output of one has the kind of an input of the other. The query is
written from the composition and holds every value that no tool makes; the ground truth is what
running the composition gives.

Source: paper section 2.1.1 (after BUTTON's composition of atomic tasks); the tools are ours.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from pararecover_core.plan import RESPONSE, ROOT, Plan
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import Kind
from pararecover_core.sandbox.registry import SandboxTool, call, tools
from pararecover_core.sandbox.steps import Link, Step, reference, step_id
from pararecover_core.sandbox.wording import ask, leaks, query, sentence

MAX_CALLS, MAX_DEPTH, MAX_WIDTH = 15, 8, 6
_TRIES = 60


class Shape(StrEnum):
    """How the calls of a task hang together."""

    SEQUENCE = "sequence"
    PARALLEL = "parallel"
    PARALLEL_THEN_SEQUENCE = "parallel then sequence"


class Recipe(msgspec.Struct, frozen=True):
    """What ``compose`` made a task from: the same recipe gives the same task.

    Attributes:
        shape: The shape that was asked for, None where any would do.
        depth: Least number of layers that was asked for.
        distractors: How many listed tools the task does not need.
    """

    seed: str
    shape: Shape | None = None
    depth: int = 1
    distractors: int = 4

    def task(self) -> "Task":
        """The task."""
        return compose(self.seed, shape=self.shape, depth=self.depth, distractors=self.distractors)


class Task(msgspec.Struct, frozen=True):
    """A task with its ground truth.

    Attributes:
        steps: N calls in a topological order, 2 <= N <= 15.
        tools: Names of the listed tools: those needed and distractors, shuffled.
        results: N results, one a step, from running the steps.
        goals: Indices of the steps whose results the answer must hold: those nothing else uses.
        recipe: What it was composed from.
    """

    shape: Shape
    query: str
    steps: tuple[Step, ...]
    tools: tuple[str, ...]
    results: tuple[dict[str, Any], ...]
    goals: tuple[int, ...]
    recipe: Recipe

    @property
    def layers(self) -> tuple[int, ...]:
        """Layer of each step, from 1: one more than the largest among those it needs."""
        layers: list[int] = []
        for step in self.steps:
            layers.append(1 + max((layers[needed] for needed in step.needs), default=0))
        return tuple(layers)

    @property
    def calls(self) -> int:
        """Calls of the optimal plan (``funcall_times_gt``)."""
        return len(self.steps)

    @property
    def rounds(self) -> int:
        """Rounds of the optimal plan, the response included (``round_gt``)."""
        return max(self.layers) + 1

    @property
    def width(self) -> int:
        """The most calls in one round of the optimal plan."""
        return max(Counter(self.layers).values())

    def plan(self) -> Plan:
        """The optimal plan with nothing executed; ids are "1" to "N"."""
        tasks = [node(ROOT, "", {}, self.query, [], done=True)]
        for index, step in enumerate(self.steps):
            para = {name: reference(value) for name, value in step.arguments.items()}
            needed = [step_id(i) for i in step.needs] or [ROOT]
            description = sentence(ask(step, self.steps))
            tasks.append(node(step_id(index), step.tool, para, description, needed))
        goals = [step_id(goal) for goal in self.goals]
        tasks.append(node(RESPONSE, "", {}, "Sum up the results and answer.", goals))
        return Plan.parse({"tasks": tasks})


def node(
    node_id: str,
    name: str,
    para: dict[str, Any],
    description: str,
    dependencies: Sequence[str],
    *,
    done: bool = False,
) -> dict[str, Any]:
    """A node as the published files write it."""
    return {
        "id": node_id,
        "name": name,
        "para": para,
        "desc": description,
        "dep": list(dependencies),
        "status": done,
    }


@cache
def _by_input() -> dict[str, tuple[str, ...]]:
    """Kind name to tools that require it."""
    users: dict[str, list[str]] = {}
    for found in tools().values():
        for name in found.required:
            users.setdefault(found.inputs[name].kind.name, []).append(found.name)
    return {kind: tuple(dict.fromkeys(names)) for kind, names in users.items()}


@cache
def _starters() -> tuple[str, ...]:
    """Tools whose required inputs can all be written into a query."""
    return tuple(
        found.name
        for found in tools().values()
        if found.required and all(found.inputs[n].kind.sample for n in found.required)
    )


class _Builder:
    """Steps under construction, each run as soon as it is added."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.steps: list[Step] = []
        self.results: list[dict[str, Any]] = []
        self.layers: list[int] = []

    def add(self, name: str, links: Mapping[str, Link]) -> int | None:
        """Run a call with these links and drawn literals; None where it cannot be made."""
        found = tools()[name]
        arguments: dict[str, Any] = {}
        for parameter in found.required:
            kind = found.inputs[parameter].kind
            link = links.get(parameter) or (None if kind.sample else self._producer(kind))
            if link:
                arguments[parameter] = link
            elif kind.sample:
                arguments[parameter] = kind.sample(self.draw)
            else:
                return None
        return self._run(Step(name, arguments))

    def _run(self, step: Step) -> int | None:
        layer = 1 + max((self.layers[i] for i in step.needs), default=0)
        full = Counter(self.layers)[layer] >= MAX_WIDTH or len(self.steps) >= MAX_CALLS
        values = {
            name: self.results[value.step][value.field] if isinstance(value, Link) else value
            for name, value in step.arguments.items()
        }
        same = any(s.tool == step.tool and self._values(s) == values for s in self.steps)
        if full or same or layer > MAX_DEPTH or len(set(map(str, values.values()))) < len(values):
            return None
        outcome = call(step.tool, values)
        if outcome.value is None:
            return None
        self.steps.append(step)
        self.results.append(outcome.value)
        self.layers.append(layer)
        return len(self.steps) - 1

    def _values(self, step: Step) -> dict[str, Any]:
        return {
            name: self.results[value.step][value.field] if isinstance(value, Link) else value
            for name, value in step.arguments.items()
        }

    def _producer(self, kind: Kind) -> Link | None:
        """A link to any earlier output of a kind."""
        links = [
            Link(index, field)
            for index, step in enumerate(self.steps)
            for field, made in tools()[step.tool].outputs.items()
            if made.name == kind.name
        ]
        return self.draw.choice(links) if links else None

    def follow(self, index: int) -> int | None:
        """Add a call that uses an output of step ``index``."""
        outputs = list(tools()[self.steps[index].tool].outputs.items())
        for _ in range(_TRIES):
            field, kind = self.draw.choice(outputs)
            users = _by_input().get(kind.name, ())
            if not users:
                continue
            user = tools()[self.draw.choice(users)]
            if user.name == self.steps[index].tool:
                continue
            entry = next(n for n in user.required if user.inputs[n].kind.name == kind.name)
            added = self.add(user.name, {entry: Link(index, field)})
            if added is not None:
                return added
        return None

    def join(self, left: int, right: int) -> int | None:
        """Add a call that uses an output of both steps."""
        for user in self.draw.sample(list(tools().values()), len(tools())):
            links = self._two_links(user, left, right)
            if links:
                added = self.add(user.name, links)
                if added is not None:
                    return added
        return None

    def _two_links(self, user: SandboxTool, left: int, right: int) -> dict[str, Link]:
        links: dict[str, Link] = {}
        waiting = [left, right]
        for name in user.required:
            kind = user.inputs[name].kind
            for index in waiting:
                made = tools()[self.steps[index].tool].outputs
                field = next((f for f, k in made.items() if k.name == kind.name), None)
                if field:
                    links[name] = Link(index, field)
                    waiting.remove(index)
                    break
        return {} if waiting else links

    def start(self) -> int | None:
        """Add a call that needs nothing but the query."""
        for _ in range(_TRIES):
            added = self.add(self.draw.choice(_starters()), {})
            if added is not None:
                return added
        return None


def compose(seed: str, *, shape: Shape | None = None, depth: int = 1, distractors: int = 4) -> Task:
    """Compose one task.

    Args:
        seed: Any text; the same seed gives the same task on every machine.
        shape: How the calls hang together; drawn where None.
        depth: Least number of layers, at most 5.
        distractors: How many listed tools the task does not need, >= 0.

    Returns:
        A task of 2 to 15 calls, depth at most 8, width at most 6, whose steps all succeed.
    """
    for attempt in range(_TRIES):
        draw = Draw("task", seed, attempt)
        chosen = shape or draw.choice(tuple(Shape))
        builder = _Builder(draw)
        _build(builder, chosen, depth)
        if len(builder.steps) >= 2 and max(builder.layers) >= depth:
            task = _finish(builder, chosen, Recipe(seed, shape, depth, distractors))
            if not leaks(task.query, task.steps, task.results):
                return task
    raise AssertionError(f"no task could be composed from the seed {seed!r}")


def _build(builder: _Builder, shape: Shape, depth: int) -> None:
    draw = builder.draw
    if shape is Shape.SEQUENCE:
        _chain(builder, builder.start(), draw.integer(max(1, depth - 1), MAX_DEPTH - 1))
        return
    longest = max(2, depth - 1)
    ends = []
    for _ in range(draw.integer(2, MAX_WIDTH if shape is Shape.PARALLEL else 4)):
        end = _chain(builder, builder.start(), draw.integer(0, longest))
        if end is not None:
            ends.append(end)
    if shape is Shape.PARALLEL_THEN_SEQUENCE:
        while len(ends) >= 2:
            joined = builder.join(ends[0], ends[1])
            ends = ends[2:] + ([joined] if joined is not None else [])
        _chain(builder, len(builder.steps) - 1, draw.integer(0, 3))


def _chain(builder: _Builder, start: int | None, length: int) -> int | None:
    last = start
    for _ in range(length):
        following = builder.follow(last) if last is not None else None
        if following is None:
            return last
        last = following
    return last


def _finish(builder: _Builder, shape: Shape, recipe: Recipe) -> Task:
    used = {needed for step in builder.steps for needed in step.needs}
    needed_tools = list(dict.fromkeys(step.tool for step in builder.steps))
    listed = needed_tools + _distractors(builder.draw, needed_tools, recipe.distractors)
    steps = tuple(builder.steps)
    goals = tuple(index for index in range(len(steps)) if index not in used)
    return Task(
        shape=shape,
        query=query(builder.draw, steps, goals),
        steps=steps,
        tools=tuple(builder.draw.sample(listed, len(listed))),
        results=tuple(builder.results),
        goals=goals,
        recipe=recipe,
    )


def _distractors(draw: Draw, needed: Sequence[str], count: int) -> list[str]:
    """Tools of the same domains first, so that choosing among them is a real choice."""
    domains = {tools()[name].domain for name in needed}
    near = [t.name for t in tools().values() if t.domain in domains and t.name not in needed]
    far = [t.name for t in tools().values() if t.domain not in domains]
    chosen = draw.sample(near, min(count, len(near)))
    return chosen + draw.sample(far, min(count - len(chosen), len(far)))
