"""Judge prompts: texts with an id, a version, a parent and a note."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from pararecover_core.completions import fenced
from pararecover_core.errors import InputError
from pararecover_core.records import Instance, Replan, as_text
from pararecover_core.rubric import JUDGED, LEVELS, Rubric, sde_rubric

_HEAD = re.compile(r"\A---\r?\n(?P<head>.*?)\r?\n---\r?\n(?P<text>.*)\Z", re.S)
_FIELDS = ("id", "version", "parent", "dimensions", "note")
_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
SLOTS = ("rubric", "edge_cases", "answer_form")
"""What a prompt's text may leave to be filled in; the first and the last are required."""


class Prompt(msgspec.Struct, frozen=True):
    """A version of a judge prompt.

    Attributes:
        parent: Version that it was made from, 0 for none.
        note: Why it was made.
        text: The instructions, with ``{{rubric}}``, ``{{edge_cases}}`` and ``{{answer_form}}``.
        dimensions: Sub-dimensions that it asks for, in rubric order.
    """

    id: str
    version: int
    text: str
    parent: int = 0
    note: str = ""
    dimensions: tuple[str, ...] = JUDGED

    @property
    def name(self) -> str:
        """Id and version as scorer names use them: ``sde-1``."""
        return f"{self.id}-{self.version}"

    def instructions(self, dimensions: Sequence[str], rubric: Rubric | None = None) -> str:
        """The text for these sub-dimensions, its slots filled from the rubric."""
        rubric = rubric or sde_rubric()
        filled = {
            "rubric": _rubric_text(dimensions, rubric),
            "edge_cases": "\n".join(f"- {case}" for case in rubric.edge_cases),
            "answer_form": _answer_form(dimensions),
        }
        return _SLOT.sub(lambda slot: filled.get(slot[1], slot[0]), self.text)


def item_text(instance: Instance, replan: Replan) -> str:
    """What a judge sees of an item; every part fenced, so that none can pose as instructions.

    Agent name, error labels and other people's scores are left out.
    """
    calls = "\n".join(
        f"{call.node or '?'} {call.name} {as_text(call.arguments)} -> {call.result}"
        for call in instance.observations
    )
    parts = (
        ("query", instance.query),
        ("tools", as_text([tool.given for tool in instance.tools])),
        ("previous plan", as_text(instance.plan.given)),
        ("observations", calls or "none"),
        ("thought", replan.thought or "none"),
        ("new plan", as_text(replan.plan.given) or "none"),
    )
    return "\n\n".join(fenced(label, text) for label, text in parts)


def _rubric_text(dimensions: Sequence[str], rubric: Rubric) -> str:
    lines = []
    for group in rubric.groups:
        asked = [d for d in rubric.dimensions if d.group == group.id and d.id in dimensions]
        if asked:
            lines.append(f"{group.name}: {group.question}")
        for dimension in asked:
            lines.append(f"{dimension.id} {dimension.name}: {dimension.question}")
            lines.extend(f"  {level:g}: {dimension.anchors.of(level)}" for level in LEVELS)
    return "\n".join(lines)


def _answer_form(dimensions: Sequence[str]) -> str:
    entries = (f'"{d}": {{"reason": "...", "score": 1}}' for d in dimensions)
    return "{" + ", ".join(entries) + "}"


def parse_prompt(text: str, *, where: str = "prompt") -> Prompt:
    """Read a prompt file: a head between two ``---`` lines, then the text.

    Raises:
        InputError: The head, a field of it or a required slot is missing or wrong.
    """
    match = _HEAD.match(text.removeprefix("\ufeff"))
    if match is None:
        cure = "Begin with a line ---, then id, version, parent, dimensions and note, then ---"
        raise InputError(where, "no head", "a head between two --- lines", cure)
    head = dict.fromkeys(_FIELDS, "")
    for line in match["head"].splitlines():
        name, _, value = line.partition(":")
        head[name.strip()] = value.strip()
    numbers = head["version"], head["parent"] or "0"
    if not _ID.fullmatch(head["id"]) or not all(n.isascii() and n.isdecimal() for n in numbers):
        got = f"id {head['id']!r}, version {head['version']!r}, parent {head['parent']!r}"
        expected = "an id of small letters, digits and _, and whole numbers"
        raise InputError(where, got, expected, "Correct the head")
    text = match["text"].strip()
    check_text(text, where=where)
    version, parent = map(int, numbers)
    asked = _dimensions(head["dimensions"], where)
    return Prompt(head["id"], version, text, parent, head["note"], asked)


def _dimensions(text: str, where: str) -> tuple[str, ...]:
    named = text.replace(",", " ").split()
    unknown = [name for name in named if name not in JUDGED]
    if unknown:
        got, expected = f"the sub-dimension {unknown[0]}", f"some of {', '.join(JUDGED)}"
        raise InputError(where, got, expected, "Correct the line dimensions")
    return tuple(d for d in JUDGED if d in named) if named else JUDGED


def check_text(text: str, *, where: str = "prompt") -> None:
    """Refuse a prompt text that cannot work.

    Raises:
        InputError: ``{{rubric}}`` or ``{{answer_form}}`` is missing, or a slot is unknown.
    """
    found = _SLOT.findall(text)
    for slot in ("rubric", "answer_form"):
        if slot not in found:
            cure = f"Put {{{{{slot}}}}} where it belongs"
            raise InputError(where, f"no {{{{{slot}}}}}", f"the slot {{{{{slot}}}}}", cure)
    unknown = [slot for slot in found if slot not in SLOTS]
    if unknown:
        expected = ", ".join(f"{{{{{slot}}}}}" for slot in SLOTS)
        raise InputError(where, f"the slot {{{{{unknown[0]}}}}}", expected, "Correct its name")


def write_prompt(prompt: Prompt) -> str:
    """A prompt as the text of a file that ``parse_prompt`` reads."""
    note = " ".join(prompt.note.split())
    asked = "" if prompt.dimensions == JUDGED else " ".join(prompt.dimensions)
    values = (prompt.id, prompt.version, prompt.parent or "", asked, note)
    pairs = zip(_FIELDS, values, strict=True)
    head = "\n".join(f"{name}: {value}".rstrip() for name, value in pairs)
    return f"---\n{head}\n---\n{prompt.text}\n"


@cache
def built_in_prompts() -> dict[str, Prompt]:
    """The prompts of this package by name."""
    folder = files("pararecover_core").joinpath("judges", "prompts")
    found = [
        parse_prompt(entry.read_text(encoding="utf-8"), where=entry.name)
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    ]
    return {prompt.name: prompt for prompt in sorted(found, key=lambda p: (p.id, p.version))}
