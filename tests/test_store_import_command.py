"""``pararecover import``, from files to the database and back, by the real readers and writers."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from annotations.store import Store
from pararecover_cli.check import printable
from pararecover_cli.import_ import import_
from pararecover_cli.main import cli, main
from pararecover_core.formats import read, write_scores
from tests.store_data import Clock, answer, entry, instance, items, plan_text

REAL = Path(__file__).parents[2] / "shared" / "real"
RUNNER = CliRunner()

RECORD = {
    "id": 7,
    "query_id": "70",
    "tool_list": json.dumps([{"name": "mix", "parameters": {}, "required": []}]),
    "query": "Bake a cake",
    "funcall_times_gt": "2",
    "round_gt": "3",
    "tag": "Type_Error",
    "plan": plan_text("mix", "bake", done=1),
    "fun_call": json.dumps([{"name": "mix", "arguments": {}, "results": "Error"}]),
}
RESULTS = """id,thought,replan,S1_human,S1_model,struct_S1_reason
7,Bake it now,"{""tasks"": []}",1.0,.5,not what it says
7,Freeze it,"{""tasks"": []}",0.75,1,
8,Throw it,"{""tasks"": []}",1,1,
"""


def run(*arguments: object):
    return RUNNER.invoke(cli, ["import", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    published, results = tmp_path / "published.jsonl", tmp_path / "results.csv"
    published.write_text(json.dumps(RECORD) + "\n", encoding="utf-8")
    results.write_text(RESULTS, encoding="utf-8")
    return published, results


def test_files_land_and_each_reject_has_its_line_and_reason(files, tmp_path):
    db = tmp_path / "p.db"
    result = run(*files, "--db", db, "--agent", "cook-1", "--annotator", "ann")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "published.jsonl: 1 instance",
        "  level 1: 1",
        "  error types: Type_Error 1",
        "results.csv: 2 replans, 3 scores",
        "  2 plans of replans do not parse: S5 = 0",
        "  2 rows or cells were not taken; the reasons follow",
        "Together: 1 instance, 2 replans, 3 scores",
        "  level 1: 1",
        "  error types: Type_Error 1",
        "  2 plans of replans do not parse: S5 = 0",
        "  2 rows or cells were not taken; the reasons follow",
        f"Database: {db}",
    ]
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert "results.csv, line 3, column S1_human" in lines[0]
    assert "0.75" in lines[0]
    assert "no instance with id 8 in the database" in lines[1]

    store = Store(db)
    with store.read() as connection:
        rows = connection.execute(
            "SELECT r.agent, s.dimension, s.scorer, s.value, s.note FROM score_current s "
            "JOIN replan r ON r.key = s.replan ORDER BY r.n, s.scorer"
        ).fetchall()
    assert [tuple(row) for row in rows] == [
        ("cook-1", "S1", "human:ann", 1.0, ""),
        ("cook-1", "S1", "judge:imported@unknown", 0.5, "not what it says"),
        ("cook-1", "S1", "judge:imported@unknown", 1.0, ""),
    ]


def test_the_second_time_nothing_changes(files, tmp_path):
    db = tmp_path / "p.db"
    run(*files, "--db", db)
    before = db.read_bytes()
    result = run(*files, "--db", db)
    assert "published.jsonl: nothing new\n  already there: 1 instance\n" in result.stdout
    assert "already there: 2 replans, 3 scores" in result.stdout
    assert db.read_bytes() == before


def test_one_json_document_and_exit_1_when_strict(files, tmp_path):
    result = run(*files, "--db", tmp_path / "p.db", "--json", "--strict")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [file["kinds"] for file in document["files"]] == [
        {"instance": 1},
        {"replan": 2, "score": 3},
    ]
    assert document["total"]["levels"] == {"1": 1}
    assert document["total"]["tags"] == {"Type_Error": 1}
    reject = document["total"]["rejects"][0]
    assert (reject["file"], reject["line"], reject["column"]) == ("results.csv", 3, "S1_human")
    assert reject["message"].startswith("results.csv, line 3, column S1_human: got ")
    assert result.stderr == ""
    assert run(files[0], "--db", tmp_path / "q.db", "--strict").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.jsonl",), "absent.jsonl: got no file, expected a file to import"),
        (("folder",), "folder: got a folder, expected a file to import"),
        (("data.jsonl", "--source", "web"), "--source: got 'web', expected one of rollout, "),
        (("data.jsonl", "--format", "pdf"), "format: got 'pdf', expected one of auto, "),
        (("data.jsonl", "--db", "folder"), "folder: got a folder, expected a database file"),
        (("data.jsonl", "--level", "3"), "--level"),
        ((), "FILE"),
    ],
)
def test_wrong_use_is_exit_2_and_a_message(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "data.jsonl").write_text("{}", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pararecover", "import", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert message in err
    assert out == ""


def test_a_file_that_is_no_data_is_listed(tmp_path):
    file = tmp_path / "shopping.txt"
    file.write_text("milk\n", encoding="utf-8")
    result = run(file, "--db", tmp_path / "p.db")
    assert result.exit_code == 1
    assert "1 row or cell was not taken; the reasons follow" in result.stdout
    assert result.stderr.startswith("shopping.txt")


def test_only_a_plan_that_does_not_parse_is_counted(tmp_path):
    data, answers = tmp_path / "data.jsonl", tmp_path / "answers.csv"
    data.write_text(json.dumps(RECORD), encoding="utf-8")
    good = plan_text("mix", "bake", done=1).replace('"', '""')
    answers.write_text(
        f'id,agent,thought,replan\n7,a,Go on,"{good}"\n7,b,Stop,"{{""tasks"": ["\n', "utf-8"
    )
    result = run(data, answers, "--db", tmp_path / "p.db", "--json")
    assert [file["broken"] for file in json.loads(result.stdout)["files"]] == [0, 1]


def test_text_of_a_file_cannot_steer_the_terminal(tmp_path):
    file = tmp_path / "data.jsonl"
    record = RECORD | {"tag": "\x1b[31mred\x07"}
    file.write_text(json.dumps(record), encoding="utf-8")
    result = run(file, "--db", tmp_path / "p.db")
    assert r"\x1b[31mred\x07 1" in result.stdout
    assert printable("a\ud83d\n") == r"a\ud83d\n"


def test_help_has_an_example():
    result = run("--help")
    assert "Example: pararecover import" in result.stdout
    assert import_.__doc__


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl", "parquet"])
def test_scores_that_went_out_come_back_into_an_empty_database(tmp_path, form):
    store = Store(tmp_path / "one.db", clock=Clock())
    one = instance("1", query="=cmd()")
    store.ingest(items(one, answer(agent="@cook"), answer(agent="cook-2")))
    replans = [replan.key for replan in store.replans_of(one.key)]
    store.append(
        [
            entry(replans[0], "S1", 0.5, note='=1+1\n"quoted", \'x', rubric="1.0"),
            entry(replans[0], "S2", 1.0, revealed=True, note="依赖 café"),
            entry(replans[1], "E4", 0.0, scorer="judge:m@v1", note=" spaces kept "),
            entry(replans[1], "E5", 0.123456789, scorer="program"),
        ]
    )
    rows = list(store.score_rows())
    out = tmp_path / f"scores.{form}"
    write_scores(iter(rows), out, form)

    other = Store(tmp_path / "two.db")
    report = other.ingest(read(out))
    assert (report.kinds, report.rejects) == ({"score": 4}, [])
    assert sorted(other.score_rows(), key=str) == sorted(rows, key=str)
    assert store.ingest(read(out)).known == {"score": 4}
    # the content comes later and fills what the scores named
    other.ingest(items(one, answer(agent="@cook"), answer(agent="cook-2")))
    assert other.counts() == store.counts()
    assert other.replan(replans[0]).thought == "Bake it now"


@pytest.mark.skipif(not REAL.is_dir(), reason="the published files are not here")
def test_every_published_record_lands(tmp_path):
    files = sorted(REAL.glob("*.jsonl"))
    lines = sum(
        bool(line.strip()) for file in files for line in file.read_text("utf-8").splitlines()
    )
    db = tmp_path / "p.db"
    result = run(*files, "--db", db, "--json", "--strict")
    assert result.exit_code == 0
    total = json.loads(result.stdout)["total"]
    assert total["kinds"] == {"instance": lines}
    assert set(total["levels"]) == {"1", "2"}
    store = Store(db)
    with store.read() as connection:
        keys = [row["key"] for row in connection.execute("SELECT key FROM instance")]
    assert all(store.instance(key).tools and store.instance(key).plan.nodes for key in keys)
