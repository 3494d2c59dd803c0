"""Spreadsheets and CSV of the reference pipeline: columns, cells, answers, and broken workbooks."""

import csv
import datetime
import io
import json
import struct
import zipfile

import openpyxl
import pytest

from pararecover_core.formats import Answer, Mark, ReadOptions, Reject
from pararecover_core.formats.columns import understand
from pararecover_core.formats.values import split_agent_text
from pararecover_core.plan import Plan
from pararecover_core.records import Instance
from tests.formats_data import (
    AUGMENTED,
    CALLS,
    NEW_PLAN,
    NEW_TASKS,
    PLAN,
    ROLLOUT_1,
    ROLLOUT_2,
    TOOLS,
    contents,
    good,
    items_of,
    jsonl,
    rejects,
)


def table(*rows, delimiter=",", encoding="utf-8"):
    """Rows of cells as CSV."""
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    return stream.getvalue().encode(encoding)


def sheet(*rows, **others):
    """Rows of cells as a workbook; ``others`` are more sheets by name."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, more in others.items():
        extra = book.create_sheet(name)
        for row in more:
            extra.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


BOTH = pytest.mark.parametrize("write", [table, sheet], ids=["csv", "xlsx"])
RESULT = {
    "id": 12, "query_id": "3073", "query": "Make tea.", "tool_list": json.dumps(TOOLS),
    "plan": PLAN, "fun_call": json.dumps(CALLS), "thought": "Node 1 got text.",
    "replan": NEW_PLAN, "model": "gpt", "round_gt": 2, "funcall_times_gt": 1, "tag": "Type_Error",
}  # fmt: skip


def result(**changes):
    """Header and row of a results spreadsheet."""
    row = RESULT | changes
    row = {name: value for name, value in row.items() if value is not ...}
    return list(row), list(row.values())


# --- instances and answers ------------------------------------------------------------------------


@BOTH
def test_a_results_row_is_an_answer_with_its_whole_instance(write):
    (answer,) = good(write(*result()))
    assert isinstance(answer, Answer)
    assert (answer.agent, answer.thought) == ("gpt", "Node 1 got text.")
    assert Plan.parse(answer.plan).by_id["1"].done
    assert answer.ref.id == "12"
    assert answer.ref.query_id == "3073"
    assert (answer.ref.level, answer.ref.source) == (1, "")
    assert answer.ref.query == "Make tea."
    assert answer.instance is not None
    assert answer.instance.observations[0].node == "1"


@BOTH
@pytest.mark.parametrize("record", [AUGMENTED, ROLLOUT_1, ROLLOUT_2], ids=["aug", "L1", "L2"])
def test_an_instance_has_the_same_key_in_a_table_as_in_the_published_file(write, record):
    """The reference pipeline writes lists as Python text and numbers as numbers."""
    row = {k: repr(v) if isinstance(v, list) else v for k, v in record.items()}
    (from_table,) = good(write(list(row), list(row.values())))
    (published,) = good(jsonl(record))
    assert from_table == published


def test_the_instance_inside_a_results_row_has_the_published_key():
    row = ROLLOUT_1 | {"fun_call": repr(CALLS), "thought": "t", "replan": NEW_PLAN}
    (answer,) = good(sheet(list(row), list(row.values())))
    assert answer.instance.key == good(jsonl(ROLLOUT_1))[0].key
    assert answer.ref.source == "rollout", "Chinese labels tell"


@pytest.mark.parametrize(
    "plan_column", ["plan", "plan_dag", "prev_plan", "Prev Plan", "\ufeffPLAN "]
)
@pytest.mark.parametrize("replan_column", ["replan", "replan_dag", "new_plan", "Re-Plan"])
@pytest.mark.parametrize("calls_column", ["fun_call", "tool_result"])
def test_columns_under_every_name(plan_column, replan_column, calls_column):
    header, row = result()
    names = {"plan": plan_column, "replan": replan_column, "fun_call": calls_column}
    (answer,) = good(table([names.get(name, name) for name in header], row))
    assert answer.ref.plan == PLAN
    assert answer.plan == NEW_PLAN
    assert len(answer.instance.observations) == 1


def test_beside_a_previous_plan_the_plan_is_the_new_one():
    (answer,) = good(table(["id", "prev_plan", "plan"], ["1", PLAN, NEW_PLAN]))
    assert (answer.ref.plan, answer.plan) == (PLAN, NEW_PLAN)


def test_an_empty_column_leaves_the_other_of_its_kind():
    (answer,) = good(table(["id", "replan", "replan_dag"], ["1", "", NEW_PLAN]))
    assert answer.plan == NEW_PLAN


def test_a_row_that_lacks_tools_carries_no_instance():
    (answer,) = good(table(*result(tool_list=...)))
    assert answer.instance is None
    assert answer.ref.query == "Make tea."


def test_a_broken_instance_part_leaves_the_answer():
    found = contents(table(*result(round_gt="many")))
    assert [type(c) for c in found] == [Reject, Answer]
    assert "column round_gt: got 'many'" in str(found[0])
    assert found[1].instance is None


def test_plans_as_python_text():
    (answer,) = good(sheet(*result(replan=repr({"tasks": NEW_TASKS}))))
    assert Plan.parse(answer.plan).s5 == 1


def test_an_answer_without_plan_is_an_answer():
    (answer,) = good(table(["id", "thought", "replan"], ["1", "I give up.", ""]))
    assert (answer.thought, answer.plan) == ("I give up.", None)


def test_agent_from_the_row_then_from_the_caller():
    data = table(["id", "agent", "replan"], ["1", "gpt", PLAN], ["2", "", PLAN])
    assert [a.agent for a in good(data)] == ["gpt", ""]
    assert [a.agent for a in good(data, options=ReadOptions(agent="qwen"))] == ["gpt", "qwen"]


def test_a_row_with_neither_answer_nor_score_is_listed_unless_it_is_an_instance():
    assert rejects(table(["id", "thought", "replan"], ["1", "", ""])) == [
        "file, line 2: got neither a thought, a new plan nor a score, expected an answer or scores "
        "in the row. Fill the row in, or take it out."
    ]
    (found,) = good(table(*result(thought="", replan="")))
    assert isinstance(found, Instance)


def test_a_row_that_names_no_instance_is_rejected():
    (found,) = rejects(table(["id", "thought"], ["", "lost"], ["1", "here"]))
    assert found.startswith("file, line 2, column id: got nothing that names an instance")


def test_columns_that_mean_nothing_are_kept():
    header = ["id", "replan", "execute_round", "diag_raw_output"]
    (answer,) = good(sheet(header, [1, PLAN, -1, "{}"]))
    assert answer.extra == {"execute_round": -1.0, "diag_raw_output": "{}"}


def test_an_agents_whole_text_in_one_column():
    raw = f"<thought>Node 1 failed.</thought>\n{NEW_PLAN}<Answer>wait</Answer>"
    (one,) = good(table(["id", "raw_output"], ["1", raw]))
    (two,) = good(table(["id", "replan"], ["1", raw]))
    (three,) = good(table(["id", "response"], ["1", raw]))
    for answer in (one, two, three):
        assert (answer.thought, answer.plan, answer.raw) == ("Node 1 failed.", NEW_PLAN, raw)
        assert answer.extra == {"final_answer": "wait"}


def test_a_thought_column_comes_before_the_thought_in_the_text():
    raw = f"<thought>inner</thought>{NEW_PLAN}"
    (answer,) = good(table(["id", "thought", "replan"], ["1", "outer", raw]))
    assert (answer.thought, answer.plan) == ("outer", NEW_PLAN)


def test_a_column_named_response_that_holds_no_plan_is_kept_aside():
    (found,) = good(table([*AUGMENTED, "response"], [*AUGMENTED.values(), "Tea is ready."]))
    assert isinstance(found, Instance)


@pytest.mark.parametrize(
    ("text", "thought", "plan", "answer"),
    [
        ('<thought>t</thought>{"tasks": []}', "t", '{"tasks": []}', ""),
        ('<THINK>t</THINK><plan>{"tasks": []}</plan>', "t", '{"tasks": []}', ""),
        ('<thought>t</thought>\n```json\n{"tasks": []}\n```', "t", '{"tasks": []}', ""),
        ('t\n```\n{"tasks": []}\n```\nbye', "t", '{"tasks": []}', ""),
        ('<thought>t{"tasks": 1}</thought>{"tasks": []}', "t{\"tasks\": 1}", '{"tasks": []}', ""),
        ('<thought>t</thought>{"tasks": []}<Answer>42</Answer>', "t", '{"tasks": []}', "42"),
        ('<thought>t</thought><Answer>{"tasks": []}</Answer>', "t", '{"tasks": []}', ""),
        ('Because. {"tasks": []}', "Because.", '{"tasks": []}', ""),
        ("<thought>t</thought>no plan", "t", "no plan", ""),
        ("<thought>t", "t", "", ""),
        ('<thought>t<plan>{"tasks": []}', "t", '{"tasks": []}', ""),
        ('<thought>a</thought><thought>b</thought>{"tasks": []}', "a\nb", '{"tasks": []}', ""),
        ("", "", "", ""),
    ],
)  # fmt: skip
def test_taking_an_agents_text_apart(text, thought, plan, answer):
    assert split_agent_text(text) == (thought, plan, answer)


# --- levels and labels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "cells", "level", "tags"),
    [
        (["tag"], ["Type_Error"], 1, ("Type_Error",)),
        (["tag"], [""], 1, ()),
        (["tag_1", "tag_2", "tag_3"], ["错误串行", "", ""], 2, ("Serial_Error",)),
        (["Tag 1", "TAG2"], ["错误串行", "冗余"], 2, ("Serial_Error", "Toolcall_Redundancy")),
        (["tag_2", "tag_1"], ["冗余", "错误串行"], 2, ("Serial_Error", "Toolcall_Redundancy")),
        (["tag", "tag_1"], ["冗余", ""], 1, ("Toolcall_Redundancy",)),
        (["tag", "tag_1"], ["", "冗余"], 2, ("Toolcall_Redundancy",)),
        (["tag", "tag_1"], ["", ""], 0, ()),
        (["error_type"], ["冗余；type error"], 0, ("Toolcall_Redundancy, Type_Error",)),
        (["level", "tag"], ["2", "冗余"], 2, ("Toolcall_Redundancy",)),
        ([], [], 0, ()),
    ],
)
def test_level_and_labels(names, cells, level, tags):
    (found,) = good(table(["query", "plan", *names], ["q", PLAN, *cells]))
    assert (found.level, found.tags) == (level, tags)


# --- containers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_every_delimiter_and_encoding(delimiter, encoding):
    header, row = result(thought="节点1的参数类型错误")
    (answer,) = good(table(header, row, delimiter=delimiter, encoding=encoding))
    assert answer.thought == "节点1的参数类型错误"
    assert answer.ref.plan == PLAN


def test_rows_above_the_header_are_passed_over():
    rows = [["Results of May"], [], ["id", "D1_human"], [1, 1]]
    assert len(good(sheet(*rows))) == 1
    assert len(good(b"sep=;\nid;D1_human\n1;1\n")) == 1


def test_line_and_row_numbers():
    data = b'id,thought,replan\n1,"two\nlines",x\n\n2,,\n'
    assert [item.place.line for item in items_of(data)] == [2, 5]
    (item,) = items_of(sheet(["id", "D1_human"], [], [], [7, 3]))
    assert str(item.place) == "file, line 4, column D1_human"


def test_all_sheets_are_read_and_named():
    data = sheet(["id", "D1_human"], [1, 1], Second=[["id", "D2_human"], [1, 9]], Empty=[],
                 Notes=[["about"], ["this file"]])  # fmt: skip
    found = items_of(data)
    assert [type(i.content) for i in found] == [Mark, Reject, Reject]
    assert str(found[1].content).startswith("file, sheet Second, line 2, column D2_human: got 9")
    assert str(found[2].content).startswith("file, sheet Notes, line 1: got columns 'about'")


def test_numbers_dates_and_truth_values_of_cells():
    when = datetime.datetime(2026, 5, 1, 12, 30)
    header = ["id", "annotator", "dimension", "score", "at"]
    (mark,) = good(sheet(header, [1933, 7, "D1", 0.5, when]))
    assert mark.ref.instance.id == "1933"
    assert mark.scorer == "human:7"
    assert mark.at == "2026-05-01T12:30:00"
    (found,) = rejects(sheet(header, [1, "ann", "D1", True, None]))
    assert "column score: got True, expected 1, 0.5 or 0" in found


def test_two_columns_of_the_same_meaning_and_name():
    for data in (table(["id", "D1_human", "d1 human"], [1, 1, 0]),
                 table(["id", "replan", "RePlan"], [1, "x", "y"])):  # fmt: skip
        (found,) = rejects(data)
        assert found.startswith("file, line 1: got two columns named like")
    assert len(good(table(["id", "x", "x", "", "", "D1_human"], [1, 2, 3, 4, 5, 1]))) == 1


def test_rows_of_another_length():
    found = contents(table(["id", "D1_human"], [1], [1, 1, "", ""], [1, 1, "x"]))
    assert [type(c) for c in found] == [Reject, Mark, Reject]
    assert "line 4: got 3 cells under 2 columns" in str(found[2])


def test_a_broken_quote_rejects_its_row():
    data = b'id,D1_human\n1,1\n"2"x,1\n3,1\n"4,1\n'
    found = contents(data)
    assert [type(c) for c in found] == [Mark, Reject, Mark, Reject]
    assert str(found[1]).startswith("file, line 3: got quotes or delimiters that do not fit")
    assert "unexpected end of data" in str(found[3])


def test_bytes_that_are_no_text_reject_their_row():
    data = "id,thought\n1,漢字 ok\n2,x\n".encode() + b"3,\xff\xff\n4,y\n"
    found = contents(data)
    assert [type(c) for c in found] == [Answer, Answer, Reject, Answer]
    assert str(found[2]).startswith("file, line 4: got bytes that are no UTF-8")


def test_nul_bytes_and_long_cells_survive():
    long = "x" * 2_000_000
    found = good(table(["id", "thought"], [1, "a\x00b"], [2, long]))
    assert [a.thought for a in found] == ["a\x00b", long]


# --- workbooks that are none ----------------------------------------------------------------------


def archive(**members):
    """A ZIP archive; underscores of names are slashes, and dots are added."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in members.items():
            target.writestr(name.replace("_", "/") + ".xml", data)
    return stream.getvalue()


