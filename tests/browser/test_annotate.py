"""The Annotate page in real Chromium: keys, reloads, crashes, tabs, hostile text."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from annotations.batches import BatchPlan, create_batch
from annotations.store import Store
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Score, Source, ToolCall, parse_tools
from pararecover_core.rubric import JUDGED
from tests.browser.conftest import COLOUR, COOKIE, Watch
from tests.browser.serving import Server, free_port, running

READY = ".bench:not(.loading) .sr.fx"
VALUE = {"1": 1.0, "5": 0.5, "0": 0.0}
HOSTILE = "<script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"


def records(count: int = 4) -> list[Any]:
    """Instances with one answer each, and a judge's score on the first."""
    made: list[Any] = []
    for n in range(1, count + 1):
        before = [
            {"id": "1", "name": "find_depot", "para": {"city": "Lleida"}, "dep": [], "status": 1},
            {"id": "2", "name": "rail_route", "para": {"depart": "18 June"}, "dep": ["1"]},
            {"id": "response", "name": "response", "dep": ["2"]},
        ]
        after = [
            before[0],
            {**before[1], "status": True},
            {"id": "3", "name": "rail_route", "para": {"depart": "2026-06-18"}, "dep": ["1"]},
            {**before[2], "dep": ["3"]},
        ]
        made.append(
            Instance(
                key=f"i{n}",
                id=str(n),
                query_id=str(n),
                level=1,
                source=Source.AUGMENTED,
                query=f"Query number {n}",
                tools=parse_tools([{"name": "rail_route", "parameters": {"depart": {}}}]),
                plan=Plan.parse(before),
                observations=(ToolCall("rail_route", {"depart": "18 June"}, "Error: bad", "2"),),
                tags=("Parameter_Invalid",),
            )
        )
        made.append(
            Replan(
                f"r{n}", f"i{n}", "secret-agent", "Node 2 failed in rail_route.", Plan.parse(after)
            )
        )
    return [*made, Score("r1", "D3", "judge:secret-judge@v1", 0.5, "secret reason")]


