"""The Trajectories page in real Chromium: filters, links, rounds, hostile text."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotations.batches import BatchPlan, create_batch
from annotations.queue import next_item
from annotations.store import Store
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Round, Source, ToolCall, Trajectory
from tests.browser.conftest import ANNOTATOR, COLOUR, Watch
from tests.browser.serving import Server

HOSTILE = "<script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"


def plan(last: int, done: int, name: str = "step") -> Plan:
    """A chain of nodes whose first ``done`` are executed."""
    tasks = [
        {
            "id": str(n),
            "name": name,
            "para": {"n": n},
            "dep": [str(n - 1)] if n > 1 else [],
            "status": n <= done,
        }
        for n in range(1, last + 1)
    ]
    return Plan.parse({"tasks": tasks})


def records() -> list[Any]:
    """A run of 40 rounds, a hostile record, an instance without an answer, a huge plan."""
    tags = ("Type_Error",)
    rollout = (Source.ROLLOUT, "Forty rounds", (), plan(3, 1))
    calls = (ToolCall("step", {}, "Error: no", "2"),)
    run = tuple(Round(plan(n + 2, n), calls, f"thought of round {n}") for n in range(1, 41))
    return [
        Instance("i1", "1", "q1", 1, *rollout, calls, tags, round_gt=6),
        Replan("r1", "i1", "agent-a", "thought of round 2", plan(4, 2)),
        Trajectory("t1", "i1", "agent-a", run, False, "round limit"),
        Instance(
            *("i2", HOSTILE, "q2", 2, Source.AUGMENTED, HOSTILE, (), plan(2, 1, HOSTILE)),
            *((ToolCall(HOSTILE, {}, HOSTILE, "2"),), (HOSTILE,), HOSTILE),
        ),
        Replan("r2", "i2", HOSTILE, f"{HOSTILE} [a](http://x.test) $x^2$", plan(3, 1, HOSTILE)),
        Instance("i3", "3", "q3", 1, Source.ROLLOUT, "Not answered", (), plan(2, 1), ()),
        Instance("i4", "4", "q4", 1, Source.ROLLOUT, "Huge plan", (), plan(5000, 10), ()),
        Instance("i5", "5", "q5", 1, Source.ROLLOUT, "No plan", (), Plan.parse("nonsense"), ()),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., Server]) -> Server:
    db = tmp_path_factory.mktemp("made") / "made.db"
    report = Store(db).ingest(Item(Place("f", n), one) for n, one in enumerate(records(), 1))
    assert not report.rejects
    return start_server(db)


def visit(watch: Watch, server: Server, query: str = "") -> Any:
    page = watch.page
    page.goto(f"{server.url}/trajectories{query}")
    page.locator(".browse .list tbody tr, .lst .empty").first.wait_for(timeout=30_000)
    return page


def shown(page: Any, words: str) -> None:
    page.get_by_text(words, exact=False).first.wait_for(timeout=10_000)


@pytest.mark.parametrize(
    ("size", "scheme"), [((1440, 900), "light"), ((1024, 768), "dark")], ids=["wide", "narrow"]
)
def test_the_sample_opens_without_a_problem(
    server: Server, open_page: Callable[..., Watch], size: tuple[int, int], scheme: str
) -> None:
    watch = open_page(server, size=size, scheme=scheme)
    page = visit(watch, server, "?answer=yes")
    page.locator(".plan-canvas canvas").wait_for()
    assert page.locator(".list tbody tr").count() == 10
    for wanted in (scheme, "dark" if scheme == "light" else "light"):
        page.emulate_media(color_scheme=wanted)
        page.wait_for_function(COLOUR, arg=wanted)
        # the page never needs to be scrolled sideways
        assert page.evaluate("document.querySelector('.stMain').scrollWidth - innerWidth") <= 0
        watch.check()


def test_filters_order_and_pages_follow_the_database(
    server: Server, open_page: Callable[..., Watch]
) -> None:
    watch = open_page(server)
    page = visit(watch, server)
    with sqlite3.connect(server.db) as db:
        wanted = db.execute(
            "SELECT COUNT(*) FROM instance i LEFT JOIN replan r ON r.instance = i.key "
            "WHERE i.source = 'rollout' AND i.level = 2"
        ).fetchone()[0]
    page.get_by_role("button", name="Source any").click()
    page.get_by_label("rollout").check()
    page.get_by_role("button", name="Level any").click()
    page.get_by_role("group", name="Level").get_by_role("checkbox").nth(1).check()
    shown(page, f"{wanted} of ")
    page.wait_for_url("**level=2**")
    assert "source=rollout" in page.url
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear 2").click()
    page.get_by_role("button", name="Next page").click()
    page.wait_for_url("**page=2**")
    page.get_by_role("button", name="ES", exact=True).click()
    page.wait_for_url("**sort=es-down**")
    assert "page=" not in page.url
    first = page.locator(".list tbody tr").first.locator("td").nth(8)
    first.filter(has_text="100").wait_for()
    watch.check()


def test_a_link_restores_filter_item_and_round(
    made: Server, open_page: Callable[..., Watch]
) -> None:
    watch = open_page(made)
    page = visit(watch, made, "?q=forty&item=r1&round=5")
    shown(page, "thought of round 4")  # the run's rounds stand behind the instance's own
    page.keyboard.press("ArrowRight")
    shown(page, "thought of round 5")
    page.wait_for_url("**round=6**")
    page.reload()
    shown(page, "thought of round 5")
    assert page.locator(".search").input_value() == "forty"
    assert page.locator(".list tbody tr").count() == 1
    watch.check()


def test_forty_rounds_by_key_and_slider(made: Server, open_page: Callable[..., Watch]) -> None:
    watch = open_page(made, size=(1024, 768))
    page = visit(watch, made, "?item=r1&round=30")
    shown(page, "thought of round 29")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    shown(page, "thought of round 34")
    slider = page.get_by_role("slider", name="Round")
    slider.focus()
    page.keyboard.press("End")
    shown(page, "thought of round 40")
    assert page.locator(".sp1").count() == 40
    shown(page, "E5 = 0: round limit")
    watch.check()


def test_a_node_shows_what_it_reaches(made: Server, open_page: Callable[..., Watch]) -> None:
    watch = open_page(made)
    page = visit(watch, made, "?item=r1&round=3")
    page.locator(".plan-canvas canvas").wait_for()
    node = page.locator(".plan-list button").filter(has_text="2 step").first
    node.focus()
    page.keyboard.press("Enter")
    shown(page, "Impact of node 2")
    assert "reached: 3" in page.locator(".imp").inner_text()
    page.keyboard.press("Escape")
    shown(page, "Plan at round")
    box = page.locator(".plan-canvas canvas").bounding_box()
    # a click on the drawing itself: of four nodes in a row, the second one's middle is at 3/8
    page.mouse.click(box["x"] + box["width"] * 3 / 8, box["y"] + box["height"] / 2 + 8)
    shown(page, "Impact of node")
    watch.check()


def test_hostile_text_is_text(made: Server, open_page: Callable[..., Watch]) -> None:
    watch = open_page(made)
    page = visit(watch, made, "?item=r2")
    page.locator(".plan-canvas canvas").wait_for()
    shown(page, "[a](http://x.test) $x^2$")
    box = page.locator(".plan-canvas canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + 8)
    page.get_by_role("button", name="Agent any").click()
    page.wait_for_timeout(300)
    assert page.evaluate("window.hurt") is None
    assert page.locator(".browse img, .browse script, .browse a[href*='x.test']").count() == 0
    watch.check()


def test_items_without_answer_without_plan_and_with_a_huge_one(
    made: Server, open_page: Callable[..., Watch]
) -> None:
    watch = open_page(made)
    page = visit(watch, made, "?item=i3")
    shown(page, "pararecover import results.xlsx")
    assert page.get_by_role("link", name="Score this item").count() == 0
    page.locator(".list tbody tr", has_text="Huge plan").click()
    shown(page, "more nodes are not drawn")
    page.locator(".list tbody tr", has_text="No plan").click()
    page.locator(".plan-raw", has_text="nonsense").wait_for()
    visit(watch, made, "?item=gone&q=zzz")
    shown(page, "The linked item is not in this database.")
    shown(page, "Nothing matches.")
    watch.check()


def test_an_empty_database_says_what_to_do(
    tmp_path: Path, start_server: Callable[..., Server], open_page: Callable[..., Watch]
) -> None:
    db = tmp_path / "empty.db"
    Store(db)
    server = start_server(db)
    watch = open_page(server)
    page = visit(watch, server)
    shown(page, "There is nothing to browse yet.")
    watch.check()


def test_what_waits_for_the_annotator_stays_blind(
    sample_database: Path,
    tmp_path: Path,
    start_server: Callable[..., Server],
    open_page: Callable[..., Watch],
) -> None:
    db = Path(shutil.copy(sample_database, tmp_path / "blind.db"))
    store = Store(db)
    with store.read() as found:
        key, agent = found.execute(
            "SELECT replan, agent FROM replan_summary WHERE judges > 0 ORDER BY replan"
        ).fetchone()
    batch = create_batch(store, BatchPlan("blind", replans=(key,)))
    next_item(store, batch.id, ANNOTATOR)
    server = start_server(db)
    watch = open_page(server)
    page = visit(watch, server, f"?item={key}")
    shown(page, "This item is blind for you")
    assert agent not in page.locator(".det").inner_text()
    page.get_by_role("button", name="DR", exact=True).click()
    shown(page, "that you still score stay out of this filter")
    watch.check()
