"""``pararecover refine``: refine a judge's prompt automatically on a session's dev split."""

from pathlib import Path
from typing import Annotated

import typer

from annotations import sessions
from annotations.judges import answers
from annotations.methods import methods
from annotations.prompts import get_prompt
from annotations.refine_job import refine_session
from annotations.refining import dev_items
from pararecover_cli.inputs import open_store
from pararecover_core.completions import endpoint_from_environment
from pararecover_core.figures import fixed
from pararecover_core.literals import dumps
from pararecover_core.llm import Model
from pararecover_core.refine import Fate, Outcome, Rules, Step
from pararecover_core.refine_models import ModelProposer


def refine(
    db: Annotated[Path, typer.Option(help="The database.")],
    judge: Annotated[str, typer.Option(help="Model that judges, at OPENAI_BASE_URL.")],
    session: Annotated[str, typer.Option(help="Calibration session, by name or number.")],
    prompt: Annotated[
        str, typer.Option(help="Prompt to begin with, such as e-1; an id means its newest version.")
    ] = "sde",
    proposer: Annotated[
        str, typer.Option(help="Model that proposes edits; the judge's where left out.")
    ] = "",
    tries: Annotated[int, typer.Option(min=1, help="Stop after so many edits without a win.")] = 3,
    most: Annotated[int, typer.Option(min=1, help="Edits in all.")] = 20,
    tokens: Annotated[int, typer.Option(min=0, help="Budget of tokens; 0: none.")] = 0,
    money: Annotated[float, typer.Option(min=0, help="Budget in US dollars; 0: none.")] = 0.0,
    ema: Annotated[float, typer.Option(min=0, max=1, help="Target EMA; 0: none.")] = 0.0,
    mae: Annotated[float, typer.Option(min=0, max=1, help="Target MAE; 1: none.")] = 1.0,
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=0.5,
            help="Chance of a needless edit, over all tries at one version: the j-th must have "
            "p < alpha / (j (j + 1)).",
        ),
    ] = 0.05,
    concurrency: Annotated[int, typer.Option(min=1, help="Proposer calls at once.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a step.")] = False,
) -> None:
    """Propose edits of a prompt and keep those that win on dev by a paired test.

    Stopped at any moment, the same command goes on where it was. The held-out split is not read.

    Example: pararecover refine --db study.db --judge gpt-4o --session Pilot --prompt e
    """
    store = open_store(db)
    chosen = sessions.find_session(store, session)
    start = get_prompt(store, prompt)
    endpoint = endpoint_from_environment(proposer or judge, concurrency=concurrency)
    model = Model(endpoint, cache=answers())

    def tell(step: Step) -> None:
        typer.echo(_line(step), err=True)
        if as_json:
            typer.echo(dumps(_document(step)))

    outcome = refine_session(
        store,
        chosen.id,
        judge,
        start,
        ModelProposer(model, dev_items(store, chosen.id)),
        rules=Rules(alpha, tries, most, tokens, money, ema, mae),
        author="pararecover refine",
        done=tell,
    )
    if not as_json:
        typer.echo(_end(outcome))


def _line(step: Step) -> str:
    if step.paired is None:
        return f"{step.prompt.name}: {step.fate}. {step.detail}".rstrip(". ")
    change = fixed(step.paired.ema.value, 4, sign=True)
    return (
        f"{step.prompt.name} ({step.dimension}): EMA {fixed(step.ema)} ({change}), "
        f"{step.paired.fixed} fixed, {step.paired.broken} broken, p = {step.paired.p:.3g}: "
        f"{step.fate}"
    )


def _document(step: Step) -> dict[str, object]:
    paired = step.paired
    return {
        "prompt": step.prompt.name,
        "fate": step.fate.value,
        "dimension": step.dimension,
        "n": step.n,
        "ema": step.ema if step.n else None,
        "mae": step.mae if step.n else None,
        "fixed": paired.fixed if paired else None,
        "broken": paired.broken if paired else None,
        "p": paired.p if paired else None,
        "tokens": step.tokens,
        "cost": None if step.unpriced else step.cost,
        "note": step.prompt.note,
        "detail": step.detail,
    }


def _end(outcome: Outcome) -> str:
    won = sum(step.fate is Fate.ACCEPTED for step in outcome.steps)
    tried = len(outcome.steps) - 1
    return (
        f"Best prompt: {outcome.prompt.name}. {won} of {tried} edits accepted. "
        f"Stopped: {outcome.stopped}."
    )


def methods_text(
    db: Annotated[Path, typer.Option(help="The database.")],
    session: Annotated[str, typer.Option(help="Calibration session, by name or number.")],
    form: Annotated[str, typer.Option(help="text, markdown or latex.")] = "text",
) -> None:
    """Print a session's history as a methods paragraph with a table.

    Example: pararecover methods --db study.db --session Pilot --form latex
    """
    store = open_store(db)
    typer.echo(methods(store, sessions.find_session(store, session).id, form))
