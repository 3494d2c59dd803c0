"""Training examples from the store: candidates with their totals, decisions, texts.

Totals come from one scorer: ``GOLD`` (adjudicated, else what all people agree on), one person, a
judge, or the program. S5 and E5 are computed, so the program's stand for every scorer; a scorer's
own count where the program has none.
"""

import math
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import orjson

from annotations import pairs
from annotations.gold import counts
from annotations.run_figures import RUN_FIGURES, stored_efficacy
from annotations.store import Store
from pararecover_core.agents.planning import (
    answer_text,
    prompt_messages,
    prompt_name,
    shown,
    tool_schema,
)
from pararecover_core.errors import InputError
from pararecover_core.execute import View
from pararecover_core.formats.training import TrainingText
from pararecover_core.literals import dumps, loads
from pararecover_core.pairing import GOLD, HUMAN, gold_value
from pararecover_core.preferences import (
    Candidate,
    Decision,
    Example,
    Kind,
    Rules,
    Selection,
    total,
)
from pararecover_core.records import Instance, Replan, Trajectory, as_text, content_key, from_data
from pararecover_core.rubric import JUDGED

PROGRAM = "program"
_COMPUTED = ("S5", "E5")
Scores = dict[str, dict[str, float]]
"""Score by sub-dimension by key of the replan."""


Digests = dict[tuple[str, int], str]
"""What an instance shows, and what a replan says, by kind of record and its number."""

State = tuple[int, ...]


def state(store: Store) -> State:
    """Changes whenever candidates or decisions could."""
    with store.read() as db:
        more = db.execute(
            "SELECT COUNT(*), (SELECT COUNT(*) FROM training_decision),"
            " (SELECT COUNT(*) FROM replan WHERE stub), (SELECT COUNT(*) FROM instance WHERE stub)"
            " FROM trajectory"
        ).fetchone()
    return (*pairs.state(store), *more)


def scorers(store: Store) -> list[str]:
    """Whose scores there are to choose from: all people together first, then judges, people."""
    query = f"SELECT DISTINCT s.scorer FROM score_log s WHERE {counts('s')} ORDER BY s.scorer"
    with store.read() as db:
        names = [row[0] for row in db.execute(query)]
    people = [name for name in names if name.startswith("human:")]
    others = [name for name in names if not name.startswith("human:")]
    return [*([GOLD] if people else []), *others, *people]


def usual_scorer(store: Store) -> str:
    """Whose totals to begin with: the scorer with most of them, people before others of the same.

    Returns:
        ``GOLD`` or the name of a scorer; "" where no answer has all 15 sub-dimensions.
    """
    with store.read() as db:
        computed = _computed(db)
        whole = {key for key, mine in computed.items() if len(mine) == len(_COMPUTED)}
        found = [(row[0], row[1]) for row in db.execute(_COMPLETE, JUDGED) if row[1] in whole]
    tally = Counter(scorer for scorer, _ in found)
    tally[GOLD] = len({replan for scorer, replan in found if scorer.startswith(HUMAN)})
    order = scorers(store)
    best = max(order, key=lambda name: (tally[name], -order.index(name)), default="")
    return best if tally[best] else ""


_COMPLETE = f"""
SELECT s.scorer, s.replan FROM score_log s
WHERE s.value IS NOT NULL AND {counts("s")} AND s.dimension IN ({",".join("?" * len(JUDGED))})
GROUP BY s.scorer, s.replan HAVING COUNT(DISTINCT s.dimension) = {len(JUDGED)}
"""
"""Answers whose 13 judged sub-dimensions a scorer scored (later withdrawals are not looked at)."""


def candidates(store: Store, scorer: str = GOLD, digests: Digests | None = None) -> list[Candidate]:
    """Every answer in the store with its total by a scorer.

    Args:
        store: The database.
        scorer: ``GOLD`` or the name of a scorer.
        digests: Digests of texts that were read before; new ones are added.

    Returns:
        One candidate an answer, in order of import. Texts stand as digests, and only where the
        total is known: others are left out anyway.

    Raises:
        InputError: The scorer has not scored anything.
    """
    with store.read() as db:
        scores = _scores(db, scorer)
        if scorer != GOLD and not scores:
            known = ", ".join(scorers(store)) or "somebody (there are no scores yet)"
            raise InputError("scorer", repr(scorer), f"one of {known}", "Check the name")
        computed = _computed(db)
        for key, mine in scores.items():
            mine.update(computed.get(key, {}))
        memo = {} if digests is None else digests
        queries: dict[str, str] = {}  # one text for all answers to an instance
        return [_candidate(db, row, scores, memo, queries) for row in db.execute(_REPLANS)]


