"""The batches and adjudication views in real Chromium, on data with hostile names and notes."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annotations import queue
from annotations.store import Store, utc_now
from tests.browser.conftest import Watch
from tests.browser.serving import Server, running
from tests.queue_data import batch_of_all, make_store, score

HOSTILE = "<img src=x onerror='window.hurt=1'> [x](javascript:window.hurt=1) **b** $x$"
SIZES = [((1440, 900), "light"), ((1024, 768), "dark")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app on a batch whose first item two people scored differently."""
    folder = tmp_path_factory.mktemp("queue_views")
    store = make_store(folder, items=6, agents=("agent-a", "agent-b"))
    store.clock = utc_now
    _two_opinions(store)
    with running(folder, store.path) as server:
        yield server


def _two_opinions(store: Store) -> None:
    batch = batch_of_all(
        store, name=f"Pilot {HOSTILE}", annotators_per_item=2, dimensions=("S1", "D3")
    ).id
    for name, value in (("ann", 1.0), ("bob", 0.5)):
        queue.open_item(store, batch, name, "r1-a")
        for dimension in ("S1", "D3"):
            score(store, "r1-a", name, value, [dimension], batch=batch, note=HOSTILE)
        queue.submit(store, batch, name, "r1-a", event=name)
    queue.open_item(store, batch, "ann", "r2-a")
    queue.flag(store, batch, "ann", "r2-a", event="flag", note=HOSTILE)


def rows(db: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(db) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize(("size", "scheme"), SIZES)
@pytest.mark.parametrize("view", ["admin", "adjudicate"])
def test_a_deep_link_opens_the_view_and_names_are_text(
    app: Server,
    open_page: Callable[..., Watch],
    view: str,
    size: tuple[int, int],
    scheme: str,
) -> None:
    watch = open_page(app, size=size, scheme=scheme)
    watch.page.goto(f"{app.url}/annotate?view={view}&batch=1")
    watch.page.get_by_text("<img src=x onerror=").first.wait_for()
    if view == "adjudicate":
        watch.page.locator(".plan-area canvas").nth(1).wait_for()
    assert watch.page.evaluate("window.hurt") is None
    wide = watch.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    watch.check()


def test_a_disagreement_is_decided_and_stored(app: Server, open_page: Callable[..., Watch]) -> None:
    watch = open_page(app)
    page = watch.page
    page.goto(f"{app.url}/annotate?view=adjudicate&batch=1&replan=r1-a&dimension=D3")
    page.get_by_text("D3 Root-cause depth").wait_for()
    decide = page.get_by_role("button", name="Decide", exact=True)
    page.locator('[class*="st-key-prq_value"]').get_by_text("0.5", exact=True).click()
    page.get_by_label("Why").fill("names the symptom alone")
    page.get_by_label("Why").blur()
    decide.click()
    page.get_by_text("S1 Thought-DAG consistency").wait_for()
    query = "SELECT replan, dimension, revision, value, adjudicator, reason FROM gold"
    assert rows(app.db, query) == [("r1-a", "D3", 1, 0.5, "Ada", "names the symptom alone")]
    watch.check()


def test_a_batch_is_made_on_the_page(app: Server, open_page: Callable[..., Watch]) -> None:
    watch = open_page(app)
    page = watch.page
    page.goto(f"{app.url}/annotate?view=admin")
    page.get_by_role("button", name="New batch").click()
    page.get_by_text("400 per sub-dimension").click()
    page.get_by_text("Only 12 replans exist, 400 were asked for each").wait_for()
    page.get_by_role("button", name="Make this batch").click()
    page.get_by_text("Nobody has started.").wait_for()
    assert rows(app.db, "SELECT name, created_by FROM batch WHERE id = 2") == [("Paper 2", "Ada")]
    assert rows(app.db, "SELECT count(*), sum(slots) FROM batch_item WHERE batch = 2") == [(12, 14)]
    watch.check()
