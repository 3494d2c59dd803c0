"""The command: help with an example everywhere, errors in words, what the README says."""

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
import typer
from typer.testing import CliRunner

from annotations.store import ScoreEntry, Store
from pararecover_cli.main import COMMANDS, cli, main
from pararecover_core.rubric import JUDGED
from tests.command import Done, command

ROOT = Path(__file__).resolve().parents[1]
RUNNER = CliRunner()


def leaves(group, path=()):
    """Every command that does something, with its words."""
    below = getattr(group, "commands", None)
    if hasattr(group, "list_commands"):
        below = {name: group.get_command(None, name) for name in group.list_commands(None)}
    if not below:
        return [(path, group)]
    return [leaf for name, one in below.items() for leaf in leaves(one, (*path, name))]


def test_every_command_has_help_with_an_example():
    found = leaves(typer.main.get_command(cli))
    assert {path[0] for path, _ in found} == set(COMMANDS)
    for path, leaf in found:
        assert f"Example: pararecover {' '.join(path)}" in leaf.help, path
        shown = RUNNER.invoke(cli, [*path, "--help"])
        assert shown.exit_code == 0
        assert "Example:" in shown.stdout


def test_the_version_is_the_package_s():
    assert re.fullmatch(r"pararecover \d+\.\d+\.\d+\n", RUNNER.invoke(cli, ["--version"]).stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "scores", "--db", "missing.db"], "missing.db: got no file"),
        (
            ["app", "--host", "0.0.0.0"],
            "server.address: got '0.0.0.0', expected 127.0.0.1, or a login",
        ),
        (["import", "missing.jsonl"], "missing.jsonl: got no file"),
        (["app", "--port", "99999"], "less than or equal to 65535"),
        (["nonsense"], "No such command"),
        (["prompt", "show", "sde-1", "--out", "/dev/full"], "got no space left on device"),
    ],
)
def test_wrong_use_is_one_message_and_exit_2(arguments, said):
    done = command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_error_of_the_program_itself_keeps_its_traceback(monkeypatch):
    def broken(**_):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("pararecover_cli.main.cli", broken)
    with pytest.raises(OSError, match="Bad file descriptor"):
        command("doctor")


def test_a_process_ends_as_main_does():
    words = ("export", "scores", "--db", "missing.db")
    code = "from pararecover_cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert Done(done.returncode, done.stdout, done.stderr) == command(*words)


def test_settings_come_from_a_dot_env_file(tmp_path, monkeypatch, capsys):
    Store(tmp_path / "named.db")
    (tmp_path / ".env").write_text("PARARECOVER_DB=named.db\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pararecover", "doctor", "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any("named.db" in finding["what"] for finding in findings)


def test_the_doctor_names_what_to_fix_and_hides_the_key(tmp_path, monkeypatch):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all " * 100)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("PARARECOVER_TRUSTED_HEADER", "X-User")
    done = RUNNER.invoke(cli, ["doctor", "--db", str(broken)])
    assert done.exit_code == 1
    assert "sk-very-secret" not in done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("fix")] == ["database", "login:"]
    assert "api.openai.com with a key" in done.stdout


def test_the_doctor_is_content_with_a_sound_database(tmp_path):
    Store(tmp_path / "sound.db")
    done = RUNNER.invoke(cli, ["doctor", "--db", str(tmp_path / "sound.db")])
    assert done.exit_code == 0, done.stdout
    assert "0 instances, 0 replans, 0 scores" in done.stdout


@pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl"])
def test_scores_survive_export_and_import(form, sample_database, tmp_path):
    out, again = tmp_path / f"scores.{form}", tmp_path / "again.db"
    done = RUNNER.invoke(cli, ["export", "scores", "--db", str(sample_database), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert RUNNER.invoke(cli, ["import", str(out), "--db", str(again)]).exit_code == 0
    before, after = ({row for row in Store(db).score_rows()} for db in (sample_database, again))
    assert before
    assert after == before


def test_export_writes_csv_to_stdout_and_the_rest_to_stderr(sample_database):
    done = command("export", "scores", "--db", sample_database, "--scorer", "judge:")
    rows = list(csv.DictReader(done.stdout.lstrip("\ufeff").splitlines()))
    assert {row["scorer"] for row in rows} == {"judge:judge-a@v1"}
    assert done.stderr == f"{len(rows):,} scores written\n"


def test_an_unknown_form_is_refused(sample_database, tmp_path):
    out = tmp_path / "scores.pdf"
    done = command("export", "scores", "--db", sample_database, "--out", out)
    assert done.returncode == 2
    assert "a name that ends in .csv, .xlsx, .jsonl" in done.stderr
    assert not out.exists()


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with the files that the README names."""
    shutil.copy(ROOT / "data" / "sample_level1.jsonl", tmp_path / "LEVEL-1_augmented.jsonl")
    answers = [
        row
        for row in csv.DictReader((ROOT / "data" / "sample_replans.csv").open(encoding="utf-8"))
        if row["level"] == "1" and row["agent"] == "agent-a"
    ]
    sheet("results.xlsx", ["id", "thought", "replan"], answers, tmp_path)
    scored = [row | {f"{name}_model": 0.5 for name in JUDGED} for row in answers]
    sheet("judge.xlsx", ["id", *(f"{name}_model" for name in JUDGED)], scored, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sheet(name, heads, rows, folder):
    book = openpyxl.Workbook()
    book.active.append(heads)
    for row in rows:
        book.active.append([row[head] for head in heads])
    book.save(folder / name)


def score_all(db):
    """Score the batch as the app would: 1 for every sub-dimension, 0.5 for S1."""
    store = Store(db)
    with store.read() as connection:
        keys = [row[0] for row in connection.execute("SELECT replan FROM batch_item")]
    for key in keys:
        store.append(
            [
                ScoreEntry(f"{key}-{name}", key, name, "human:ada", 0.5 if name == "S1" else 1.0)
                for name in JUDGED
            ]
        )
    return len(keys)


def test_the_walk_of_the_readme_runs(study):
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    lines = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    said = {}
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "pararecover"
        if words[1] == "app":  # starting it is what the browser tests do
            assert score_all("study.db") == 10
            continue
        done = RUNNER.invoke(cli, words[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}"
        assert "not taken" not in done.output, done.output
        said[words[1]] = done.output
    # ten items: the judge gives 0.5 throughout; people 0.5 for S1, 1 for the other twelve:
    # EMA = 1 of 13, MAE = 12/13 * 0.5
    found = json.loads(RUNNER.invoke(cli, ["agree", "--db", "study.db", "--json"]).stdout)
    assert found["overall"]["n"] == 130
    assert found["overall"]["ema"] == pytest.approx(1 / 13)
    assert found["overall"]["mae"] == pytest.approx(6 / 13)
    assert Path("scores.xlsx").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ("app",),
        ("import", Path(__file__).parents[1] / "data" / "sample_level1.jsonl"),
        ("batch", "list"),
        ("batch", "create", "B"),
        ("prompt", "list"),
        ("report", "leaderboard"),
        ("agree",),
        ("judge",),
    ],
)
def test_a_mistyped_folder_is_named_and_never_made(words, tmp_path):
    done = command(*words, "--db", tmp_path / "typo" / "study.db")
    assert done.returncode == 2
    assert str(tmp_path / "typo") in done.stderr
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("group", ["batch", "prompt", "report", "export"])
def test_groups_of_commands_have_an_example(group):
    assert f"Example: pararecover {group} " in RUNNER.invoke(cli, [group, "--help"]).stdout
