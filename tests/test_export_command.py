"""``pararecover export scores|annotations``: every shape and form; no name slips through."""

import csv
import io
import json
import stat
import zipfile

import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

from annotations import exports
from annotations.batches import BatchPlan, create_batch
from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.formats.columns import LONG_FORM
from pararecover_core.records import as_text
from tests.store_data import entry
from tests.training_data import scored_store

PEOPLE = ("Zoë Quirk", "o'brien@example.org")
NOTE = "=1+1 结果"
EVERY = [(shape, form) for shape, forms in exports.SHAPES.items() for form in forms]
CURRENT = [pair for pair in EVERY if pair[0] != "log"]


@pytest.fixture
def store(tmp_path):
    """Two people and a judge; the events of one person hold the name, as those of imports do."""
    made = scored_store(tmp_path / "study.db", tasks=2, scorer="judge:m@sde-1")
    with made.read() as db:
        key, other = (row[0] for row in db.execute("SELECT key FROM replan ORDER BY n LIMIT 2"))
    for person in PEOPLE:
        event = f"import:{key}:S1:human:{person}:1"
        made.append([entry(key, "S1", 0.5, scorer=f"human:{person}", note=NOTE, event=event)])
    made.append([entry(other, "D1", 1.0, scorer=f"human:{PEOPLE[0]}", note="broken \ud800")])
    create_batch(made, BatchPlan("First", replans=(key,), created_by="lead"))
    return made


def run(*words):
    done = CliRunner().invoke(cli, ["export", *map(str, words)])
    if isinstance(done.exception, InputError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stderr


def export(store, out, shape, form, *more):
    words = ["annotations"] if shape == "log" else ["scores", "--shape", shape, "--form", form]
    return run(*words, "--db", store.path, "--out", out, *more)


def told(store, *, times=True):
    rows = store.score_rows()
    return sorted(
        (r.replan, r.instance, r.scorer, r.dimension, r.score, r.note, *([r.at] if times else []))
        for r in rows
    )


@pytest.mark.parametrize(("shape", "form"), EVERY)
def test_every_file_comes_back_into_an_empty_database(store, tmp_path, shape, form):
    out = tmp_path / f"scores.{form}"
    said = export(store, out, shape, form)
    assert said.endswith(f" written to {out}\n")
    again = Store(tmp_path / "again.db")
    assert [str(one) for one in again.ingest(read(out)).rejects] == []
    times = shape != "wide"  # a table by replan has no time of a score
    assert told(again, times=times) == told(store, times=times)


@pytest.mark.parametrize(("shape", "form"), EVERY)
def test_no_name_of_a_person_is_left(store, tmp_path, shape, form):
    out = tmp_path / f"scores.{form}"
    export(store, out, shape, form, "--anonymise")
    data = texts(out, form)
    assert "annotator-1" in data
    assert "annotator-2" in data
    for piece in ("Zo", "Quirk", "brien", "example.org"):
        assert piece not in data


def texts(path, form):
    """Everything readable in a file."""
    if form == "parquet":
        frame = pd.read_parquet(path)
        return " ".join(map(str, frame.to_numpy().ravel())) + str(frame.attrs)
    if form == "xlsx":
        with zipfile.ZipFile(path) as book:
            return " ".join(book.read(name).decode("utf-8") for name in book.namelist())
    return path.read_text("utf-8")


@pytest.mark.parametrize(("shape", "form"), CURRENT)
def test_the_same_goes_to_stdout(store, tmp_path, shape, form):
    words = ["export", "scores", "--db", store.path, "--shape", shape, "--form", form]
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert done.exit_code == 0
    out = tmp_path / f"scores.{form}"
    export(store, out, shape, form)
    if form == "xlsx":  # it holds the time of writing
        (tmp_path / "said.xlsx").write_bytes(done.stdout_bytes)
        sheets = [openpyxl.load_workbook(tmp_path / n).active for n in ("said.xlsx", out.name)]
        assert list(sheets[0].values) == list(sheets[1].values)
    else:
        assert done.stdout_bytes == out.read_bytes()
    assert done.stderr.endswith(" written\n")


def test_each_form_opens_in_the_program_it_is_for(store, tmp_path):
    for shape, form in EVERY:
        export(store, tmp_path / f"{shape}.{form}", shape, form)
    count = len(list(store.score_rows()))
    frames = [
        pd.read_csv(tmp_path / "long.csv"),
        pd.read_excel(tmp_path / "long.xlsx", engine="openpyxl"),
        pd.read_json(tmp_path / "long.jsonl", lines=True),
        pd.read_parquet(tmp_path / "long.parquet"),
    ]
    for frame in frames:
        assert tuple(frame.columns) == LONG_FORM
        assert len(frame) == count
        assert frame["score"].sum() == frames[0]["score"].sum()
    assert len(pd.read_csv(tmp_path / "wide.csv")) == 7  # 6 replans, one by two people
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "wide.xlsx").active for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f"]  # no cell is a formula
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").open(encoding="utf-8")]
    assert len(lines) == 6
    assert as_text(lines[0]["instance"]["query"]) == "Bake 1 cakes"


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_rows_with_lone_surrogates_are_named(store, tmp_path, shape, form):
    if shape == "wide" and form == "parquet":
        form = "xlsx"
    out = tmp_path / f"scores.{form}"
    said = export(store, out, shape, form)
    number = int(said.splitlines()[0].rpartition(" ")[2])
    assert said.startswith("lone surrogates, written so that import restores them, in rows ")
    if form == "csv":
        row = list(csv.DictReader(io.StringIO(out.read_text("utf-8-sig"))))[number - 1]
        assert "broken" in row["note" if shape == "long" else "D1_human_note"]


