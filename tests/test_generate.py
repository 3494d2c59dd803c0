import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context

import pytest

from pararecover_core.errors import InputError
from pararecover_core.formats import read
from pararecover_core.generate import (
    LEVEL_1,
    LEVEL_2,
    Mix,
    apportion,
    error_plan,
    generate,
    published,
    published_lines,
)
from pararecover_core.records import Source
from pararecover_core.taxonomy import ErrorType
from pararecover_core.truth import faults


def text(**given):
    return "".join(published_lines(generate(**given)))


@cache
def made(level, rollouts=0.0):
    return tuple(generate(level=level, count=40, seed="g", rollouts=rollouts))


def test_tables_10_and_11_add_up_to_the_papers_totals():
    assert sum(LEVEL_1.values()) == 4_033
    sums = [sum(row[i] for row in LEVEL_2.values()) for i in range(3)]
    assert sums == [6_593, 6_593, 2_749]  # the third prints 2,750, its column adds up to 2,749


def test_the_papers_mix_gives_the_counts_of_table_10():
    counts = Counter(types[0] for types in error_plan(1, 4_033, "7", Mix.PAPER))
    assert counts == LEVEL_1


def test_the_papers_mix_gives_the_counts_of_table_11_within_one_percent():
    plan = error_plan(2, 6_593, "7", Mix.PAPER)
    for place in range(3):
        counts = Counter(types[place] for types in plan if len(types) > place)
        for kind, row in LEVEL_2.items():
            assert abs(counts[kind] - row[place]) <= max(1, 0.01 * row[place])
    assert {len(types) for types in plan} == {2, 3}


def test_a_small_sample_keeps_the_proportions():
    counts = Counter(types[0] for types in error_plan(1, 100, "7", Mix.PAPER))
    for kind, n in LEVEL_1.items():
        assert abs(counts[kind] - 100 * n / 4_033) < 1


def test_largest_remainders_get_the_rest():
    one, two = ErrorType.NULL_ERROR, ErrorType.TYPE_ERROR
    # shares of 4: 2.4 and 1.6 -> 2 and 1, the rest to 1.6
    assert Counter(apportion({one: 3, two: 2}, 4)) == {one: 2, two: 2}


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("rollouts", [0.0, 1.0])
def test_reading_the_file_back_loses_nothing(tmp_path, level, rollouts):
    path = tmp_path / "made.jsonl"
    path.write_text("".join(published_lines(made(level, rollouts))), encoding="utf-8")
    back = [item.content for item in read(path)]
    assert tuple(back) == made(level, rollouts)
    wanted = Source.ROLLOUT if rollouts else Source.SANDBOX
    assert {each.source for each in back} == {wanted}


def test_the_file_has_the_papers_fields():
    one, two = published(made(1)[0]), published(made(2)[0])
    common = {"id", "query_id", "tool_list", "query", "funcall_times_gt", "round_gt", "plan",
              "fun_call", "error_reason", "sandbox"}  # fmt: skip
    assert set(one) == common | {"tag"}
    assert set(two) == common | {"tag_1", "tag_2", "tag_3"}
    for field in ("tool_list", "plan", "fun_call"):
        assert isinstance(json.loads(one[field]), list | dict)
    assert two["tag_3"] is None or two["tag_3"] in set(ErrorType)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("level", [1, 2])
def test_the_same_seed_gives_the_same_bytes_through_any_executor(level, processes):
    given = {"level": level, "count": 45, "seed": "same", "rollouts": 0.2}
    alone = text(**given)
    with ThreadPoolExecutor(2) as threads:
        assert text(**given, executor=threads) == alone
    assert text(**given, executor=processes) == alone
    assert text(**{**given, "seed": "other"}) != alone


def test_a_longer_file_keeps_its_query_ids_unique():
    assert len({each.query_id for each in made(1)}) == 40


def test_rollouts_are_mixed_in_by_share():
    found = list(generate(level=1, count=20, seed="mix", rollouts=0.25))
    assert Counter(each.source for each in found) == {Source.ROLLOUT: 5, Source.SANDBOX: 15}
    assert [each.id for each in found] == [str(n) for n in range(1, 21)]


@pytest.mark.parametrize("level", [1, 2])
def test_rollouts_are_labelled_by_what_differs_from_the_truth(level):
    from pararecover_core.agents.choose import task_of

    for each in made(level, 1.0):
        block = each.extra["sandbox"]
        assert block["agent"].startswith("slip-")
        assert set(block["found"]) <= set(each.tags)
        assert len(each.tags) == 1 if level == 1 else len(each.tags) in (2, 3)
        last = block["injections"][-1]
        here = faults(task_of(each), each.plan, each.observations)
        assert (last["error_type"], last["node"]) in {(f.error_type, f.node) for f in here}


def test_there_are_two_levels():
    with pytest.raises(InputError, match="level: got 3, expected 1 or 2"):
        list(generate(level=3, count=1, seed="x"))


def test_instances_are_made_as_they_are_asked_for():
    found = generate(level=1, count=100_000, seed="lazy")
    assert next(found).id == "1"
