"""Exports of scores are opened by the programs they are for, and read back without loss."""

import io

import pandas as pd
import pytest

from pararecover_core.errors import InputError
from pararecover_core.formats import ScoreRow, read, write_scores, writers
from pararecover_core.formats.columns import FIRST_LONG_FORM, LONG_FORM

ROW = ScoreRow(
    *("r1", "i1", "7", "9", 2, "rollout", "agent=x", "D1", "judge:m@sde-1", 0.5),
    *("=1+1 结果 a\ud800b _x0041_", "2030-01-02T12:00:00+00:00", "sde-1", True),
)


def written(form, rows=(ROW,)):
    stream = io.BytesIO()
    write_scores(rows, stream, form)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("form", "opened"),
    [("csv", pd.read_csv), ("xlsx", pd.read_excel), ("parquet", pd.read_parquet)],
)
def test_pandas_opens_them(form, opened):
    frame = opened(io.BytesIO(written(form)))
    assert tuple(frame.columns) == LONG_FORM
    assert frame["prompt"][0] == "sde-1"
    assert frame["score"][0] == 0.5
    assert "结果" in frame["note"][0]
    assert not frame["note"][0].startswith("=") or form == "parquet"


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl", "parquet"])
def test_the_note_comes_back_as_it_was(form):
    (item,) = read(io.BytesIO(written(form)), name=f"scores.{form}")
    assert item.content.note == ROW.note
    assert item.content.scorer == ROW.scorer
    assert item.content.extra == {"revealed": True}


def test_a_sheet_that_is_full_says_so(monkeypatch):
    monkeypatch.setattr(writers, "_MOST_ROWS", 2)
    with pytest.raises(InputError, match="rows: got more than 2, expected as many as a sheet"):
        written("xlsx", [ROW] * 3)
    assert len(pd.read_excel(io.BytesIO(written("xlsx", [ROW] * 2)), engine="openpyxl")) == 2


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_without_rows_there_is_the_head_alone(form):
    sheet = io.BytesIO(written(form, []))
    frame = pd.read_excel(sheet, engine="openpyxl") if form == "xlsx" else pd.read_csv(sheet)
    assert (list(frame.columns), len(frame)) == (list(LONG_FORM), 0)


def test_a_csv_of_the_first_release_reads_as_it_did():
    cells = ["r1", "i1", "7", "9", "2", "rollout", "x", "D1", "human:a", "0.5"]
    line = ",".join([*cells, "'=1 _x0041_", "", "", "0"])
    data = f"\ufeff{','.join(FIRST_LONG_FORM)}\n{line}\n".encode()
    (item,) = read(io.BytesIO(data), name="old.csv")
    assert item.content.note == "=1 _x0041_"


def test_a_broken_parquet_is_one_reject():
    (item,) = read(io.BytesIO(b"PAR1 and no more"), name="x.parquet")
    assert "a Parquet file that cannot be read" in str(item.content)
    frame = pd.DataFrame({"colour": ["red"]})
    (item,) = read(io.BytesIO(frame.to_parquet()), name="x.parquet")
    assert "columns colour" in str(item.content)
