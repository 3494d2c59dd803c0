"""A session's history as a methods paragraph with a table: text, Markdown or LaTeX."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from annotations import sessions
from annotations.refining import Kept, Version, judges, versions
from pararecover_core.errors import InputError
from pararecover_core.figures import fixed
from pararecover_core.latex import definitions, tex

if TYPE_CHECKING:
    from annotations.store import Store

FORMS = ("text", "markdown", "latex")
HEADS = ("Judge", "Prompt", "Parent", "n", "EMA", "95% interval", "MAE", "Fixed", "Broken", "p")


def methods(store: "Store", session: int, form: str = "text", *, kept: Kept | None = None) -> str:
    """What was done in a session, to be put into a paper.

    Args:
        store: The database.
        session: Which session.
        form: One of ``FORMS``.
        kept: As for ``versions``.

    Raises:
        InputError: Another form was asked for.
    """
    if form not in FORMS:
        raise InputError("form", repr(form), f"one of {', '.join(FORMS)}", "Choose one")
    rows = [
        (model, version)
        for model in judges(store, session)
        for version in reversed(versions(store, session, model, kept=kept))
    ]
    text = paragraph(store, session, rows)
    table = [_row(model, version) for model, version in rows]
    if form == "latex":
        parts = [tex(text), *([_latex(table)] if table else [])]
        return "\n\n".join([*definitions("".join(parts)), *parts])
    written = _markdown(table) if form == "markdown" else _plain(table)
    return f"{text}\n\n{written}" if table else text


def paragraph(store: "Store", session: int, rows: Sequence[tuple[str, Version]]) -> str:
    """The paragraph alone."""
    one = sessions.get_session(store, session)
    dev, held = one.items["dev"], one.items["held-out"]
    parts = [
        f"For calibration session {one.name} we fixed a sample of {dev + held:,} answers "
        f"({sum(one.cells.values()):,} cells), split by query into {dev:,} for development and "
        f"{held:,} held out (seed {one.seed}; no query stands on both sides)."
    ]
    taken = sessions.history(store, session, ("scores",))
    if taken:
        last = taken[-1].data
        parts.append(
            f"People's scores were taken in {len(taken)} {_times(len(taken))}; the last round "
            f"held {last['n']:,} cells, {last['disagreed']:,} more had no agreed score and were "
            "left out. Gold is the adjudicated score, else the one all annotators agree on."
        )
    changed = [v for _, v in rows if v.changed]
    if rows:
        parts.append(
            f"We ran {len(rows)} {'version' if len(rows) == 1 else 'versions'} of the judge's "
            f"prompts on development, {len(changed)} of them compared with the version before by "
            "a paired test (exact McNemar for one cell a sample, else a sign-flip test over "
            "samples); intervals are percentile bootstraps over samples. A version is called "
            "better only where the interval of the difference of EMA excludes zero; intervals "
            "and p are not corrected for the number of versions."
        )
    tries = sessions.history(store, session, ("try",))
    edits = [t for t in tries if t.data["step"]["fate"] != "start"]
    if edits:
        won = sum(t.data["step"]["fate"] == "accepted" for t in edits)
        parts.append(
            f"Of {len(edits)} edits proposed by a model, {won} {'was' if won == 1 else 'were'} "
            "accepted; the j-th edit tested against a version had to pass the paired test at "
            "alpha / (j (j + 1)), so that many tries did not let chance win."
        )
    parts.append(_looks(store, session))
    return " ".join(parts)


def _times(count: int) -> str:
    return "round" if count == 1 else "rounds"


def _looks(store: "Store", session: int) -> str:
    seen = sessions.looks(store, session)
    if not seen:
        return "The held-out side was never opened."
    last = seen[-1].data
    gap = "" if last.get("gap") is None else f", gap to development {fixed(last['gap'], 4)}"
    return (
        f"The held-out side was opened {len(seen)} {'time' if len(seen) == 1 else 'times'}; at the "
        f"last look, {last['scorer']} had EMA {fixed(last['ema'])} and MAE {fixed(last['mae'])} on "
        f"{last['n']:,} cells{gap}."
    )


def _row(model: str, version: Version) -> tuple[str, ...]:
    figures, changed = version.found.overall, version.changed
    interval = "undefined"
    if figures.ema.low == figures.ema.low:
        interval = f"{fixed(figures.ema.low, 3)} to {fixed(figures.ema.high, 3)}"
    parent = version.parent.rpartition("@")[2] or "none"
    return (
        *(model, "+".join(p.name for p in version.prompts), parent, f"{figures.n:,}"),
        *(fixed(figures.ema.value), interval, fixed(figures.mae.value)),
        *(
            (str(changed.overall.fixed), str(changed.overall.broken), f"{changed.overall.p:.3g}")
            if changed
            else ("", "", "")
        ),
    )


def _plain(rows: Sequence[Sequence[str]]) -> str:
    table = [HEADS, *rows]
    wide = [max(len(row[at]) for row in table) for at in range(len(HEADS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)) for row in table]
    return "\n".join(line.rstrip() for line in lines)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [HEADS, ["---"] * len(HEADS), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", r"\|") for c in row) + " |" for row in lines)


def _latex(rows: Sequence[Sequence[str]]) -> str:
    lines = [
        r"\begin{tabular}{lllrrlrrrr}",
        r"\hline",
        " & ".join(map(tex, HEADS)) + r" \\",
        r"\hline",
        *(" & ".join(map(tex, row)) + r" \\" for row in rows),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines)
