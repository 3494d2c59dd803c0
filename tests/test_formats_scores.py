"""Scores from files: what a score may look like, whose it is, wide and long form, and writing."""

import csv
import io
import json

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pararecover_core.errors import InputError
from pararecover_core.formats import (
    FORMS,
    Answer,
    Mark,
    ReadOptions,
    Reject,
    ScoreRow,
    read,
    write_scores,
)
from pararecover_core.formats.columns import LONG_FORM
from pararecover_core.formats.guard import guard, mask, unguard, unmask
from pararecover_core.formats.values import read_score
from pararecover_core.rubric import DIMENSIONS
from tests.formats_data import AUGMENTED, NEW_PLAN, contents, good, jsonl
from tests.test_formats_tables import BOTH, sheet, table

# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (1, 1.0), (0, 0.0), (1.0, 1.0), (0.5, 0.5), ("1", 1.0), ("1.0", 1.0), ("0.5", 0.5),
        (".5", 0.5), ("1 ", 1.0), (" 0", 0.0), ("0,5", 0.5), ("0.50", 0.5), ("+1", 1.0),
        ("１", 1.0), ("\u00a01", 1.0), ("-0", 0.0), (-0.0, 0.0), ("1.", 1.0),
    ],
)  # fmt: skip
def test_scores_in_every_form(cell, value):
    assert str(read_score(cell, "D1")) == str(value)


BAD = [
    0.75, 2, -1, "yes", True, False, "true", float("nan"), "NaN", "nan", float("inf"), "1/2",
    "0.25", "1e0", "0x1", "1 0", "½", "None", "-", "0.5.", "1,0,0", [1], {"score": 1}, 10**400,
    "1" * 500,
]  # fmt: skip


@pytest.mark.parametrize("cell", BAD, ids=lambda cell: str(cell)[:20])
@pytest.mark.parametrize("dimension", ["D1", "S5", "E5"])
def test_what_is_no_score(cell, dimension):
    if dimension == "E5" and cell in (0.75, "0.25") and not isinstance(cell, bool):
        assert read_score(cell, "E5") == float(cell)
        return
    with pytest.raises(ValueError, match=r"^(1, 0.5 or 0|1 or 0|a number from 0 to 1)$"):
        read_score(cell, dimension)


def test_computed_sub_dimensions_have_their_own_ranges():
    assert read_score("0.33", "E5") == 0.33
    with pytest.raises(ValueError, match=r"^1 or 0$"):
        read_score(0.5, "S5")


# --- wide form ------------------------------------------------------------------------------------


@BOTH
def test_human_and_model_columns_are_marks_of_both(write):
    header = ["id", "model", "D1_human", "D1_model", "E4_human", "E4_model"]
    found = good(write(header, ["7", "gpt", "1", ".5", "", 0]))
    assert [(m.dimension, m.scorer, m.value) for m in found] == [
        ("D1", "human:imported", 1.0),
        ("D1", "judge:imported@unknown", 0.5),
        ("E4", "judge:imported@unknown", 0.0),
    ]
    assert {(m.ref.instance.id, m.ref.agent) for m in found} == {("7", "gpt")}


def test_judge_output_with_its_reasons():
    """Each prefix carries all names, most of them empty."""
    names = [f"{prefix}_{d}_{what}" for prefix in ("diag", "evo", "struct") for d in DIMENSIONS
             for what in ("score", "reason")]  # fmt: skip
    row = dict.fromkeys(names, "") | {"diag_D1_score": "1", "diag_D1_reason": "cites node 1",
                                      "evo_E1_score": "0.5", "struct_S5_score": "1"}  # fmt: skip
    found = good(table(["id", *row], ["1", *row.values()]), options=ReadOptions(judge="gpt-4o"))
    assert [(m.dimension, m.scorer, m.value, m.note) for m in found] == [
        ("S5", "judge:gpt-4o@unknown", 1.0, ""),
        ("D1", "judge:gpt-4o@unknown", 1.0, "cites node 1"),
        ("E1", "judge:gpt-4o@unknown", 0.5, ""),
    ]


