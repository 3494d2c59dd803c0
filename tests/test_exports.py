"""Scores taken out and brought in again: nothing is lost, no name slips through."""

import json
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotations import exports, score_log
from annotations.exports import Filter
from annotations.store import Store
from pararecover_core.formats import read
from pararecover_core.formats.columns import WIDE_FORM
from pararecover_core.formats.items import InstanceRef, ScoreRow
from pararecover_core.formats.writers import write_scores
from tests.store_data import answer, entry, instance, items
from tests.training_data import scored_store

ALL = Filter()


def scored(path, note="=1+1 结果\nso"):
    """Two people and a judge on one replan, a withdrawn score, a second revision."""
    store = scored_store(path, tasks=1, scorer="judge:m@sde-1")
    key = replan_of(store)
    store.append(
        [
            entry(key, "S1", 0.5, note=note, rubric="sde-1", seconds=3.5),
            entry(key, "D1", 1.0, scorer="human:ben", note="ben, revealed", revealed=True),
            entry(key, "D1", 0.0),
        ]
    )
    store.append([entry(key, "D1", 0.5, base=1), entry(key, "S1", 1.0, scorer="human:ben")])
    store.append([entry(key, "S1", None, scorer="human:ben", base=1, action="clear")])
    return store


def replan_of(store):
    with store.read() as db:
        return db.execute("SELECT key FROM replan ORDER BY n").fetchone()[0]


def current(store):
    rows = store.score_rows()
    return sorted(rows, key=lambda r: (r.replan, r.scorer, r.dimension))


def moved(path, target):
    store = Store(target)
    report = store.ingest(read(path))
    assert [str(one) for one in report.rejects] == []
    return store


def contents(store):
    with store.read() as db:
        bodies = [
            *db.execute("SELECT body FROM instance_body ORDER BY n"),
            *db.execute("SELECT body FROM replan_body ORDER BY n"),
        ]
    return [json.loads(row[0]) for row in bodies]


def test_whole_records_come_back_with_everything(tmp_path):
    store = scored(tmp_path / "a.db")
    out = tmp_path / "records.jsonl"
    assert exports.write_records(store, out, ALL, {}) == 3
    first = json.loads(out.read_text("utf-8").splitlines()[0])
    assert list(first) == ["kind", "instance", "replan", "scores"]
    again = moved(out, tmp_path / "b.db")
    assert current(again) == current(store)
    assert contents(again) == contents(store)
    assert again.ingest(read(out)).landed == 0


def test_records_of_stubs_come_back_as_stubs(tmp_path):
    store = Store(tmp_path / "a.db")
    long = tmp_path / "s.jsonl"
    row = ScoreRow("r", "i", "7", "9", 2, "rollout", "x", "D1", "human:a", 0.5, "n", "2030-01-01")
    write_scores([row], long, "jsonl")
    store.ingest(read(long))
    out = tmp_path / "records.jsonl"
    exports.write_records(store, out, ALL, {})
    again = moved(out, tmp_path / "b.db")
    assert current(again) == current(store) == [row]
    assert again.counts().stubs == 2


@pytest.mark.parametrize("form", exports.WIDE_FORMS)
def test_the_wide_form_comes_back(tmp_path, form):
    store = scored(tmp_path / "a.db")
    out = tmp_path / f"wide.{form}"
    # the first replan has two people: two rows
    assert exports.write_wide(store, out, ALL, {}, form) == 4
    again = moved(out, tmp_path / "b.db")

    def told(one):
        return [
            (r.replan, r.instance, r.scorer, r.dimension, r.score, r.note) for r in current(one)
        ]

    assert told(again) == told(store)
    assert [(one["key"], one.get("plan")) for one in contents(again)] == [
        (one["key"], one.get("plan")) for one in contents(store)
    ]