_REPLANS = (
    "SELECT r.n, r.key, r.instance, r.agent, r.stub OR i.stub AS stub, i.n AS instance_n, "
    "i.query_id, i.query FROM replan r JOIN instance i ON i.key = r.instance ORDER BY r.n"
)


def _candidate(
    db: sqlite3.Connection,
    row: sqlite3.Row,
    scores: Scores,
    memo: Digests,
    queries: dict[str, str],
) -> Candidate:
    value, missing = total(scores.pop(row["key"], {}))
    query = queries.setdefault(row["instance"], row["query"])
    prompt = answer = ""
    if not missing and not row["stub"]:
        shown_at, said_at = ("instance", row["instance_n"]), ("replan", row["n"])
        if shown_at not in memo:
            memo[shown_at] = _prompt_digest(db, row["instance_n"])
        if said_at not in memo:
            memo[said_at] = _answer_digest(db, row["n"])
        prompt, answer = memo[shown_at], memo[said_at]
    return Candidate(
        *(row["key"], row["instance"], row["query_id"], query, row["agent"], value),
        *(prompt, answer, missing, bool(row["stub"])),
    )


def _prompt_digest(db: sqlite3.Connection, n: int) -> str:
    """Equal where query, tools, plan and observations are equal."""
    held = loads(db.execute("SELECT body FROM instance_body WHERE n = ?", (n,)).fetchone()[0])
    fields = ("query", "tools", "plan", "observations")
    return content_key(*(as_text(held.get(name)).strip() for name in fields))


def _answer_digest(db: sqlite3.Connection, n: int) -> str:
    """Equal where thought and plan are equal; "" where there is neither."""
    held = loads(db.execute("SELECT body FROM replan_body WHERE n = ?", (n,)).fetchone()[0])
    thought, plan = (as_text(held.get(name)).strip() for name in ("thought", "plan"))
    return content_key(thought, plan) if thought or plan else ""


def _scores(db: sqlite3.Connection, scorer: str) -> Scores:
    found: Scores = {}
    if scorer != GOLD:
        query = (
            "SELECT s.replan, s.dimension, s.value FROM score_log s "
            f"WHERE s.scorer = ? AND {counts('s')} ORDER BY s.entry"
        )
        for replan, name, value in db.execute(query, (scorer,)):
            mine, dimension = found.setdefault(replan, {}), sys.intern(name)
            mine.pop(dimension, None)
            if value is not None:
                mine[dimension] = value
        return found
    return _gold(db)


def _gold(db: sqlite3.Connection) -> Scores:
    """Adjudicated scores, else what all people say whose scores count."""
    people: dict[tuple[str, str], dict[str, float | None]] = {}
    query = (
        "SELECT s.replan, s.dimension, s.scorer, s.value FROM score_log s "
        f"WHERE s.scorer GLOB 'human:*' AND {counts('s')} ORDER BY s.entry"
    )
    for replan, dimension, scorer, value in db.execute(query):
        people.setdefault((replan, dimension), {})[scorer] = value
    ruled = {
        (row[0], row[1]): row[2]
        for row in db.execute("SELECT replan, dimension, value FROM gold_current")
        if row[2] is not None
    }
    found: Scores = {}
    for cell in dict.fromkeys([*people, *ruled]):
        given = [value for value in people.get(cell, {}).values() if value is not None]
        decided = gold_value(given, ruled.get(cell))
        if decided is not None:
            found.setdefault(cell[0], {})[sys.intern(cell[1])] = decided
    return found


