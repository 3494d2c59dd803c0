"""Imports point one way: pages -> ui -> annotations -> core; the core knows no app, no database."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "pararecover_core": {"pararecover_core"},
    "annotations": {"annotations", "pararecover_core"},
    "ui": {"ui", "annotations", "pararecover_core"},
    "pages": {"pages", "ui", "annotations", "pararecover_core"},
    "pararecover_cli": {"pararecover_cli", "ui", "annotations", "pararecover_core"},
}
NEVER = {
    "pararecover_core": {"streamlit", "sqlite3", "sqlite_utils", "typer"},
    "annotations": {"streamlit", "typer"},
    "ui": {"sqlite3"},
    "pages": {"sqlite3"},
    "pararecover_cli": set(),
}
LEAVES = {"plan", "taxonomy", "literals", "errors"}
"""Core modules at the bottom: they import at most each other."""


def modules():
    return [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


def imported(path):
    """Full names of the modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", modules(), ids=named)
def test_imports_point_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    tops = {name.split(".")[0] for name in imported(path)}
    assert tops & set(MAY_IMPORT) <= MAY_IMPORT[package]
    assert not tops & NEVER[package]


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_the_bottom_of_the_core_imports_nothing_above_it(name):
    path = ROOT / "pararecover_core" / f"{name}.py"
    ours = {one.split(".")[1] for one in imported(path) if one.startswith("pararecover_core.")}
    assert ours <= LEAVES


def test_modules_stay_readable_in_size():
    long = {named(path): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in long.items() if lines > 500} == {}
