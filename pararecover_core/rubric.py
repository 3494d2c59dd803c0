"""The SDE rubric as data: groups, sub-dimensions, anchors, edge cases, version.

Source: paper section 2.1.4; the anchors are ours and are read by annotators and judges alike.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from pararecover_core.errors import InputError

LEVELS: tuple[float, ...] = (1.0, 0.5, 0.0)
"""The three scores of a judged sub-dimension."""


class Anchors(msgspec.Struct, frozen=True):
    """What earns each of the three scores."""

    one: str = msgspec.field(name="1")
    half: str = msgspec.field(name="0.5")
    zero: str = msgspec.field(name="0")

    def of(self, level: float) -> str:
        """The anchor of a score in {0, 0.5, 1}."""
        return {1.0: self.one, 0.5: self.half, 0.0: self.zero}[level]


class Group(msgspec.Struct, frozen=True):
    """One of the three dimensions: Structural, Diagnostic, Evolutionary."""

    id: str
    name: str
    code: str
    question: str


class Dimension(msgspec.Struct, frozen=True):
    """A sub-dimension, such as D3."""

    id: str
    group: str
    name: str
    short: str
    question: str
    anchors: Anchors
    scored_by: str

    @property
    def judged(self) -> bool:
        """Whether people and judges score it (else a program computes it)."""
        return self.scored_by == "judged"


class Rubric(msgspec.Struct, frozen=True):
    """A rubric; another one can be loaded from a file of the same form."""

    id: str
    version: str
    groups: tuple[Group, ...]
    dimensions: tuple[Dimension, ...]
    edge_cases: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[Dimension, ...]:
        """The sub-dimensions that people and judges score, in rubric order."""
        return tuple(d for d in self.dimensions if d.judged)

    def dimension(self, dimension_id: str) -> Dimension:
        """One sub-dimension.

        Raises:
            InputError: The rubric has no such sub-dimension.
        """
        for dimension in self.dimensions:
            if dimension.id == dimension_id:
                return dimension
        known = ", ".join(d.id for d in self.dimensions)
        raise InputError("sub-dimension", repr(dimension_id), f"one of {known}", "Check its id")


def load_rubric(path: Path) -> Rubric:
    """Read a rubric file.

    Raises:
        InputError: The file is not a rubric; the message says where.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Rubric)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(
            str(path), str(error), "a rubric file", "Start from sde_rubric.json of this package"
        ) from error


@cache
def sde_rubric() -> Rubric:
    """The paper's rubric: 15 sub-dimensions, 13 of them judged, S5 and E5 computed."""
    return msgspec.json.decode(
        files("pararecover_core").joinpath("sde_rubric.json").read_bytes(), type=Rubric
    )


DIMENSIONS: tuple[str, ...] = tuple(d.id for d in sde_rubric().dimensions)
"""S1 to S5, D1 to D5, E1 to E5."""

JUDGED: tuple[str, ...] = tuple(d.id for d in sde_rubric().judged)
"""The 13 that people and judges score: all but S5 and E5."""
