"""Every page opens clean: no exception, no console error, no request to another machine."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.browser.conftest import COLOUR

ROOT = Path(__file__).resolve().parents[2]


def registered():
    """Names of the pages that ``app.py`` registers and whose package is there."""
    tree = ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))
    [table] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PAGES"
    ]
    names = [entry[0] for entries in ast.literal_eval(table).values() for entry in entries]
    return [name for name in names if (ROOT / "pages" / name / "__init__.py").is_file()]


PAGES = registered()
SCHEMES = ("light", "dark")


@pytest.mark.parametrize(
    ("size", "scheme"), [((1440, 900), "light"), ((1024, 768), "dark")], ids=["wide", "narrow"]
)
def test_every_page_opens_clean_and_changes_its_theme(size, scheme, server, open_page):
    watch = open_page(server, size=size, scheme=scheme)
    other = SCHEMES[scheme == "light"]
    for name in PAGES:
        watch.page.emulate_media(color_scheme=scheme)
        watch.page.goto(f"{server.url}/{name}")
        watch.page.locator('[data-testid="stSidebarNav"]').wait_for(state="attached")
        for wanted in (scheme, other):
            watch.page.emulate_media(color_scheme=wanted)
            watch.page.wait_for_function(COLOUR, arg=wanted)
            settled(watch.page)
            watch.check()
            assert overflow(watch.page) <= 0, f"{name} is wider than the window"
        current = '[data-testid="stSidebarNavLink"][aria-current="page"]'
        assert watch.page.locator(current).get_attribute("href").endswith(f"/{name}")


def test_the_root_goes_on_to_the_first_page(server, open_page):
    watch = open_page(server)
    watch.page.goto(f"{server.url}/")
    watch.page.wait_for_url(re.compile(r"/annotate"))
    settled(watch.page)
    watch.check()


def test_the_sidebar_starts_closed_in_a_narrow_window(server, open_page):
    for size, collapsed in (((1440, 900), "false"), ((1024, 768), "true")):
        watch = open_page(server, size=size)
        watch.page.goto(f"{server.url}/dataset")
        watch.page.get_by_text("In this database").wait_for()
        bar = watch.page.locator(f'[data-testid="stSidebar"][data-collapsed="{collapsed}"]')
        bar.wait_for(state="attached")


def test_the_sidebar_starts_closed_behind_the_gate_too(server, open_page):
    watch = open_page(server, name=None, size=(1024, 768))
    page = watch.page
    page.goto(f"{server.url}/dataset")
    page.get_by_label("Your name").fill("Eva")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("In this database").wait_for()
    bar = page.locator('[data-testid="stSidebar"][data-collapsed="true"]')
    bar.wait_for(state="attached")
    page.get_by_test_id("stExpandSidebarButton").click()  # opened by hand, it stays open
    page.get_by_role("link", name="Guidelines").click()
    page.get_by_text("people and judges read the same words").wait_for()
    page.wait_for_timeout(500)
    assert page.locator('[data-testid="stSidebar"][data-collapsed="false"]').count() == 1
    watch.check()


def test_pages_have_a_package_each():
    assert {"annotate", "trajectories", "guidelines", "calibrate", "dataset"} <= set(PAGES)
    for name in PAGES:
        assert callable(importlib.import_module(f"pages.{name}").render)


def settled(page):
    """Wait until the script has run and the page has drawn."""
    page.wait_for_function(
        "document.querySelector('[data-testid=\"stApp\"]')?.dataset.testScriptState"
        " === 'notRunning'"
    )
    page.wait_for_timeout(250)  # for an error of a component to be told


def overflow(page):
    """Pixels by which the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
