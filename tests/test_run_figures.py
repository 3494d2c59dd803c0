"""E5 of a stored run is the same number wherever it is shown."""

import contextlib
import math
import sqlite3

import msgspec
import pytest

from annotations import browse, case_studies, results, training
from annotations.run_figures import trajectory_efficacy
from annotations.schema import RUN_COLUMNS
from annotations.store import Store
from pararecover_core.case_study import Spec, build
from pararecover_core.execute import OutcomeKind
from pararecover_core.records import Round, Trajectory
from pararecover_core.rubric import DIMENSIONS
from pararecover_core.scores import BROKEN_OFF
from tests.store_data import entry, items
from tests.training_data import JUDGE, scored_store

# The optimum is 2; one round lies behind the plan, two are run: T = 3 where the run counts none.
CASES = {
    "right answer": ({"extra": {"correct": True, "rounds": 4}}, 0.5),
    "wrong answer": ({"extra": {"correct": False, "rounds": 4}}, 0.0),
    "truth not known": ({"extra": {"correct": None, "rounds": 4}}, 0.5),
    "rounds not counted": ({}, 2 / 3),
    "past the usual limit": ({"extra": {"rounds": 50}}, 0.0),
    "a limit of its own": ({"extra": {"rounds": 50, "round_limit": 60}}, 0.04),
    "rubbish in its measures": (
        {"extra": {"correct": "yes", "rounds": "4", "round_limit": 2.5}},
        2 / 3,
    ),
    "no response": ({"success": False, "outcome": "round limit"}, 0.0),
    "cancelled": ({"success": False, "outcome": "cancelled"}, math.nan),
    "endpoint gone": ({"success": False, "outcome": "endpoint not available"}, math.nan),
}


def with_run(path, fields):
    """A store with one answer that nobody gave E5, and the run of its agent."""
    store = scored_store(path, tasks=1, round_gt=2)
    with store.read() as db:
        key = db.execute("SELECT key FROM replan WHERE agent = 'good'").fetchone()[0]
    store.append([entry(key, "E5", None, scorer="program", base=1, action="clear")])
    replan = store.replan(key)
    before = store.instance(replan.instance)
    rounds = (Round(before.plan, before.observations), Round(replan.plan, (), replan.thought))
    run = Trajectory("run", before.key, "good", rounds, True, "response")
    store.ingest(items(msgspec.structs.replace(run, **fields)))
    return store


def shown(store):
    """E5 on Results, in training data, in a case study, and on Trajectories in words."""
    scored = results.load(store, JUDGE)
    mine = scored.agent == scored.agents.index("good")
    (table,) = scored.values[mine, DIMENSIONS.index("E5")].tolist()
    (one,) = [c for c in training.candidates(store, JUDGE) if c.agent == "good"]
    words = browse.respond(store, browse.View(item="run"))[2]["item"]["e5"]
    told = build(case_studies.subject(store, "run"), Spec()).sides[0].efficacy
    return table, one.total - 14, math.nan if told is None else told, words


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES)
def test_every_page_gives_the_same_figure(tmp_path, fields, expected):
    store = with_run(tmp_path / "a.db", fields)
    *figures, words = shown(store)
    assert figures == [pytest.approx(expected, nan_ok=True)] * 3
    said = "unknown" if math.isnan(expected) else f"{expected:.2f}" if expected else "E5 = 0"
    assert said in words
    assert trajectory_efficacy(store.trajectory("run"), 2, 3) == pytest.approx(
        expected, nan_ok=True
    )


def test_outcomes_that_break_a_run_off_are_those_of_execution():
    assert {str(kind.value) for kind in (OutcomeKind.CANCELLED, OutcomeKind.UNAVAILABLE)} == (
        BROKEN_OFF
    )


@pytest.mark.parametrize("fields", [fields for fields, _ in CASES.values()], ids=CASES)
def test_a_database_of_version_7_gets_the_columns_of_its_runs(tmp_path, fields):
    made, path = with_run(tmp_path / "new.db", fields), tmp_path / "seven.db"
    with contextlib.closing(sqlite3.connect(made.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path)) as db:
        for column in RUN_COLUMNS:
            db.execute(f"ALTER TABLE trajectory DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 7")
        db.commit()
    store = Store(path)
    for one in (made, store):
        with one.read() as db:
            rows = db.execute(f"SELECT {', '.join(RUN_COLUMNS)} FROM trajectory").fetchall()
        assert len(rows) == 1
    assert repr(shown(store)) == repr(shown(made))