def replaced(data, name, change):
    """A workbook with one member changed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(stream, "w") as target:
        for member in source.namelist():
            content = source.read(member)
            target.writestr(member, change(content) if member == name else content)
    return stream.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
SMALL = sheet(["id", "D1_human"], [1, 1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SMALL[:200], "a broken workbook"),
        (SMALL[:-30], "a broken workbook"),
        (archive(docs_readme="x"), "a ZIP archive with docs/readme.xml and no workbook"),
        (archive(xl_workbook="not xml"), "a broken workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel file (.xls)"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "an encrypted workbook, expected one without a password",
        ),
        (replaced(SMALL, SHEET, lambda xml: xml[: len(xml) // 2]), "a broken workbook"),
        (replaced(SMALL, SHEET, lambda xml: b""), "a broken workbook"),
    ],
    ids=["half", "no end", "zip", "no xml", "xls", "locked", "half a sheet", "no sheet"],
)
def test_broken_workbooks_are_one_reject(data, message):
    found = rejects(data)
    assert len(found) == 1
    assert found[0].startswith(f"file: got {message}")


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: xml.replace(b'r="B2"', b'r="XFD1048576"'),
        lambda xml: xml.replace(b'r="B2"', b"r = 'XFD1048576'"),
        lambda xml: xml.replace(b'r="2"', b'r="999999999"').replace(b'r="B2"', b'r="ZZZ2"'),
        lambda xml: xml.replace(b"</sheetData>", b"<row>" + b"<c/>" * 9000 + b"</row>"
                                + b"<row/>" * 9000 + b"</sheetData>"),
    ],
    ids=["far cell", "other quotes", "far row", "unnamed cells"],
)  # fmt: skip
def test_cells_far_apart_do_not_end_the_process(change):
    (found,) = rejects(replaced(SMALL, SHEET, change))
    assert found.startswith("file: got cells as far out as row ")
    assert "Delete stray cells far right and below" in found


def test_a_zip_bomb_is_refused_by_its_true_size(monkeypatch):
    monkeypatch.setattr("pararecover_core.formats.xlsx.MAX_UNPACKED", 5_000_000)
    bomb = replaced(SMALL, "docProps/app.xml", lambda _: b" " * 6_000_000)
    (found,) = rejects(bomb)
    assert "MB after unpacking, expected a smaller workbook" in found
    assert good(SMALL)


def test_a_zip_bomb_that_lies_about_its_size_is_refused(monkeypatch):
    monkeypatch.setattr("pararecover_core.formats.xlsx.MAX_UNPACKED", 5_000_000)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("xl/workbook.xml", b" " * 6_000_000)
    size = struct.pack("<L", 6_000_000)
    assert stream.getvalue().count(size) == 2
    (found,) = rejects(stream.getvalue().replace(size, struct.pack("<L", 100)))
    assert "MB after unpacking" in found


# --- what columns mean ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("D1_human", ("D1", "human", "", "")),
        ("d1 HUMAN ", ("D1", "human", "", "")),
        ("E4_model", ("E4", "judge", "", "")),
        ("diag_D3_score", ("D3", "judge", "", "")),
        ("struct_S5_score", ("S5", "judge", "", "")),
        ("evo_E5_score_sim", ("E5", "program", "", "")),
        ("S5", ("S5", "program", "", "")),
        ("S1", ("S1", "", "", "")),
        ("S1_score", ("S1", "", "", "")),
        ("D1_human_ann", ("D1", "human", "ann", "")),
        ("human_D1", ("D1", "human", "", "")),
        ("D2_judge", ("D2", "judge", "", "")),
        ("diag_D1_score_human", ("D1", "human", "", "")),
    ],
)
def test_names_of_score_columns(name, meaning):
    (column,) = understand([name]).scores
    assert (column.dimension, column.kind, column.who, column.note) == meaning


@pytest.mark.parametrize("name", ["S6_human", "step_E1", "D1_total", "D11", "diag_error", "SE1"])
def test_names_that_are_no_score_columns(name):
    assert understand([name]).extra == (name,)


def test_suffixes_can_be_chosen():
    header = understand(["D1_gold", "D1_gpt"], human_suffix="_gold", model_suffix="_gpt")
    assert [column.kind for column in header.scores] == ["human", "judge"]


def test_reasons_stand_beside_their_scores():
    header = understand(["diag_D1_reason", "diag_D1_score", "D1_human_note", "D1_human"])
    assert {c.column: c.note for c in header.scores} == {
        "diag_D1_score": "diag_D1_reason",
        "D1_human": "D1_human_note",
    }
