"""The real app in a real browser.

Without Chromium these tests are skipped, except under ``CI``, where that fails the run.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip("playwright.sync_api")

ANNOTATOR = "Ada"
COOKIE = "pararecover_annotator"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
START_SECONDS = 60


@dataclass
class Server:
    """A running app."""

    url: str
    db: Path
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """What the server wrote so far."""
        return self.log.read_text(errors="replace")


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
    """The browser's path; skips, or fails under CI, where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        missing = "no chromium on PATH; install it (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a server: the tests' own folders, none of the person's settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PARARECOVER_", "OPENAI_", "STREAMLIT_"))
    }
    folders = {
        name: str(home / name.lower())
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME")
    }
    return {**kept, **folders, **more}


def wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait for the server's health page."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}:\n{log.read_text()}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/_stcore/health"):
            return
        time.sleep(0.05)
    pytest.fail(f"the server did not come up:\n{log.read_text()}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server's process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)


@contextlib.contextmanager
def running(
    folder: Path, db: Path, *, command: list[str] | None = None, **env: str
) -> Iterator[Server]:
    """Run an app until the block ends.

    Args:
        folder: Where it keeps its things and where it is started.
        db: The database.
        command: What to run instead of ``pararecover app``; gets ``--port`` style flags of its
            own from the caller, with ``{port}`` filled in.
        env: Further environment variables.
    """
    port, log = free_port(), folder / "server.log"
    default = [sys.executable, "-m", "pararecover_cli", "app", "--db", str(db), "--port", "{port}"]
    filled = [part.format(port=port) for part in (command or default)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            filled,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder if command is None else None,
            env=environment(folder, **env),
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(process, url, log)
        yield Server(url, db, process, log)
    finally:
        stop(process)


@pytest.fixture(scope="session")
def start_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Server]]:
    """Start an app on a database: ``start_server(db, **environment)``; ended after the run."""
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


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    """Chromium, one for each module: while it runs, ``asyncio.run`` is not possible elsewhere."""
    path = chromium()
    with playwright.sync_playwright() as player:
        opened = player.chromium.launch(executable_path=path, args=ARGS)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: "playwright.Browser") -> Iterator[Callable[..., Watch]]:
    """Open a page in a context of its own.

    ``open_page(server, name=ANNOTATOR, size=(1440, 900), scheme="light")``; ``name=None`` is a
    stranger, who has to pass the gate. Console errors, page errors and requests to other machines
    are collected in ``problems``.
    """
    contexts = []

    def new(
        server: Server,
        *,
        name: str | None = ANNOTATOR,
        size: tuple[int, int] = (1440, 900),
        scheme: str = "light",
    ) -> Watch:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,  # type: ignore[arg-type]
            accept_downloads=True,
        )
        contexts.append(context)
        if name:
            context.add_cookies([{"name": COOKIE, "value": name, "url": server.url}])
        watch = Watch(context.new_page())
        _watch(watch)
        return watch

    yield new
    for context in contexts:
        context.close()


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
