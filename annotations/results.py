"""Reports from a database: scores of any scorer as columns, kept up to date entry by entry.

A scorer's log is read once a process, then only what is new; which scores of people count says
``gold``. S5 is that of the plan; E5 is the program's score, else that of the stored run.
"""

import math
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import orjson

from annotations.gold import PEOPLE, held_out
from annotations.pairs import Selection, load_shared
from annotations.pairs import load as load_cells
from annotations.run_figures import RUN_FIGURES, stored_efficacy, trajectory_efficacy
from annotations.search_schema import ERROR_BITS
from annotations.search_table import NONE, table
from pararecover_core.agreement import measure
from pararecover_core.agreement_means import powered_table
from pararecover_core.errors import InputError
from pararecover_core.literals import loads
from pararecover_core.pairing import GOLD, HUMAN, JUDGE, gold_value
from pararecover_core.records import Tool, Trajectory, from_data, parse_tools
from pararecover_core.report import (
    Cell,
    Report,
    Scored,
    comparison,
    cross_judge,
    e5_pass1,
    error_types,
    judge_free,
    leaderboard,
)
from pararecover_core.report.counts import (
    agreement_table,
    distribution_tables,
    error_frequency,
)
from pararecover_core.report.tables import link
from pararecover_core.rubric import DIMENSIONS, JUDGED
from pararecover_core.scores import BROKEN_OFF, tool_use_efficiency

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["REPORTS", "Wanted", "agents", "load", "make", "scorers"]

REPORTS: dict[str, str] = {
    "leaderboard": "Leaderboard (table 2)",
    "error-types": "Error types (tables 3, 4)",
    "agreement": "Agreement (table 5)",
    "cross-judge": "Cross-judge (table 6)",
    "training": "Comparison of runs (table 7)",
    "judge-free": "Judge-free metrics (table 8)",
    "e5-pass1": "E5 against pass@1 (table 9)",
    "distribution": "Error distribution (tables 10, 11, figure 4)",
    "frequency": "Errors of agents (figure 3)",
}
"""Every report and its name for people."""

_S5, _E5 = DIMENSIONS.index("S5"), DIMENSIONS.index("E5")
_PLACE = {name: place for place, name in enumerate(DIMENSIONS)}


class Wanted(NamedTuple):
    """What to report.

    Attributes:
        report: A key of ``REPORTS``.
        scorer: "gold", or the name of a scorer; "" for the one with most scores.
        other: The second judge of a cross-judge table, the human side of an agreement table.
        agents: Which agents, in order (comparison: the base first); () for all.
        resamples: Bootstrap resamples.
        types: Whether judge-free metrics have a row for each error type, too.
    """

    report: str = "leaderboard"
    scorer: str = ""
    other: str = ""
    agents: tuple[str, ...] = ()
    resamples: int = 500
    types: bool = False


def scorers(store: "Store") -> list[str]:
    """Who scored sub-dimensions that are judged: judges first, most scores first; then gold."""
    query = (
        "SELECT scorer, COUNT(*) AS n FROM score_log WHERE revision = 1 AND scorer <> 'program' "
        "GROUP BY scorer ORDER BY n DESC, scorer"
    )
    with store.read() as db:
        names = [row["scorer"] for row in db.execute(query)]
    people = [name for name in names if name.startswith(HUMAN)]
    judges = [name for name in names if not name.startswith(HUMAN)]
    return [*judges, *([GOLD] if people else []), *people]


_NAMES = """
WITH RECURSIVE known (scorer) AS (
  SELECT MIN(scorer) FROM score_log
  UNION ALL
  SELECT (SELECT MIN(l.scorer) FROM score_log l WHERE l.scorer > known.scorer) FROM known
  WHERE known.scorer IS NOT NULL
)
SELECT scorer FROM known WHERE scorer IS NOT NULL AND scorer <> 'program'
"""
"""Each scorer once: jumps along the index, where counting would read millions of rows."""


def _names(store: "Store") -> list[str]:
    with store.read() as db:
        return [row["scorer"] for row in db.execute(_NAMES)]


def agents(store: "Store") -> list[str]:
    """Names of the agents with answers or runs, in order."""
    query = "SELECT agent FROM replan UNION SELECT agent FROM trajectory ORDER BY agent"
    with store.read() as db:
        return [row["agent"] for row in db.execute(query) if row["agent"]]


