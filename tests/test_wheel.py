"""The package that people install: it holds everything, and the app runs from any folder."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", str(folder), str(ROOT)),
        ],
        check=True,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder that holds the wheel's content as site-packages would."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_the_wheel_holds_everything_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = ("pararecover_core", "annotations", "ui", "pages", "pararecover_cli")
    tracked = subprocess.run(
        ["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(tracked) <= names
    samples = {f"annotations/sample/{path.name}" for path in (ROOT / "data").iterdir()}
    assert samples <= names
    assert "pararecover_cli/app_script.py" in names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(packages)
    assert not any("__pycache__" in name or name.endswith(".db") for name in names)


def test_the_app_runs_from_any_folder(installed, tmp_path):
    # A folder of the person's own whose names are those of our packages must not get in the way.
    for name in ("ui", "pages", "annotations"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the wrong one')")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME")}
    code = "from pararecover_cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code, "app", "--sample", "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, **home, "PYTHONPATH": str(installed)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        assert fetch(f"{url}/_stcore/health", process) == b"ok"
        assert len(fetch(f"{url}/app/static/vis-network.min.js", process)) > 100_000
        [run_folder] = (tmp_path / "XDG_CACHE_HOME" / "pararecover").iterdir()
        assert str(installed) in (run_folder / "main.py").read_text()
        assert not (run_folder / "pages").exists()
        assert (tmp_path / "XDG_DATA_HOME" / "pararecover" / "sample.db").is_file()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=20)


def fetch(url, process):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
            return answer.read()
        time.sleep(0.1)
    raise AssertionError(f"no answer from {url}")
