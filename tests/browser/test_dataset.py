"""The Dataset page in a real browser: bring files, read what landed, take work out."""

import csv
import json
import sqlite3

import pytest

from annotations.store import Store
from tests.browser.serving import running

RECORD = {
    "id": 7,
    "query_id": "q7",
    "query": "Book <b>two</b> rooms",
    "tag": "Type_Error",
    "tool_list": [{"name": "book", "parameters": {}}],
    "plan": [{"id": "1", "name": "book", "para": {"n": "two"}, "dependency": [], "status": 0}],
    "fun_call": [],
}


@pytest.fixture
def app(tmp_path):
    Store(tmp_path / "mine.db")
    with running(tmp_path, tmp_path / "mine.db") as server:
        yield server


def test_bring_files_see_them_and_take_scores_out(app, tmp_path, open_page):
    watch = open_page(app)
    page = watch.page
    page.goto(f"{app.url}/dataset")
    page.get_by_text("Nothing yet.").wait_for()
    (tmp_path / "items.jsonl").write_text(json.dumps(RECORD) + "\nnot json\n")
    table = "query,plan,thought,replan,agent,S1_human\n"
    (tmp_path / "results.csv").write_text(
        table
        + ",".join(
            (
                RECORD["query"],
                '"' + json.dumps(RECORD["plan"]).replace('"', '""') + '"',
                "Node 1 failed",
                '"' + json.dumps(RECORD["plan"]).replace('"', '""') + '"',
                "agent-z",
                "0.5",
            )
        )
        + "\n"
    )
    chooser = page.locator('input[type="file"]')
    chooser.set_input_files([tmp_path / "results.csv", tmp_path / "items.jsonl"])
    page.get_by_role("button", name="Import").click()
    page.get_by_text("1 not taken").wait_for()
    page.get_by_text("items.jsonl, line 2").wait_for()
    page.get_by_role("cell", name="agent-z").wait_for()

    with page.expect_download() as kept:
        page.get_by_role("button", name="All as CSV").click()
    rows = list(csv.reader(kept.value.path().read_text("utf-8-sig").splitlines()))
    assert rows[0] == ["file", "line", "column", "got", "expected", "cure"]
    assert rows[1][:2] == ["items.jsonl", "2"]

    with page.expect_download() as scores:
        page.get_by_role("button", name="Download scores").click()
    assert scores.value.suggested_filename == "scores.csv"
    [row] = list(csv.DictReader(scores.value.path().read_text("utf-8-sig").splitlines()))
    assert (row["dimension"], row["score"], row["agent"]) == ("S1", "0.5", "agent-z")

    with page.expect_download() as copy:
        page.get_by_role("button", name="Download database").click()
    with sqlite3.connect(copy.value.path()) as db:
        assert db.execute("SELECT COUNT(*) FROM replan").fetchone() == (1,)
    watch.check()


def test_files_of_this_machine_are_named_by_path(app, tmp_path, open_page):
    page = open_page(app).page
    page.goto(f"{app.url}/dataset")
    page.get_by_text("Names the files do not say").click()
    box = page.get_by_label("Files on this machine")
    box.fill(str(tmp_path / "missing.jsonl"))
    box.press("Control+Enter")
    page.get_by_role("button", name="Import").click()
    page.get_by_text("missing.jsonl: got no file, expected a file on this machine").wait_for()
