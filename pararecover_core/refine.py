"""Automatic refinement of a judge prompt: propose an edit, keep it only if it wins on dev.

The loop knows three things by Protocol: who judges dev with a prompt, who proposes an edit, and
where steps are kept. The rule of acceptance is ours: the paired test on the dev split must be
passed and the interval of the difference of EMA must exclude 0. (Package gepa was looked at: it
decides by the mean score of a minibatch and keeps a Pareto front, so that our rule would have to
judge each of its candidates once more; a loop of this length is simpler to check.)

Many tries at one parent would let chance win: the j-th edit tested against a parent must have a p
below alpha / (j (j + 1)). These shares add up to alpha, however many tries there are and however
often the refinement is stopped and taken up again, so that a parent is replaced without reason
with probability alpha at most.

Everything that was tried is a ``Step``; a run that was stopped goes on from its steps.

Source: paper section 3.3 (the prompt is refined against people's scores); the loop is ours.
Shares of alpha: Tian and Ramdas, "Online control of the familywise error rate" (Statistical
Methods in Medical Research, 2021), Alpha-Spending with gamma_j = 1 / (j (j + 1)).
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from pararecover_core.compare import Changed, Paired, Verdict, compare, repeated_runs
from pararecover_core.completions import Usage
from pararecover_core.errors import InputError
from pararecover_core.judges.prompt import Prompt, check_text
from pararecover_core.pairing import CellKey

SHOWN = 12
"""Disagreements that a proposer is shown at most."""


class Judged(NamedTuple):
    """What judging dev with a prompt gave.

    Attributes:
        scores: By cell; failures have none.
        reasons: The judge's reason by cell.
        failed: Calls without an answer.
        cost: US dollars; None where the price is unknown.
    """

    scores: Mapping[CellKey, float]
    reasons: Mapping[CellKey, str] = {}
    usage: Usage = Usage()
    failed: int = 0
    cost: float | None = None


class Disagreement(NamedTuple):
    """A dev cell in which the judge and people differ."""

    sample: str
    dimension: str
    human: float
    judge: float
    reason: str


class Situation(NamedTuple):
    """What a proposer sees; dev alone.

    Attributes:
        prompt: The prompt to edit.
        dimension: The weakest sub-dimension.
        disagreements: Its cells in which people and judge differ, largest first.
        refused: Notes and reasons of edits that were tried on this prompt and refused.
    """

    prompt: Prompt
    dimension: str
    ema: float
    disagreements: tuple[Disagreement, ...]
    refused: tuple[str, ...]


class Proposal(NamedTuple):
    """An edited text, "" for none, and why."""

    text: str
    note: str
    usage: Usage = Usage()
    cost: float | None = None


class Interrupted(Exception):
    """Judging was stopped by hand before every call was made: no step comes of it."""


class DevJudge(Protocol):
    """Judges the dev split with a prompt."""

    def judge(self, prompt: Prompt) -> Judged:
        """Score every dev cell of the prompt's sub-dimensions.

        Raises:
            Interrupted: It was stopped before the end.
        """


class Proposer(Protocol):
    """Proposes an edit."""

    def propose(self, situation: Situation) -> Proposal:
        """The whole edited text of the prompt."""


class Rules(msgspec.Struct, frozen=True):
    """When an edit wins and when to stop.

    Attributes:
        alpha: Chance that a parent is replaced without reason, over all edits tested against it;
            each of them gets a share (``share_of``), below which its p must lie.
        tries: Edits in a row without a win after which to stop.
        most: Edits in all.
        tokens: Budget of tokens, 0 for none. Budgets are looked at between edits.
        money: Budget in US dollars, 0 for none; calls of unknown price do not count.
        ema: Target; with ``mae`` both must be reached. 0 for none.
        mae: Target; 1 for none.
        repeat: Words in a row that an edit may not share with a dev sample.
    """

    alpha: float = 0.05
    tries: int = 3
    most: int = 20
    tokens: int = 0
    money: float = 0.0
    ema: float = 0.0
    mae: float = 1.0
    repeat: int = 8


class Fate(StrEnum):
    """What became of an edit."""

    START = "start"
    ACCEPTED = "accepted"
    NO_WIN = "refused: no win on dev"
    INVALID = "refused: the prompt cannot work"
    UNCHANGED = "refused: nothing changed"
    REPEATS = "refused: repeats dev samples"
    INCOMPLETE = "refused: too many calls failed"


class Step(msgspec.Struct, frozen=True):
    """One try.

    Attributes:
        prompt: The version that was tried.
        paired: Against the version before, None where it was not judged.
        tokens: Tokens of proposing and judging.
        detail: Why it was refused, in words.
    """

    number: int
    fate: Fate
    prompt: Prompt
    dimension: str = ""
    ema: float = math.nan
    mae: float = math.nan
    n: int = 0
    paired: Paired | None = None
    tokens: int = 0
    cost: float = 0.0
    unpriced: bool = False
    detail: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """How a refinement ended."""

    prompt: Prompt
    steps: tuple[Step, ...]
    stopped: str


def refine(
    start: Prompt,
    human: Mapping[CellKey, float],
    judge: DevJudge,
    proposer: Proposer,
    *,
    rules: Rules | None = None,
    texts: Sequence[str] = (),
    history: Sequence[Step] = (),
    done: Callable[[Step], object] = lambda step: None,
    version_of: Callable[[str], int] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Refine a prompt on dev until nothing wins, a budget or a target is reached.

    Args:
        start: The prompt to begin with.
        human: People's dev scores by cell; the held-out split has no place here.
        judge: Judges dev.
        proposer: Proposes edits.
        rules: When an edit wins and when to stop.
        texts: Texts of dev samples, which an edit must not repeat.
        history: Steps of an earlier run of the same refinement: it goes on after them.
        done: Called with each step as soon as it is known; keeps it.
        version_of: Gives the number of a version with this text; by default one more than the
            newest.
        cancelled: Asked before each try.

    Raises:
        InputError: People scored nothing that the prompt asks for.
    """
    rules = rules or Rules()
    asked = {key: value for key, value in human.items() if key[1] in start.dimensions}
    if not asked:
        cure = "Have people score the sample first, then take their scores in"
        raise InputError("dev split", "no score of people", "at least one", cure)
    steps = list(history)

    def note(step: Step) -> None:
        steps.append(step)
        done(step)

    best = next((s.prompt for s in reversed(steps) if s.fate in _STANDS), start)
    try:
        known = judge.judge(best)
    except Interrupted:
        return Outcome(best, tuple(steps), BY_HAND)
    if not steps:
        note(_first_step(best, asked, known))
    while not (why := _stop(steps, rules, asked, known, cancelled)):
        try:
            step, judged = _try(
                best, asked, known, judge, proposer, rules, texts, steps, version_of
            )
        except Interrupted:
            why = BY_HAND
            break
        note(step)
        if step.fate is Fate.ACCEPTED and judged is not None:
            best, known = step.prompt, judged
    return Outcome(best, tuple(steps), why)


