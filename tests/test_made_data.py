"""The shipped data that the engine made: what it covers, and that its commands still make it."""

import re
import shlex
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from annotations.sample import ensure_sample, made_files
from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core.formats import read
from pararecover_core.records import Instance, Replan, Trajectory
from pararecover_core.taxonomy import ErrorType

DATA = Path(__file__).parents[1] / "data"
AGENTS = {"oracle", "patch", "retry", "rebuild"}
NAMES = ("made_level1.jsonl", "made_level2.jsonl", "made_replans.jsonl", "made_trajectories.jsonl")


@cache
def contents(name):
    return [item.content for item in read(DATA / name)]


def commands():
    block = re.search(r"```sh\n(.*?)```", (DATA / "README.md").read_text(encoding="utf-8"), re.S)
    return [shlex.split(line)[1:] for line in block[1].splitlines()]


def test_the_commands_of_the_readme_make_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in commands():
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, (command, result.output)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


@pytest.mark.parametrize("level", [1, 2])
def test_sixty_instances_of_each_level_cover_all_types(level):
    found = contents(f"made_level{level}.jsonl")
    assert all(isinstance(each, Instance) and each.level == level for each in found)
    assert Counter(each.source.value for each in found) == {"sandbox": 48, "rollout": 12}
    tags = [tag for each in found for tag in each.tags]
    assert set(tags) == {kind.value for kind in ErrorType}
    assert all(each.error_reason and each.round_gt and each.funcall_times_gt for each in found)


def test_four_agents_answer_every_instance():
    found = contents("made_replans.jsonl")
    instances = {i.key for name in NAMES[:2] for i in contents(name)}
    assert all(isinstance(each, Replan) for each in found)
    pairs = {(r.instance, r.agent) for r in found}
    assert pairs == {(key, agent) for key in instances for agent in AGENTS}


def test_runs_begin_with_the_answers_and_cover_all_types():
    answers = {each.key for each in contents("made_replans.jsonl")}
    found = contents("made_trajectories.jsonl")
    assert all(isinstance(each, Trajectory) for each in found)
    assert Counter(each.agent for each in found) == dict.fromkeys(AGENTS, 48)
    assert {each.extra["replan"] for each in found} <= answers
    for level in (1, 2):
        tags = {t for each in found if each.extra["level"] == level for t in each.extra["tags"]}
        assert tags == {kind.value for kind in ErrorType}


def test_it_is_small_and_opens_fast(tmp_path):
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 8_000_000
    assert [path.name for path in made_files()] == list(NAMES)
    start = time.process_time()
    store = Store(ensure_sample(tmp_path / "sample.db"))
    assert time.process_time() - start < 6  # about one second on an idle machine
    counts = store.counts()
    assert counts.instances == 154
    assert counts.trajectories == 197
