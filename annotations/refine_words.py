"""An automatic refinement in words: its rule, how far it is, how it ended, step by step."""

from annotations.judge_words import money_short, progress_line
from annotations.refine_job import RefineJob
from annotations.score_log import storable
from pararecover_core.figures import fixed
from pararecover_core.refine import Fate, Rules, Step

STEP_HEADS = ("Version", "For", "EMA on dev", "Fixed", "Broken", "Fate", "Test", "Change")
STEP_RIGHT = (2, 3, 4)
NOTE_LIMIT = 200


def rule_words() -> str:
    """When an edit is kept."""
    return (
        "An edit is kept only if the interval of the difference of EMA on dev excludes 0 and the "
        "paired test gives p below its share of 0.05: 0.025 for the first edit tested against a "
        "version, then 0.0083, 0.0042 and so on, so that many tries do not let chance win. "
        "The held-out side is not read. Budgets are looked at between edits."
    )


def step_cells(step: Step) -> tuple[str, ...]:
    """A step as a row under ``STEP_HEADS``."""
    moved = step.paired
    return (
        step.prompt.name,
        step.dimension or "all",
        fixed(step.ema) if step.n else "not judged",
        f"{moved.fixed:,}" if moved else "",
        f"{moved.broken:,}" if moved else "",
        step.fate.value,
        storable(step.detail),
        storable(step.prompt.note)[:NOTE_LIMIT],
    )


def begun_words(steps: list[Step]) -> str:
    """What an earlier run of the same refinement did, "" where there was none."""
    if not steps:
        return ""
    return f"Begun before: {_counted(steps)}. It goes on after that."


def refining_line(job: RefineJob) -> str:
    """How far a refinement is, in a line."""
    names = f"{job.model}, from {job.start_prompt.name}"
    words = "Stopping" if job.stopping else "Refining"
    parts = [f"{words} {names}: {_counted(job.steps)}" if job.steps else f"{words} {names}"]
    judging = job.judging
    if judging is not None and judging.running:
        prompt = judging.scorers[0].rpartition("@")[2]
        parts.append(f"judging dev with {prompt}, {progress_line(judging.progress())}")
    elif not job.stopping:
        parts.append("waiting for the proposer" if job.steps else "reading dev")
    budget = _spent(job.steps, job.rules)
    return "; ".join([*parts, budget] if budget else parts)


def refined_line(job: RefineJob) -> str:
    """How a refinement ended, in a line."""
    if job.outcome is None:
        return "Refining ended"
    steps = job.outcome.steps
    begin, best = _ema(steps, Fate.START), _ema(steps, Fate.ACCEPTED)
    why = job.outcome.stopped
    words = f"{why[:1].upper()}{why[1:]}. Best prompt: {job.outcome.prompt.name}"
    if best:
        words += f", EMA on dev {begin} before, {best} now"
    return f"{words}. {_counted(steps)}; {_spent(steps, job.rules)}." if steps else f"{words}."


def _ema(steps: tuple[Step, ...], fate: Fate) -> str:
    found = [step for step in steps if step.fate is fate and step.n]
    return fixed(found[-1].ema, 3) if found else ""


def _counted(steps: list[Step] | tuple[Step, ...]) -> str:
    tried = sum(step.fate is not Fate.START for step in steps)
    kept = sum(step.fate is Fate.ACCEPTED for step in steps)
    return f"{tried:,} {'edit' if tried == 1 else 'edits'} tried, {kept:,} kept"


def _spent(steps: list[Step] | tuple[Step, ...], rules: Rules) -> str:
    """Tokens and money of the edits so far, with their budgets."""
    tokens = sum(step.tokens for step in steps)
    parts = [f"{tokens:,} of {rules.tokens:,} tokens" if rules.tokens else f"{tokens:,} tokens"]
    paid = None if any(step.unpriced for step in steps) else sum(step.cost for step in steps)
    if paid is not None or rules.money:
        words = money_short(paid)
        parts.append(f"{words} of ${rules.money:,.2f}" if rules.money else words)
    else:
        parts.append("cost unknown")
    return ", ".join(parts)
