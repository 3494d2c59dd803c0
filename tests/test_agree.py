"""``pararecover agree``: table 5 from a spreadsheet, JSON, wrong use."""

import csv
import json
import re

import pytest
from openpyxl import Workbook
from typer.testing import CliRunner

from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source
from pararecover_core.rubric import JUDGED
from tests.agreement_data import HALF_DIGIT, OVERALL, TABLE_5, N, scores_of

FIGURES = ("ema", "mae", "human_mean", "judge_mean")


def _table_5_rows(human="_human", model="_model"):
    """400 rows; each sub-dimension has a column of people's scores and one of the judge's."""
    columns = {name: scores_of(row) for name, row in TABLE_5.items()}
    yield ["id", "query", *(f"{name}{end}" for name in TABLE_5 for end in (human, model))]
    for row in range(N):
        scores = [score for name in TABLE_5 for score in columns[name][row]]
        yield [f"s{row}", f"task {row}", *scores]


@pytest.fixture(scope="module")
def spreadsheet(tmp_path_factory):
    path = tmp_path_factory.mktemp("agree") / "table5.xlsx"
    book = Workbook()
    for row in _table_5_rows():
        book.active.append(row)
    book.save(path)
    return path


def _instance_and_replan(row):
    empty = Plan.parse(None)
    yield Instance(f"i{row}", f"s{row}", "", 1, Source.ROLLOUT, f"task {row}", (), empty, ())
    yield Replan(f"r{row}", f"i{row}", "agent", "", empty)


def _run(*arguments):
    return CliRunner().invoke(cli, ["agree", *map(str, arguments)], catch_exceptions=False)


def _json(*arguments):
    result = _run(*arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_table_5_from_a_spreadsheet(spreadsheet):
    found = _json(spreadsheet, "--resamples", "200")
    assert [row["dimension"] for row in found["dimensions"]] == list(JUDGED)
    for row in found["dimensions"]:
        assert row["n"] == N
        for name, printed in zip(FIGURES, TABLE_5[row["dimension"]], strict=True):
            assert abs(row[name] - float(printed)) <= HALF_DIGIT
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    for name, printed in zip(FIGURES, OVERALL, strict=True):
        assert abs(found["overall"][name] - float(printed)) <= HALF_DIGIT
    assert found["overall"]["n"] == 13 * N
    assert found["overall"]["coverage"]["both"] == 13 * N


TIES = {("D1", "mae"): "0.1063", ("D4", "mae"): "0.1163", ("S3", "mae"): "0.1563"}
"""0.10625, 0.11625 and 0.15625: the table rounds these down and its other ties up."""


def test_printed_table(spreadsheet):
    result = _run(spreadsheet, "--resamples", "100")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for name, printed in {**TABLE_5, "Overall": OVERALL}.items():
        words = [word for word in lines[name].split() if re.fullmatch(r"0\.\d{4}", word)]
        expected = [
            TIES.get((name, figure), text) for figure, text in zip(FIGURES, printed, strict=True)
        ]
        assert words == expected
    assert "5,200 of 5,200 cells have both scores." in result.stdout


def test_other_suffixes_and_csv(tmp_path):
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(_table_5_rows("_gold", "_llm4"))
    found = _json(path, "--human-suffix", "_gold", "--model-suffix", "_llm4", "--resamples", "0")
    assert abs(found["overall"]["ema"] - 0.8067) <= HALF_DIGIT
    assert found["overall"]["ema_low"] is None


def test_the_database_gives_the_numbers_of_the_spreadsheet(spreadsheet, tmp_path):
    store = Store(tmp_path / "s.db")
    records = [record for row in range(N) for record in _instance_and_replan(row)]
    store.ingest(Item(Place("instances"), record) for record in records)
    assert not store.ingest(read(spreadsheet)).rejects
    ours = _json("--db", store.path)
    theirs = _json(spreadsheet)
    assert ours["dimensions"] == theirs["dimensions"]
    assert ours["overall"] == theirs["overall"]


def test_rejected_cells_are_named_and_counted(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("id,D1_human,D1_model\na,1,1\nb,0.5,0.75\nc,yes,0\n", encoding="utf-8")
    result = _run(path, "--json", "--strict")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    coverage = found["dimensions"][JUDGED.index("D1")]["coverage"]
    assert (coverage["both"], coverage["only_human"], coverage["only_judge"]) == (1, 1, 1)
    assert coverage["judge_gaps"] == {"unreadable score in the file": 1}
    assert "line 3, column D1_model" in result.stderr
    assert "0.75" in result.stderr
    assert len(found["rejects"]) == 2


def test_undefined_is_said_in_words(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("id,D1_human,D1_model\na,1,1\nb,1,1\n", encoding="utf-8")
    result = _run(path)
    assert "Kappa, D1: undefined: one label used." in result.stdout
    assert _json(path)["overall"]["kappa"] is None


def test_wrong_use(tmp_path, spreadsheet):
    with pytest.raises(InputError, match="agree: got neither, expected files or --db"):
        _run()
    with pytest.raises(InputError, match="got both"):
        _run(spreadsheet, "--db", "x.db")
    with pytest.raises(InputError, match="got no file, expected a file with scores"):
        _run(tmp_path / "absent.xlsx")
    with pytest.raises(InputError, match=r"judge side: got 'gpt', expected one of judge:"):
        _run(spreadsheet, "--judge", "gpt")
    with pytest.raises(InputError, match="got no file, expected a database"):
        _run("--db", tmp_path / "absent.db")
    empty = tmp_path / "plain.csv"
    empty.write_text("id,thought\na,b\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"judge side: got no such scores"):
        _run(empty)


def test_help_has_an_example():
    result = _run("--help")
    assert "Example: pararecover agree" in result.stdout
