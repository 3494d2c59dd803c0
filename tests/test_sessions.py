"""Calibration sessions: the split, scores taken in, sealed figures, history, migration."""

import contextlib
import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from annotations import queue, sealed, sessions
from annotations.batches import Sampling
from annotations.pairs import Selection, load
from annotations.results import Wanted as Report
from annotations.results import make
from annotations.score_log import ScoreEntry
from annotations.search import Filter, search
from annotations.session_schema import SESSION_TABLES
from annotations.sessions import SessionPlan, Side, create_session, split_by_task
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.pairing import SEALED
from tests.queue_data import batch_of_all, make_store, score

JUDGE = "judge:m@sde-1"


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path, items=8, agents=("agent-a", "agent-b"))


@pytest.fixture
def batch(store):
    return batch_of_all(store, items=8, dimensions=("D1", "D2")).id


def made(store, batch, **options):
    return create_session(store, SessionPlan("Pilot", batch=batch, created_by="ada", **options))


def judge(store, replans, value, scorer=JUDGE):
    store.append(
        [
            ScoreEntry(f"{scorer}{r}{d}", r, d, scorer, value, note="why")
            for r in replans
            for d in ("D1", "D2")
        ]
    )


@given(
    st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from("abcdefg"), min_size=2),
    st.floats(0.05, 0.95),
    st.integers(0, 5),
)
def test_a_task_never_stands_on_both_sides(tasks, share, seed):
    if len(set(tasks.values())) < 2:
        return
    sides = split_by_task(tasks, share, seed)
    assert set(sides) == set(tasks)
    assert set(sides.values()) == {Side.DEV, Side.HELD_OUT}
    for task in set(tasks.values()):
        assert len({sides[item] for item, of in tasks.items() if of == task}) == 1
    assert split_by_task(dict(reversed(tasks.items())), share, seed) == sides


def test_a_share_is_met_where_tasks_are_small():
    sides = split_by_task({str(n): str(n) for n in range(300)}, 1 / 3, 1)
    assert list(sides.values()).count(Side.HELD_OUT) == 100
    with pytest.raises(InputError, match="got 1 query, expected two or more"):
        split_by_task({"a": "q", "b": "q"}, 0.5, 0)


def test_a_session_draws_its_sample_and_keeps_queries_together(store):
    plan = SessionPlan("Drawn", sampling=Sampling(size=16), overlap=0.0)
    found = create_session(store, plan)
    assert sum(found.items.values()) == 16
    with store.read() as db:
        rows = db.execute(
            "SELECT i.query_id, COUNT(DISTINCT s.side) FROM session_item s"
            " JOIN replan r ON r.key = s.replan JOIN instance i ON i.key = r.instance"
            " GROUP BY i.query_id"
        ).fetchall()
    assert [row[1] for row in rows] == [1] * 8  # both agents' answers to a query, one side
    assert sessions.find_session(store, "Drawn") == sessions.find_session(store, str(found.id))
    with pytest.raises(InputError, match="'Drawn' twice"):
        create_session(store, plan)


def test_scores_are_fixed_until_they_are_taken_in(store, batch):
    score(store, "r1-a", "ann", 1.0, ("D1",))
    session = made(store, batch)
    side = (
        Side.DEV
        if ("r1-a", "D1") in sessions.wanted(store, session.id, Side.DEV)
        else Side.HELD_OUT
    )
    assert sessions.human(store, session.id, side) == {("r1-a", "D1"): 1.0}
    score(store, "r1-a", "ann", 0.5, ("D1",))
    score(store, "r2-a", "ann", 0.0, ("D1",))
    score(store, "r3-a", "ann", 0.0, ("D1",))
    score(store, "r3-a", "bob", 1.0, ("D1",))
    assert sessions.human(store, session.id, side) == {("r1-a", "D1"): 1.0}
    change = sessions.take_scores(store, session.id, author="ada", note="D1: name a node")
    assert change == {"n": 2, "new": 1, "changed": 1, "gone": 0, "disagreed": 1}
    rounds = sessions.history(store, session.id, ("scores",))
    assert [r.note for r in rounds] == ["scores that there were", "D1: name a node"]
    assert rounds[1].data == change


def test_what_is_held_out_is_sealed_on_every_page_until_a_look_is_counted(store, batch):
    for n in range(1, 9):
        score(store, f"r{n}-a", "ann", 1.0, ("D1", "D2"))
    judge(store, [f"r{n}-a" for n in range(1, 9)], 0.0)
    session = made(store, batch, held_out=0.5)
    held = {key for key, _ in sessions.wanted(store, session.id, Side.HELD_OUT)}
    with store.read() as db:
        gaps = dict(db.execute("SELECT replan, gap FROM replan_summary WHERE humans > 0"))
    assert {key: gap for key, gap in gaps.items() if gap is not None} == {
        key: 1.0 for key in gaps if key not in held
    }
    score(store, next(iter(held)), "ann", 0.5, ("D1",))  # stays so when the summary is made again
    assert [row.key for row in search(store, Filter(gap=0.5)).rows if row.replan in held] == []
    cells = load(store, Selection(judge=JUDGE))
    assert {c.sample for c in cells if c.judge_gap == SEALED} == held
    assert "held out by Pilot" in sealed.words(8, sealed.opens(store, JUDGE))
    assert sealed.opens(store, "program") == sealed.opens(store, "judge:other@x") == []
    report = make(store, Report("agreement", JUDGE, resamples=20))[0]
    assert "8 cells held out by a calibration session are not counted." in report.notes
    assert sessions.looks(store, session.id) == []

    assert [one.name for one in sealed.count_looks(store, JUDGE, author="ada")] == ["Pilot"]
    (seen,) = sessions.looks(store, session.id)
    assert (seen.author, seen.data["scorer"]) == ("ada", JUDGE)
    opened = load(store, Selection(judge=JUDGE, held_out=True))
    assert all(cell.judge == 0.0 for cell in opened)