def test_two_columns_for_one_score():
    header = ["id", "diag_D1_score", "evo_D1_score", "D1_model"]
    assert len(good(table(header, [1, 1, 1, ""]))) == 1
    found = contents(table(header, [1, 1, 0, 1]))
    assert [type(c) for c in found] == [Mark, Reject]
    assert str(found[1]) == (
        "file, line 2, column evo_D1_score: got '0', expected 1 as in column diag_D1_score. "
        "Keep one of the two columns."
    )


def test_a_bad_cell_is_named_and_the_rest_of_the_row_lands():
    header = ["id", "replan", "D1_human", "D2_human", "D1_model"]
    found = contents(sheet(header, [1, NEW_PLAN, 0.75, 1, "yes"]))
    assert [type(c) for c in found] == [Answer, Reject, Reject, Mark]
    assert str(found[1]) == (
        "file, line 2, column D1_human: got 0.75, expected 1, 0.5 or 0. "
        "Correct the cell, or empty it for no score."
    )
    assert "column D1_model: got 'yes'" in str(found[2])


def test_marks_beside_an_answer_name_its_content():
    answer, mark = good(table(["id", "thought", "replan", "D1_human"], ["1", "t", NEW_PLAN, "1"]))
    assert (mark.ref.thought, mark.ref.plan) == (answer.thought, answer.plan)
    assert mark.ref.instance == answer.ref


def test_marks_without_an_answer_leave_its_content_open():
    (mark,) = good(table(["id", "D1_human"], ["1", "1"]))
    assert mark.ref.thought is None
    assert mark.ref.plan is None


def test_a_scored_row_without_answer_is_an_empty_answer():
    found = good(table(["id", "thought", "replan", "D1_human"], ["1", "", "", "0"]))
    assert [type(c) for c in found] == [Answer, Mark]
    assert (found[0].thought, found[0].plan) == ("", None)


def test_an_instance_with_scores_and_no_answer_columns():
    header, row = [*AUGMENTED, "D1_human"], [*AUGMENTED.values(), "1"]
    assert [type(c).__name__ for c in good(table(header, row))] == ["Instance", "Mark"]


def test_names_of_people_and_judges():
    def scorers(data, **options):
        return [m.scorer for m in good(data, options=ReadOptions(**options))]

    wide = table(["id", "D1_human", "D1_model"], [1, 1, 1])
    assert scorers(wide, annotator="ann", judge="gpt@v2") == ["human:ann", "judge:gpt@v2"]
    assert scorers(wide, judge="judge:gpt") == ["human:imported", "judge:gpt@unknown"]
    named = table(["id", "annotator", "judge", "prompt", "D1_human", "D1_model", "D2"],
                  [1, "ben", "qwen", "p3", 1, 1, 1])  # fmt: skip
    assert scorers(named, annotator="ann") == ["human:ben", "judge:qwen@p3", "human:ben"]
    assert scorers(table(["id", "D1_human_ann", "D1_human_ben"], [1, 1, 0])) == [
        "human:ann",
        "human:ben",
    ]
    assert scorers(table(["id", "D1", "S5", "E5"], [1, 1, 1, 0.4]), judge="gpt") == [
        "program", "judge:gpt@unknown", "program",
    ]  # fmt: skip


def test_scores_that_nobody_gave_are_said_once_a_column():
    found = contents(table(["id", "D1", "D2_human"], [1, 1, 1], [2, 0, 1], [3, "", 1]))
    assert [type(c) for c in found] == [Reject, Mark, Mark, Mark]
    assert str(found[0]).startswith(
        "file, line 2, column D1: got scores that do not say who gave them (this row and"
    )


def test_a_reason_without_a_score_is_kept_as_a_note():
    (mark,) = good(table(["id", "diag_D1_score", "diag_D1_reason"], [1, "", "refused"]))
    assert (mark.value, mark.note) == (None, "refused")


