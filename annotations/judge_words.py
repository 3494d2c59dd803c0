"""Judging runs in words: what a run would take, how far it is, what became of it."""

from collections.abc import Mapping

from annotations.judge_job import JudgeJob, Progress
from annotations.judges import PROGRAM, Prepared
from annotations.judging import RunRow
from pararecover_core.completions import Status
from pararecover_core.judges.program import ProgramJudge


def announce(prepared: Prepared, retry: str) -> list[str]:
    """What a run would do and take, before it begins, line by line.

    Args:
        prepared: The run.
        retry: What tries failed calls again: a flag or a switch.
    """
    first, forecast = prepared.works[0], prepared.forecast
    scorers = ", ".join(part.judge.scorer for part in prepared.parts)
    lines = [
        f"{scorers}: {prepared.calls:,} calls to make for {first.replans:,} replans; "
        f"{sum(work.done for work in prepared.works):,} are there already"
    ]
    heat = prepared.parts[0].plan.settings.get("temperature")
    if heat:
        lines[0] += f"; temperature {heat:g}"
    failed: dict[str, int] = {}
    for work in prepared.works:
        for status, count in work.failed.items():
            failed[status] = failed.get(status, 0) + count
    if failed:
        listed = ", ".join(f"{count:,} {status}" for status, count in sorted(failed.items()))
        but = "; a refusal is an answer and stays" if Status.REFUSED in failed else ""
        lines.append(f"Failed before: {listed} ({retry} tries them again{but})")
    if forecast is not None and forecast.calls:
        basis = f"from {forecast.counted:,} earlier calls" if forecast.counted else "roughly"
        usage = forecast.usage
        lines.append(
            f"Forecast, {basis}: {usage.prompt:,} tokens in, {usage.completion:,} out, "
            f"{money(forecast.cost)}"
        )
    return lines


def money(amount: float | None) -> str:
    """US dollars, or that they are unknown."""
    return "cost unknown (no price for this model)" if amount is None else f"${amount:,.2f}"


def progress_line(now: Progress) -> str:
    """How far a job is, in a line."""
    parts = [f"{now.done:,} of {now.total:,} calls"]
    if now.failed:
        parts.append(f"{now.failed:,} failed")
    if now.cached:
        parts.append(f"{now.cached:,} from the cache")
    if now.usage.prompt:
        parts.append("cost unknown" if now.cost is None else f"${now.cost:,.2f} so far")
    if now.seconds_left is not None:
        minutes, seconds = divmod(round(now.seconds_left), 60)
        parts.append(f"about {minutes:,}:{seconds:02d} left")
    return ", ".join(parts)


def counted(statuses: Mapping[str, int]) -> str:
    """Statuses with their numbers: "2 ok, 1 refused"."""
    return ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))


def outcome_line(job: JudgeJob) -> str:
    """How a job ended, in a line."""
    now = job.progress()
    became = f" ({counted(now.statuses)})" if now.statuses else ""
    words = f"{job.outcome.capitalize()}: {now.done:,} of {now.total:,} calls{became}."
    return f"{words} {job.message}." if job.message else words


RUN_HEADS = (
    "Began",
    "Judge",
    "Sub-dim.",
    "Temp.",
    "By",
    "Calls",
    "Scored",
    "Failed",
    "Cost",
    "State",
)
RUN_RIGHT = (3, 5, 6, 7, 8)


def run_cells(row: RunRow, *, live: bool) -> tuple[str | int, ...]:
    """A run as a row under ``RUN_HEADS``.

    Args:
        row: The run.
        live: Whether it is going on in this process.
    """
    failed = {s: n for s, n in row.statuses.items() if s != Status.OK}
    spent = "" if row.scorer == ProgramJudge.scorer else money_short(row.cost)
    state = row.outcome or ("running" if live else "broken off")
    if row.message:
        state += f": {row.message}"
    return (
        row.started[:16].replace("T", " "),
        row.scorer.removeprefix("judge:"),
        str(len(row.dimensions)),
        f"{row.settings.get('temperature', 0):g}" if row.base_url else "",
        row.started_by,
        row.calls,
        row.statuses.get(Status.OK, 0),
        counted(failed) or 0,
        spent,
        state,
    )


def money_short(amount: float | None) -> str:
    """US dollars for a narrow column."""
    return "unknown" if amount is None else f"${amount:,.2f}"


def judge_words(name: str) -> str:
    """A judge as a choice names it."""
    return "Program: rules, no key needed" if name == PROGRAM else name
