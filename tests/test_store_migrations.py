"""Old databases migrate with a copy beside them, or stay as they were."""

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotations import database
from annotations.judge_schema import JUDGING_TABLES
from annotations.migrations import STEPS, migrate
from annotations.schema import TABLES, VERSION
from annotations.search_schema import SEARCH_TABLES
from annotations.store import Store
from pararecover_core.errors import StoreError
from pararecover_core.literals import dumps
from pararecover_core.plan import Plan
from pararecover_core.records import Replan, to_data
from tests.store_data import answer, entry, instance, items, one_replan, plan_text

VERSION_0 = """
CREATE TABLE instances (key TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE replans (key TEXT PRIMARY KEY, instance TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE scores (
  replan TEXT NOT NULL, dimension TEXT NOT NULL, annotator TEXT NOT NULL, value REAL,
  note TEXT, at TEXT, PRIMARY KEY (replan, dimension, annotator)
);
"""
"""The layout before the first release, as it was."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A version 0 database with one instance, one replan and two scores."""
    path = tmp_path / "old.db"
    one = instance("1", tags=("Type_Error",))
    replan = Replan("r1", one.key, "cook-1", "Bake", Plan.parse(plan_text("mix", "bake")))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(VERSION_0)
        db.execute("INSERT INTO instances VALUES (?, ?)", (one.key, dumps(to_data(one))))
        db.execute("INSERT INTO replans VALUES (?, ?, ?)", ("r1", one.key, dumps(to_data(replan))))
        for row in (
            ("r1", "S1", "ann", 0.5, "hm", "2029-05-01T10:00:00+00:00"),
            ("r1", "S1", "judge:m@1", 1.0, None, None),
        ):
            db.execute("INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?)", row)
        db.commit()
    return path


def tables(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_an_old_database_migrates_with_a_copy_beside_it(old):
    before = old.read_bytes()
    store = Store(old)
    assert [(s.scorer, s.value, s.note) for s in store.scores("r1")] == [
        ("human:ann", 0.5, "hm"),
        ("judge:m@1", 1.0, ""),
    ]
    assert store.scores("r1")[0].at == "2029-05-01T10:00:00+00:00"
    assert store.replan("r1").thought == "Bake"
    assert store.counts().instances == 1
    store.append([entry("r1", "S1", 1.0, base=1)])
    with store.read() as db:
        assert database.version_of(db) == VERSION
        assert tables(old) >= set(TABLES)
        assert "instances" not in tables(old)
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"

    copies = list(old.parent.glob("old.db.backup-v0-*"))
    assert len(copies) == 1
    with contextlib.closing(sqlite3.connect(copies[0])) as db:
        assert db.execute("SELECT COUNT(*) FROM scores").fetchone()[0] == 2
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert before[:16] == b"SQLite format 3\x00"
    # the second time there is nothing to do
    Store(old)
    assert len(list(old.parent.glob("old.db.backup-*"))) == 1


def test_an_old_score_that_cannot_be_kept_stops_the_migration(old):
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute("INSERT INTO scores VALUES ('r1', 'S2', 'ann', 0.7, '', '')")
        db.commit()
    with pytest.raises(StoreError, match=r"table scores, line 3: got S2 0\.7.*Nothing was changed"):
        Store(old)
    assert tables(old) >= {"instances", "replans", "scores"}
    assert not tables(old) & set(TABLES)


def test_steps_run_in_order_and_all_or_nothing(tmp_path):
    path = tmp_path / "p.db"
    Store(path)

    def add(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE extra (x)")

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO extra VALUES (1)")
        connection.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises(StoreError, match=r"no such table.*a copy is p\.db\.backup-v"):
        migrate(path, steps={VERSION: add, VERSION + 1: fail}, target=VERSION + 2)
    assert "extra" not in tables(path)
    assert Store(path).counts().instances == 0

    backup = migrate(path, steps={VERSION: add}, target=VERSION + 1)
    assert backup is not None
    assert "extra" in tables(path)
    assert "extra" not in tables(backup)
    assert migrate(path, steps={}, target=VERSION + 1) is None


def test_version_1_gets_the_tables_that_browsing_searches(tmp_path):
    # version 1 was this schema without what search_schema adds
    made, path = Store(tmp_path / "new.db"), tmp_path / "p.db"
    one = instance("1", tags=("Type_Error",))
    made.ingest(items(one, answer()))
    with contextlib.closing(sqlite3.connect(made.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path)) as db:
        for name, kind in db.execute(
            "SELECT name, type FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'search%'"
        ).fetchall():
            db.execute(f"DROP {kind} {name}")
        for table in SEARCH_TABLES:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    store = Store(path)
    with made.read() as expected, store.read() as found:
        assert database.version_of(found) == VERSION
        assert tables(path) == tables(made.path)
        query = "SELECT instance_n, replan_n, level, source, agent, errors, s5 FROM search_item"
        rows = [tuple(row) for row in found.execute(query)]
        assert rows == [tuple(row) for row in expected.execute(query)]
        assert len(rows) == 1
    assert len(list(path.parent.glob("p.db.backup-v1-*"))) == 1


def test_every_version_before_this_one_has_a_step():
    assert sorted(STEPS) == list(range(VERSION))


def test_many_may_open_an_old_database_at_once(old):
    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(lambda _: Store(old).counts().scores, range(6)))
    assert counts == [2] * 6
    assert len(list(old.parent.glob("old.db.backup-*"))) == 1


def test_a_database_of_version_3_gets_the_tables_of_judges(tmp_path):
    made, path = Store(tmp_path / "new.db"), tmp_path / "three.db"
    key = one_replan(made)
    made.append([entry(key)])
    with contextlib.closing(sqlite3.connect(made.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in reversed(JUDGING_TABLES):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 3")
        db.commit()
    store = Store(path)
    assert set(JUDGING_TABLES) <= tables(path)
    assert [score.value for score in store.scores(key)] == [1.0]
    assert list(tmp_path.glob("*.backup-v3-*"))
    with store.write() as db:
        db.execute(
            "INSERT INTO prompt (id, version, dimensions, text, at) VALUES ('a', 1, '[]', 'x', 't')"
        )
    with pytest.raises(sqlite3.IntegrityError, match="prompt is append-only"), store.write() as db:
        db.execute("UPDATE prompt SET text = 'y'")


def test_a_database_of_version_4_gets_the_table_of_training_decisions(tmp_path):
    made, path = Store(tmp_path / "new.db"), tmp_path / "four.db"
    key = one_replan(made)
    with contextlib.closing(sqlite3.connect(made.path)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE training_decision")
        db.execute("PRAGMA user_version = 4")
        db.commit()
    store = Store(path)
    assert tables(path) == tables(made.path)
    assert store.replan(key).thought == "Bake it now"
    with store.write() as db:
        db.execute(
            "INSERT INTO training_decision (event, kind, example, keep, at) "
            "VALUES ('e', 'sft', 'x', 0, 't')"
        )
    with pytest.raises(sqlite3.IntegrityError, match="append-only"), store.write() as db:
        db.execute("DELETE FROM training_decision")
