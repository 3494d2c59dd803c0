"""Training files as trainers take them: TRL and LLaMA-Factory, one JSON object a line.

Trainers read UTF-8 through Arrow, which refuses lone surrogates: they become U+FFFD, and the report
names the lines.

Source: documentation of TRL (dataset formats) and of LLaMA-Factory (data preparation); section 3.4
of the paper for what the examples are.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.formats.writers import target
from pararecover_core.literals import dumps

Messages = list[dict[str, str]]


class TrainingText(msgspec.Struct, frozen=True):
    """The texts of one example.

    Attributes:
        prompt: Chat messages: one of the system, then turns that end with the user's.
        chosen: The answer to learn.
        rejected: The worse answer of a pair, "" where there is none.
        label: Of an answer alone (KTO): whether it is a good one.
        tools: Listed tools as JSON schemas; empty where the prompt holds them.
        steps: Answers round by round (stepwise).
        labels: Whether each of them is right.
    """

    prompt: Messages
    chosen: str
    rejected: str = ""
    label: bool = True
    tools: tuple[dict[str, Any], ...] = ()
    steps: tuple[str, ...] = ()
    labels: tuple[bool, ...] = ()


class Written(msgspec.Struct, frozen=True):
    """What was written.

    Attributes:
        rows: Number of lines.
        repaired: Lines (from 1) where lone surrogates became U+FFFD.
    """

    rows: int
    repaired: tuple[int, ...] = ()


Row = dict[str, Any]


def _assistant(text: str) -> Messages:
    return [{"role": "assistant", "content": text}]


def _with_tools(row: Row, one: TrainingText) -> Row:
    """The column ``tools`` as JSON text: Arrow cannot type schemas that differ by row."""
    return {**row, "tools": dumps(one.tools)} if one.tools else row


def trl_completion(one: TrainingText) -> Row:
    """TRL, SFT: the loss is on the completion alone."""
    return _with_tools({"prompt": one.prompt, "completion": _assistant(one.chosen)}, one)


def trl_messages(one: TrainingText) -> Row:
    """TRL, SFT as one conversation."""
    return _with_tools({"messages": [*one.prompt, *_assistant(one.chosen)]}, one)


def trl_preference(one: TrainingText) -> Row:
    """TRL, DPO with an explicit prompt."""
    pair = {"chosen": _assistant(one.chosen), "rejected": _assistant(one.rejected)}
    return _with_tools({"prompt": one.prompt, **pair}, one)


def trl_kto(one: TrainingText) -> Row:
    """TRL, KTO: single answers, good or not."""
    return {"prompt": one.prompt, "completion": _assistant(one.chosen), "label": one.label}


def trl_stepwise(one: TrainingText) -> Row:
    """TRL, stepwise supervision (PRM): one label a round."""
    text = "\n\n".join(message["content"] for message in one.prompt)
    return {"prompt": text, "completions": list(one.steps), "labels": list(one.labels)}


_FROM = {"user": "human", "assistant": "gpt"}


def _split(one: TrainingText) -> tuple[str, Messages]:
    """The system text, and the turns."""
    system = [m["content"] for m in one.prompt if m["role"] == "system"]
    return "\n\n".join(system), [m for m in one.prompt if m["role"] != "system"]


def check_turns(conversation: Sequence[dict[str, str]], *, ranking: bool) -> None:
    """Refuse a conversation that LLaMA-Factory would skip with no more than a warning.

    Raises:
        InputError: Odd turns are not all the user's or a tool's, even ones not all the model's, or
            the last one is of the wrong side.
    """
    sides = [("human", "observation"), ("gpt", "function_call")]
    wrong = next((i for i, m in enumerate(conversation) if m["from"] not in sides[i % 2]), None)
    if wrong is not None or len(conversation) % 2 != (1 if ranking else 0):
        got = f"{len(conversation)} turns" if wrong is None else f"turn {wrong + 1} out of turn"
        expected = "human and gpt in turn, " + (
            "the last one human" if ranking else "the last one gpt"
        )
        raise InputError("conversation", got, expected, "Give the messages in turn")


def sharegpt(one: TrainingText) -> Row:
    """LLaMA-Factory, sharegpt: SFT, or ranking where there is a rejected answer."""
    system, messages = _split(one)
    turns = [{"from": _FROM[m["role"]], "value": m["content"]} for m in messages]
    row: Row = {"conversations": turns, "system": system}
    if one.rejected:
        row["chosen"] = {"from": "gpt", "value": one.chosen}
        row["rejected"] = {"from": "gpt", "value": one.rejected}
    else:
        turns.append({"from": "gpt", "value": one.chosen})
    check_turns(turns, ranking=bool(one.rejected))
    return _with_tools(row, one)


def alpaca(one: TrainingText) -> Row:
    """LLaMA-Factory, alpaca: SFT, or ranking where there is a rejected answer."""
    system, messages = _split(one)
    *before, last = [m["content"] for m in messages]
    row: Row = {"instruction": last, "input": "", "system": system}
    if before:
        row["history"] = [list(pair) for pair in zip(before[::2], before[1::2], strict=True)]
    if one.rejected:
        return row | {"chosen": one.chosen, "rejected": one.rejected}
    return row | {"output": one.chosen}


class Form(msgspec.Struct, frozen=True):
    """A format: what it holds, for which kinds of examples.

    Attributes:
        kinds: "sft", "dpo", "kto", "stepwise": what it can be written from.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    row: Callable[[TrainingText], Row]