def _computed(db: sqlite3.Connection) -> Scores:
    """S5 of the new plan and E5 of the program, for every scorer alike."""
    computed: Scores = {}
    for key, s5 in db.execute("SELECT key, s5 FROM replan WHERE s5 IS NOT NULL"):
        computed.setdefault(key, {})["S5"] = float(s5)
    query = (
        "SELECT replan, value FROM score_current "
        "WHERE scorer = ? AND dimension = 'E5' AND value IS NOT NULL"
    )
    told = ((row["key"], stored_efficacy(row)) for row in db.execute(_RUNS))
    ran = [(key, value) for key, value in told if not math.isnan(value)]
    for replan, value in (*ran, *db.execute(query, (PROGRAM,))):
        computed.setdefault(replan, {})["E5"] = value
    return computed


_RUNS = f"""
SELECT r.key, {RUN_FIGURES}
FROM trajectory t JOIN replan r ON r.instance = t.instance AND r.agent = t.agent
JOIN instance i ON i.key = t.instance
WHERE CASE WHEN t.replan <> '' THEN t.replan = r.key
  ELSE 1 = (SELECT COUNT(*) FROM replan o WHERE o.instance = r.instance AND o.agent = r.agent) END
ORDER BY t.rowid
"""
"""The run that an answer was put into, else its agent's run from the same instance where the agent
gave one answer to it; the newest run counts."""


# Decisions


