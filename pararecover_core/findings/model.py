"""A finding: one place where plan, tools or observations show an error."""

from enum import StrEnum
from typing import Any

import msgspec

from pararecover_core.taxonomy import ErrorType


class Where(StrEnum):
    """What shows the error."""

    PLAN = "plan"
    OBSERVATION = "observation"


class Certainty(StrEnum):
    """How much a finding says.

    CERTAIN: it follows from plan, tools and observations. LIKELY: another reading exists but is
    improbable. POSSIBLE: a hint that a reader has to judge.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """0 for certain, 1 for likely, 2 for possible."""
        return _RANKS[self]


_RANKS = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class Finding(msgspec.Struct, frozen=True):
    """One place where an error shows.

    Attributes:
        error_type: The type; None for a failed call whose result does not say why.
        rule: What was looked for, in a word or two: "unknown parameter", "needless dependency".
        node: Id of the node at fault, "" where the plan lacks one.
        message: One plain sentence.
        parameter: The parameter at fault, "" where it is not about one.
        suggestion: What was probably meant: a tool, a parameter, a node id or a value; else "".
        nodes: All nodes with the same finding, ``node`` first.
    """

    error_type: ErrorType | None
    rule: str
    node: str
    message: str
    parameter: str = ""
    where: Where = Where.PLAN
    certainty: Certainty = Certainty.CERTAIN
    suggestion: str = ""
    nodes: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """The finding as JSON data, as ``pararecover check`` prints it."""
        return {
            "error_type": self.error_type.value if self.error_type else None,
            "node": self.node,
            "parameter": self.parameter,
            "where": self.where.value,
            "certainty": self.certainty.value,
            "message": self.message,
            "rule": self.rule,
            "suggestion": self.suggestion,
            "nodes": list(self.nodes or ((self.node,) if self.node else ())),
        }
