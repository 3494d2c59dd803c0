import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from annotations import browse
from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_cli.record_file import RecordFile
from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.records import Instance, Replan, Trajectory
from pararecover_core.report import distribution, judge_free, render
from pararecover_core.runs import line_of
from pararecover_core.scores import BROKEN_OFF
from tests.command import command

runner = CliRunner()


def pararecover(*args):
    result = runner.invoke(cli, [str(a) for a in args], catch_exceptions=True)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Instances of both levels, runs of two agents, answers of one."""
    place = tmp_path_factory.mktemp("runs")
    for level in (1, 2):
        pararecover(
            "generate", "--level", level, "--count", 14, "--seed", 7, "--mix", "uniform",
            "--out", place / f"l{level}.jsonl",
        )  # fmt: skip
        for agent in ("patch", "ignore"):
            pararecover(
                "run", place / f"l{level}.jsonl", "--agent", agent, "--out", place / "t.jsonl"
            )
    pararecover("replan", place / "l1.jsonl", "--agent", "patch", "--out", place / "a.jsonl")
    return place


def records(path, kind):
    return [i.content for i in read(path) if isinstance(i.content, kind)]


def test_generate_says_what_it_made(tmp_path):
    result = pararecover(
        "generate", "--level", 1, "--count", 14, "--seed", "x", "--mix", "uniform",
        "--out", tmp_path / "x.jsonl",
    )  # fmt: skip
    assert result.stdout == ""
    assert "14 LEVEL-1 instances" in result.stderr
    assert "Null_Error 1" in result.stderr
    assert "rounds of the right plan" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["x.jsonl"]


def test_the_same_command_makes_the_same_bytes(tmp_path):
    for name, workers in (("a", 1), ("b", 2)):
        pararecover(
            "generate", "--level", 2, "--count", 30, "--seed", 3, "--rollouts", 0.3,
            "--workers", workers, "--out", tmp_path / name,
        )  # fmt: skip
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_run_file_holds_each_instance_once_and_a_run_by_each_agent(folder):
    instances = records(folder / "t.jsonl", Instance)
    runs, answers = records(folder / "t.jsonl", Trajectory), records(folder / "t.jsonl", Replan)
    assert {run.extra["replan"] for run in runs} == {answer.key for answer in answers}
    assert len(instances) == len({i.key for i in instances}) == 28
    assert len(runs) == len({r.key for r in runs}) == 56
    given = records(folder / "l1.jsonl", Instance) + records(folder / "l2.jsonl", Instance)
    assert {i.key for i in given} == {i.key for i in instances}
    for run in runs:
        assert {"e5", "correct", "rounds", "calls", "level", "tags"} <= set(run.extra)


def test_running_again_changes_nothing_and_a_cut_file_is_completed(folder, tmp_path):
    whole = (folder / "t.jsonl").read_bytes()
    target = tmp_path / "t.jsonl"
    target.write_bytes(whole)
    result = pararecover("run", folder / "l1.jsonl", "--agent", "patch", "--out", target)
    assert target.read_bytes() == whole
    assert "0 runs by patch" in result.stderr
    lines = whole.splitlines(keepends=True)
    for kept in (9, 10, 11):  # an instance, its first answer, its run
        target.write_bytes(b"".join(lines[:kept]) + b'{"kind":"traj')
        pararecover("run", folder / "l1.jsonl", "--agent", "patch", "--out", target)
        assert target.read_bytes() == b"".join(lines[:42])  # 14 of each


def test_several_agents_go_from_instance_to_instance_and_each_counts_once(folder, tmp_path):
    words = "--agent", "ignore", "--agent", "patch", "--agent", "ignore"
    for workers in (1, 2):
        out = tmp_path / f"{workers}.jsonl"
        result = pararecover("run", folder / "l1.jsonl", *words, "--workers", workers, "--out", out)
        assert f"14 runs by ignore, 14 runs by patch; {out} holds 28" in result.stderr
    made = records(tmp_path / "1.jsonl", Trajectory)
    assert [run.agent for run in made] == ["ignore", "patch"] * 14
    assert [run.instance for run in made[::2]] == [run.instance for run in made[1::2]]
    whole = (tmp_path / "1.jsonl").read_bytes()
    assert (tmp_path / "2.jsonl").read_bytes() == whole
    one_by_one = {line_of(run) for run in records(folder / "t.jsonl", Trajectory)}
    assert {line_of(run) for run in made} <= one_by_one
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:13]))  # stopped between two agents
    pararecover("run", folder / "l1.jsonl", *words, "--out", out)
    assert out.read_bytes() == whole


def test_lean_leaves_the_instances_out(folder, tmp_path):
    out = tmp_path / "lean.jsonl"
    pararecover("run", folder / "l1.jsonl", "--agent", "retry", "--out", out, "--lean")
    assert {json.loads(line)["kind"] for line in out.read_text().splitlines()} == {"trajectory"}


def test_processes_write_the_same_file(folder, tmp_path):
    for workers in (1, 2):
        pararecover(
            "run", folder / "l2.jsonl", "--agent", "oracle", "--workers", workers,
            "--out", tmp_path / f"{workers}.jsonl",
        )  # fmt: skip
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_answers_can_be_put_into_the_rest_of_the_workflow(folder, tmp_path):
    answers = {a.instance: a for a in records(folder / "a.jsonl", Replan)}
    assert len(answers) == 14
    out = tmp_path / "rest.jsonl"
    pararecover(
        "run", folder / "l1.jsonl", "--agent", "ignore", "--replans", folder / "a.jsonl",
        "--out", out,
    )  # fmt: skip
    for run in records(out, Trajectory):
        assert run.extra["replan"] == answers[run.instance].key
        assert run.rounds[1].thought == answers[run.instance].thought


def test_replay_runs_without_the_tools(folder, tmp_path):
    out = tmp_path / "replay.jsonl"
    pararecover(
        "run", folder / "l1.jsonl", "--agent", "ignore", "--env", "replay", "--out", out
    )  # fmt: skip
    texts = [o.result for r in records(out, Trajectory) for x in r.rounds for o in x.observations]
    assert any(text.startswith("Error: this call was not recorded") for text in texts)


def test_an_import_of_the_run_file_opens_its_trajectories(folder, tmp_path):
    db = tmp_path / "runs.db"
    pararecover("import", folder / "t.jsonl", "--db", db)
    store = Store(db)
    report = json.loads(pararecover("report", "judge-free", folder / "t.jsonl", "--json").stdout)
    keys = {
        key
        for row in report["rows"]
        for figure in row["figures"].values()
        for key in figure["keys"]
    }
    assert len(keys) == 56
    for key in sorted(keys)[::7]:
        _, opened, data = browse.respond(store, browse.View(item=key))
        assert opened.run.key == key  # a report's key opens its very run
        assert opened.instance.query
        assert data["item"]["kind"] == "run"
        assert (data["item"]["e5"].startswith("E5 = 0")) == (opened.run.extra["e5"] == 0)


def test_every_figure_of_the_report_comes_from_its_keys(folder):
    runs = {run.key: run for run in records(folder / "t.jsonl", Trajectory)}
    data = json.loads(pararecover("report", "judge-free", folder / "t.jsonl", "--json").stdout)
    for row in data["rows"]:
        figure = row["figures"]["E5"]
        mine = [runs[key] for key in figure["keys"]]
        assert len(mine) == figure["n"]
        assert {r.agent for r in mine} == {row["agent"]}
        assert {str(r.extra["level"]) for r in mine} == {row["level"]}
        if row["error type"] != "all":
            assert all(row["error type"] in r.extra["tags"] for r in mine)
        mean = 100 * sum(r.extra["e5"] for r in mine) / len(mine)
        assert figure["value"] == pytest.approx(mean)
    alls = {(r["agent"], r["level"]): r for r in data["rows"] if r["error type"] == "all"}
    assert set(alls) == {("patch", "1"), ("patch", "2"), ("ignore", "1"), ("ignore", "2")}
    assert alls["patch", "1"]["figures"]["Pass@1"]["n"] == 14


def run(key, agent="a", level=1, success=True, **extra):
    return Trajectory(key, "i", agent, (), success, "response", {"level": level, **extra})


def test_the_report_by_hand():
    made = judge_free(
        [
            run("k1", tags=["Null_Error"], e5=1.0, correct=True, rounds=4, calls=3,
                tool_use_efficiency=1.0, answers=3, invalid=0),
            run("k2", tags=["Null_Error", "Type_Error"], e5=0.5, correct=False, rounds=8, calls=5,
                tool_use_efficiency=0.0, answers=1, invalid=1, success=False),
            run("k3", tags=["Type_Error"], e5=None, correct=None, rounds=2, calls=1,
                tool_use_efficiency=None, answers=0, invalid=0),
        ]
    )  # fmt: skip
    by_type = {row.labels[2]: dict(zip(made.columns, row.cells, strict=True)) for row in made.rows}
    every = by_type["all"]
    assert every["E5"].value == 75.0  # (100 + 50) / 2; the third is unknown
    assert every["E5"].n == 2
    assert every["Invalid DAG Rate"].value == 25.0  # one of four plans
    assert every["Pass@1"].value == pytest.approx(200 / 3)
    assert every["Correct"].value == 50.0
    assert every["Rounds"].value == pytest.approx(14 / 3)
    assert by_type["Null_Error"]["E5"].keys == ("k1", "k2")
    assert by_type["Type_Error"]["Tool Use Eff."].keys == ("k2",)
    assert list(by_type) == ["all", "Null_Error", "Type_Error"]
    assert "75.00 (n 2)" in render(made)


@pytest.mark.parametrize("outcome", sorted(BROKEN_OFF))
def test_runs_that_were_broken_off_are_left_out_and_said(outcome):
    stopped = Trajectory("k", "i", "a", (), False, outcome, {"level": 1})
    assert judge_free([stopped]).rows == ()
    assert judge_free([stopped]).notes[-1] == (
        "1 runs that were cancelled or lost their endpoint are left out."
    )


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown", "latex"])
def test_reports_in_every_format(folder, form):
    out = pararecover("report", "judge-free", folder / "t.jsonl", "--format", form).stdout
    assert "patch" in out
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
        assert float(rows[0]["E5"]) <= 100
        assert rows[0]["E5 n"] == "14"
    if form == "latex":
        assert r"\begin{tabular}{lllrrrrrrrr}" in out
        assert r"Parameter\_Error" in out
    if form == "markdown":
        assert "| patch | 1 | all | 14 |" in out


def test_distribution_counts_types_by_round(folder):
    data = json.loads(
        pararecover("report", "distribution", folder / "l1.jsonl", folder / "l2.jsonl", "--json")
        .stdout
    )  # fmt: skip
    totals = {r["level"]: r["figures"] for r in data["rows"] if r["error type"] == "Total"}
    assert totals["1"]["Round 1"]["value"] == 14
    assert totals["2"]["Round 2"]["value"] == 14
    assert totals["2"]["Round 3"]["value"] == 6  # 14 * 2750 / 6593 = 5.8
    one = next(r for r in data["rows"] if r["level"] == "1" and r["error type"] == "Null_Error")
    assert one["figures"]["Round 1"]["value"] == 1
    assert one["figures"]["Round 1 %"]["value"] == pytest.approx(100 / 14)
    assert len(one["figures"]["Round 1"]["keys"]) == 1
    assert distribution([]).rows == ()


def fails(*args):
    done = command(*args)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_mistakes_are_named_with_their_cure(folder, tmp_path):
    l1, out = folder / "l1.jsonl", tmp_path / "o.jsonl"
    assert "expected one of oracle" in fails("run", l1, "--agent", "nobody", "--out", out)
    assert "Check the path" in fails("run", tmp_path / "none", "--agent", "patch", "--out", out)
    gone = tmp_path / "no" / "o.jsonl"
    assert "no folder" in fails("run", l1, "--agent", "patch", "--out", gone)
    other = tmp_path / "notes.txt"
    other.write_text("my notes\n")
    assert "records of a run" in fails("run", l1, "--agent", "patch", "--out", other)
    assert other.read_text() == "my notes\n"
    assert "no run" in fails("report", "judge-free", l1)
    assert "one of table" in fails("report", "judge-free", folder / "t.jsonl", "--format", "pdf")
    assert "no replan" in fails("run", l1, "--agent", "patch", "--replans", l1, "--out", out)


def test_ctrl_c_leaves_a_file_that_the_same_command_completes(folder, tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "t.jsonl"
    pararecover("generate", "--level", 1, "--count", 120, "--seed", 1, "--out", many)
    words = ["run", str(many), "--agent", "oracle", "--out", str(out), "--workers", "2"]
    started = subprocess.Popen(
        [sys.executable, "-m", "pararecover_cli", *words], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (out.exists() and out.stat().st_size > 20_000):
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    if started.returncode != 0:  # it was not done before
        assert started.returncode == 130
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
    held = len(records(out, Trajectory))
    assert held > 0
    pararecover(*words)
    assert len(records(out, Trajectory)) == 120


def test_workers_end_with_a_command_that_is_killed():
    """They hold its output open as long as they live."""
    code = (
        "import os, time\n"
        "from pararecover_cli.record_file import executor_of\n"
        "with executor_of(2) as pool:\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    started = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert started.stdout.readline().strip().isdecimal()
    started.kill()
    started.communicate(timeout=20)


def test_what_is_written_is_there_for_others_at_once(folder, tmp_path):
    file = RecordFile(tmp_path / "t.jsonl")
    file.add(next(iter(records(folder / "a.jsonl", Replan))))
    assert file.path.read_bytes().endswith(b"\n")
    file.close()


@pytest.mark.parametrize(
    "text", [b"my notes", b'{"answer": 42}', b"[1, 2]", b'{"kind', b"one line\nand another"]
)
def test_a_file_of_something_else_without_a_last_line_end_stays_as_it_is(tmp_path, text):
    file = tmp_path / "other.json"
    file.write_bytes(text + b"s")
    with pytest.raises(InputError, match="got other lines"):
        RecordFile(file)
    assert file.read_bytes() == text + b"s"


def test_of_a_last_line_only_what_is_no_whole_record_is_cut_off(folder, tmp_path):
    lines = [line_of(answer) for answer in records(folder / "a.jsonl", Replan)[:2]]
    path, size = tmp_path / "t.jsonl", len(lines[1])
    for end in (*range(12), size // 2, size - 2, size - 1, size):
        path.write_bytes(lines[0] + lines[1][:end])
        RecordFile(path).close()
        kept = end >= size - 1  # a record that lacks its line end alone is whole
        assert path.read_bytes() == lines[0] + (lines[1] if kept else b""), end
