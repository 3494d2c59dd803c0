from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotations.sampling import (
    Allocation,
    Candidate,
    Stratum,
    allocate,
    choose_shared,
    draw,
    draw_per_dimension,
)
from pararecover_core.errors import InputError

HUNDRED = [Candidate(f"r{n:03}", level=1 + n % 2) for n in range(100)]


def test_same_seed_gives_the_same_sample_whatever_the_order_of_rows():
    assert draw(HUNDRED, 10, 7) == draw(HUNDRED[::-1], 10, 7)
    assert draw(HUNDRED, 10, 7) != draw(HUNDRED, 10, 8)


def test_stratified_draw_does_not_depend_on_the_order_of_rows():
    by = (Stratum.LEVEL,)
    assert draw(HUNDRED, 11, 7, by) == draw(HUNDRED[::-1], 11, 7, by)


def test_more_than_there_are_gives_all_once():
    drawn = draw(HUNDRED, 400, 7)
    assert sorted(drawn) == [c.replan for c in HUNDRED]
    assert drawn != sorted(drawn)


def test_no_candidates_give_an_empty_sample():
    assert draw([], 5, 1) == []
    assert draw([], 5, 1, (Stratum.AGENT,), Allocation.EQUAL) == []
    assert draw_per_dimension([], ["S1"], 1) == {}


def test_size_below_one_says_what_to_do():
    with pytest.raises(
        InputError, match=r"sample size: got 0, expected 1 or more. Ask for at least one replan."
    ):
        draw(HUNDRED, 0, 1)


def test_proportional_shares_by_largest_remainder():
    # 10 of 60 + 30 + 11 = 101: 5.94, 2.97, 1.09 -> 5, 2, 1 and the two left go to .97 and .94.
    assert allocate({"a": 60, "b": 30, "c": 11}, 10, Allocation.PROPORTIONAL) == {
        "a": 6,
        "b": 3,
        "c": 1,
    }


def test_equal_shares_fill_small_strata_and_pass_on_the_rest():
    # 12 over sizes 2, 20, 20: 4 each would be even; a has 2, so b and c get 5 each.
    assert allocate({"a": 2, "b": 20, "c": 20}, 12, Allocation.EQUAL) == {"a": 2, "b": 5, "c": 5}


def test_fewer_than_strata_go_to_the_first_ones():
    assert allocate({"a": 5, "b": 5, "c": 5}, 2, Allocation.EQUAL) == {"a": 1, "b": 1, "c": 0}


@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 40), max_size=8),
    st.integers(0, 200),
    st.sampled_from(Allocation),
)
def test_shares_add_up_and_never_exceed_a_stratum(sizes, total, allocation):
    shares = allocate(sizes, total, allocation)
    assert sum(shares.values()) == min(total, sum(sizes.values()))
    assert all(0 <= shares[stratum] <= size for stratum, size in sizes.items())


def test_strata_by_level_error_type_and_agent():
    rare = [Candidate(f"x{n}", 2, "Cycle_Error", "agent-b") for n in range(4)]
    common = [Candidate(f"y{n}", 1, "Type_Error", "agent-a") for n in range(96)]
    drawn = draw(
        rare + common,
        8,
        3,
        (Stratum.LEVEL, Stratum.ERROR_TYPE, Stratum.AGENT),
        Allocation.EQUAL,
    )
    assert Counter(key[0] for key in drawn) == {"x": 4, "y": 4}


def test_each_dimension_gets_its_own_sample():
    drawn = draw_per_dimension(HUNDRED, ["S1", "D3"], seed=5, size=40)
    asked = Counter(dimension for dimensions in drawn.values() for dimension in dimensions)
    assert asked == {"S1": 40, "D3": 40}
    both = [key for key, dimensions in drawn.items() if dimensions == ("S1", "D3")]
    assert 0 < len(both) < 40  # expected 16 of 100
    assert {key for key, d in drawn.items() if "S1" in d} == set(draw(HUNDRED, 40, "5:S1"))


def test_fewer_than_400_ask_every_dimension_of_all():
    drawn = draw_per_dimension(HUNDRED, ["S1", "D3"], seed=5)
    assert len(drawn) == 100
    assert set(drawn.values()) == {("S1", "D3")}


@pytest.mark.parametrize(
    ("share", "count"), [(0, 0), (0.2, 2), (0.25, 3), (0.01, 1), (0.96, 10), (1, 10)]
)
def test_shared_items_are_counted_half_up_and_at_least_one(share, count):
    keys = [f"r{n}" for n in range(10)]
    chosen = choose_shared(keys, share, seed=1)
    assert len(chosen) == count
    assert chosen <= set(keys)
    assert chosen == choose_shared(keys[::-1], share, seed=1)


def test_overlap_as_percent_is_refused():
    with pytest.raises(InputError, match=r"overlap: got 20, .* Write 20 % as 0.2\."):
        choose_shared(["a"], 20, 1)
