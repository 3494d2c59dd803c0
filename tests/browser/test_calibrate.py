"""Calibrate and Guidelines in a real browser."""

import csv
import io
import re

from playwright.sync_api import expect

from tests.agreement_data import TABLE_5, N, scores_of


def _open(watch, server, path):
    watch.page.goto(f"{server.url}/{path}")
    watch.page.locator(".board").wait_for()


def _table_5(path):
    columns = {name: scores_of(row) for name, row in TABLE_5.items()}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"{n}{end}" for n in TABLE_5 for end in ("_human", "_model"))])
        for row in range(N):
            writer.writerow([f"s{row}", *(score for n in TABLE_5 for score in columns[n][row])])


def test_figures_matrix_list_and_item(server, open_page):
    """From the sample's figures to the items of one cell of a matrix, and on to an item."""
    watch = open_page(server)
    _open(watch, server, "calibrate")
    page = watch.page
    assert page.locator(".ag tbody tr").count() == 14
    cell = page.locator(".cm button").first
    count = cell.inner_text()
    cell.click()
    page.get_by_text(re.compile(rf"^{count} cells?, largest first")).wait_for()
    assert page.locator(".ls tbody tr").count() == int(count)
    assert re.search(r"[?&]cell=[SDE]\d-[\d.]+-[\d.]+", page.url)

    page.reload()  # the link restores the choice
    page.get_by_text(re.compile(rf"^{count} cells?, largest first")).wait_for()
    page.locator(".ls tbody tr").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/trajectories\?item=\w+"))
    watch.check()


def test_a_link_restores_filters(server, open_page):
    watch = open_page(server)
    _open(watch, server, "calibrate?level=2&people=human%3Aann&cell=D3")
    page = watch.page
    assert page.locator(".st-key-calibrate_level input").input_value() == "LEVEL-2"
    assert page.locator(".ag tr.cur td").first.inner_text() == "D3"
    assert set(page.locator(".ls tbody td:nth-child(2) b").all_inner_texts()) <= {"D3"}
    watch.check()


def test_a_spreadsheet_is_compared_without_importing_it(server, open_page, tmp_path):
    path = tmp_path / "table5.csv"
    _table_5(path)
    watch = open_page(server)
    page = watch.page
    page.goto(f"{server.url}/calibrate?from=file")
    page.get_by_text("Choose a file with scores of people and of a judge").wait_for()
    page.get_by_text("Choose file", exact=True).click()
    page.locator("input[type=file]").set_input_files(path)
    page.locator(".board").wait_for()
    totals = page.locator(".ag .tot td").all_inner_texts()
    assert [totals[at] for at in (3, 4, 5, 6)] == ["0.807", "0.121", "0.474", "0.481"]
    assert page.get_by_text("1,005 cells, largest first").count() == 1
    watch.check()


def test_figures_are_taken_away_as_csv(server, open_page):
    watch = open_page(server)
    _open(watch, server, "calibrate")
    watch.page.get_by_text("Download", exact=True).click()
    with watch.page.expect_download() as waiting:
        watch.page.get_by_text("Figures with intervals, CSV").click()
    text = waiting.value.path().read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    shown = watch.page.locator(".ag .tot td").nth(3).inner_text()
    assert f"{float(rows[-2]['ema']):.3f}" == shown
    watch.check()


def test_guidelines_mark_a_sub_dimension_and_draw_the_examples(server, open_page):
    watch = open_page(server)
    page = watch.page
    page.goto(f"{server.url}/guidelines?d=E2")
    page.locator("tr.cur").wait_for()
    assert page.locator("tr.cur").get_attribute("data-d") == "E2"
    expect(page.locator("tr.cur")).to_be_in_viewport()
    page.get_by_role("button", name="Examples").click()
    page.locator(".plan canvas").first.wait_for()
    assert page.locator(".plan canvas").count() == 4
    page.get_by_role("button", name="D3", exact=True).click()
    page.wait_for_url(re.compile(r"d=D3"))
    watch.check()
