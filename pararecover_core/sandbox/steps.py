"""The steps of a task: calls whose values are literal or come from other steps."""

from typing import Any

import msgspec


class Link(msgspec.Struct, frozen=True):
    """A value that comes from another step's result."""

    step: int
    field: str


class Step(msgspec.Struct, frozen=True):
    """One call: a tool and its values, literal or linked."""

    tool: str
    arguments: dict[str, Any]

    @property
    def needs(self) -> tuple[int, ...]:
        """Steps whose results it uses, in order, without repeats."""
        links = (value.step for value in self.arguments.values() if isinstance(value, Link))
        return tuple(sorted(set(links)))


def step_id(index: int) -> str:
    """The node id of a step."""
    return str(index + 1)


def reference(value: Any) -> Any:
    """A value as the plan writes it: a link as "$ID.field", a literal as it is."""
    return f"${step_id(value.step)}.{value.field}" if isinstance(value, Link) else value