def decide(
    store: Store, kind: Kind, example: str, *, keep: bool, reason: str, by: str, event: str
) -> None:
    """Append a decision about an example; the same event is stored once.

    Decisions about single answers hold for SFT and KTO alike.

    Raises:
        InputError: An example is taken out without a reason.
    """
    if not keep and not reason.strip():
        cure = "Say in a few words why it is taken out"
        raise InputError("reason", "nothing", "a reason", cure)
    values = (
        event,
        "dpo" if kind == "dpo" else "sft",
        example,
        int(keep),
        reason.strip(),
        by,
        store.now(),
    )
    with store.write() as db:
        db.execute(
            "INSERT OR IGNORE INTO training_decision "
            "(event, kind, example, keep, reason, author, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )


def decisions(store: Store) -> list[Decision]:
    """Every decision, oldest first."""
    query = "SELECT kind, example, keep, reason, author, at FROM training_decision ORDER BY entry"
    with store.read() as db:
        return [
            Decision(row[0], row[1], bool(row[2]), row[3], row[4], row[5])
            for row in db.execute(query)
        ]


# Texts


def texts(
    store: Store, examples: Iterable[Example], *, tools_apart: bool = False, good: float = 0.0
) -> Iterator[TrainingText]:
    """The texts of examples, one at a time.

    Args:
        store: The database.
        examples: What ``preferences.select`` took.
        tools_apart: Whether tools go into a column of their own and not into the prompt.
        good: Totals above this count as good answers (KTO).
    """
    key, prompt, tools = "", list[dict[str, str]](), tuple[dict[str, Any], ...]()
    with store.read() as db:
        for one in examples:
            if key != one.chosen.instance:  # examples of an instance come together
                key = one.chosen.instance
                instance = store.instance(key, db=db)
                prompt = prompt_messages(view_of(instance), with_tools=not tools_apart)
                tools = tuple(map(tool_schema, instance.tools)) if tools_apart else ()
            worse = one.rejected
            yield TrainingText(
                prompt,
                answer_of(store.replan(one.chosen.replan, db=db)),
                answer_of(store.replan(worse.replan, db=db)) if worse else "",
                label=one.chosen.total > good,
                tools=tools,
            )


def view_of(instance: Instance) -> View:
    """What an agent saw of an instance."""
    return View(instance.query, instance.tools, instance.plan, instance.observations)


def answer_of(replan: Replan) -> str:
    """A replan in the form that the planning prompt asks for."""
    return answer_text(replan.thought, replan.plan.given)


class Shown(msgspec.Struct, frozen=True):
    """A demonstration for few-shot prompting.

    Attributes:
        shown: What the agent saw, as ``planning.shown`` writes it.
        answer: A good answer to it.
    """

    shown: str
    answer: str
    total: float
    replan: str
    agent: str


def demonstration_texts(store: Store, examples: Sequence[Example]) -> list[Shown]:
    """Demonstrations with their texts."""
    return [
        Shown(
            shown(view_of(store.instance(one.chosen.instance))),
            answer_of(store.replan(one.chosen.replan)),
            *(one.chosen.total, one.chosen.replan, one.chosen.agent),
        )
        for one in examples
    ]


def stepwise(
    store: Store, candidates_: Iterable[Candidate], above: float
) -> Iterator[TrainingText]:
    """Trajectories whose every round has a label, for process reward models.

    A round's label is in the trajectory's own ``labels``, else it says whether the scored replan
    with the same thought and plan has a total above a threshold. Trajectories with a round that
    has neither are passed over.

    Args:
        store: The database.
        candidates_: Scored answers of the chosen part.
        above: Totals above this count as right.
    """
    by_answer = {(c.instance, c.answer): c.total > above for c in candidates_ if c.answer}
    tasks = {c.instance for c in candidates_}
    with store.read() as db:
        bodies = db.execute("SELECT body FROM trajectory ORDER BY rowid")
        for row in bodies:
            record = from_data(loads(row[0]))
            if isinstance(record, Trajectory) and record.instance in tasks:
                found = _steps(store, record, by_answer)
                if found:
                    yield found


def _steps(
    store: Store, trajectory: Trajectory, by_answer: dict[tuple[str, str], bool]
) -> TrainingText | None:
    answered = trajectory.rounds[1:]
    given = trajectory.extra.get("labels")
    labels: list[Any]
    if isinstance(given, list) and len(given) == len(answered):
        labels = [bool(label) for label in given]
    else:
        labels = [
            by_answer.get(
                (
                    trajectory.instance,
                    content_key(each.thought.strip(), as_text(each.plan.given).strip()),
                )
            )
            for each in answered
        ]
    if not answered or None in labels:
        return None
    prompt = prompt_messages(view_of(store.instance(trajectory.instance)))
    steps = tuple(answer_text(each.thought, each.plan.given) for each in answered)
    return TrainingText(prompt, "", steps=steps, labels=tuple(labels))


def facts(chosen: Selection, rules: Rules, scorer: str, form: str) -> dict[str, Any]:
    """What a card says: enough to make the same file again, and to hold the test set fixed."""
    return {
        "kind": chosen.kind,
        "part": chosen.part,
        "format": form,
        "scorer": scorer,
        "prompt": prompt_name(),
        "rules": msgspec.to_builtins(rules),
        "examples": len(chosen.examples),
        "excluded": chosen.excluded,
        "tasks": chosen.tasks,
        "test_tasks": chosen.test_tasks,
        "test_queries": chosen.test_queries,
        "ids": [one.id for one in chosen.examples],
        "dropped": {one.id: one.decision.reason for one in chosen.dropped if one.decision},
    }


def card(**facts: Any) -> bytes:
    """What a training file was made from, as JSON to keep beside it."""
    return orjson.dumps(orjson.loads(dumps(facts)), option=orjson.OPT_INDENT_2) + b"\n"


_E5_FROM = (
    "E5 comes from running on from the answer: pararecover run on the same items, then import its "
    "file."
)


def missing_counts(found: Iterable[Candidate]) -> dict[str, int]:
    """In how many answers each sub-dimension lacks a score, most first."""
    tally = {d: 0 for d in (*JUDGED, *_COMPUTED)}
    for one in found:
        for dimension in one.missing:
            tally[dimension] += 1
    return {d: n for d, n in sorted(tally.items(), key=lambda item: -item[1]) if n}


def missing_words(found: Sequence[Candidate]) -> str:
    """Which scores the answers lack, and where E5 comes from; "" where none is missing."""
    whole = len(JUDGED) + len(_COMPUTED)
    unscored = sum(len(one.missing) == whole for one in found)
    lacking = missing_counts(one for one in found if len(one.missing) < whole)
    listed = ", ".join(f"{d} {n:,}" for d, n in lacking.items())
    parts = [
        f"Answers without any score of this scorer: {unscored:,}." if unscored else "",
        f"Answers without a score: {listed}." if listed else "",
        _E5_FROM if "E5" in lacking else "",
    ]
    return " ".join(filter(None, parts))
