"""``pararecover export sft|dpo|kto|stepwise|few-shot``: training data out of scored answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from annotations import training, training_files
from annotations.training_files import Wanted
from pararecover_cli.inputs import check_output, open_store
from pararecover_core.agents.planning import prompt_name
from pararecover_core.errors import InputError
from pararecover_core.formats.training import TRAINING_FORMS, add_dataset_info, write_training
from pararecover_core.formats.writers import target
from pararecover_core.pairing import GOLD
from pararecover_core.preferences import (
    INCOMPLETE,
    PAIRINGS,
    Candidate,
    Part,
    Rules,
    Selection,
    demonstrations,
)

Out = Annotated[Path, typer.Option(help="File to write, JSON lines.")]
Db = Annotated[Path | None, typer.Option(help="Database; else PARARECOVER_DB, else your own.")]
Scorer = Annotated[
    str, typer.Option(help="Whose totals: gold (people), judge:MODEL@PROMPT, human:NAME, program.")
]
FormName = Annotated[
    str, typer.Option("--format", help=f"One of {', '.join(TRAINING_FORMS)}; trl fits every kind.")
]
Above = Annotated[float, typer.Option(help="Good answers have a total above this, of 15.")]
Least = Annotated[float, typer.Option(help="Both answers of a pair have at least this total.")]
Gap = Annotated[float, typer.Option(help="Totals of a pair differ by more than this.")]
Pairs = Annotated[str, typer.Option(help=f"{' or '.join(PAIRINGS)}: the best with each, or all.")]
Share = Annotated[float, typer.Option(help="Share of tasks set apart for the test.")]
Seed = Annotated[int, typer.Option(help="Chooses the tasks of the test.")]
TestList = Annotated[
    Path | None,
    typer.Option(help="Query ids of the test, one a line, or the card of an earlier export."),
]
WhichPart = Annotated[str, typer.Option(help="train or test.")]
Tools = Annotated[bool, typer.Option(help="Put the tools into a column, not into the prompt.")]


def sft(
    out: Out,
    scorer: Scorer = GOLD,
    form: FormName = "trl",
    above: Above = 10.0,
    test_share: Share = 0.1,
    seed: Seed = 0,
    test_list: TestList = None,
    part: WhichPart = "train",
    tools: Tools = False,
    db: Db = None,
) -> None:
    """Write good answers for supervised fine-tuning.

    Example: pararecover export sft --scorer judge:gpt-4o@sde-1 --out sft.jsonl
    """
    rules = Rules(above, test_share=test_share, seed=seed, test_queries=_listed(test_list))
    _write(Wanted("sft", scorer, rules, form, _part(part), tools), out, db)


def dpo(
    out: Out,
    scorer: Scorer = GOLD,
    form: FormName = "trl",
    least: Least = 3.0,
    gap: Gap = 5.0,
    pairs: Pairs = "best",
    test_share: Share = 0.1,
    seed: Seed = 0,
    test_list: TestList = None,
    part: WhichPart = "train",
    tools: Tools = False,
    db: Db = None,
) -> None:
    """Write pairs of a better and a worse answer for preference learning.

    Example: pararecover export dpo --scorer gold --out dpo.jsonl
    """
    rules = Rules(
        least=least,
        gap=gap,
        pairs=pairs,
        test_share=test_share,
        seed=seed,
        test_queries=_listed(test_list),
    )
    _write(Wanted("dpo", scorer, rules, form, _part(part), tools), out, db)


def kto(
    out: Out,
    scorer: Scorer = GOLD,
    above: Above = 10.0,
    gap: Gap = 5.0,
    test_share: Share = 0.1,
    seed: Seed = 0,
    test_list: TestList = None,
    part: WhichPart = "train",
    db: Db = None,
) -> None:
    """Write single answers labelled good (total above --above) or bad (at most --above - --gap).

    Example: pararecover export kto --out kto.jsonl
    """
    rules = Rules(above, gap=gap, test_share=test_share, seed=seed, test_queries=_listed(test_list))
    _write(Wanted("kto", scorer, rules, part=_part(part)), out, db)


def stepwise(
    out: Out,
    scorer: Scorer = GOLD,
    above: Above = 10.0,
    test_share: Share = 0.1,
    seed: Seed = 0,
    test_list: TestList = None,
    part: WhichPart = "train",
    db: Db = None,
) -> None:
    """Write runs with a label for each round, for process reward models.

    A round is right where its answer has a total above --above; runs with an unscored round are
    left out.

    Example: pararecover export stepwise --out prm.jsonl
    """
    rules = Rules(above, test_share=test_share, seed=seed, test_queries=_listed(test_list))
    _write(Wanted("stepwise", scorer, rules, part=_part(part)), out, db)


def few_shot(
    out: Out,
    scorer: Scorer = GOLD,
    count: Annotated[int, typer.Option(help="How many demonstrations.")] = 3,
    above: Above = 10.0,
    test_share: Share = 0.1,
    seed: Seed = 0,
    test_list: TestList = None,
    db: Db = None,
) -> None:
    """Write the best answers as demonstrations for a prompt, each of another task.

    Example: pararecover export few-shot --out shots.json
    """
    check_output(out)
    store = open_store(db)
    rules = Rules(above, test_share=test_share, seed=seed, test_queries=_listed(test_list))
    wanted = Wanted("sft", scorer, rules)
    found = training.candidates(store, scorer)
    chosen = training_files.choose(wanted, found, training.decisions(store))
    shots = training.demonstration_texts(store, demonstrations(chosen.examples, count))
    listed = msgspec.to_builtins(shots)
    with target(out) as stream:
        stream.write(training.card(prompt=prompt_name(), scorer=scorer, demonstrations=listed))
    _report(found, chosen)
    typer.echo(f"{len(shots)} demonstrations written to {out}", err=True)


def _write(wanted: Wanted, out: Path, db: Path | None) -> None:
    form = training_files.form_of(wanted)
    check_output(out)
    store = open_store(db)
    found = training.candidates(store, wanted.scorer)
    chosen = training_files.choose(wanted, found, training.decisions(store))
    _report(found, chosen)
    written = write_training(training_files.texts(store, wanted, found, chosen), out, form)
    if written.repaired:
        lines = ", ".join(map(str, written.repaired[:20]))
        typer.echo(f"lone surrogates became U+FFFD in lines {lines}", err=True)
    what = "runs" if wanted.kind == "stepwise" else "examples"
    typer.echo(f"{written.rows:,} {what} written to {out} ({form.title})", err=True)
    card = out.with_name(f"{out.name}.card.json")
    with target(card) as stream:
        stream.write(training_files.card(wanted, chosen, written.rows))
    entry = training_files.entry(wanted, out.name)
    if entry is not None:
        listed = add_dataset_info(out.parent, out.stem, entry)
        typer.echo(f"data set {out.stem!r} entered into {listed}", err=True)


def _report(found: Sequence[Candidate], chosen: Selection) -> None:
    typer.echo(
        f"{chosen.tasks:,} tasks, {chosen.test_tasks:,} of them set apart for the test", err=True
    )
    for reason, count in chosen.excluded.items():
        typer.echo(f"left out: {count:,} {reason}", err=True)
    if INCOMPLETE in chosen.excluded:
        typer.echo(training.missing_words(found), err=True)


def _part(part: str) -> Part:
    if part == "train":
        return "train"
    if part == "test":
        return "test"
    raise InputError("--part", repr(part), "train or test", "Choose one of these")


def _listed(path: Path | None) -> tuple[str, ...]:
    """Query ids from a file of lines, or from a card.

    Raises:
        InputError: The file cannot be read, or lists none.
    """
    if path is None:
        return ()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), str(error), "a list of query ids", "Check the path") from error
    try:
        found = json.loads(text)["test_queries"] if text.lstrip().startswith("{") else None
    except (ValueError, KeyError, TypeError):
        found = []
    listed = text.splitlines() if found is None else found
    ids = tuple(str(one).strip() for one in listed if str(one).strip())
    if not ids:
        cure = "Write one query id a line, or name the card beside an earlier export"
        raise InputError(str(path), "no query ids", "query ids of the test", cure)
    return ids