class _Kept:
    """What of one scorer's log is in, as replan numbers x sub-dimensions."""

    def __init__(self) -> None:
        self.entry = 0
        self.values = np.full((0, len(DIMENSIONS)), np.nan)

    def update(self, db: sqlite3.Connection, scorer: str, size: int) -> None:
        """Take in what was appended since."""
        if size > len(self.values):
            more = np.full((size - len(self.values), len(DIMENSIONS)), np.nan)
            self.values = np.concatenate([self.values, more])
        newest = db.execute("SELECT COALESCE(MAX(entry), 0) FROM score_log").fetchone()[0]
        if newest <= self.entry:
            return
        values = self.values.copy()  # a report that is being made keeps its own
        # One JSON array a column: several times quicker than millions of rows of Python values.
        listed = db.execute(
            "SELECT json_group_array(n), json_group_array(dimension), json_group_array(value) FROM "
            "(SELECT r.n, l.dimension, l.value FROM score_log l JOIN replan r ON r.key = l.replan "
            "WHERE l.scorer = ? AND l.entry > ? ORDER BY l.entry)",
            (scorer, self.entry),
        ).fetchone()
        rows = np.array(orjson.loads(listed[0]), np.int64)
        names = orjson.loads(listed[1])
        if len(rows):
            columns = np.array([_PLACE.get(name, NONE) for name in names], np.int64)
            found = np.array(orjson.loads(listed[2]), np.float64)
            known = columns >= 0
            values[rows[known], columns[known]] = found[known]  # the last of a cell stands
        self.values, self.entry = values, newest


_LOCK = threading.Lock()
_KEPT: dict[tuple[str, int, str], _Kept] = {}
_MOST_KEPT = 12


def _values(store: "Store", db: sqlite3.Connection, scorer: str, size: int) -> Any:
    if scorer == GOLD or scorer.startswith(HUMAN):
        return _people(db, scorer, size)
    key = (str(store.path), os.stat(store.path).st_ino, scorer)
    with _LOCK:
        kept = _KEPT.pop(key, None) or _Kept()
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[key] = kept
        kept.update(db, scorer, size)
        return kept.values


def _people(db: sqlite3.Connection, scorer: str, size: int) -> Any:
    """Gold scores, or those of one person that count."""
    values = np.full((size, len(DIMENSIONS)), np.nan)
    numbers = {row["key"]: row["n"] for row in db.execute("SELECT key, n FROM replan")}
    given: dict[tuple[int, int], list[float]] = {}
    narrowed = "" if scorer == GOLD else " AND s.scorer = :who"
    query = f"SELECT s.replan, s.dimension, s.value {PEOPLE}{narrowed}"
    for replan, dimension, value in db.execute(query, {"who": scorer}):
        given.setdefault((numbers[replan], _PLACE[dimension]), []).append(value)
    decided: dict[tuple[int, int], float] = {}
    if scorer == GOLD:
        query = "SELECT replan, dimension, value FROM gold_current WHERE value IS NOT NULL"
        decided = {(numbers[r], _PLACE[d]): v for r, d, v in db.execute(query)}
    for cell in {**given, **decided}:
        found = gold_value(given.get(cell, []), decided.get(cell))
        if found is not None:
            values[cell] = found
    return values


def load(store: "Store", scorer: str) -> Scored:
    """Every replan, and every run without one, with one scorer's scores."""
    with store.read() as db:
        rows = table(store.path, db)
        keep = (rows["replan_n"] != NONE) | (rows["run"] != NONE)
        size = int(db.execute("SELECT COALESCE(MAX(n), 0) FROM replan").fetchone()[0]) + 1
        scores = _values(store, db, scorer, size)
        computed = _values(store, db, "program", size) if scorer != "program" else scores
        clusters = _clusters(db)
        runs = _runs(db)
    replan = rows["replan_n"][keep].astype(np.int64)
    instance = rows["instance_n"][keep].astype(np.int64)
    agent = rows["agent"][keep].astype(np.int64)
    values = np.where((replan == NONE)[:, None], np.nan, scores[replan])
    s5 = rows["s5"][keep].astype(np.float64)
    values[:, _S5] = np.where(s5 == NONE, np.nan, s5)
    passed, efficacies = _by_run(runs, instance, [rows.names["agent"][a] for a in agent])
    program = np.where(replan == NONE, np.nan, computed[replan, _E5])
    values[:, _E5] = np.where(np.isnan(program), efficacies, program)
    return Scored(
        agents=rows.names["agent"],
        agent=agent,
        level=np.maximum(rows["level"][keep].astype(np.int64), 0),
        cluster=clusters[instance],
        instance=instance,
        errors=rows["errors"][keep].astype(np.int64),
        values=values,
        passed=passed,
        scorer="people (gold)" if scorer == GOLD else scorer,
    )


def _clusters(db: sqlite3.Connection) -> Any:
    """Number of the query of each instance; without a query id each is its own."""
    found = db.execute(
        "SELECT json_group_array(n), json_group_array(query_id) FROM instance"
    ).fetchone()
    numbers = np.array(orjson.loads(found[0]), np.int64)
    names = [name or f"\x1f{n}" for n, name in zip(numbers, orjson.loads(found[1]), strict=True)]
    clusters = np.zeros(int(numbers.max(initial=0)) + 1, np.int64)
    if names:
        clusters[numbers] = np.unique(names, return_inverse=True)[1]
    return clusters


