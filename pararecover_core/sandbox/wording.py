"""A task in words: what a user would write, and one sentence a step."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.registry import tools
from pararecover_core.sandbox.steps import Link, Step

_FACTS_NAMED = 4
"""Most facts that a query names at its end."""

_OPENINGS = ("", "Hi, I need some help. ", "Hello! ", "Please do the following for me. ",
             "Could you take care of this? ", "I have a few things to sort out. ")  # fmt: skip
_FIRST = ("First, {}.", "{}.", "To start with, {}.", "Please {}.")
_NEXT = ("Then {}.", "After that, {}.", "Next, {}.", "Once you have that, {}.")
_ALSO = ("Also, {}.", "In addition, {}.", "Separately, {}.", "I also want you to {}.")
_CLOSINGS = ("Tell me {}.", "In the end I need {}.", "Let me know {}.", "Report {} back to me.")


def query(draw: Draw, steps: Sequence[Step], goals: Sequence[int]) -> str:
    """What a user would write to have these steps done: it holds every literal value.

    Args:
        draw: Where choices of words come from.
        steps: N steps in a topological order.
        goals: Indices of the steps whose results the answer is to hold.
    """
    sentences = []
    for index, step in enumerate(steps):
        forms = _FIRST if index == 0 else _NEXT if index - 1 in step.needs else _ALSO
        form = draw.choice(forms)
        sentences.append(sentence(form.format(ask(step, steps, draw))))
    closing = draw.choice(_CLOSINGS).format(_wanted(steps, goals))
    return draw.choice(_OPENINGS) + " ".join([*sentences, closing])


def _wanted(steps: Sequence[Step], goals: Sequence[int]) -> str:
    """What the answer is to hold: all facts where they are few, else one of each of some goals."""
    fields = [(goal, field) for goal in goals for field in _shown(steps[goal])]
    if len(fields) > _FACTS_NAMED:
        fields = [(goal, _shown(steps[goal])[0]) for goal in goals]
    named = [_field_phrase(goal, field, steps) for goal, field in fields[:_FACTS_NAMED]]
    return _enumerate(named + (["all other results"] if len(fields) > _FACTS_NAMED else []))


def _shown(step: Step) -> list[str]:
    return list(tools()[step.tool].outputs)


def ask(step: Step, steps: Sequence[Step], draw: Draw | None = None) -> str:
    """One step as a request, without a capital and a full stop.

    Args:
        step: One of ``steps``.
        steps: All steps: results that the step uses are named by them.
        draw: Chooses among the ways to ask; None for the first one.
    """
    found = tools()[step.tool]
    say = draw.choice(found.says) if draw else found.says[0]
    words = {
        name: _field_phrase(value.step, value.field, steps)
        if isinstance(value, Link)
        else found.inputs[name].kind.say(value)
        for name, value in step.arguments.items()
    }
    return say.format(**words)


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def _field_phrase(index: int, field: str, steps: Sequence[Step]) -> str:
    """How the text speaks of a result: "the flight", "the price of the second flight"."""
    mine = _phrase(steps[index], field)
    owners = [i for i, step in enumerate(steps) if mine.noun in _nouns(step)]
    noun = mine.noun
    if len(owners) > 1:
        place = min(owners.index(index), len(_ORDINALS) - 1)
        noun = noun.replace("the ", f"the {_ORDINALS[place]} ", 1)
    return f"{mine.part} of {noun}" if mine.part else noun


class _Phrase(NamedTuple):
    """A result in words: what it is called, or which part of it, where it is one."""

    noun: str
    part: str = ""


def _phrase(step: Step, field: str) -> _Phrase:
    found = tools()[step.tool]
    words = f"the {field.replace('_', ' ').replace('check in', 'check-in')}"
    if found.outputs[field].names_a_thing:
        return _Phrase(found.makes)
    has_thing = any(kind.names_a_thing for kind in found.outputs.values())
    return _Phrase(found.makes, words) if has_thing else _Phrase(words)


def _nouns(step: Step) -> set[str]:
    """What the results of a step are called, parts aside."""
    return {_phrase(step, field).noun for field in tools()[step.tool].outputs}


def _enumerate(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


_ARTICLE = re.compile(r"\b([Aa])(?= [aeio])")


def sentence(text: str) -> str:
    """A sentence with a capital, a full stop, and "an" where it belongs."""
    text = _ARTICLE.sub(r"\1n", text)
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def leaks(text: str, steps: Sequence[Step], results: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a query happens to hold a value that only a tool may tell.

    Args:
        text: The query.
        steps: N steps.
        results: N results.
    """
    said = frozenset(_TOKEN.findall(text))
    for step in steps:
        for value in step.arguments.values():
            if isinstance(value, Link):
                made = results[value.step][value.field]
                is_number = isinstance(made, int | float)
                if f"{made:g}" in said if is_number else str(made) in text:
                    return True
    return False


_TOKEN = re.compile(r"[\w.:\-]*\w")
