"""Every way of starting the app has the same options."""

import subprocess
import sys
import tomllib
from pathlib import Path

from streamlit import config

from ui.options import OPTIONS, as_flags
from ui.static import VIS_NETWORK, ensure_static

ROOT = Path(__file__).resolve().parents[1]


def flat(table, before=""):
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def test_the_file_for_streamlit_run_says_the_same():
    given = dict(flat(tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())))
    assert given == OPTIONS


def test_streamlit_knows_every_option():
    # "runner.postScriptGC" is hidden: `streamlit config show` does not list it, but it is there.
    known = set(config.get_config_options(force_reparse=False))
    assert set(OPTIONS) <= known


def test_flags_are_written_as_streamlit_reads_them():
    flags = as_flags({"a.b": True, "c.d": 5, "e.f": "#fff"})
    assert flags == ["--a.b=true", "--c.d=5", "--e.f=#fff"]


def test_browser_files_come_from_pyvis_and_are_copied_once(tmp_path):
    static = ensure_static(tmp_path)
    script = static / VIS_NETWORK
    assert b"vis-network" in script.read_bytes()[:500]
    before = script.stat().st_mtime_ns
    ensure_static(tmp_path)
    assert script.stat().st_mtime_ns == before
    script.write_text("cut short")
    ensure_static(tmp_path)
    assert script.stat().st_size > 100_000


def test_the_style_sheets_hold_nothing_that_the_sanitiser_drops():
    # A "<" before a letter makes st.html drop the whole style element, without a word.
    for name in ("tokens.css", "shell.css"):
        assert "<" not in (ROOT / "ui" / "assets" / name).read_text()


def test_the_app_s_start_imports_no_heavy_package():
    code = (
        "import sys, annotations.store, ui.shell, pararecover_cli.main;"
        "print(sorted({'openpyxl', 'sklearn', 'scipy', 'openai', 'pyvis'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