def test_comparison_rows_without_any_id_are_read_by_their_place():
    items = list(read(io.BytesIO(table(["D1_human", "D1_model"], [1, 1], [0, 1]))))
    assert [(i.place.line, i.content.value) for i in items] == [(2, 1), (2, 1), (3, 0), (3, 1)]


# --- long form ------------------------------------------------------------------------------------


@BOTH
def test_the_long_form(write):
    header = ["ID", "Annotator", "Dimension", "Score", "Note"]
    found = good(
        write(
            header,
            ["7", "ann", "d1", "0,5", " two\nlines "],
            ["7", "ann", "Root-cause depth", 1, ""],
        )
    )
    assert [(m.ref.instance.id, m.scorer, m.dimension, m.value, m.note) for m in found] == [
        ("7", "human:ann", "D1", 0.5, " two\nlines "),
        ("7", "human:ann", "D3", 1.0, ""),
    ]  # fmt: skip


def test_the_long_form_as_json_lines():
    row = {"id": 7, "annotator": "ann", "dimension": "D1", "score": 0.5, "note": "n"}
    (mark,) = good(jsonl(row))
    assert (mark.ref.instance.id, mark.value) == ("7", 0.5)


@pytest.mark.parametrize(
    ("annotator", "options", "scorer"),
    [
        ("ann", {}, "human:ann"),
        ("human:ann", {}, "human:ann"),
        ("Human", {}, "human:imported"),
        ("model", {"judge": "gpt"}, "judge:gpt@unknown"),
        ("judge:gpt@v1", {}, "judge:gpt@v1"),
        ("program", {}, "program"),
        ("", {"annotator": "ben"}, "human:ben"),
        ("", {"judge": "gpt@v1"}, "judge:gpt@v1"),
        ("", {}, "human:imported"),
    ],
)
def test_who_scored_in_the_long_form(annotator, options, scorer):
    data = table(["id", "annotator", "dimension", "score"], ["1", annotator, "D1", "1"])
    assert [m.scorer for m in good(data, options=ReadOptions(**options))] == [scorer]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["", "ann", "D1", "1", ""], "column id: got nothing that names an instance"),
        (["1", "ann", "D9", "1", ""], "column dimension: got 'D9', expected one of S1, S2"),
        (["1", "ann", "", "1", ""], "column dimension: got nothing, expected one of S1"),
        (["1", "ann", "D1", "0.75", ""], "column score: got '0.75', expected 1, 0.5 or 0"),
        (["1", "ann", "S5", "0.5", ""], "column score: got '0.5', expected 1 or 0"),
        (["1", "ann", "E5", "1.01", ""], "column score: got '1.01', expected a number from 0 to 1"),
    ],
)
def test_a_bad_row_of_the_long_form_names_its_cell(cells, message):
    header = ["id", "annotator", "dimension", "score", "note"]
    found = contents(table(header, cells, ["1", "ann", "D1", "1", ""]))
    assert [type(c) for c in found] == [Reject, Mark]
    assert str(found[0]).startswith(f"file, line 2, {message}")


def test_an_empty_score_is_no_score():
    header = ["id", "annotator", "dimension", "score", "note"]
    found = contents(table(header, ["1", "ann", "D1", "", ""], ["1", "ann", "D1", "", "unsure"]))
    assert [(m.value, m.note) for m in found if isinstance(m, Mark)] == [(None, "unsure")]
    assert len(found) == 1


# --- writing and reading back ---------------------------------------------------------------------

REPLANS = [("a" * 12, "b" * 12), ("c" * 12, "d" * 12)]
NOTE = "=HYPERLINK(\"http://x\")\n'quoted', 中文"
AT = "2026-05-01T10:00:00.000+00:00"
ROWS = [
    ScoreRow(*REPLANS[0], "7", "3073", 1, "rollout", "gpt", "D1", "human:ann", 0.5, NOTE, AT, "1.0",
             True),
    ScoreRow(*REPLANS[0], "0012", "", 0, "unknown", "", "E5", "program", 1 / 3),
    ScoreRow(*REPLANS[1], "", "-9", 2, "augmented", "@agent", "S5", "judge:m@p", 0.0, "\r\n"),
    ScoreRow(*REPLANS[1], "", "", 2, "sandbox", "+1", "D2", "human:=b", None, "\tnote _x0041_"),
    ScoreRow(*REPLANS[1], "", "", 2, "sandbox", "+1", "D3", "human:=b", None),
]  # fmt: skip