def test_the_wide_form_has_the_columns_of_the_reference_pipeline(tmp_path):
    store = scored(tmp_path / "a.db")
    exports.write_wide(store, tmp_path / "w.csv", ALL, {})
    exports.write_wide(store, tmp_path / "w.xlsx", ALL, {}, "xlsx")
    frame = pd.read_csv(tmp_path / "w.csv", dtype=str)
    assert tuple(frame.columns[: len(WIDE_FORM)]) == WIDE_FORM
    assert {"S1_human", "S1_model", "E4_model", "D1_human_note", "E5_sim"} <= set(frame.columns)
    assert list(frame["annotator"][:2]) == ["ann", "ben"]
    assert frame["judge"][0] == "m@sde-1"
    assert frame["S1_human"][0] == "0.5"
    assert frame["S1_human_note"][0].startswith("'=1+1 结果")
    assert (tmp_path / "w.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    sheet = openpyxl.load_workbook(tmp_path / "w.xlsx").active
    assert sheet.max_row == 5


def test_labels_by_round_and_several_rounds(tmp_path):
    store = Store(tmp_path / "a.db")
    one = instance("1", level=2, tags=("Type_Error", "", "Null_Error"))
    two = instance("2", level=1, tags=("Timeout_Error",))
    store.ingest(items(one, two))
    for each in (one, two):
        store.ingest(items(answer(ref=InstanceRef(key=each.key))))
        store.append([entry(store.replans_of(each.key)[0].key)])
    exports.write_wide(store, tmp_path / "w.csv", ALL, {})
    again = moved(tmp_path / "w.csv", tmp_path / "b.db")
    assert again.instance(one.key).tags == one.tags
    assert again.instance(two.key).tags == two.tags


def test_the_log_replays(tmp_path):
    store = scored(tmp_path / "a.db")
    out = tmp_path / "log.jsonl"
    with store.read() as db:
        kept = db.execute("SELECT * FROM score_log ORDER BY entry").fetchall()
    assert exports.write_log(store, out, {}) == len(kept)
    again = moved(out, tmp_path / "b.db")
    with again.read() as db:
        replayed = db.execute("SELECT * FROM score_log ORDER BY entry").fetchall()
    assert list(map(tuple, replayed)) == list(map(tuple, kept))
    state = score_log.replay(map(score_log.log_entry, replayed))
    assert {k for k, v in state.items() if v.value is not None} == {
        (r.replan, r.dimension, r.scorer) for r in current(store)
    }
    assert again.ingest(read(out)).landed == 0
    # with a gap it is refused
    lines = out.read_text("utf-8").splitlines()
    second = next(line for line in lines if '"revision":2' in line)
    (tmp_path / "gap.jsonl").write_text(second + "\n")
    report = Store(tmp_path / "c.db").ingest(read(tmp_path / "gap.jsonl"))
    assert "Replay the log into an empty database" in str(report.rejects[0])


def test_pseudonyms_are_stable_and_no_name_is_left(tmp_path):
    store = scored(tmp_path / "a.db", note="plain")
    store.append([entry(replan_of(store), "D1", 1.0, scorer="human:ben", base=1, note="")])
    names = exports.pseudonyms(store)
    assert names == {"human:ann": "human:annotator-1", "human:ben": "human:annotator-2"}
    store.append([entry(replan_of(store), "E1", 1.0, scorer="human:aaa")])
    assert exports.pseudonyms(store)["human:ben"] == "human:annotator-2"
    assert exports.pseudonyms(store)["human:aaa"] == "human:annotator-3"
    names = exports.pseudonyms(store)
    exports.write_records(store, tmp_path / "r.jsonl", ALL, names)
    exports.write_wide(store, tmp_path / "w.csv", ALL, names)
    exports.write_log(store, tmp_path / "l.jsonl", names)
    write_scores(exports.long_rows(store, ALL, names), tmp_path / "s.csv")
    for name in ("r.jsonl", "w.csv", "s.csv", "l.jsonl"):
        text = (tmp_path / name).read_text("utf-8")
        assert "annotator-2" in text
        for person in ('human:ann"', "human:ben", "human:aaa", ",ann,", ",ben,"):
            assert person not in text, name
    assert exports.key_file(names).decode("utf-8-sig").splitlines() == [
        "pseudonym,name",
        "annotator-1,ann",
        "annotator-2,ben",
        "annotator-3,aaa",
    ]


def test_filters(tmp_path):
    store = scored(tmp_path / "a.db")
    out = tmp_path / "r.jsonl"
    assert exports.write_records(store, out, Filter("human:"), {}) == 1
    assert exports.write_records(store, out, Filter("human:ben"), {}) == 1
    assert {s["scorer"] for s in json.loads(out.read_text("utf-8"))["scores"]} == {"human:ben"}
    assert exports.write_records(store, out, Filter(batch=9), {}) == 0


def test_rows_with_lone_surrogates_are_named():
    row = ScoreRow("r", "i", "7", "9", 2, "", "x", "D1", "human:a", 0.5)
    found: list[int] = []
    notes = ("plain", "结果", "a\ud800", "🎂")
    rows = [ScoreRow(*[getattr(row, f) for f in row.__struct_fields__[:10]], n) for n in notes]
    assert list(exports.with_surrogates(rows, found)) == rows
    assert found == [3]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    note=st.text(st.characters(exclude_categories=[]), max_size=20),
    thought=st.text("ab=-+'\n \"结", min_size=1, max_size=20).filter(lambda t: t.strip() == t),
    value=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_any_text_comes_back_from_every_form(tmp_path_factory, note, thought, value):
    folder: Path = tmp_path_factory.mktemp("x")
    store = Store(folder / "a.db")
    one = instance("1", query="=cake")
    store.ingest(items(one, answer(thought=thought, ref=InstanceRef(key=one.key))))
    key = store.replans_of(one.key)[0].key
    store.append([entry(key, "S1", value, note=note, event="e")])
    exports.write_records(store, folder / "r.jsonl", ALL, {})
    exports.write_log(store, folder / "l.jsonl", {})
    for n, name in enumerate(("r.jsonl", "l.jsonl")):
        again = moved(folder / name, folder / f"{n}.db")
        (found,) = current(again)
        assert (found.note, found.score, found.replan) == (note, value, key)
    if not note.strip() or note != note.strip():
        return  # a sheet's blank cell is no note
    exports.write_wide(store, folder / "w.csv", ALL, {})
    again = moved(folder / "w.csv", folder / "w.db")
    (found,) = current(again)
    assert (found.note, found.score, found.replan) == (note, value, key)
    assert again.replan(key).thought == thought
