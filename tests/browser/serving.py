"""The real app as a process of its own.

A server is forked from a process that has imported the app's packages once: importing them again
for each of some thirty servers took longer than the tests themselves. Everything after the imports
is as ``python -m pararecover_cli app`` or ``python -m streamlit run`` do it.
"""

import contextlib
import os
import runpy
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

START_SECONDS = 60
_CONTEXT = get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    _CONTEXT.set_forkserver_preload(["tests.browser.preload"])


@dataclass
class Server:
    """A running app."""

    url: str
    db: Path
    process: BaseProcess
    log: Path

    def said(self) -> str:
        """What the server wrote so far."""
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """End it as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(_pid(self.process), signal.SIGKILL)
        self.process.join(10)


_ports: list[int] = []


def free_port() -> int:
    """A port that nobody listens at; one used before, so that the browser knows the scripts."""
    for port in (*_ports, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            probe.bind(("127.0.0.1", port))
            if not port:
                _ports.append(int(probe.getsockname()[1]))
            return port or _ports[-1]
    pytest.fail("no port is free")


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


@contextlib.contextmanager
def running(
    folder: Path,
    db: Path,
    *,
    command: Sequence[str] | None = None,
    port: int | None = None,
    **env: str,
) -> Iterator[Server]:
    """Run an app until the block ends.

    Args:
        folder: Where it keeps its things and where it is started.
        db: The database.
        command: What to run instead of ``pararecover app``: a module and its arguments, with
            ``{port}`` filled in; started where the tests were.
        port: Where it listens, for a server that comes back there; a free one by default.
        env: Further environment variables.
    """
    port, log = port or free_port(), folder / "server.log"
    default = ("pararecover_cli", "app", "--db", str(db), "--port", "{port}")
    filled = [part.format(port=port) for part in (command or default)]
    start = folder if command is None else Path.cwd()
    process = _CONTEXT.Process(target=_serve, args=(filled, start, environment(folder, **env), log))
    process.start()
    server = Server(f"http://127.0.0.1:{port}", db, process, log)
    try:
        _wait_until_up(server)
        yield server
    finally:
        _stop(server)


def _serve(command: list[str], folder: Path, env: dict[str, str], log: Path) -> None:
    """Become the command, in a process group of its own that writes to a file."""
    os.setsid()
    with log.open("ab") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(folder)
    _run_module(command, env)


def _run_module(command: list[str], env: dict[str, str]) -> None:
    from pararecover_cli import app

    os.environ.clear()
    os.environ.update(env)
    # where the command would turn this process into another one, go on in this one
    app._become = lambda words, more: _run_module(words[words.index("-m") + 1 :], more)
    sys.argv = list(command)
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def _wait_until_up(server: Server) -> None:
    """Wait for the server's health page."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.process.exitcode is not None:
            pytest.fail(f"the server ended with {server.process.exitcode}:\n{server.said()}")
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=START_SECONDS),
        ):
            return
        time.sleep(0.02)
    pytest.fail(f"the server did not come up:\n{server.said()}")


def _stop(server: Server) -> None:
    """End the server and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(_pid(server.process), signal.SIGTERM)
    server.process.join(5)
    if server.process.exitcode is None:
        server.kill()


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None
    return process.pid