def test_the_key_is_for_its_owner_alone(store, tmp_path):
    out, key = tmp_path / "scores.csv", tmp_path / "key.csv"
    export(store, out, "long", "csv", "--anonymise", "--key-file", key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    rows = list(csv.reader(io.StringIO(key.read_text("utf-8-sig"))))
    assert rows == [["pseudonym", "name"], ["annotator-1", PEOPLE[0]], ["annotator-2", PEOPLE[1]]]
    key.unlink()
    with pytest.raises(InputError, match="--key-file: got no --anonymise"):
        export(store, out, "long", "csv", "--key-file", key)
    with pytest.raises(InputError, match=r"--key-file .*: got no folder"):
        export(store, out, "long", "csv", "--anonymise", "--key-file", tmp_path / "no" / "key.csv")
    with pytest.raises(InputError, match="form: got 'parquet'"):
        export(store, out, "wide", "parquet", "--anonymise", "--key-file", key)
    assert not key.exists()  # no key without an export


def test_two_anonymised_logs_of_one_study_agree(store, tmp_path):
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    export(store, first, "log", "jsonl", "--anonymise")
    with store.read() as db:
        key = db.execute("SELECT key FROM replan ORDER BY n").fetchone()[0]
    store.append([entry(key, "S2", 1.0, scorer="human:late")])
    export(store, second, "log", "jsonl", "--anonymise")
    again = Store(tmp_path / "again.db")
    again.ingest(read(first))
    report = again.ingest(read(second))
    assert report.rejects == []
    assert (report.kinds["score"], report.known["score"]) == (1, len(first.open().readlines()))


def test_filters(store, tmp_path):
    out = tmp_path / "scores.csv"
    assert export(store, out, "long", "csv", "--scorer", f"human:{PEOPLE[1]}").startswith("1 score")
    assert export(store, out, "wide", "csv", "--batch", "First").startswith("2 rows")
    records = tmp_path / "r.jsonl"
    said = run("scores", "--db", store.path, "--shape", "records", "--batch", "First",
               "--scorer", "human:", "--out", records)  # fmt: skip
    assert said == f"1 replans with their scores written to {records}\n"
    with pytest.raises(InputError, match="Ninth"):
        export(store, out, "long", "csv", "--batch", "Ninth")


@pytest.mark.parametrize(
    ("shape", "form", "said"),
    [
        ("tall", "csv", r"shape: got 'tall', expected one of long, wide, records, log"),
        ("wide", "jsonl", r"form: got 'jsonl', expected csv or xlsx for the shape wide"),
        ("records", "csv", r"form: got 'csv', expected jsonl for the shape records"),
        ("long", "pdf", r"form: got 'pdf', expected csv or xlsx or jsonl or parquet for the shape"),
    ],
)
def test_wrong_shapes_and_forms_are_named(store, tmp_path, shape, form, said):
    with pytest.raises(InputError, match=said):
        export(store, tmp_path / "x", shape, form)
    assert not (tmp_path / "x").exists()


def test_the_log_is_a_command_of_its_own(store, tmp_path):
    with pytest.raises(InputError, match="For the log: pararecover export annotations"):
        run("scores", "--shape", "log", "--db", store.path, "--out", tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="a folder"):
        run("annotations", "--db", store.path, "--out", tmp_path)
    shown = CliRunner().invoke(cli, ["export", "scores", "--help"]).stdout
    assert "notes stay as written" in " ".join(shown.replace("│", " ").split())


def test_a_guess_of_the_size_is_of_the_right_order(store, tmp_path):
    for shape, form in (("long", "csv"), ("wide", "csv"), ("records", "jsonl"), ("log", "jsonl")):
        out = tmp_path / f"{shape}.{form}"
        export(store, out, shape, form)
        guess = exports.about_bytes(store, shape)
        assert out.stat().st_size / 3 < guess < out.stat().st_size * 3, shape
