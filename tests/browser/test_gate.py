"""No page can be reached around the gate, whatever is asked for first."""

import re
from pathlib import Path

import pytest

from annotations.store import Store
from tests.browser.serving import running

ROOT = Path(__file__).resolve().parents[2]
STREAMLIT = ("streamlit", "run", str(ROOT / "app.py"), "--server.port={port}")
DEEP_LINKS = ("/annotate?item=none", "/dataset?from=chat")
GATE = "Who is scoring?"


@pytest.fixture
def empty(tmp_path):
    Store(tmp_path / "empty.db")
    return tmp_path / "empty.db"


@pytest.mark.parametrize("link", DEEP_LINKS)
def test_a_deep_link_as_first_hit_meets_the_gate_then_its_page(link, empty, tmp_path, open_page):
    with running(tmp_path, empty) as app:
        watch = open_page(app, name=None)
        watch.page.goto(app.url + link)
        watch.page.get_by_text(GATE).wait_for()
        assert watch.page.url == app.url + link
        assert watch.page.get_by_test_id("stSidebarNav").count() == 0
        watch.page.get_by_label("Your name").fill("Grace")
        watch.page.get_by_role("button", name="Start").click()
        here = watch.page.locator('[data-testid="stSidebarNavLink"][aria-current="page"]')
        here.wait_for()
        assert here.get_attribute("href").endswith(link.split("?")[0])
        assert watch.page.get_by_text("Page not found").count() == 0
        if link.startswith("/dataset"):  # other pages drop what names nothing in this database
            assert watch.page.url == app.url + link
        watch.page.wait_for_function("document.cookie.includes('Grace')")
        watch.page.reload()
        watch.page.get_by_text("Grace").first.wait_for()
        assert watch.page.get_by_text(GATE).count() == 0
        watch.check()


def test_streamlit_run_never_shows_a_page_without_the_gate(empty, tmp_path, open_page):
    with running(tmp_path, empty, command=STREAMLIT, PARARECOVER_DB=str(empty)) as app:
        for _ in range(2):  # the session after the first hit as well
            watch = open_page(app, name=None)
            watch.page.goto(app.url + DEEP_LINKS[0])
            watch.page.get_by_text(GATE).wait_for()
            assert watch.page.get_by_test_id("stSidebarNav").count() == 0


def test_changing_the_name_asks_again(empty, tmp_path, open_page):
    with running(tmp_path, empty) as app:
        watch = open_page(app, name="Ada")
        watch.page.goto(app.url + "/dataset")
        watch.page.get_by_role("button", name="Change name").click()
        watch.page.get_by_text(GATE).wait_for()
        watch.page.wait_for_function("!document.cookie.includes('Ada')")
        watch.page.reload()
        watch.page.get_by_text(GATE).wait_for()
        watch.check()


def test_a_trusted_header_names_the_person_and_roles_are_configured(empty, tmp_path, browser):
    settings = {
        "PARARECOVER_TRUSTED_HEADER": "X-Forwarded-Email",
        "PARARECOVER_ADJUDICATORS": "ada@example.org",
        "PARARECOVER_ANNOTATORS": "@example.org",
    }
    with running(tmp_path, empty, **settings) as app, browser.new_context() as context:
        for headers, expected in (
            ({}, "You are not logged in"),
            ({"X-Forwarded-Email": "eve@example.com"}, "eve@example.com has no role here"),
            ({"X-Forwarded-Email": "ada@example.org"}, "adjudicator"),
            ({"X-Forwarded-Email": "bob@example.org"}, "annotator"),
        ):
            context.clear_cookies()
            context.set_extra_http_headers(headers)
            page = context.new_page()
            page.goto(app.url + "/dataset")
            page.get_by_text(re.compile(expected)).first.wait_for()
            inside = expected in ("adjudicator", "annotator")
            assert page.get_by_test_id("stSidebarNav").count() == int(inside)
            page.close()


@pytest.mark.parametrize("address", ["", "::"])
def test_streamlit_run_beyond_this_machine_shows_nothing_else(
    address, empty, tmp_path, open_page, browser
):
    command = (*STREAMLIT, f"--server.address={address}")
    with running(tmp_path, empty, command=command, PARARECOVER_DB=str(empty)) as app:
        watch = open_page(app)
        watch.page.goto(app.url + "/annotate")
        watch.page.get_by_text("not open to other machines").wait_for()
        assert watch.page.get_by_test_id("stSidebarNav").count() == 0
        assert watch.page.get_by_text(GATE).count() == 0


def test_another_host_name_is_not_let_in(empty, tmp_path, browser):
    with running(tmp_path, empty) as app:
        context = browser.new_context()
        page = context.new_page()
        port = app.url.rsplit(":", 1)[1]
        # a name that resolves to this machine, as in a rebinding attack
        page.goto(f"http://pararecover.localhost:{port}/annotate")
        page.get_by_text("its own machine alone").wait_for()
        assert page.get_by_text(GATE).count() == 0
        context.close()