def _runs(db: sqlite3.Connection) -> dict[tuple[int, str], tuple[float, float]]:
    """Whether the newest run of an instance and agent passed, and its E5."""
    query = (
        f"SELECT i.n, t.agent, t.success AS passed, {RUN_FIGURES} "
        "FROM trajectory t JOIN instance i ON i.key = t.instance ORDER BY t.rowid"
    )
    return {
        (row["n"], row["agent"]): (float(row["passed"]), stored_efficacy(row))
        for row in db.execute(query)
        if row["outcome"] not in BROKEN_OFF
    }


def _by_run(
    runs: dict[tuple[int, str], tuple[float, float]], instance: Any, agents: Sequence[str]
) -> tuple[Any, Any]:
    nothing = (math.nan, math.nan)
    pairs = [runs.get(key, nothing) for key in zip(instance.tolist(), agents, strict=True)] or [
        nothing
    ]
    columns = np.array(pairs)[: len(instance)]
    return columns[:, 0], columns[:, 1]


def make(store: "Store", wanted: Wanted) -> list[Report]:
    """Make a report.

    Returns:
        One table, or several (distributions by level); without rows where there is nothing.

    Raises:
        InputError: The report or a scorer is unknown, or a second judge is missing.
    """
    if wanted.report not in REPORTS:
        expected = f"one of {', '.join(REPORTS)}"
        raise InputError("report", repr(wanted.report), expected, "Correct the name")
    if wanted.report == "distribution":
        return _distributions(store)
    if wanted.report == "frequency":
        return [error_frequency(_runs_with_tools(store, wanted.agents))]
    if wanted.report == "judge-free":
        return [_judge_free(store, wanted)]
    known = _names(store) if wanted.scorer else scorers(store)
    scorer = _known(wanted.scorer or (known[0] if known else GOLD), known)
    if wanted.report == "agreement":
        return [_agreement(store, scorer, wanted, known)]
    scored = _chosen(load(store, scorer), wanted.agents)
    if wanted.report == "leaderboard":
        people = _powered(store, scorer)
        return [leaderboard(scored, people=people, resamples=wanted.resamples)]
    if wanted.report == "error-types":
        agents = wanted.agents or ("",)
        return [
            error_types(scored, ERROR_BITS, agent, resamples=wanted.resamples) for agent in agents
        ]
    if wanted.report == "training":
        agents = wanted.agents or tuple(sorted(scored.agents))
        return [comparison(scored, agents, resamples=wanted.resamples)]
    if wanted.report == "e5-pass1":
        return [e5_pass1(scored, resamples=wanted.resamples)]
    other = _known(wanted.other or _second(scorer, known), known)
    return [cross_judge(scored, _chosen(load(store, other), wanted.agents))]


def _known(name: str, known: Sequence[str]) -> str:
    if name == GOLD:
        return name
    for one in known:
        if one in (name, f"{HUMAN}{name}", f"{JUDGE}{name}"):
            return one
    expected = f"one of {', '.join(known[:12])}" if known else "a scorer; nobody has scored yet"
    raise InputError("scorer", repr(name), expected, "Name one of them")


def _second(scorer: str, known: Sequence[str]) -> str:
    for name in known:
        if name != scorer and name != GOLD and not name.startswith(HUMAN):
            return name
    got = "one judge"
    cure = "Import or run a second judge, or name another scorer"
    raise InputError("cross-judge", got, "two judges", cure)


def _chosen(scored: Scored, agents: Sequence[str]) -> Scored:
    """Named agents alone, in their order; all agents with a name where none is asked for."""
    names = [a for a in (agents or sorted(filter(None, scored.agents))) if a in scored.agents]
    missing = [a for a in agents if a not in scored.agents]
    if missing:
        expected = f"some of {', '.join(sorted(filter(None, scored.agents))[:20])}"
        raise InputError("agents", ", ".join(missing), expected, "Correct the names")
    place = np.full(len(scored.agents) + 1, -1)
    place[[scored.agents.index(name) for name in names]] = np.arange(len(names))
    at = place[scored.agent]
    kept = scored.where(at >= 0)
    return msgspec.structs.replace(kept, agents=tuple(names), agent=at[at >= 0])


def _agreement(store: "Store", scorer: str, wanted: Wanted, known: Sequence[str]) -> Report:
    judge = scorer
    if judge == GOLD:
        judge = next((n for n in known if n != GOLD and not n.startswith(HUMAN)), "")
    human = wanted.other or GOLD
    shared = load_shared(store, Selection(human=human, judge=judge))
    found = measure(shared.cells, resamples=wanted.resamples, alone=shared.alone)
    return agreement_table(found, judge=judge, human="people (gold)" if human == GOLD else human)


