"""The plan drawing alone, on a page of its own: clicks, themes, folded and broken plans."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Watch
from tests.browser.serving import Server, running

SCRIPT = """
from pathlib import Path

import streamlit as st

from pararecover_core.draw import picture
from pararecover_core.plan import Plan
from ui.plan_view import plan_view
from ui.static import ensure_static

ensure_static(Path(__file__).parent)
st.html("<style>" + (Path(__file__).parent / "tokens.css").read_text() + "</style>")
tasks = [
    {"id": "1", "name": "<b>find</b>", "dep": [], "status": True, "para": {"city": "Lleida"}},
    {"id": "2", "name": "book", "dep": ["1", "9"], "status": False, "para": {}},
    {"id": "3", "name": "pay", "dep": ["2"], "status": False, "para": {}},
]
if st.button("Grow"):
    tasks.append({"id": "4", "name": "tell", "dep": ["3"], "status": False, "para": {}})
plan_view(
    picture(Plan.parse({"tasks": tasks})),
    key="plan",
    on_select=lambda node: st.session_state.update(chosen=node),
)
st.text(f"chosen: {st.session_state.get('chosen')}")
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Server:
    folder = tmp_path_factory.mktemp("alone")
    script = folder / "alone.py"
    script.write_text(SCRIPT)
    tokens = Path(__file__).parents[2] / "ui" / "assets" / "tokens.css"
    (folder / "tokens.css").write_text(tokens.read_text())
    command = [
        *("streamlit", "run", str(script), "--server.port", "{port}"),
        *("--server.headless", "true", "--server.enableStaticServing", "true"),
        *("--browser.gatherUsageStats", "false", "--server.address", "127.0.0.1"),
    ]
    root = str(Path(__file__).parents[2])
    with running(folder, folder / "none.db", command=command, PYTHONPATH=root) as server:
        yield server


def test_a_click_names_the_node_and_a_new_plan_is_drawn(
    alone: Server, open_page: Callable[..., Watch]
) -> None:
    page = open_page(alone).page
    page.goto(alone.url)
    page.locator(".plan-canvas canvas").wait_for(timeout=30_000)
    listed = page.locator(".plan-list button")
    assert listed.all_inner_texts() == [
        "1 <b>find</b>: done",
        "2 book: pending, needs 1, 9",
        "3 pay: pending, needs 2",
        "9: does not exist",
    ]
    page.get_by_text("S5 = 0: node 2 depends on 9, which does not exist").wait_for()
    listed.nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_text("chosen: 3").wait_for()
    page.get_by_role("button", name="Grow").click()
    page.locator(".plan-list button", has_text="4 tell").wait_for(state="attached")


def test_the_page_scrolls_by_wheel_over_a_drawing_and_ctrl_zooms_it(
    alone: Server, open_page: Callable[..., Watch]
) -> None:
    page = open_page(alone, size=(1024, 260)).page
    page.goto(alone.url)
    canvas = page.locator(".plan-canvas canvas")
    canvas.wait_for(timeout=30_000)
    until_still(canvas)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 40, min(box["y"] + 40, 240))
    page.mouse.wheel(0, 120)
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 0")
    canvas.hover(position={"x": 40, "y": 60})
    painted = until_still(canvas)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    until = time.monotonic() + 10
    while canvas.screenshot() == painted:
        assert time.monotonic() < until, "the drawing did not change"


def until_still(canvas: Any) -> bytes:
    """Wait until a drawing stays as it is, and give its picture."""
    before, now = b"", canvas.screenshot()
    while now != before:
        canvas.page.wait_for_timeout(100)
        before, now = now, canvas.screenshot()
    return now


FILLED = """([r, g, b]) => {
  const host = [...document.querySelectorAll("*")].find(
    (e) => e.shadowRoot && e.shadowRoot.querySelector(".plan-canvas canvas"));
  const canvas = host.shadowRoot.querySelector("canvas");
  const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < all.data.length; i += 4) {
    if (all.data[i] === r && all.data[i + 1] === g && all.data[i + 2] === b) found += 1;
  }
  return found > 1000;
}"""
DONE = {"light": [231, 235, 240], "dark": [39, 49, 61]}
"""Fill of a node that is done."""


def test_a_drawing_takes_the_colours_of_the_theme_also_when_it_changes(
    alone: Server, open_page: Callable[..., Watch]
) -> None:
    page = open_page(alone).page
    page.goto(alone.url)
    page.locator(".plan-canvas canvas").wait_for(timeout=30_000)
    for scheme in ("light", "dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(FILLED, arg=DONE[scheme], timeout=10_000)
