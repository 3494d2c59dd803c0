"""The words of a repair: what a query asks, what a step does, what a thought says."""

import re
from typing import Any

from rapidfuzz import fuzz

from pararecover_core.literals import dumps
from pararecover_core.plan import text_of
from pararecover_core.results import ResultState

COVERED = 75.0
"""Likeness in percent from which a step does what a sentence of the query asks for."""
FIELD = re.compile(r'"\$([\w\-]+)\.(\w+)"')
_VALUE = re.compile(r"\"[^\"]+\"|[\w.+\-]+@[\w.\-]*\w|\d[\w.:\-]*\w|\d|(?<=[a-z] )[A-Z][\w\-]+")


def sentences(text: str) -> list[str]:
    """The sentences of a request."""
    parts = text.replace("! ", ". ").replace("? ", ". ").split(". ")
    return [part.strip() for part in parts if len(part.split()) > 2]


def needs_of(dependencies: Any, values: Any) -> list[str]:
    """Nodes that a call waits for and those whose output it uses."""
    given = dependencies if isinstance(dependencies, list | tuple) else []
    used = (node for node, _ in FIELD.findall(dumps(values)))
    return list(dict.fromkeys([*map(text_of, given), *used]))


def does(step: str, sentence: str) -> bool:
    """Whether a step is what a sentence of the query asks for."""
    values = set(_VALUE.findall(sentence))
    if values:
        return values <= set(_VALUE.findall(step))
    return fuzz.partial_ratio(step.rstrip("."), sentence.rstrip("."), score_cutoff=COVERED) > 0


def verb(state: ResultState, failed: bool) -> str:
    """How a sentence about a result begins."""
    if not failed:
        return ""
    return {ResultState.TIMEOUT: "ran into a time-out: ", ResultState.EMPTY: "gave nothing: "}.get(
        state, "failed: "
    )


def short(text: str) -> str:
    """A text on one line, cut, as a sentence."""
    flat = " ".join(text.split()) or "an empty result"
    flat = flat if len(flat) <= 140 else flat[:137] + "..."
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."


def capital(text: str) -> str:
    """A text with a capital letter first."""
    return text[:1].upper() + text[1:]
