"""Judge prompts: those of the package and the versions that people made from them.

A version is never changed: an edit is a new version with a parent and a note.
"""

import sqlite3
from typing import Any

import msgspec
import orjson

from annotations.score_log import storable
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.judges.prompt import Prompt, built_in_prompts, check_text
from pararecover_core.literals import dumps


class Listed(msgspec.Struct, frozen=True):
    """A prompt and where it comes from.

    Attributes:
        author: Who made the version, "" for built-in ones.
        at: When, ISO 8601, "" for built-in ones.
    """

    prompt: Prompt
    author: str = ""
    at: str = ""

    @property
    def built_in(self) -> bool:
        """Whether it came with the package."""
        return not self.at


def list_prompts(store: Store | None) -> list[Listed]:
    """All prompts, by id and version; without a database those that are built in."""
    made = [] if store is None else _made(store)
    found = [*(Listed(prompt) for prompt in built_in_prompts().values()), *made]
    return sorted(found, key=lambda one: (one.prompt.id, one.prompt.version))


def _made(store: Store) -> list[Listed]:
    with store.read() as db:
        return [_listed(row) for row in db.execute("SELECT * FROM prompt")]


def get_prompt(store: Store | None, name: str) -> Prompt:
    """A prompt by its name, such as ``sde-1``; the newest version where only the id is given.

    Raises:
        InputError: There is none of that name.
    """
    found = [one.prompt for one in list_prompts(store)]
    for prompt in found:
        if prompt.name == name:
            return prompt
    newest = [prompt for prompt in found if prompt.id == name]
    if newest:
        return newest[-1]
    known = ", ".join(prompt.name for prompt in found)
    raise InputError("prompt", repr(name), f"one of {known}", "Name one of them, or import it")


def get_prompts(store: Store, names: str) -> tuple[Prompt, ...]:
    """Prompts that are used side by side, named with ``+`` between: ``s-1+d-1+e-1``.

    Raises:
        InputError: A name is unknown, or two prompts ask for the same sub-dimension.
    """
    found = tuple(get_prompt(store, name.strip()) for name in names.split("+"))
    asked: dict[str, str] = {}
    for prompt in found:
        for dimension in prompt.dimensions:
            other = asked.setdefault(dimension, prompt.name)
            if other != prompt.name or found.count(prompt) > 1:
                got = f"{dimension} asked by {other} and {prompt.name}"
                raise InputError("prompts", got, "each sub-dimension once", "Leave one out")
    return found


def save_version(store: Store, parent: Prompt, text: str, *, note: str, author: str) -> Prompt:
    """Make a new version of a prompt from an edited text.

    Raises:
        InputError: The text lacks a slot, or is the parent's.
    """
    text = storable(text.replace("\r\n", "\n")).strip()
    check_text(text, where=f"prompt {parent.id}")
    if text == parent.text:
        got = f"the text of version {parent.version}"
        raise InputError(f"prompt {parent.id}", got, "a changed text", "Edit it first")
    draft = msgspec.structs.replace(parent, text=text, parent=parent.version, note=storable(note))
    with store.write() as db:
        version = _newest(db, parent.id) + 1
        prompt = msgspec.structs.replace(draft, version=version)
        _insert(db, prompt, author, store.now())
    return prompt


def import_prompt(store: Store, prompt: Prompt, *, author: str = "") -> bool:
    """Take a prompt from a file.

    Returns:
        False where the very same prompt was there already.

    Raises:
        InputError: Its id and version stand for another text.
    """
    with store.write() as db:
        known = _known(db, prompt.id, prompt.version)
        if known is None:
            _insert(db, prompt, author, store.now())
            return True
    if (known.text, known.dimensions) != (prompt.text, prompt.dimensions):
        got = f"{prompt.name} with another text than the {prompt.name} that is here"
        cure = "Raise the version in the file's head"
        raise InputError("prompt", got, "a version of its own", cure)
    return False


def _known(db: sqlite3.Connection, id: str, version: int) -> Prompt | None:
    row = db.execute("SELECT * FROM prompt WHERE id = ? AND version = ?", (id, version)).fetchone()
    return _listed(row).prompt if row else built_in_prompts().get(f"{id}-{version}")


def _newest(db: sqlite3.Connection, id: str) -> int:
    made = db.execute("SELECT MAX(version) FROM prompt WHERE id = ?", (id,)).fetchone()[0] or 0
    own = [prompt.version for prompt in built_in_prompts().values() if prompt.id == id]
    return max([made, *own])


def _insert(db: sqlite3.Connection, prompt: Prompt, author: str, at: str) -> None:
    values: tuple[Any, ...] = (
        *(prompt.id, prompt.version, prompt.parent, dumps(prompt.dimensions), prompt.text),
        *(prompt.note, author, at),
    )
    db.execute(
        "INSERT INTO prompt (id, version, parent, dimensions, text, note, author, at) "
        "VALUES (?,?,?,?,?,?,?,?)",
        values,
    )


def _listed(row: sqlite3.Row) -> Listed:
    dimensions = tuple(orjson.loads(row["dimensions"]))
    prompt = Prompt(
        *(row["id"], row["version"], row["text"], row["parent"], row["note"]), dimensions
    )
    return Listed(prompt, row["author"], row["at"])
