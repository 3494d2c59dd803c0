"""Prompts that come with the package as files: a head with id, version and note, then the text."""

from functools import cache
from importlib.resources import files

import msgspec

from pararecover_core.errors import InputError


class PromptFile(msgspec.Struct, frozen=True):
    """A prompt of an agent or an environment; what it answers is the code's business."""

    id: str
    version: int
    note: str
    text: str

    @property
    def name(self) -> str:
        """Id and version: ``plan-1``."""
        return f"{self.id}-{self.version}"


@cache
def agent_prompt(name: str) -> PromptFile:
    """A file of ``agents/prompts`` without its ending.

    Raises:
        InputError: The file has no head.
    """
    text = files("pararecover_core").joinpath("agents", "prompts", f"{name}.md").read_text("utf-8")
    _, head, body = [*text.split("---\n", 2), "", ""][:3]
    fields = dict(line.partition(":")[::2] for line in head.splitlines())
    values = {field.strip(): value.strip() for field, value in fields.items()}
    if not body or not values.get("version", "").isdecimal():
        raise InputError(f"{name}.md", "no head", "id, version and note", "Correct the file")
    return PromptFile(values["id"], int(values["version"]), values.get("note", ""), body.strip())
