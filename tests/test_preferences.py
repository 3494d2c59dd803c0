"""Choosing training data: thresholds, pairs, the split, what is left out and why."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.errors import InputError
from pararecover_core.preferences import (
    BETWEEN,
    DROPPED,
    INCOMPLETE,
    NO_ANSWER,
    NO_CONTENT,
    NO_PARTNER,
    REPEATED,
    SAME_ANSWER,
    TOO_LOW,
    Candidate,
    Decision,
    Example,
    Rules,
    check_leakage,
    demonstrations,
    histogram,
    normal,
    select,
    total,
)
from pararecover_core.rubric import DIMENSIONS

ALL = Rules(test_share=0.0)


def answer(name, value, *, instance="i1", query_id="1", query="Bake a cake", **fields):
    fields.setdefault("prompt", f"prompt of {instance}")
    fields.setdefault("answer", f"answer {name}")
    return Candidate(name, instance, query_id, query, f"agent-{name}", value, **fields)


def ids(selection):
    return [one.id for one in selection.examples]


def test_a_total_needs_all_15_sub_dimensions():
    scores = dict.fromkeys(DIMENSIONS, 1.0) | {"S5": 1.0, "E5": 0.4, "D1": 0.5}
    assert total(scores) == (pytest.approx(13.9), ())  # 13 + 0.4 + 0.5
    del scores["E5"], scores["S2"]
    value, missing = total(scores)
    assert math.isnan(value)
    assert missing == ("S2", "E5")


def test_sft_takes_totals_above_10_and_not_10_itself():
    found = select([answer("a", 10.0), answer("b", 10.5), answer("c", 14.0)], ALL, kind="sft")
    assert ids(found) == ["c", "b"]
    assert found.excluded == {TOO_LOW: 1}
    assert found.totals == (10.0, 10.5, 14.0)
    assert ids(select([answer("a", 10.0)], Rules(above=9.5, test_share=0), kind="sft")) == ["a"]


def test_dpo_pairs_the_best_with_each_that_it_beats_by_more_than_5():
    # 14 - 9 = 5 is no more than 5; 14 - 8 and 14 - 3 are; 2.5 is under 3; 9 - 3 = 6 is not the best
    given = [answer(n, v) for n, v in zip("abcde", (14.0, 9.0, 8.0, 3.0, 2.5), strict=True)]
    found = select(given, ALL, kind="dpo")
    assert ids(found) == ["a>c", "a>d"]
    assert [one.gap for one in found.examples] == [6.0, 11.0]
    assert found.excluded == {TOO_LOW: 1, NO_PARTNER: 1}
    every = select(given, Rules(pairs="all", test_share=0), kind="dpo")
    assert ids(every) == ["a>c", "a>d", "b>d"]
    assert every.excluded == {TOO_LOW: 1}


def test_kto_takes_good_and_bad_answers():
    # good above 10, bad at most 10 - 5
    given = [answer(n, v) for n, v in zip("abcd", (14.0, 9.0, 5.0, 2.5), strict=True)]
    found = select(given, ALL, kind="kto", decisions=[Decision("sft", "d", False, "no")])
    assert ids(found) == ["a", "c"]
    assert found.excluded == {BETWEEN: 1, DROPPED: 1}


def test_pairs_are_of_one_instance_alone():
    given = [answer("a", 14.0), answer("b", 4.0, instance="i2")]
    assert select(given, ALL, kind="dpo").excluded == {NO_PARTNER: 2}


def test_what_cannot_be_used_is_counted_with_its_reason():
    given = [
        answer("a", math.nan, missing=("E5",)),
        answer("b", 12.0, stub=True),
        answer("c", 12.0, answer=""),
        answer("d", 12.0),
        answer("e", 12.0, answer="answer d"),
        answer("f", 12.0, answer="answer d", instance="i2", prompt="another prompt"),
    ]
    found = select(given, ALL, kind="sft")
    assert ids(found) == ["d", "f"]
    assert found.excluded == {INCOMPLETE: 1, NO_CONTENT: 1, NO_ANSWER: 1, REPEATED: 1}
    same = [answer("a", 14.0, answer="x"), answer("b", 4.0, answer="x")]
    assert select(same, ALL, kind="dpo").excluded == {SAME_ANSWER: 1}


def test_decisions_take_examples_out_and_put_them_back():
    given = [answer("a", 12.0), answer("b", 13.0)]
    out = Decision("sft", "a", False, "copies the question", "ann")
    found = select(given, ALL, kind="sft", decisions=[out])
    assert ids(found) == ["b"]
    assert [(one.id, one.decision.reason) for one in found.dropped] == [
        ("a", "copies the question")
    ]
    assert found.excluded == {DROPPED: 1}
    back = select(given, ALL, kind="sft", decisions=[out, Decision("sft", "a", True, "")])
    assert ids(back) == ["b", "a"]
    of_pairs = Decision("dpo", "a", False, "no")
    assert ids(select(given, ALL, kind="sft", decisions=[of_pairs])) == ["b", "a"]


def test_the_split_comes_first_and_takes_whole_tasks():
    given = [
        answer(f"{n}{k}", 12.0, instance=f"i{n}{k}", query_id=str(n), query=f"Task {n}")
        for n in range(10)
        for k in "xy"
    ]
    rules = Rules(test_share=0.3, seed=5)
    train, test = (select(given, rules, kind="sft", part=part) for part in ("train", "test"))
    assert (train.tasks, train.test_tasks) == (10, 3)
    assert len(train.examples) == 14
    assert len(test.examples) == 6
    assert {one.chosen.query_id for one in test.examples} == set(train.test_queries)
    assert not {one.chosen.query_id for one in train.examples} & set(train.test_queries)
    again = select(given[::-1], rules, kind="sft")
    assert again.test_queries == train.test_queries
    others = {select(given, Rules(test_share=0.3, seed=s), kind="sft").test_queries for s in "123"}
    assert len(others) > 1


def test_the_same_text_under_two_query_ids_is_one_task():
    given = [
        answer("a", 12.0, instance="1", query_id="1", query="Bake a cake."),
        answer("b", 12.0, instance="2", query_id="2", query="  bake A\ncake "),
        answer("c", 12.0, instance="3", query_id="2", query="Bake a cake, please"),
        answer("d", 12.0, instance="4", query_id="4", query="Fly to Lyon"),
    ]
    assert normal(given[0].query) == normal(given[1].query) == "bake a cake"
    found = select(given, Rules(test_share=0.5), kind="sft")
    assert (found.tasks, found.test_tasks) == (2, 1)
    listed = select(given, Rules(test_queries=("1", "2")), kind="sft", part="test")
    assert ids(listed) == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"1 tasks in both.*'1' of the test and '2'.*Put all"):
        select(given, Rules(test_queries=("1",)), kind="sft")
    with pytest.raises(InputError, match=r"got 1 query ids, none of them in the data"):
        select(given, Rules(test_queries=("99",)), kind="sft")


def test_leakage_by_id_is_refused():
    with pytest.raises(InputError, match="no task on both sides"):
        check_leakage([answer("a", 1.0, query="x")], [answer("b", 1.0, query="y")])
    check_leakage([answer("a", 1.0, query="x")], [answer("b", 1.0, query="y", query_id="2")])


def test_options_are_checked():
    with pytest.raises(InputError, match=r"above: got 16, expected a total from 0 to 15"):
        Rules(above=16)
    with pytest.raises(InputError, match=r"test share: got 1, expected at least 0 and below 1"):
        Rules(test_share=1.0)
    with pytest.raises(InputError, match=r"pairs: got 'some', expected one of best, all"):
        Rules(pairs="some")


def test_histogram_steps():
    # 0 and 0.5 in the first step; 1 in the second; 14.5 and 15 in the last
    assert histogram([0, 0.5, 1, 14.5, 15]) == [2, 1, *[0] * 12, 2]


@given(st.lists(st.floats(0, 15)))
def test_histogram_counts_everything(values):
    assert sum(histogram(values)) == len(values)


def test_demonstrations_differ_in_task_and_agent():
    def example(name, value, task, agent):
        one = Candidate(name, name, task, f"Task {task}", agent, value, name, name)
        return Example(name, one)

    given = [
        example("a", 15, "1", "x"),
        example("b", 14.5, "2", "x"),
        example("c", 14, "1", "y"),
        example("d", 13, "3", "y"),
    ]
    assert [one.id for one in demonstrations(given)] == ["a", "b", "d"]
    assert [one.id for one in demonstrations(given, 2)] == ["a", "d"]
    assert demonstrations([]) == []


CANDIDATES = st.builds(
    lambda n, i, q, t, v, a: Candidate(f"r{n}", f"i{i}", q, t, "x", v, f"p{i}", f"a{a}"),
    st.integers(0, 10**9),
    st.integers(0, 5),
    st.sampled_from(["", "1", "2", "3", "4"]),
    st.sampled_from(["", "A", "a ", "B", "C"]),
    st.one_of(st.just(math.nan), st.integers(0, 30).map(lambda n: n / 2)),
    st.integers(0, 4),
)


@given(
    st.lists(CANDIDATES, max_size=30, unique_by=lambda c: c.replan),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.integers(0, 3),
    st.sampled_from(["best", "all"]),
)
def test_no_task_is_ever_on_both_sides(candidates, share, seed, pairs):
    rules = Rules(test_share=share, seed=seed, pairs=pairs)
    for kind in ("sft", "dpo"):
        train = select(candidates, rules, kind=kind)
        test = select(candidates, rules, kind=kind, part="test")
        check_leakage([one.chosen for one in test.examples], [one.chosen for one in train.examples])
        for one in train.examples:
            if one.rejected:
                assert one.chosen.instance == one.rejected.instance
                assert one.gap > rules.gap
                assert min(one.chosen.total, one.rejected.total) >= rules.least
            else:
                assert one.chosen.total > rules.above
    assert len(train.examples) == len({one.id for one in train.examples})