def _first_step(start: Prompt, asked: Mapping[CellKey, float], known: Judged) -> Step:
    ema, mae, n = _figures(asked, known.scores)
    return Step(
        0,
        Fate.START,
        start,
        ema=ema,
        mae=mae,
        n=n,
        tokens=_tokens(known.usage),
        cost=known.cost or 0.0,
        unpriced=known.cost is None,
    )


BY_HAND = "stopped by hand"
_STANDS = (Fate.START, Fate.ACCEPTED)


def share_of(alpha: float, test: int) -> float:
    """What of alpha the edit gets that is tested as number ``test`` (from 1) against a parent.

    Returns:
        alpha / (test (test + 1)): a half, a sixth, a twelfth, ...; all together alpha.
    """
    return alpha / (test * (test + 1))


def _since_parent(steps: Sequence[Step]) -> list[Step]:
    """Edits of the version that stands, newest first."""
    return list(itertools.takewhile(lambda step: step.fate not in _STANDS, reversed(steps)))


def _tokens(usage: Usage) -> int:
    return usage.prompt + usage.completion


def _figures(
    human: Mapping[CellKey, float], scores: Mapping[CellKey, float]
) -> tuple[float, float, int]:
    """EMA, MAE and n over cells."""
    both = [(human[key], scores[key]) for key in human if key in scores]
    if not both:
        return math.nan, math.nan, 0
    n = len(both)
    return sum(h == j for h, j in both) / n, sum(abs(h - j) for h, j in both) / n, n


def _stop(
    steps: Sequence[Step],
    rules: Rules,
    human: Mapping[CellKey, float],
    known: Judged,
    cancelled: Callable[[], bool],
) -> str:
    """Why to stop, "" to go on."""
    if cancelled():
        return BY_HAND
    ema, mae, n = _figures(human, known.scores)
    if not n:
        return "the judge gave no score on dev"
    if (rules.ema > 0 or rules.mae < 1) and ema >= rules.ema and mae <= rules.mae:
        return f"target reached: EMA {ema:.4f}, MAE {mae:.4f}"
    if ema == 1:
        return "the judge agrees with people on every dev cell"
    tokens, cost = sum(s.tokens for s in steps), sum(s.cost for s in steps)
    if rules.tokens and tokens >= rules.tokens:
        return f"budget of {rules.tokens:,} tokens used up"
    if rules.money and cost >= rules.money:
        return f"budget of {rules.money:g} US dollars used up"
    since = len(_since_parent(steps))
    if since >= rules.tries:
        return f"nothing won in {since} {'try' if since == 1 else 'tries'}"
    tried = sum(step.fate is not Fate.START for step in steps)
    return f"{tried} {'edit' if tried == 1 else 'edits'} tried" if tried >= rules.most else ""


