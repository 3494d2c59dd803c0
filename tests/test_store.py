"""The store: records in and out, counts, the long form, and paths that cannot be used."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from annotations import database
from annotations.store import Counts, Store, default_path
from pararecover_core.errors import NewerStoreError, StoreError
from pararecover_core.formats.items import InstanceRef, Mark, ReplanRef
from pararecover_core.plan import Plan
from pararecover_core.records import Round, Source, Trajectory, from_data, to_data
from tests.store_data import BROKEN, Clock, answer, entry, instance, items, one_replan, plan_text


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "p.db", clock=Clock())


def test_records_come_back_as_they_went_in(store):
    one = instance(
        tags=("Type_Error", ""),
        error_reason="a lone \ud83d surrogate",
        round_gt=3,
        extra={"more": [1, None]},
    )
    run = Trajectory("t1", one.key, "cook-1", (Round(one.plan, one.observations, "hm"),), True)
    report = store.ingest(items(one, answer(), run))

    assert report.kinds == {"instance": 1, "replan": 1, "trajectory": 1}
    assert (report.known, report.rejects) == ({}, [])
    assert (report.levels, report.tags) == ({1: 1}, {"Type_Error": 1})
    assert to_data(store.instance(one.key)) == to_data(from_data(to_data(one)))
    assert store.instance(one.key).error_reason == "a lone \ud83d surrogate"
    replan = store.replans_of(one.key)[0]
    assert (replan.agent, replan.thought, replan.plan.s5) == ("cook-1", "Bake it now", 1)
    assert store.replan(replan.key) == replan
    assert store.trajectory("t1").rounds[0].thought == "hm"
    assert store.counts() == Counts(1, 1, 1, 0, 0, 0)


def test_what_is_searched_stands_in_columns(store):
    # root is no round; node 1 is executed and is one peel: one executed round
    one = instance("7", tags=("Type_Error", "依赖关系缺失, Null Error"), level=2, round_gt=4)
    store.ingest(items(one, answer("7", plan=BROKEN)))
    with store.read() as db:
        row = db.execute("SELECT * FROM instance").fetchone()
        errors = db.execute("SELECT round, error_type FROM instance_error").fetchall()
        summary = db.execute("SELECT * FROM replan_summary").fetchone()
    assert (row["file_id"], row["query_id"], row["level"], row["source"]) == (
        *("7", "q7", 2, "augmented"),
    )
    assert (row["s5"], row["executed_rounds"], row["round_gt"], row["stub"]) == (1, 1, 4, 0)
    assert {tuple(error) for error in errors} == {
        (1, "Type_Error"),
        (2, "Dependence_Null"),
        (2, "Null_Error"),
    }
    assert (summary["instance"], summary["level"], summary["agent"]) == (one.key, 2, "cook-1")
    assert (summary["s5"], summary["si"], summary["humans"]) == (0, None, 0)


def test_unknown_keys_are_named(store):
    for look in (store.instance, store.replan, store.trajectory):
        with pytest.raises(StoreError, match="nokey: got a key that is not in the database"):
            look("nokey")
    assert store.replans_of("nokey") == []
    assert store.scores("nokey") == []


def test_rows_of_the_long_form(store):
    replan = one_replan(store)
    store.append(
        [entry(replan, "S1", 0.5, note="=2+2\nx"), entry(replan, "D1", 0.0, revealed=True)]
    )
    store.append([entry(replan, "S2", 1.0)])
    store.append([entry(replan, "S2", None, base=1, action="clear")])
    store.append([entry(replan, "E1", 1.0, scorer="judge:m@v1", note="cut \ud83d")])

    rows = list(store.score_rows())
    assert [(row.dimension, row.scorer, row.score) for row in rows] == [
        ("D1", "human:ann", 0.0),
        ("S1", "human:ann", 0.5),
        ("E1", "judge:m@v1", 1.0),
    ]
    assert (rows[0].id, rows[0].level, rows[0].source, rows[0].agent) == (
        *("1", 1, "augmented", "cook-1"),
    )
    assert [row.revealed for row in rows] == [True, False, False]
    assert rows[1].note == "=2+2\nx"
    assert rows[2].note == "cut \ud83d"
    assert rows[1].at == "2030-01-02T12:00:02.000+00:00"  # the first second was the import's
    assert [row.scorer for row in store.score_rows(scorer="judge:")] == ["judge:m@v1"]
    assert len(list(store.score_rows(scorer="human:ann"))) == 2
    assert list(store.score_rows(replans=["other"])) == []
    assert len(list(store.score_rows(replans=[replan]))) == 3
    assert list(store.score_rows(batch=1)) == []


def test_a_stub_stands_in_until_the_content_comes(store):
    one, two = instance("3"), answer("3")
    other = Store(store.path.with_name("other.db"))
    other.ingest(items(one, two))
    key = other.replans_of(one.key)[0].key

    ref = InstanceRef(key=one.key, id="3", query_id="q3", level=1, source="augmented")
    mark = Mark(ReplanRef(ref, key=key, agent="cook-1"), "S1", "human:ann", 0.5, at="2029-01-01")
    report = store.ingest(items(mark))
    assert report.kinds == {"score": 1}
    assert store.counts().stubs == 2
    stub = store.instance(one.key)
    assert (stub.id, stub.level, stub.source, stub.query) == ("3", 1, Source.AUGMENTED, "")
    assert store.replan(key).agent == "cook-1"

    report = store.ingest(items(one, two))
    assert report.kinds == {"instance": 1, "replan": 1}
    assert store.counts() == Counts(1, 1, 0, 1, 1, 0)
    assert store.instance(one.key).query == "Bake a cake"
    assert store.replan(key).thought == "Bake it now"
    with store.read() as db:
        summary = db.execute("SELECT s5, si, level FROM replan_summary").fetchone()
    assert tuple(summary) == (1, 0.75, 1)  # S5 = 1 is known now: (0.5 + 1) / 2
    assert store.ingest(items(one, two, mark)).known == {"instance": 1, "replan": 1, "score": 1}


def test_logs_refuse_change_and_deletion(store):
    replan = one_replan(store)
    store.append([entry(replan)])
    for statement in (
        "UPDATE score_log SET value = 0",
        "DELETE FROM score_log",
        "INSERT OR REPLACE INTO score_log SELECT * FROM score_log",
    ):
        with (
            pytest.raises(sqlite3.IntegrityError, match="score_log is append-only"),
            store.write() as db,
        ):
            db.execute(statement)
    assert store.scores(replan)[0].value == 1.0


def _fail_half_way(store):
    with store.write() as db:
        db.execute("INSERT INTO event_log (event, at, annotator, kind) VALUES ('e', '', 'a', 'x')")
        raise RuntimeError


def test_a_write_that_fails_leaves_nothing(store):
    replan = one_replan(store)
    with pytest.raises(RuntimeError):
        _fail_half_way(store)
    with store.read() as db:
        assert db.execute("SELECT COUNT(*) FROM event_log").fetchone()[0] == 0
        with pytest.raises(sqlite3.OperationalError):
            db.execute("INSERT INTO event_log (event, at, annotator, kind) VALUES ('e','','','')")
    assert store.replan(replan).agent == "cook-1"


def test_the_default_path_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PARARECOVER_DB", str(tmp_path / "named.db"))
    assert default_path() == tmp_path / "named.db"
    monkeypatch.setenv("PARARECOVER_DB", " ")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path().name == "pararecover.db"
    assert default_path().parent.name == "pararecover"


def test_folders_are_made_for_a_new_database(tmp_path):
    assert Store(tmp_path / "a" / "b" / "p.db").counts().instances == 0
    assert (tmp_path / "a" / "b" / "p.db").is_file()


def test_a_deleted_database_is_made_anew(tmp_path):
    store = Store(tmp_path / "p.db")
    one_replan(store)
    for file in tmp_path.iterdir():
        file.unlink()
    assert store.counts().instances == 0


def test_a_folder_is_no_database(tmp_path):
    with pytest.raises(StoreError, match=r"got a folder, expected a database file. Name a file"):
        Store(tmp_path)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("a shopping list, long enough to look at: " + "milk, " * 300)
    with pytest.raises(StoreError, match=r"no database.*pararecover import"):
        Store(path)
    assert path.read_text().startswith("a shopping list")


def test_a_database_of_another_program(tmp_path):
    path = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE songs (name)")
    with pytest.raises(StoreError, match="a SQLite database of another program"):
        Store(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


def test_a_damaged_database(tmp_path):
    path = tmp_path / "p.db"
    store = Store(path)
    for number in range(40):
        one_replan(store, str(number))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="a damaged database file"):
        store.counts()


def test_a_newer_database_is_refused(tmp_path):
    path = tmp_path / "p.db"
    Store(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    copy = tmp_path / "copy.db"  # a file that this process has not checked
    copy.write_bytes(path.read_bytes())
    with pytest.raises(NewerStoreError, match=r"schema version 99, expected at most \d+\. Install"):
        Store(copy)


def test_a_database_that_lacks_tables(tmp_path):
    path = tmp_path / "p.db"
    Store(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE trajectory")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(StoreError, match="no tables trajectory, expected all tables"):
        Store(copy)


def test_a_file_without_write_permission(tmp_path, monkeypatch):
    path = tmp_path / "p.db"
    path.write_bytes(b"")
    monkeypatch.setattr(database.os, "access", lambda *_: False)
    with pytest.raises(StoreError, match=r"cannot be written.*Change the permissions"):
        Store(path)


@pytest.fixture
def protected(tmp_path, monkeypatch):
    """A database with records in a folder that may be read and not be written."""
    path = tmp_path / "kept" / "p.db"
    Store(path, clock=Clock()).ingest(items(instance("1")))
    monkeypatch.setattr(database.os, "access", lambda path, mode: mode != database.os.W_OK)
    monkeypatch.setattr(database, "_READY", {})
    monkeypatch.setattr(database, "_ONLY_READ", {})
    return path


def test_a_protected_database_is_read_and_not_written(protected):
    before = protected.read_bytes(), sorted(protected.parent.iterdir())
    store = Store(protected, reading=True)
    assert store.counts().instances == 1
    with pytest.raises(StoreError, match="cannot be written"):
        store.ingest(items(instance("2")))
    assert (protected.read_bytes(), sorted(protected.parent.iterdir())) == before


def test_a_protected_database_whose_log_is_not_in_yet_is_read_with_it(protected, monkeypatch):
    with monkeypatch.context() as free, contextlib.closing(sqlite3.connect(protected)) as other:
        free.setattr(database.os, "access", lambda path, mode: True)
        other.execute("SELECT count(*) FROM instance").fetchone()  # keeps the log from going in
        Store(protected).ingest(items(instance("2")))
        free.undo()
        monkeypatch.setattr(database.os, "access", lambda path, mode: mode != database.os.W_OK)
        assert Store(protected, reading=True).counts().instances == 2


@pytest.mark.parametrize(
    ("version", "says"),
    [(1, r"schema version 1 in a file that cannot be written.*Copy it"), (999, "at most")],
)
def test_a_protected_database_of_another_version_is_refused(protected, version, says):
    with contextlib.closing(sqlite3.connect(protected)) as other:
        other.execute(f"PRAGMA user_version = {version}")
        other.commit()
    with pytest.raises(StoreError, match=says):
        Store(protected, reading=True)


def test_what_sqlite_says_of_a_read_only_file(tmp_path):
    path = tmp_path / "p.db"
    Store(path)
    with (
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db,
        pytest.raises(StoreError, match="cannot be written"),
        database.plain_errors(path),
    ):
        db.execute("CREATE TABLE t (x)")


def test_a_path_below_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="a folder that cannot be made"):
        Store(tmp_path / "file" / "p.db")


def test_errors_of_our_own_statements_are_not_dressed_up(store):
    with pytest.raises(sqlite3.OperationalError, match="no such column"), store.read() as db:
        db.execute("SELECT salt FROM instance")


def test_an_odd_file_name(tmp_path):
    path = tmp_path / "a b#c?d%41.db"
    Store(path)
    assert path.is_file()
    assert Plan.parse(plan_text("a")).s5 == 1
