"""A case study in a real browser: the page of the app, and its file opened without a network."""

import pytest

from annotations import case_studies
from annotations.store import Store
from pararecover_core.case_study import files


@pytest.fixture
def page_file(sample_database, tmp_path):
    store = Store(sample_database)
    case = case_studies.make(store, case_studies.example(store))
    path = tmp_path / "case.html"
    path.write_bytes(files(case, "html")["case-study.html"])
    return path


def test_the_file_asks_nothing_and_answers_clicks_keys_and_print(page_file, tmp_path, browser):
    problems, asked = [], []
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    first = page.locator("figure .plan").first
    first.locator(".n[data-id='3']").click()
    pick = first.locator(".pick").inner_text()
    assert "check_branch_stock" in pick
    assert pick.endswith("reaches 4, 5, response")
    assert first.locator(".n.hit").count() == 3
    first.locator(".n[data-id='5']").focus()
    page.keyboard.press("Enter")
    assert first.locator(".pick").inner_text().endswith("reaches response")
    page.get_by_role("button", name="Show tools and values").first.click()
    assert page.locator("dialog[open] svg").count() == 1
    page.keyboard.press("Escape")
    data = page.pdf(path=tmp_path / "case.pdf", prefer_css_page_size=True)
    assert data.startswith(b"%PDF")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
    assert problems == []
    assert asked == [page_file.as_uri()]


def test_from_the_gallery_to_a_saved_one(server, open_page):
    watch = open_page(server)
    page = watch.page
    page.goto(f"{server.url}/case_study")
    page.get_by_role("button", name="Eighteen rounds for a task of six").click()
    frame = page.frame_locator(".st-key-cs_preview iframe")
    frame.get_by_text("6 / 18 = 0.33").wait_for()
    assert "item=1474b3e11aef" in page.url
    page.get_by_label("Name in the gallery").fill("Mine <b>")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as version 1").wait_for()
    page.get_by_role("button", name="All case studies").click()
    page.get_by_role("button", name="Mine <b>").wait_for()


def test_results_link_to_the_records(server, open_page):
    watch = open_page(server)
    page = watch.page
    page.goto(f"{server.url}/results")
    page.locator(".rs td a").first.click()
    page.wait_for_url("**/trajectories?*agent=agent-a*")
    watch.check()
