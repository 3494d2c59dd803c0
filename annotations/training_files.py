"""Training files to take away: which examples, their texts, the card, the entry of a data set."""

import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import orjson

from annotations import training
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.formats.training import (
    Form,
    TrainingText,
    Written,
    dataset_entry,
    form_for,
    write_training,
)
from pararecover_core.preferences import (
    Candidate,
    Decision,
    Kind,
    Part,
    Rules,
    Selection,
    of_part,
    select,
)

KINDS = ("sft", "dpo", "kto", "stepwise")


class Wanted(msgspec.Struct, frozen=True):
    """What is asked for.

    Attributes:
        kind: One of ``KINDS``.
        scorer: Whose totals.
        form: Name of a format; "trl" is the usual one of each kind.
        tools: Whether tools go into a column of their own.
    """

    kind: str
    scorer: str
    rules: Rules = Rules()
    form: str = "trl"
    part: Part = "train"
    tools: bool = False


def form_of(wanted: Wanted) -> Form:
    """The format.

    Raises:
        InputError: It cannot hold these examples, or tools of their own.
    """
    form = form_for(wanted.kind, wanted.form)
    if wanted.tools and (form.name.endswith("alpaca") or wanted.kind in ("kto", "stepwise")):
        cure = "Leave the tools in the prompt, or choose a format with that column"
        raise InputError("--tools", f"the format {form.name}", "a format with tools", cure)
    return form


def choose(
    wanted: Wanted, found: Sequence[Candidate], decisions: Iterable[Decision] = ()
) -> Selection:
    """The examples; of runs (stepwise) the tasks of the split alone.

    Raises:
        InputError: The test list leaks, or names nothing that is here.
    """
    kind: Kind = "dpo" if wanted.kind == "dpo" else "kto" if wanted.kind == "kto" else "sft"
    chosen = select(found, wanted.rules, kind=kind, part=wanted.part, decisions=decisions)
    if wanted.kind == "stepwise":
        return msgspec.structs.replace(chosen, examples=(), dropped=(), excluded={})
    return chosen


def texts(
    store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection
) -> Iterator[TrainingText]:
    """What the file will hold, one at a time."""
    if wanted.kind == "stepwise":
        mine = of_part(found, wanted.rules, wanted.part)
        return training.stepwise(store, mine, wanted.rules.above)
    good = wanted.rules.above if wanted.kind == "kto" else 0.0
    return training.texts(store, chosen.examples, tools_apart=wanted.tools, good=good)


def card(wanted: Wanted, chosen: Selection, rows: int) -> bytes:
    """What a file was made from: enough to make it again, and to hold the test set fixed."""
    told = training.facts(chosen, wanted.rules, wanted.scorer, form_of(wanted).name)
    return training.card(**told | {"kind": wanted.kind, "examples": rows})


def entry(wanted: Wanted, file_name: str) -> dict[str, Any] | None:
    """What LLaMA-Factory's ``dataset_info.json`` says of the file; None for other trainers."""
    form = form_of(wanted)
    if not form.name.startswith("llama-factory"):
        return None
    return dataset_entry(form, wanted.kind, file_name, tools=wanted.tools)


def zipped(
    store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection, name: str
) -> bytes:
    """The file, its card and, for LLaMA-Factory, ``dataset_info.json``, in one archive.

    Args:
        store: The database.
        wanted: What is asked for.
        found: Every answer.
        chosen: What ``choose`` gave.
        name: Name of the file, ending in ``.jsonl``.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        with made.open(name, "w") as stream:
            written = _into(stream, store, wanted, found, chosen)
        made.writestr(f"{name}.card.json", card(wanted, chosen, written.rows))
        listed = entry(wanted, name)
        if listed is not None:
            text = orjson.dumps({name.removesuffix(".jsonl"): listed}, option=orjson.OPT_INDENT_2)
            made.writestr("dataset_info.json", text + b"\n")
    return archive.getvalue()


def plain(store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection) -> bytes:
    """The file alone."""
    stream = io.BytesIO()
    _into(stream, store, wanted, found, chosen)
    return stream.getvalue()


def _into(
    stream: Any, store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection
) -> Written:
    return write_training(texts(store, wanted, found, chosen), stream, form_of(wanted))