def _powered(store: "Store", scorer: str) -> dict[tuple[str, int], Cell] | None:
    """Prediction-powered means of people, where a judge scored what people scored in part."""
    if scorer == GOLD or scorer.startswith(HUMAN):
        return None
    places = [_PLACE[name] for name in JUDGED]
    people = load_cells(store, Selection())
    with store.read() as db:
        size = int(db.execute("SELECT COALESCE(MAX(n), 0) FROM replan").fetchone()[0]) + 1
        judge = _values(store, db, scorer, size)[:, places].copy()
        rows = db.execute(
            "SELECT r.key, r.n, r.agent, i.level FROM replan r "
            "JOIN instance i ON i.key = r.instance"
        ).fetchall()
        sealed = held_out(db) if scorer.startswith(JUDGE) else frozenset()
    numbers = {row[0]: row[1] for row in rows}
    judge[[numbers[key] for key in sealed]] = np.nan
    human = np.full_like(judge, np.nan)
    column = {name: at for at, name in enumerate(JUDGED)}
    for cell in people:
        if cell.human is not None:
            human[numbers[cell.sample], column[cell.dimension]] = cell.human
    if not (~np.isnan(human) & ~np.isnan(judge)).any():
        return None
    groups = [("", "")] * size
    for _, n, agent, level in rows:
        groups[n] = (agent, str(level))
    found = {}
    for one in powered_table(human, judge, groups):
        value, agent, level = one.estimate, one.group[0], int(one.group[1] or 0)
        found[agent, level] = Cell(
            *(100 * value.value, one.samples), low=100 * value.low, high=100 * value.high,
            link=link(agent=agent, level=level),
        )  # fmt: skip
    return found


def _distributions(store: "Store") -> list[Report]:
    query = (
        "SELECT i.level, e.round, e.error_type, COUNT(*) AS n FROM instance_error e "
        "JOIN instance i ON i.key = e.instance GROUP BY i.level, e.round, e.error_type"
    )
    with store.read() as db:
        counts = {(row[0], row[1], row[2]): row[3] for row in db.execute(query)}
    return distribution_tables(counts)


def _trajectories(store: "Store", agents: Sequence[str]) -> Iterator[tuple[Trajectory, Any]]:
    query = (
        "SELECT t.body, i.key, i.level, i.round_gt, i.funcall_times_gt, i.query, "
        "b.body AS instance, (SELECT json_group_array(error_type) FROM instance_error e "
        "WHERE e.instance = i.key) AS tags FROM trajectory t JOIN instance i ON i.key = t.instance "
        "LEFT JOIN instance_body b ON b.n = i.n ORDER BY t.rowid"
    )
    with store.read() as db:
        for row in db.execute(query):
            run = from_data(loads(row["body"]))
            if isinstance(run, Trajectory) and (not agents or run.agent in agents):
                yield run, row


def _runs_with_tools(
    store: "Store", agents: Sequence[str]
) -> Iterator[tuple[Trajectory, tuple[Tool, ...], str]]:
    for run, row in _trajectories(store, agents):
        tools: tuple[Tool, ...] = ()
        if row["instance"] is not None:
            tools = parse_tools(loads(row["instance"]).get("tools"))
        yield run, tools, row["query"]


def _judge_free(store: "Store", wanted: Wanted) -> Report:
    """Judge-free metrics of the stored runs; runs without measures get those that follow."""
    runs = (_measured(run, row) for run, row in _trajectories(store, wanted.agents))
    return judge_free(runs, by_type=wanted.types)


def _measured(run: Trajectory, row: Any) -> Trajectory:
    extra = dict(run.extra)
    calls = sum(len(one.observations) for one in run.rounds)
    rounds = extra.get("rounds") or run.rounds[0].plan.executed_rounds() + len(run.rounds)
    extra.setdefault("level", row["level"])
    extra.setdefault("tags", loads(row["tags"]))
    extra.setdefault("rounds", rounds)
    extra.setdefault("calls", calls)
    extra.setdefault("answers", max(len(run.rounds) - 1, 0))
    extra.setdefault("invalid", sum(1 - one.plan.s5 for one in run.rounds[1:]))
    optimal = row["round_gt"] if row["round_gt"] and row["round_gt"] > 0 else None
    value = trajectory_efficacy(run, optimal, rounds)
    extra["e5"] = None if math.isnan(value) else value
    needed = row["funcall_times_gt"]
    needed = needed if needed and needed > 0 else None
    if "tool_use_efficiency" not in extra and (needed or not run.success):
        value = tool_use_efficiency(
            success=run.success, optimal_calls=needed, calls=max(extra["calls"], 1)
        )
        extra["tool_use_efficiency"] = None if math.isnan(value) else value
    return msgspec.structs.replace(run, extra=extra)
