"""An import beside the page: progress, stopping, errors."""

import json
import threading

import pytest

from annotations.import_job import ImportJob, Upload
from annotations.overview import copy_database, overview, rejects_csv, snapshot, state_of
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.formats.items import Place, Reject
from tests.store_data import entry, one_replan


def record(number):
    return {
        "id": number,
        "query_id": f"q{number}",
        "query": f"Question {number}",
        "tag": "Type_Error",
        "tool_list": [{"name": "look", "parameters": {}}],
        "plan": [{"id": "1", "name": "look", "para": {"n": number}, "dependency": [], "status": 0}],
        "fun_call": [],
    }


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "study.db")


def lines(path, numbers):
    path.write_text("".join(json.dumps(record(number)) + "\n" for number in numbers))
    return Upload(path, path.name)


def finish(job):
    job.start().wait(60)
    assert not job.running
    return job


def test_files_land_and_places_name_them_as_the_person_does(store, tmp_path):
    path = tmp_path / "upload-x1"
    path.write_text(json.dumps(record(1)) + "\nnot json\n")
    job = finish(ImportJob(store, [Upload(path, "mine.jsonl", temporary=True)]))
    assert job.error is None
    assert job.report.kinds == {"instance": 1}
    assert [str(reject.place) for reject in job.report.rejects] == ["mine.jsonl, line 2"]
    assert job.progress().share == 1.0
    assert not path.exists()


def test_records_are_read_before_the_tables_that_name_them(store, tmp_path):
    table = tmp_path / "a.csv"
    plan = json.dumps(record(1)["plan"]).replace('"', '""')
    row = f'1,"{plan}","{plan}",Node 1,agent-a,1'
    table.write_text(f"id,plan,replan,thought,agent,S1_human\n{row}\n")
    uploads = [Upload(table, "a.csv"), lines(tmp_path / "b.jsonl", [1])]
    job = finish(ImportJob(store, uploads))
    assert job.report.rejects == []
    assert job.report.kinds == {"instance": 1, "replan": 1, "score": 1}
    assert store.counts().stubs == 0


def test_stopping_leaves_nothing(store, tmp_path, monkeypatch):
    started, go_on = threading.Event(), threading.Event()
    given = store.ingest

    def slow(items, *, progress=None):
        def held():
            for item in items:
                yield item
                started.set()
                go_on.wait(30)

        return given(held(), progress=progress)

    monkeypatch.setattr(store, "ingest", slow)
    job = ImportJob(store, [lines(tmp_path / "many.jsonl", range(1, 50))]).start()
    assert started.wait(30)
    assert job.running
    job.stop()
    go_on.set()
    job.wait(30)
    assert job.stopped
    assert job.report is None
    assert store.counts().instances == 0


def test_time_left_is_guessed_from_the_share_that_is_done(store, tmp_path):
    now = [100.0]
    upload = lines(tmp_path / "x.jsonl", range(1, 5))
    job = ImportJob(store, [upload], clock=lambda: now[0])
    assert job.progress().seconds_left is None  # nothing is done yet
    job._before = upload.path.stat().st_size // 4
    now[0] = 110.0
    # a quarter in 10 s: three more quarters take 30 s (up to the division of bytes)
    assert job.progress().seconds_left == pytest.approx(30, rel=0.01)
    now[0] = 100.5
    assert job.progress().seconds_left is None  # too early to say


def test_a_file_that_went_away_is_an_error_in_words(store, tmp_path):
    upload = lines(tmp_path / "x.jsonl", [1])
    job = ImportJob(store, [upload])
    upload.path.unlink()
    finish(job)
    assert str(job.error).startswith(f"{upload.path}: got No such file or directory")
    assert job.report is None


def test_the_overview_counts_what_is_there(store, tmp_path):
    before = state_of(store)
    finish(ImportJob(store, [lines(tmp_path / "x.jsonl", range(1, 4))]))
    found = overview(store)
    assert state_of(store) != before
    assert (found.instances, found.replans, found.scores, found.stubs) == (3, 0, 0, 0)
    assert [(one.name, one.count) for one in found.levels] == [("level 1", 3)]
    assert [(one.name, one.count) for one in found.error_types] == [("Type_Error", 3)]
    assert found.scorers == ()


def test_the_overview_counts_current_scores_like_the_store(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", value, base=base) for base, value in enumerate((1, 0.5))])
    store.append([entry(replan, "S1", None, base=2, action="clear"), entry(replan, "S2", 0.5)])
    found = overview(store)  # S1 was withdrawn, S2 stands
    assert (found.scores, store.counts().scores) == (1, 1)
    assert [(one.name, one.count) for one in found.scorers] == [("human:ann", 1)]


def test_rejects_as_csv_hold_no_formula():
    reject = Reject(
        Place("=cmd.csv", 3, "S1_human"), '=HYPERLINK("x")', "1, 0.5 or 0", "Correct it"
    )
    head, row = rejects_csv([reject]).decode("utf-8-sig").splitlines()
    assert head == "file,line,column,got,expected,cure"
    assert not any(cell.strip('"').startswith("=") for cell in row.split(","))


def test_a_snapshot_opens_and_holds_the_same(store, tmp_path):
    finish(ImportJob(store, [lines(tmp_path / "x.jsonl", range(1, 4))]))
    copy = tmp_path / "copy.db"
    copy.write_bytes(snapshot(store))
    assert Store(copy).counts() == store.counts()


def test_a_copy_overwrites_nothing(store, tmp_path):
    copy_database(store, tmp_path / "copy.db")
    assert Store(tmp_path / "copy.db").counts() == store.counts()
    with pytest.raises(InputError, match=r"copy\.db: got a file, expected a new file"):
        copy_database(store, tmp_path / "copy.db")
