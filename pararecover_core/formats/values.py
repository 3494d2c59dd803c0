"""Reading single values: scores, numbers, levels, scorer names, an agent's whole text."""

import math
import re
import unicodedata
from typing import Any, NamedTuple

from pararecover_core.plan import text_of
from pararecover_core.records import Source
from pararecover_core.rubric import DIMENSIONS, LEVELS, sde_rubric

COMPUTED = ("S5", "E5")
"""The two sub-dimensions that a program scores."""

IMPORTED = "imported"
"""Who scored, where neither the file nor the caller says."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)")
_LEVEL = re.compile(r"(?:level|l)?[\s_-]*([12])(?:\.0*)?", re.I)


def shown(value: Any, limit: int = 60) -> str:
    """A value as a short text for a message."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def is_empty(value: Any) -> bool:
    """Whether a cell holds nothing: None, an empty or blank text, or a table's own NaN."""
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None:
        return True
    return isinstance(value, float) and math.isnan(value)


def expected_score(dimension: str) -> str:
    """What a score of a sub-dimension may be, in words."""
    if dimension == "S5":
        return "1 or 0"
    return "a number from 0 to 1" if dimension == "E5" else "1, 0.5 or 0"


def read_score(value: Any, dimension: str) -> float:
    """A score from a cell: 1, 1.0, "0.5", ".5", "1 " or "0,5".

    Args:
        value: The cell, not empty.
        dimension: Id of the sub-dimension: S5 is 1 or 0, E5 any number in [0, 1].

    Returns:
        The score.

    Raises:
        ValueError: It is no score; the message says what was expected.
    """
    number = _number(value)
    if dimension == "E5":
        allowed = number is not None and 0 <= number <= 1
    else:
        allowed = number in LEVELS and (dimension != "S5" or number != 0.5)
    if number is None or not allowed:
        raise ValueError(expected_score(dimension))
    return abs(number)  # -0.0 is 0.0


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e15 else None
    if not isinstance(value, str) or len(value) > 100:
        return None
    text = unicodedata.normalize("NFKC", value).strip()
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def read_count(value: Any) -> int | None:
    """A count such as ``round_gt``: 5, "5" or 5.0; None for an empty cell.

    Raises:
        ValueError: It is no whole number of at least 0.
    """
    if type(value) is int and value >= 0:
        return value
    if is_empty(value):
        return None
    number = _number(value)
    if number is None or number < 0 or not number.is_integer():
        raise ValueError("a whole number, 0 or more")
    return int(number)


def read_level(value: Any) -> int:
    """A level: 1, "2", "LEVEL-1", "L2"; 0 for an empty cell.

    Raises:
        ValueError: It is neither level.
    """
    if is_empty(value) or value in (0, "0"):
        return 0
    match = None if isinstance(value, bool) else _LEVEL.fullmatch(text_of(value))
    if match is None:
        raise ValueError("level 1 or 2")
    return int(match[1])


def read_source(value: Any) -> Source | None:
    """A source by its name in any case; None for anything else."""
    try:
        return Source(text_of(value).casefold())
    except ValueError:
        return None


_DIMENSION_NAMES = {
    spelling.casefold(): d.id
    for d in sde_rubric().dimensions
    for spelling in (d.id, d.name, d.short)
}


def read_dimension(value: Any) -> str:
    """The id of a sub-dimension from its id or name in any case.

    Raises:
        ValueError: It is none of the 15.
    """
    text = text_of(value)
    found = _DIMENSION_NAMES.get(text.casefold())
    if found is None:  # "D3: Root-cause depth", "diag_D3"
        ids = [part for part in re.split(r"[^0-9A-Za-z]+", text.upper()) if part in DIMENSIONS]
        found = ids[0] if len(ids) == 1 else None
    if found is None:
        raise ValueError(f"one of {', '.join(DIMENSIONS)}")
    return found


def human_scorer(name: str) -> str:
    """``human:NAME``, from a name with or without that prefix."""
    name = name.strip()
    return f"human:{name.removeprefix('human:').strip() or IMPORTED}"


def judge_scorer(name: str, prompt: str = "") -> str:
    """``judge:MODEL@PROMPT``, from a model with or without prefix and prompt."""
    name = name.strip().removeprefix("judge:").strip() or IMPORTED
    return f"judge:{name}" if "@" in name else f"judge:{name}@{prompt.strip() or 'unknown'}"


def scorer(text: str) -> str:
    """A scorer in full from what a file says: a prefixed name as it is, else a person's."""
    text = text.strip()
    kind, _, name = text.partition(":")
    if text.casefold() == "program":
        return "program"
    if kind.casefold() in ("judge", "model"):
        return judge_scorer(name)
    if kind.casefold() == "human":
        return human_scorer(name)
    return human_scorer(text)


class AgentText(NamedTuple):
    """The parts of an agent's whole text; what is not there is ""."""

    thought: str
    plan: str
    answer: str


_TAGGED = re.compile(r"<(thoughts?|think|plan|answer)\s*>", re.I)
_THOUGHT = re.compile(r"<(thoughts?|think)\s*>(.*?)(?:</\1\s*>|(?=<plan\s*>|```|\Z))", re.S | re.I)
_ANSWER = re.compile(r"<answer\s*>(.*?)(?:</answer\s*>|\Z)", re.S | re.I)
_PLAN = re.compile(r"<plan\s*>(.*?)(?:</plan\s*>|\Z)", re.S | re.I)
_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\r?\n?(.*?)(?:```|\Z)", re.S)


def is_agent_text(value: Any) -> bool:
    """Whether a text is an agent's whole answer rather than a bare plan."""
    return isinstance(value, str) and (
        _TAGGED.search(value) is not None
        or ("tasks" in value and not value.lstrip("\ufeff \t\r\n").startswith(("{", "[")))
    )


def split_agent_text(text: str) -> AgentText:
    """Take an agent's whole text apart.

    Args:
        text: ``<thought>...</thought>`` (or ``<think>``), then the plan: bare, inside ``<plan>``
            or in a code fence; perhaps ``<Answer>...</Answer>`` at the end. Without a thought tag
            the text before the plan is the thought.

    Returns:
        Thought, plan and final answer as texts; a plan that cannot be found is whatever is left.
    """
    thoughts = [m[2].strip() for m in _THOUGHT.finditer(text)]
    rest = _THOUGHT.sub("", text)
    answers = [m[1].strip() for m in _ANSWER.finditer(rest)]
    without = _ANSWER.sub("", rest).strip()
    answer = "\n".join(answers)
    if answer and '"tasks"' in answer and "tasks" not in without:
        without, answer = f"{without}\n{answer}".strip(), ""
    before, plan = _plan_of(without)
    thought = "\n".join(part for part in (thoughts or [before]) if part)
    return AgentText(thought, plan, answer)


def _plan_of(text: str) -> tuple[str, str]:
    """Text before the plan, and the plan."""
    for pattern in (_PLAN, _FENCE):
        found = [m for m in pattern.finditer(text) if "tasks" in m[1] or pattern is _PLAN]
        if found:
            return text[: found[-1].start()].strip(), found[-1][1].strip()
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        return text[:start].strip(), text[start : end + 1]
    return "", text