def fill(
    db: Path, more: list[Any] | None = None, *, batch: bool = True, per_item: int = 2
) -> Store:
    store = Store(db)
    found = more if more is not None else records()
    store.ingest([Item(Place("test", at), record) for at, record in enumerate(found, 1)])
    if batch:
        keys = tuple(record.key for record in found if isinstance(record, Replan))
        create_batch(store, BatchPlan("Pilot", replans=keys, annotators_per_item=per_item))
    return store


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One app for the tests here; each test scores as somebody else, on items of its own."""
    folder = tmp_path_factory.mktemp("annotate")
    db = folder / "scores.db"
    fill(db, per_item=20)
    with running(folder, db) as server:
        yield server


@pytest.fixture
def annotate(open_page: Callable[..., Watch]) -> Callable[..., Watch]:
    """Open the Annotate page and wait until it takes keys."""

    def opened(server: Server, name: str, *, path: str = "annotate", **options: Any) -> Watch:
        watch = open_page(server, name=name, **options)
        watch.page.goto(f"{server.url}/{path}")
        watch.page.wait_for_selector(READY, timeout=30_000)
        return watch

    return opened


def press(page: Any, keys: str, gap: int = 0) -> None:
    """Press keys one by one with a gap in milliseconds."""
    for key in keys:
        page.keyboard.press(key)
        if gap:
            page.wait_for_timeout(gap)


def submit(page: Any) -> None:
    """Submit by Enter, which waits while the server is late to answer."""
    page.wait_for_selector(".bar1:not(.lost)")
    page.keyboard.press("Enter")


def settled(page: Any) -> None:
    """Wait until nothing waits to be stored."""
    page.wait_for_selector(".saved:has-text('All saved')", timeout=20_000)


def rows(db: Path, name: str) -> list[tuple[Any, ...]]:
    """What the log holds of an annotator, in order."""
    with contextlib.closing(sqlite3.connect(db)) as base:
        return base.execute(
            "SELECT replan, dimension, value, revision, action FROM score_log"
            " WHERE scorer = ? ORDER BY entry",
            [f"human:{name}"],
        ).fetchall()


def state(db: Path, name: str, replan: str) -> str:
    with contextlib.closing(sqlite3.connect(db)) as base:
        found = base.execute(
            "SELECT state FROM assignment WHERE annotator = ? AND replan = ?", [name, replan]
        ).fetchone()
    return str(found[0]) if found else ""


def shown(page: Any) -> dict[str, str]:
    """Sub-dimension to the value that its row shows."""
    found: dict[str, str] = page.evaluate(
        """() => {
          const deep = (root) => [...root.querySelectorAll('*')].flatMap((node) =>
            node.shadowRoot ? [node.shadowRoot, ...deep(node.shadowRoot)] : []);
          const rows = {};
          for (const root of deep(document)) {
            for (const row of root.querySelectorAll('.sr[data-dimension]')) {
              const on = row.querySelector('.ch button[aria-checked=true]');
              if (on) rows[row.dataset.dimension] = on.dataset.value;
            }
          }
          return rows;
        }"""
    )
    return found


def test_a_whole_item_by_keyboard(scoring: Server, annotate: Callable[..., Watch]):
    watch = annotate(scoring, "Keys")
    page = watch.page
    press(page, "15015", 40)
    settled(page)
    page.reload()
    page.wait_for_selector(READY)
    assert shown(page) == {"S1": "1", "S2": "0.5", "S3": "0", "S4": "1", "D1": "0.5"}
    assert page.get_attribute(".sr.fx", "data-dimension") == "D2"  # goes on where it stopped
    press(page, "0", 40)
    press(page, "u", 40)
    press(page, "11110150", 40)
    page.wait_for_selector("button:has-text('Submit'):not([aria-disabled])")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Query number 2")
    settled(page)
    assert rows(scoring.db, "Keys") == [
        ("r1", "S1", 1.0, 1, "score"),
        ("r1", "S2", 0.5, 1, "score"),
        ("r1", "S3", 0.0, 1, "score"),
        ("r1", "S4", 1.0, 1, "score"),
        ("r1", "D1", 0.5, 1, "score"),
        ("r1", "D2", 0.0, 1, "score"),
        ("r1", "D2", None, 2, "undo"),
        ("r1", "D2", 1.0, 3, "score"),
        ("r1", "D3", 1.0, 1, "score"),
        ("r1", "D4", 1.0, 1, "score"),
        ("r1", "D5", 1.0, 1, "score"),
        ("r1", "E1", 0.0, 1, "score"),
        ("r1", "E2", 1.0, 1, "score"),
        ("r1", "E3", 0.5, 1, "score"),
        ("r1", "E4", 0.0, 1, "score"),
    ]
    assert state(scoring.db, "Keys", "r1") == "submitted"
    assert "item=r2" in page.url
    watch.check()


@pytest.mark.parametrize("gap", [0, 50])
def test_fast_presses_land_on_the_rows_that_were_on_screen(
    scoring: Server, annotate: Callable[..., Watch], gap: int
):
    name = f"Fast{gap}"
    page = annotate(scoring, name).page
    keys = "1501501501501"
    press(page, keys, gap)
    submit(page)
    if gap:
        page.wait_for_timeout(gap)
    press(page, "05", gap)  # the first two rows of the next item
    settled(page)
    page.wait_for_timeout(300)
    settled(page)
    expected = [("r1", d, VALUE[k], 1, "score") for d, k in zip(JUDGED, keys, strict=True)]
    expected += [("r2", "S1", 0.0, 1, "score"), ("r2", "S2", 0.5, 1, "score")]
    assert rows(scoring.db, name) == expected
    assert state(scoring.db, name, "r1") == "submitted"


def test_a_held_key_scores_once_and_keys_rest_in_a_text_field(
    scoring: Server, annotate: Callable[..., Watch]
):
    page = annotate(scoring, "Held").page
    for _ in range(6):
        page.keyboard.down("1")
    page.keyboard.up("1")
    page.keyboard.press("n")
    page.keyboard.type("15 u k 0")
    page.keyboard.press("Enter")
    page.keyboard.press("5")
    settled(page)
    assert rows(scoring.db, "Held") == [
        ("r1", "S1", 1.0, 1, "score"),
        ("r1", "S2", None, 1, "note"),
        ("r1", "S2", 0.5, 2, "score"),
    ]
    with contextlib.closing(sqlite3.connect(scoring.db)) as base:
        note = base.execute(
            "SELECT note FROM score_current WHERE scorer = 'human:Held' AND dimension = 'S2'"
        ).fetchone()
    assert note == ("15 u k 0",)


def test_mouse_skip_flag_and_back(scoring: Server, annotate: Callable[..., Watch]):
    watch = annotate(scoring, "Mouse")
    page = watch.page
    page.click("[data-dimension=D4] .ch button[data-value='0.5']")
    page.click(".sr.fx .an button[data-value='1']")  # D5 is the row in focus now
    page.keyboard.press("k")
    page.wait_for_selector("text=Query number 2")
    page.keyboard.press("f")
    page.wait_for_selector("text=Query number 3")
    page.keyboard.press("[")
    page.wait_for_selector("text=Query number 2")
    page.wait_for_selector("text=Flagged")
    page.wait_for_function("location.search.includes('item=r2')")
    settled(page)
    assert rows(scoring.db, "Mouse") == [
        ("r1", "D4", 0.5, 1, "score"),
        ("r1", "D5", 1.0, 1, "score"),
    ]
    assert (state(scoring.db, "Mouse", "r1"), state(scoring.db, "Mouse", "r2")) == (
        "skipped",
        "flagged",
    )
    watch.check()


def test_nodes_are_selected_from_thought_table_and_keys(
    scoring: Server, annotate: Callable[..., Watch]
):
    page = annotate(scoring, "Nodes").page
    page.click(".thought .ref")
    page.wait_for_selector(".strip:has-text('Node 2 rail_route')")
    assert page.inner_text(".strip").split("reaches")[1].strip().startswith("response")
    assert page.locator("tr.cur").count() == 1
    page.click(".strip .link")
    page.wait_for_selector(".details:has-text('Error: bad')")
    page.keyboard.press("Escape")
    page.wait_for_selector(".strip:has-text('Click a node')")
    page.keyboard.press("?")
    page.wait_for_selector("[role=dialog]:has-text('move between sub-dimensions')")
    page.keyboard.press("1")  # no key scores behind the list of keys
    page.keyboard.press("Escape")
    assert shown(page) == {}


def test_a_second_tab_is_told_and_overwrites_nothing(
    scoring: Server, annotate: Callable[..., Watch]
):
    first = annotate(scoring, "Tabs").page
    second = first.context.new_page()
    second.goto(first.url)
    second.wait_for_selector(READY)
    first.keyboard.press("1")
    settled(first)
    second.keyboard.press("0")
    second.wait_for_selector("text=Scored 1 in another tab; reload to continue")
    assert shown(second)["S1"] == "1"
    second.keyboard.press("ArrowUp")
    second.keyboard.press("5")  # not before the reload
    second.wait_for_timeout(300)
    assert rows(scoring.db, "Tabs") == [("r1", "S1", 1.0, 1, "score")]
    second.click(".trouble .link")
    second.keyboard.press("5")
    settled(second)
    assert rows(scoring.db, "Tabs")[1:] == [("r1", "S1", 0.5, 2, "score")]


def test_blind_until_the_reveal(scoring: Server, annotate: Callable[..., Watch]):
    page = annotate(scoring, "Warm").page.context.new_page()
    heard: list[bytes] = []
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framereceived",
            lambda frame: heard.append(frame if isinstance(frame, bytes) else frame.encode()),
        ),
    )
    page.goto(f"{scoring.url}/annotate?item=r1")
    page.wait_for_selector(READY)
    press(page, "1111111111111", 20)
    submit(page)
    page.wait_for_selector("text=Query number 2")
    settled(page)
    page.keyboard.press("[")
    page.wait_for_selector("text=Query number 1")
    said = b"".join(heard)
    assert b"Query number 1" in said
    for secret in (b"secret-agent", b"secret-judge", b"secret reason", b"Parameter_Invalid"):
        assert secret not in said
    page.click("button:has-text('Reveal')")
    page.wait_for_selector(".bar1 :text('secret-agent')")
    page.wait_for_selector(".bar1 :text('Parameter_Invalid')")
    page.click("[data-dimension=D3] .id")
    page.wait_for_selector(".fx .told:has-text('secret-judge 0.5 secret reason')")
    page.keyboard.press("0")
    settled(page)
    with contextlib.closing(sqlite3.connect(scoring.db)) as base:
        marks = base.execute(
            "SELECT revision, revealed FROM score_log WHERE scorer = 'human:Warm'"
            " AND dimension = 'D3' ORDER BY revision"
        ).fetchall()
    assert marks == [(1, 0), (2, 1)]


@pytest.mark.parametrize(("size", "narrow"), [((1440, 900), False), ((1024, 768), True)])
def test_the_page_does_not_scroll(
    scoring: Server, annotate: Callable[..., Watch], size: tuple[int, int], narrow: bool
):
    watch = annotate(scoring, "Sizes", size=size)
    main = watch.page.get_by_test_id("stMain")
    for scheme in ("light", "dark"):
        watch.page.emulate_media(color_scheme=scheme)
        watch.page.wait_for_function(COLOUR, arg=scheme)
        room = main.evaluate(
            "(node) => [node.scrollHeight, node.clientHeight, node.scrollWidth, node.clientWidth]"
        )
        assert room[0] <= room[1]
        assert room[2] <= room[3]
        panel = watch.page.locator(".panel").bounding_box()
        assert panel is not None
        assert round(panel["width"]) == (340 if narrow else 388)
        watch.check()


def test_rows_are_radio_groups_and_news_is_spoken(scoring: Server, annotate: Callable[..., Watch]):
    page = annotate(scoring, "Reader").page
    group = page.get_by_role("radiogroup", name="S1 Thought-DAG consistency")
    assert group.get_by_role("radio").count() == 3
    page.keyboard.press("5")
    page.wait_for_selector(".unseen:has-text('S1 scored 0.5, saved')", state="attached")
    checked = page.get_by_role("radio", name="S1 0.5")
    assert checked.get_attribute("aria-checked") == "true"
    assert page.get_by_role("img", name="Plan before").count() == 1


def test_a_killed_server_loses_nothing(
    tmp_path: Path, annotate: Callable[..., Watch], open_page: Callable[..., Watch]
):
    db = tmp_path / "scores.db"
    fill(db)
    port = free_port()
    with running(tmp_path, db, port=port) as server:
        page = annotate(server, "Ada").page
        press(page, "1", 500)
        page.keyboard.press("5")  # 100 ms later the server is gone
        time.sleep(0.1)
        server.kill()
        press(page, "01", 50)  # nobody listens
        page.wait_for_selector(".bar1.lost:has-text('on this page')", timeout=10_000)
        assert shown(page) == {"S1": "1", "S2": "0.5", "S3": "0", "S4": "1"}
    with running(tmp_path, db, port=port):
        settled(page)  # sent again by itself
        assert [row[:3] for row in rows(db, "Ada")] == [
            ("r1", "S1", 1.0),
            ("r1", "S2", 0.5),
            ("r1", "S3", 0.0),
            ("r1", "S4", 1.0),
        ]
        press(page, "5", 50)
        settled(page)
        assert rows(db, "Ada")[-1] == ("r1", "D1", 0.5, 1, "score")


def test_what_waits_survives_a_reload_after_a_crash(tmp_path: Path, annotate: Callable[..., Watch]):
    db = tmp_path / "scores.db"
    fill(db)
    port = free_port()
    with running(tmp_path, db, port=port) as server:
        page = annotate(server, "Ada").page
        page.wait_for_timeout(500)
        server.kill()
        press(page, "150", 10)
        link = page.url
        page.goto("about:blank")
    assert rows(db, "Ada") == []
    with running(tmp_path, db, port=port):
        page.goto(link)
        page.wait_for_selector(READY)
        settled(page)
        assert [row[:3] for row in rows(db, "Ada")] == [
            ("r1", "S1", 1.0),
            ("r1", "S2", 0.5),
            ("r1", "S3", 0.0),
        ]


def hostile() -> list[Any]:
    """Script tags everywhere, 2 MB texts, 5,000 nodes, right-to-left text."""
    nasty = [
        {"id": HOSTILE, "name": HOSTILE, "para": {HOSTILE: HOSTILE}, "desc": HOSTILE, "dep": []},
        {"id": "2", "name": "t", "para": {"p": "y" * 2_000_000}, "dep": [HOSTILE]},
    ]
    many = [{"id": str(n), "name": "t", "dep": [str(n - 1)] if n else []} for n in range(5000)]
    tools = [{"name": HOSTILE, "description": HOSTILE, "parameters": {HOSTILE: {"type": HOSTILE}}}]
    made: list[Any] = []
    for n, plan in enumerate((nasty, many), 1):
        made.append(
            Instance(
                f"i{n}", str(n), str(n), 1, Source.UNKNOWN, f"{HOSTILE} \u202eabc \u05d0\u05d1",
                parse_tools(tools), Plan.parse(plan),
                (ToolCall(HOSTILE, {HOSTILE: HOSTILE}, "z" * 2_000_000 + HOSTILE, "2"),),
                (HOSTILE,), HOSTILE,
            )
        )  # fmt: skip
        made.append(Replan(f"r{n}", f"i{n}", HOSTILE, f"{HOSTILE} node 2", Plan.parse(plan)))
    made.append(Replan("r3", "i1", "b", HOSTILE, Plan.parse(HOSTILE)))
    return made


def test_hostile_text_is_text(tmp_path: Path, annotate: Callable[..., Watch]):
    db = tmp_path / "scores.db"
    fill(db, hostile())
    with running(tmp_path, db) as server:
        watch = annotate(server, "Ada")
        page = watch.page
        assert HOSTILE in page.inner_text(".query-text")
        assert HOSTILE in page.inner_text(".thought")
        page.click(".thought .ref")
        page.click(".strip .link")
        page.click(".tools li button")
        began = time.monotonic()
        page.click(".observations .more")
        page.wait_for_selector(".full-body .block")
        assert time.monotonic() - began < 10  # about 1 s on a quiet machine
        page.keyboard.press("Escape")
        page.keyboard.press("n")
        page.keyboard.type(HOSTILE)
        page.keyboard.press("Enter")
        settled(page)
        began = time.monotonic()
        page.keyboard.press("]")
        page.wait_for_selector(".bar1:has-text('Item 2')")
        page.keyboard.press("1")
        settled(page)
        assert time.monotonic() - began < 10
        page.keyboard.press("]")
        page.wait_for_selector("text=This plan does not parse: S5 = 0")
        page.click("[data-dimension=S2] .id")
        page.wait_for_selector("text=Proposed 0: the new plan does not parse")
        assert page.evaluate("window.hurt") is None
        watch.check()


def test_a_newcomer_scores_everything_in_order(tmp_path: Path, open_page: Callable[..., Watch]):
    db = tmp_path / "scores.db"
    fill(db, batch=False)
    with running(tmp_path, db) as server:
        watch = open_page(server, name="New")
        page = watch.page
        page.goto(f"{server.url}/annotate")
        page.click("button:has-text('Score everything, in order')", timeout=30_000)
        page.wait_for_selector(READY)
        page.keyboard.press("1")
        settled(page)
        assert rows(db, "New") == [("r1", "S1", 1.0, 1, "score")]
        watch.check()


def test_the_last_item_leads_to_the_ways_on(tmp_path: Path, annotate: Callable[..., Watch]):
    db = tmp_path / "scores.db"
    fill(db, records(1))
    with running(tmp_path, db) as server:
        watch = annotate(server, "Last")
        page = watch.page
        press(page, "1111111111111")
        submit(page)
        page.wait_for_selector(".empty h2:has-text('No item waits for you')")
        assert state(db, "Last", "r1") == "submitted"
        page.keyboard.press("[")
        page.wait_for_selector(".title:has-text('Submitted')")
        watch.check()


def test_leaving_the_page_and_coming_back(scoring: Server, annotate: Callable[..., Watch]):
    watch = annotate(scoring, "Leaver")
    page = watch.page
    press(page, "15", 30)
    settled(page)
    menu = page.get_by_test_id("stSidebarNav")
    menu.get_by_role("link", name="Calibrate").click()
    page.wait_for_selector(".bench", state="detached")
    page.keyboard.press("0")  # no page there takes it
    menu.get_by_role("link", name="Annotate").click()
    page.wait_for_selector(READY)
    press(page, "0", 30)
    settled(page)
    assert [row[1:4] for row in rows(scoring.db, "Leaver")] == [
        ("S1", 1.0, 1),
        ("S2", 0.5, 1),
        ("S3", 0.0, 1),
    ]
    watch.check()


def test_a_change_of_name_keeps_scores_apart(scoring: Server, annotate: Callable[..., Watch]):
    page = annotate(scoring, "Eve").page
    press(page, "1")
    settled(page)
    page.get_by_role("button", name="Change name").click()
    page.wait_for_selector(".bench", state="detached")
    page.goto("about:blank")
    page.context.clear_cookies()
    page.context.add_cookies([{"name": COOKIE, "value": "Eve.b", "url": scoring.url}])
    page.goto(f"{scoring.url}/annotate")
    page.wait_for_selector(READY)
    assert shown(page) == {}
    press(page, "0")
    settled(page)
    assert [row[2] for row in rows(scoring.db, "Eve")] == [1.0]
    assert [row[2] for row in rows(scoring.db, "Eve.b")] == [0.0]