def row_of(mark):
    """A mark as the row that it was written from."""
    ref, inst = mark.ref, mark.ref.instance
    return ScoreRow(
        ref.key, inst.key, inst.id, inst.query_id, inst.level, inst.source, ref.agent,
        mark.dimension, mark.scorer, mark.value, mark.note, mark.at, mark.rubric,
        bool(mark.extra.get("revealed")),
    )  # fmt: skip


def written(rows, form):
    stream = io.BytesIO()
    assert write_scores(rows, stream, form) == len(rows)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl", "parquet"])
def test_written_scores_come_back_as_they_were(form):
    assert [row_of(mark) for mark in good(written(ROWS, form))] == ROWS


def test_csv_has_a_mark_the_columns_and_no_formula():
    data = written(ROWS, "csv")
    assert data.startswith(b"\xef\xbb\xbfreplan,instance,id,")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert tuple(rows[0]) == LONG_FORM
    assert rows[1][LONG_FORM.index("note")].startswith("'=HYPERLINK")
    assert rows[1][LONG_FORM.index("revealed")] == "1"
    assert rows[3][LONG_FORM.index("query_id")] == "'-9"
    assert not any(
        cell[:1] in ("=", "+", "-", "@", "\t", "\r") for row in rows for cell in row if cell
    )


def test_xlsx_cells_are_texts_and_numbers():
    book = openpyxl.load_workbook(io.BytesIO(written(ROWS, "xlsx")))
    cells = [cell for row in book.active.iter_rows(min_row=2) for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr", "n"}
    assert book.active.cell(2, LONG_FORM.index("score") + 1).value == 0.5


def test_a_foreign_file_keeps_its_apostrophes():
    (mark,) = good(
        table(["id", "annotator", "dimension", "score", "note"], [1, "a", "D1", 1, "'so"])
    )
    assert mark.note == "'so"


def test_jsonl_has_one_row_a_line():
    lines = written(ROWS, "jsonl").splitlines()
    assert list(json.loads(lines[0])) == list(LONG_FORM)
    assert json.loads(lines[0])["score"] == 0.5


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "scores.csv"
    write_scores(ROWS, path)
    before = path.read_bytes()

    def broken():
        yield ROWS[0]
        raise RuntimeError("lost the database")

    with pytest.raises(RuntimeError):
        write_scores(broken(), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_a_note_too_long_for_a_cell_is_refused_not_cut():
    with pytest.raises(InputError, match=r"row 2, column note: got 40000 characters.*CSV or JSONL"):
        written([ScoreRow("a", "b", "", "", 0, "", "", "D1", "human:a", 1.0, "x" * 40_000)], "xlsx")


def test_an_unknown_form_is_refused():
    with pytest.raises(InputError, match=r"form: got 'pdf', expected one of csv, xlsx, jsonl"):
        write_scores([], io.BytesIO(), "pdf")


texts = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    [
        "_x0041_",
        "_x005F_",
        "'=",
        "=1",
        "\r",
        "\ud800",
        "\x00",
        "_xD800_",
        " ",
        "\ufeff",
        "1",
        "_x0041_x0042_",
    ]
)


@given(texts)
def test_guards_undo_themselves(text):
    assert unguard(guard(text)) == text
    assert (
        unmask(mask(text).replace("_x005F_", "_").replace("_x000D_", "\r")) == text or "_x" in text
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from(FORMS))
def test_any_note_survives_writing(notes, form):
    rows = [ScoreRow("a", "b", "1", "2", 1, "rollout", "m", "D1", "human:a", 1.0, n) for n in notes]
    assert [mark.note for mark in good(written(rows, form))] == notes