def test_the_command_counts_a_look(store, batch):
    from pararecover_cli.main import cli

    for n in range(1, 9):
        score(store, f"r{n}-a", "ann", 1.0, ("D1", "D2"))
    judge(store, [f"r{n}-a" for n in range(1, 9)], 1.0)
    session = made(store, batch, held_out=0.5)
    arguments = ["agree", "--db", str(store.path), "--json", "--resamples", "0"]
    without = CliRunner().invoke(cli, arguments)
    assert json.loads(without.stdout)["overall"]["n"] == 8
    assert sessions.looks(store, session.id) == []
    whole = CliRunner().invoke(cli, [*arguments, "--held-out"])
    assert json.loads(whole.stdout)["overall"]["n"] == 16
    assert [one.author for one in sessions.looks(store, session.id)] == ["pararecover agree"]


def test_unsubmitted_scores_are_not_taken_in(store, batch):
    queue.open_item(store, batch, "ann", "r1-a")
    score(store, "r1-a", "ann", 1.0, ("D1", "D2"), batch=batch)
    session = made(store, batch)
    assert sum(session.scored.values()) == 0
    queue.submit(store, batch, "ann", "r1-a", event="s")
    assert sessions.take_scores(store, session.id)["n"] == 2


def test_the_sealed_side_is_counted_before_it_is_shown(store, batch):
    for n in range(1, 9):
        score(store, f"r{n}-a", "ann", 1.0, ("D1", "D2"))
    session = made(store, batch, held_out=0.5)
    with pytest.raises(InputError, match="no cell that both scored"):
        sessions.look(store, session.id, JUDGE)
    assert sessions.looks(store, session.id) == []  # a look that shows nothing is none
    dev = {r for r, _ in sessions.wanted(store, session.id, Side.DEV)}
    held = {r for r, _ in sessions.wanted(store, session.id, Side.HELD_OUT)}
    assert not dev & held
    judge(store, dev, 1.0)
    judge(store, held, 0.5)
    found = sessions.look(store, session.id, JUDGE, author="ada", resamples=50)
    assert found.overall.ema.value == 0
    (one,) = sessions.looks(store, session.id)
    assert (one.author, one.data["dev_ema"], one.data["gap"]) == ("ada", 1.0, 1.0)
    assert sessions.scorers(store, session.id) == [JUDGE]
    cells = sessions.cells(store, session.id, JUDGE, Side.DEV)
    assert {c.judge_note for c in cells} == {"why"}
    assert len(cells) == 2 * len(dev)


def test_history_and_split_cannot_be_rewritten(store, batch):
    session = made(store, batch)
    sessions.add_round(store, session.id, "note", {}, note="n")
    for statement in (
        "DELETE FROM session_round",
        "UPDATE session_item SET side = 'dev'",
        "DELETE FROM session_score",
    ):
        if "score" in statement:
            score(store, "r1-a", "ann", 1.0, ("D1",))
            sessions.take_scores(store, session.id)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"), store.write() as db:
            db.execute(statement)


def test_no_other_page_opens_the_sealed_side(store, batch):
    for n in range(1, 9):
        score(store, f"r{n}-a", "ann", 1.0, ("D1", "D2"))
    session = made(store, batch, held_out=0.5)
    judge(store, [f"r{n}-a" for n in range(1, 9)], 0.5)
    cells = load(store, Selection(judge=JUDGE))
    held = {r for r, _ in sessions.wanted(store, session.id, Side.HELD_OUT)}
    assert {c.sample for c in cells if c.judge is None} == held
    assert {c.judge_gap for c in cells if c.judge is None} == {SEALED}
    assert {c.human for c in cells} == {1.0}  # people's own scores are no secret


@pytest.mark.parametrize(
    ("options", "message"),
    [({"held_out": 0.0}, "held-out share"), ({"held_out": 1.0}, "a share between 0 and 1")],
)
def test_a_plan_that_cannot_work_says_why(store, batch, options, message):
    with pytest.raises(InputError, match=message):
        made(store, batch, **options)


def test_a_database_of_version_5_gets_sessions_and_the_new_summaries(tmp_path):
    old = make_store(tmp_path, items=1)
    batch = batch_of_all(old, items=1, dimensions=("D1",)).id
    queue.open_item(old, batch, "ann", "r1-a")
    score(old, "r1-a", "ann", 1.0, ("D1",), batch=batch)
    path = tmp_path / "five.db"
    with contextlib.closing(sqlite3.connect(old.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in reversed(SESSION_TABLES):
            db.execute(f"DROP TABLE {table}")
        db.execute("UPDATE replan_summary SET dr = 1, humans = 1")  # as version 5 counted
        db.execute("PRAGMA user_version = 5")
        db.commit()
    with Store(path).read() as db:
        row = db.execute("SELECT dr, humans FROM replan_summary").fetchone()
        assert tuple(row) == (None, 0)
        assert db.execute("SELECT COUNT(*) FROM session").fetchone()[0] == 0