def _try(
    best: Prompt,
    human: Mapping[CellKey, float],
    known: Judged,
    judge: DevJudge,
    proposer: Proposer,
    rules: Rules,
    texts: Sequence[str],
    steps: Sequence[Step],
    version_of: Callable[[str], int] | None,
) -> tuple[Step, Judged | None]:
    seen = situation(best, human, known, steps)
    proposal = proposer.propose(seen)
    newest = max(s.prompt.version for s in steps)
    version = version_of(proposal.text) if version_of else newest + 1
    edited = msgspec.structs.replace(
        best, version=version, parent=best.version, text=proposal.text, note=proposal.note
    )
    base = Step(
        len(steps),
        Fate.NO_WIN,
        edited,
        seen.dimension,
        tokens=_tokens(proposal.usage),
        cost=proposal.cost or 0.0,
        unpriced=proposal.cost is None,
    )
    fate, detail = _worth_judging(edited, best, rules, texts)
    if fate is not None:
        return msgspec.structs.replace(base, fate=fate, detail=detail), None
    judged = judge.judge(edited)
    tested = sum(step.fate is Fate.NO_WIN for step in _since_parent(steps))
    return _weigh(base, human, known, judged, share_of(rules.alpha, tested + 1)), judged


def _worth_judging(
    edited: Prompt, best: Prompt, rules: Rules, texts: Sequence[str]
) -> tuple[Fate | None, str]:
    if not edited.text.strip() or edited.text.split() == best.text.split():
        return Fate.UNCHANGED, "the same text as before"
    try:
        check_text(edited.text, where="the edit")
    except InputError as error:
        return Fate.INVALID, str(error)
    old = set(repeated_runs(best.text, texts, words=rules.repeat))
    runs = [r for r in repeated_runs(edited.text, texts, words=rules.repeat) if r not in old]
    return (Fate.REPEATS, f"repeats: {runs[0][:200]}") if runs else (None, "")


def _weigh(
    base: Step, human: Mapping[CellKey, float], known: Judged, judged: Judged, alpha: float
) -> Step:
    ema, mae, n = _figures(human, judged.scores)
    paired = compare(human, known.scores, judged.scores).overall
    lost = sum(key in known.scores and key not in judged.scores for key in human)
    fate, detail = Fate.NO_WIN, f"{paired.verdict}, p = {paired.p:.3g}, to win: below {alpha:.3g}"
    if lost > 0.02 * max(1, len(known.scores)):
        fate, detail = Fate.INCOMPLETE, f"{lost} cells that had a score have none"
    elif wins(paired, alpha):
        fate = Fate.ACCEPTED
    return msgspec.structs.replace(
        base,
        fate=fate,
        ema=ema,
        mae=mae,
        n=n,
        paired=paired,
        tokens=base.tokens + _tokens(judged.usage),
        cost=base.cost + (judged.cost or 0.0),
        unpriced=base.unpriced or judged.cost is None,
        detail=detail,
    )


def wins(paired: Paired, alpha: float) -> bool:
    """The rule of acceptance: the paired test is passed and the interval says better."""
    return paired.verdict is Verdict.BETTER and paired.p < alpha


def situation(
    prompt: Prompt,
    human: Mapping[CellKey, float],
    known: Judged,
    steps: Sequence[Step] = (),
) -> Situation:
    """What a proposer is to see: the weakest sub-dimension, its disagreements, what failed."""
    refused = [f"{s.prompt.note}: {s.fate} ({s.detail})" for s in _since_parent(steps)]
    names = [d for d in prompt.dimensions if any(k[1] == d and k in known.scores for k in human)]
    by_name = {
        name: _figures({k: v for k, v in human.items() if k[1] == name}, known.scores)
        for name in names
    }
    # Where edits of the weakest were refused, go on with the next weakest.
    order = sorted(names, key=lambda name: (by_name[name][0], -by_name[name][1]))
    weak = order[min(len(refused) // 2, len(order) - 1)] if order else ""
    return Situation(
        prompt,
        weak,
        by_name[weak][0] if weak else math.nan,
        tuple(disagreements(human, known, weak)[:SHOWN]),
        tuple(refused),
    )


def disagreements(
    human: Mapping[CellKey, float], known: Judged, dimension: str = ""
) -> list[Disagreement]:
    """Cells in which judge and people differ, largest difference first."""
    found = [
        Disagreement(*key, value, known.scores[key], known.reasons.get(key, ""))
        for key, value in human.items()
        if key in known.scores and known.scores[key] != value and dimension in ("", key[1])
    ]
    return sorted(found, key=lambda d: (-abs(d.human - d.judge), d.dimension, d.sample))


__all__ = [
    "Changed", "DevJudge", "Disagreement", "Fate", "Interrupted", "Judged", "Outcome", "Proposal",
    "Proposer", "Rules", "Situation", "Step", "disagreements", "refine", "share_of", "situation",
    "wins",
]  # fmt: skip
