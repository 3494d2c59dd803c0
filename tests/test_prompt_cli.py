import pytest
from typer.testing import CliRunner

from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core.errors import InputError


def run(*arguments):
    found = CliRunner().invoke(cli, ["prompt", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_prompts_go_out_as_files_and_come_back(tmp_path):
    first, second, file = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "d.md"
    Store(first)
    run("show", "d", "--db", first, "--out", file)
    text = file.read_text()
    assert text == run("show", "d-1", "--db", first)
    file.write_text(
        text.replace("version: 1", "version: 2").replace("parent:", "parent: 1") + "Be strict.\n"
    )
    assert run("import", file, "--db", second, "--author", "ada") == "d-2: taken\n"
    assert run("import", file, "--db", second) == "d-2: there already\n"
    assert run("show", "d", "--db", second).endswith("Be strict.\n")
    lines = [line.split("\t") for line in run("list", "--db", second).splitlines()]
    assert [(name, parent, author) for name, parent, _, author, _ in lines] == [
        ("d-1", "first", "built in"),
        ("d-2", "from 1", "ada"),
        ("e-1", "first", "built in"),
        ("s-1", "first", "built in"),
        ("sde-1", "first", "built in"),
    ]


def test_what_is_built_in_needs_no_database(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_DB", str(tmp_path / "none.db"))
    assert [line.split("\t")[0] for line in run("list").splitlines()] == [
        "d-1", "e-1", "s-1", "sde-1",
    ]  # fmt: skip
    assert run("show", "s-1").startswith("---")
    assert not (tmp_path / "none.db").exists()


def test_wrong_use_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="no file, expected a database"):
        run("list", "--db", tmp_path / "none.db")
    (tmp_path / "x.md").write_text("Just score.")
    with pytest.raises(InputError, match=r"x\.md: got no head"):
        run("import", tmp_path / "x.md", "--db", tmp_path / "a.db")
    with pytest.raises(InputError, match="expected a prompt file"):
        run("import", tmp_path / "none.md", "--db", tmp_path / "a.db")