TRAINING_FORMS = {
    form.name: form
    for form in (
        Form("trl", "TRL, prompt and completion", ("sft",), trl_completion),
        Form("trl-messages", "TRL, messages", ("sft",), trl_messages),
        Form("trl-preference", "TRL, chosen and rejected", ("dpo",), trl_preference),
        Form("trl-kto", "TRL, KTO", ("kto",), trl_kto),
        Form("trl-stepwise", "TRL, stepwise", ("stepwise",), trl_stepwise),
        Form("llama-factory-sharegpt", "LLaMA-Factory, sharegpt", ("sft", "dpo"), sharegpt),
        Form("llama-factory-alpaca", "LLaMA-Factory, alpaca", ("sft", "dpo"), alpaca),
    )
}
"""Formats by name."""


def form_for(kind: str, name: str) -> Form:
    """The format of a name for a kind of examples; "trl" is the usual one of each kind.

    Raises:
        InputError: There is none of that name, or it cannot hold these examples.
    """
    usual = {"dpo": "trl-preference", "kto": "trl-kto", "stepwise": "trl-stepwise"}
    found = TRAINING_FORMS.get(usual.get(kind, name) if name == "trl" else name)
    if found is None or kind not in found.kinds:
        known = [form.name for form in TRAINING_FORMS.values() if kind in form.kinds]
        expected = f"one of {', '.join(known)}"
        raise InputError("format", repr(name), expected, f"Choose one that holds {kind}")
    return found


def write_training(texts: Iterable[TrainingText], path: Path | BinaryIO, form: Form) -> Written:
    """Write examples, one JSON object a line; streaming.

    Args:
        texts: N examples.
        path: A file, written beside and moved into place, or an open binary stream.
        form: The format.

    Returns:
        The number of lines, and which of them had lone surrogates.
    """
    repaired, count = [], 0
    with target(path) as stream:
        for count, one in enumerate(texts, start=1):
            row = form.row(one)
            line = dumps(row)
            if "\\ud" in line:  # an escaped surrogate, or a text that spells one
                sound = _sound(row)
                repaired += [count] if sound != row else []
                line = json.dumps(sound, ensure_ascii=False)
            stream.write(line.encode("utf-8") + b"\n")
    return Written(count, tuple(repaired))


def _sound(value: Any) -> Any:
    """The same without lone surrogates."""
    if isinstance(value, dict):
        return {_sound(name): _sound(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(inner) for inner in value]
    if not isinstance(value, str):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dataset_entry(form: Form, kind: str, file_name: str, *, tools: bool = False) -> Row:
    """What LLaMA-Factory's ``dataset_info.json`` says of a file.

    Args:
        form: One of its two formats.
        kind: "sft" or "dpo".
        file_name: Name of the file, in the folder of ``dataset_info.json``.
        tools: Whether the rows have the column ``tools``.
    """
    ranking = kind == "dpo"
    answers = {"chosen": "chosen", "rejected": "rejected"} if ranking else {}
    entry: Row = {"file_name": file_name}
    if ranking:
        entry["ranking"] = True
    if form.name == "llama-factory-sharegpt":
        entry["formatting"] = "sharegpt"
        columns = {"messages": "conversations", "system": "system", **answers}
        if tools:
            columns["tools"] = "tools"
    else:
        output = {} if ranking else {"response": "output"}
        columns = {"prompt": "instruction", "query": "input", "system": "system"}
        columns |= output | answers
    return {**entry, "columns": columns}


def add_dataset_info(folder: Path, name: str, entry: Row) -> Path:
    """Put an entry into ``dataset_info.json`` of a folder, beside those that are there.

    Returns:
        The file.

    Raises:
        InputError: The file that is there is no JSON object.
    """
    path = folder / "dataset_info.json"
    held: Any = {}
    if path.is_file():
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            held = None
        if not isinstance(held, dict):
            cure = "Correct it, or write into another folder"
            raise InputError(str(path), "no JSON object", "LLaMA-Factory's list of data sets", cure)
    text = json.dumps({**held, name: entry}, ensure_ascii=False, indent=2)
    handle, part = tempfile.mkstemp(prefix=".dataset_info.", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
    os.chmod(part, 0o644)
    os.replace(part, path)
    return path
