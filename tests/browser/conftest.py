"""The real app in a real browser.

Without Chromium these tests are skipped, except under ``CI``, where that fails the run.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.serving import Server, running

playwright = pytest.importorskip("playwright.sync_api")

ANNOTATOR = "Ada"
COOKIE = "pararecover_annotator"
COLOUR = "(wanted) => getComputedStyle(document.documentElement).colorScheme === wanted"
"""Whether the page has the theme that is wanted, for ``wait_for_function``."""
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Watch:
    """A page and what went wrong on it."""

    page: "playwright.Page"
    problems: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail on an exception on the page, a console error or a request to another machine."""
        if self.page.get_by_test_id("stException").count():
            self.problems.append(self.page.get_by_test_id("stException").first.inner_text())
        for alert in self.page.get_by_test_id("stAlertContentError").all_inner_texts():
            if "encountered an error" in alert:
                self.problems.append(alert)
        assert not self.problems, "\n".join(self.problems)


def chromium() -> str:
    """The browser's path; skips, or fails under CI, where there is none.

    The headless shell is the same browser without its window: a page takes half the time.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing = "no chromium on PATH (Debian: apt-get install chromium-headless-shell)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture(scope="module")
def start_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Server]]:
    """Start an app on a database: ``start_server(db, **environment)``; ended after the module."""
    with contextlib.ExitStack() as stack:

        def start(db: Path, **options: object) -> Server:
            folder = tmp_path_factory.mktemp("server")
            return stack.enter_context(running(folder, db, **options))  # type: ignore[arg-type]

        yield start


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sample_database: Path) -> Iterator[Server]:
    """An app on a copy of the sample data, one for each module of tests."""
    folder = tmp_path_factory.mktemp("server")
    db = Path(shutil.copy(sample_database, folder / "scores.db"))
    with running(folder, db) as app:
        yield app


@pytest.fixture(scope="package")
def browser() -> Iterator["playwright.Browser"]:
    """Chromium, for this package alone: ``asyncio.run`` is not possible while it runs."""
    path = chromium()
    with playwright.sync_playwright() as player:
        opened = player.chromium.launch(executable_path=path, args=ARGS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def warm_context(browser: "playwright.Browser") -> "playwright.BrowserContext":
    """A context that has loaded Streamlit's scripts before: half the time of opening a page."""
    return browser.new_context(accept_downloads=True)


@pytest.fixture
def open_page(
    browser: "playwright.Browser", warm_context: "playwright.BrowserContext"
) -> Iterator[Callable[..., Watch]]:
    """Open a page; each person of a test has a context of their own.

    ``open_page(server, name=ANNOTATOR, size=(1440, 900), scheme="light")``; ``name=None`` is a
    stranger, who has to pass the gate. Console errors, page errors and requests to other machines
    are collected in ``problems``.
    """
    contexts: dict[str | None, playwright.BrowserContext] = {}
    urls = set()

    def new(
        server: Server,
        *,
        name: str | None = ANNOTATOR,
        size: tuple[int, int] = (1440, 900),
        scheme: str = "light",
    ) -> Watch:
        if name not in contexts:
            contexts[name] = (
                browser.new_context(accept_downloads=True) if contexts else warm_context
            )
        context = contexts[name]
        urls.add(server.url)
        if name:
            context.add_cookies([{"name": COOKIE, "value": name, "url": server.url}])
        page = context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        watch = Watch(page)
        _watch(watch)
        return watch

    yield new
    for context in contexts.values():
        if context is not warm_context:
            context.close()
    _forget(warm_context, urls)


def _forget(context: "playwright.BrowserContext", urls: set[str]) -> None:
    """Leave nothing of a test in a context but the scripts that it has loaded."""
    context.clear_cookies()
    for page in context.pages[1:]:
        page.close()
    for page in context.pages:
        session = context.new_cdp_session(page)
        for url in urls:
            kinds = {"origin": url, "storageTypes": "local_storage,indexeddb,cache_storage"}
            session.send("Storage.clearDataForOrigin", kinds)
        page.close()


def _watch(watch: Watch) -> None:
    page, problems = watch.page, watch.problems

    def console(message: "playwright.ConsoleMessage") -> None:
        # A deep link probes for the server's base path; the answers "not found" are its way.
        probe = "/_stcore/" in message.location.get("url", "") and "404" in message.text
        if message.type == "error" and not probe:
            problems.append(f"console: {message.text} ({message.location.get('url')})")

    def request(seen: "playwright.Request") -> None:
        parts = urlsplit(seen.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            problems.append(f"request to another machine: {seen.url}")

    page.on("console", console)
    page.on("request", request)
    page.on("websocket", lambda socket: request(socket))
    page.on("pageerror", lambda error: problems.append(f"page error: {error}"))


@pytest.fixture
def watched_page(server: Server, open_page: Callable[..., Watch]) -> Iterator[Watch]:
    """A page at 1440x900 for an annotator; the test fails where something went wrong on it."""
    watch = open_page(server)
    yield watch
    watch.check()


@pytest.fixture
def page(server: Server, open_page: Callable[..., Watch]) -> "playwright.Page":
    """A page at 1440x900 for an annotator."""
    found: playwright.Page = open_page(server).page
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in Path(str(item.path)).parents:
            item.add_marker(pytest.mark.browser)
