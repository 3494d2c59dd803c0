import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotations import queue
from annotations.adjudicate import (
    Basis,
    Opinion,
    adjudicate,
    cell,
    decisions,
    double_scored,
    exact_and_error,
    gold,
    human_score,
    human_scores,
    item_figures,
    sample_notes,
)
from pararecover_core.agreement import ema, mae
from pararecover_core.errors import InputError, StaleScoreError, StoreError
from pararecover_core.formats.items import Item, Place
from pararecover_core.records import Score
from pararecover_core.rubric import LEVELS
from tests.queue_data import Clock, batch_of_all, make_store, score


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    return make_store(tmp_path, clock=clock)


def opinion(name, value):
    return Opinion(name, value, "", "", False)


@pytest.mark.parametrize(
    ("values", "adjudicated", "value", "basis"),
    [
        ((), None, None, Basis.NONE),
        ((0.5,), None, 0.5, Basis.SINGLE),
        ((0.5, 0.5), None, 0.5, Basis.AGREED),
        ((0.0, 1.0), None, None, Basis.DISAGREED),
        ((1.0, 1.0, 0.0), None, None, Basis.DISAGREED),  # no majority
        ((0.0, 1.0), 0.5, 0.5, Basis.ADJUDICATED),
        ((1.0, 1.0), 0.0, 0.0, Basis.ADJUDICATED),
    ],
)
def test_gold_is_decided_or_agreed_and_no_tie_is_broken(values, adjudicated, value, basis):
    opinions = [opinion(f"a{n}", v) for n, v in enumerate(values)]
    for row in (opinions, opinions[::-1]):
        found = human_score("r", "S1", row, adjudicated)
        assert (found.value, found.basis) == (value, basis)
    assert basis.is_gold == (basis in ("adjudicated", "agreed"))


def _both(store, batch, values, replan="r1-a", submit=True):
    """ann and bob score S1, D1 and E1 of an item."""
    for name, row in zip(("ann", "bob"), values, strict=True):
        queue.open_item(store, batch, name, replan)
        for dimension, value in zip(("S1", "D1", "E1"), row, strict=True):
            score(store, replan, name, value, [dimension], batch=batch, note=f"{name} {dimension}")
        if submit:
            queue.submit(store, batch, name, replan, event=f"{name}/{replan}")


@pytest.fixture
def batch(store):
    return batch_of_all(store, dimensions=("S1", "D1", "E1"), annotators_per_item=2).id


def test_agreement_on_an_item(store, batch):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    (item,) = double_scored(store, batch)
    assert (item.replan, item.instance, item.position) == ("r1-a", "i1", 1)
    assert item.annotators == ("ann", "bob")
    # 3 pairs, 1 equal; differences 0, 0.5, 1
    assert (item.pairs, item.ema, item.mae) == (3, pytest.approx(1 / 3), pytest.approx(0.5))
    assert [(c.dimension, c.gap) for c in item.disagreements] == [("E1", 1.0), ("D1", 0.5)]
    assert item.waiting == 2
    both = item.disagreements[0].opinions
    assert [(o.annotator, o.value, o.note) for o in both] == [
        ("ann", 0, "ann E1"),
        ("bob", 1, "bob E1"),
    ]


def test_three_annotators_are_compared_in_pairs(store):
    number = batch_of_all(store, name="T", dimensions=("S1",), annotators_per_item=3).id
    for name, value in (("ann", 1.0), ("bob", 1.0), ("cleo", 0.0)):
        queue.open_item(store, number, name, "r1-a")
        score(store, "r1-a", name, value, ["S1"], batch=number)
        queue.submit(store, number, name, "r1-a", event=name)
    (item,) = double_scored(store, number)
    # pairs (1,1), (1,0), (1,0)
    assert (item.pairs, item.ema, item.mae) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_scores_count_once_submitted(store, batch):
    _both(store, batch, [(1, 1, 1), (0, 0, 0)], submit=False)
    assert double_scored(store, batch) == []
    assert gold(store, "r1-a", "S1").basis is Basis.NONE
    queue.submit(store, batch, "ann", "r1-a", event="s1")
    assert (gold(store, "r1-a", "S1").value, gold(store, "r1-a", "S1").basis) == (1.0, Basis.SINGLE)
    queue.submit(store, batch, "bob", "r1-a", event="s2")
    assert gold(store, "r1-a", "S1").basis is Basis.DISAGREED


def test_scores_from_a_file_count_at_once(store):
    score(store, "r2-a", "imported", 0.5, ["S1"])
    assert gold(store, "r2-a", "S1").annotators == ("imported",)


def test_a_withdrawn_score_does_not_count(store, batch):
    _both(store, batch, [(1, 1, 1), (0, 0, 0)])
    score(store, "r1-a", "bob", None, ["S1"], batch=batch)
    assert gold(store, "r1-a", "S1").basis is Basis.SINGLE


def test_judges_are_no_annotators(store, batch):
    _both(store, batch, [(1, 1, 1), (1, 1, 1)])
    from annotations.score_log import ScoreEntry

    store.append([ScoreEntry("j", "r1-a", "S1", "judge:m@p", 0.0)])
    assert gold(store, "r1-a", "S1").basis is Basis.AGREED


def test_a_decision_becomes_gold_and_stays_in_the_log(store, batch, clock):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    clock.on(60)
    values = {"replan": "r1-a", "dimension": "E1", "adjudicator": "eve", "batch": batch}
    made = adjudicate(store, **values, value=0.5, reason=" half is repaired ", event="d1")
    assert (made.revision, made.value, made.reason) == (1, 0.5, "half is repaired")
    assert adjudicate(store, **values, value=0.5, reason="half is repaired", event="d1") == made
    found = gold(store, "r1-a", "E1")
    assert (found.value, found.basis) == (0.5, Basis.ADJUDICATED)
    second = adjudicate(
        store, **values, value=0.0, reason="its chain is broken", event="d2", base_revision=1
    )
    assert [d.revision for d in decisions(store, "r1-a", "E1")] == [2, 1]
    assert cell(store, "r1-a", "E1").decision == second
    (item,) = double_scored(store, batch)
    assert item.waiting == 1
    with store.read() as db:
        row = db.execute("SELECT es FROM replan_summary WHERE replan = 'r1-a'").fetchone()
    assert row[0] == 0.0


def test_a_score_that_changes_after_the_decision_is_pointed_out(store, batch, clock):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    adjudicate(
        store, replan="r1-a", dimension="E1", value=1, adjudicator="e", reason="so", event="d"
    )
    assert not cell(store, "r1-a", "E1").outdated
    clock.on(60)
    score(store, "r1-a", "ann", 1.0, ["E1"], batch=batch, revealed=True)
    changed = cell(store, "r1-a", "E1")
    assert changed.outdated
    assert changed.opinions[0].revealed
    assert gold(store, "r1-a", "E1").revealed


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reason": "  "}, InputError, "decision on E1: got no reason"),
        ({"value": 0.75}, InputError, "decision on E1: got 0.75, expected 1, 0.5 or 0"),
        ({"dimension": "S5"}, InputError, "sub-dimension: got 'S5'"),
        ({"replan": "r2-a"}, StoreError, r"r2-a/E1: got 0 submitted score\(s\)"),
        ({"base_revision": 0}, StaleScoreError, "eve has decided 0.5 in the meantime"),
    ],
)
def test_a_decision_that_cannot_be_says_why(store, batch, options, error, message):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    values = {"replan": "r1-a", "dimension": "E1", "value": 0.5, "reason": "so", "event": "d2"}
    values |= {"adjudicator": "zoe", "base_revision": 1}
    adjudicate(
        store, replan="r1-a", dimension="E1", value=0.5, adjudicator="eve", reason="x", event="d1"
    )
    with pytest.raises(error, match=message):
        adjudicate(store, **(values | options))
    assert len(decisions(store, "r1-a", "E1")) == 1


def test_human_scores_in_bulk(store, batch):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    _both(store, batch, [(1, 1, 1), (1, 1, 1)], replan="r2-a")
    score(store, "r4-a", "imported", 0.0, ["S1"])
    adjudicate(
        store, replan="r1-a", dimension="D1", value=1, adjudicator="e", reason="so", event="d"
    )
    found = {(s.replan, s.dimension): (s.value, s.basis) for s in human_scores(store)}
    assert found == {
        ("r1-a", "S1"): (1.0, Basis.AGREED),
        ("r1-a", "D1"): (1.0, Basis.ADJUDICATED),
        ("r1-a", "E1"): (None, Basis.DISAGREED),
        ("r2-a", "S1"): (1.0, Basis.AGREED),
        ("r2-a", "D1"): (1.0, Basis.AGREED),
        ("r2-a", "E1"): (1.0, Basis.AGREED),
        ("r4-a", "S1"): (0.0, Basis.SINGLE),
    }
    other = batch_of_all(store, name="One", items=1).id
    assert {s.replan for s in human_scores(store, batch=other)} == {"r1-a"}


def test_figures_over_items(store, batch):
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    _both(store, batch, [(1, 1, 1), (1, 1, 1)], replan="r2-a")
    items = double_scored(store, batch)
    assert [item.replan for item in items] == ["r1-a", "r2-a"]
    figures = item_figures(items)
    # 6 pairs: 4 equal; differences 0.5 and 1
    assert (figures.items, figures.pairs, figures.disagreements, figures.waiting) == (2, 6, 2, 2)
    assert (figures.ema, figures.mae) == (pytest.approx(4 / 6), pytest.approx(1.5 / 6))


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)), min_size=1))
def test_figures_of_pairs_are_those_of_the_agreement_module(pairs):
    one, other = zip(*pairs, strict=True)
    expected = (ema(one, other), mae(one, other))
    assert exact_and_error(pairs) == pytest.approx(expected, abs=1e-12)


def test_figures_over_nothing_are_undefined():
    figures = item_figures([])
    assert math.isnan(figures.ema)
    assert math.isnan(figures.mae)


def test_notes_on_the_sample_are_for_adjudicators_once_submitted(store, batch):
    _both(store, batch, [(1, 1, 1), (1, 1, 1)], submit=False)
    queue.note(store, batch, "ann", "r1-a", event="n", note="two goals")
    assert sample_notes(store, batch, "r1-a") == {}
    queue.submit(store, batch, "ann", "r1-a", event="s")
    assert sample_notes(store, batch, "r1-a") == {"ann": "two goals"}


def test_people_who_differ_in_files_are_adjudicated_without_a_batch(store, batch):
    scored = [("ann", "S1", 1.0), ("ben", "S1", 0.0), ("ann", "S2", 1.0), ("ben", "S2", 1.0)]
    scores = [Score("r4-a", d, f"human:{who}", value, "") for who, d, value in scored]
    store.ingest([Item(Place("f"), score) for score in scores])
    _both(store, batch, [(1, 0.5, 0), (1, 0, 1)])
    assert [item.replan for item in double_scored(store, None)] == ["r1-a", "r4-a"]
    before = gold(store, "r4-a", "S1")
    adjudicate(
        store, replan="r4-a", dimension="S1", value=0.5, adjudicator="cy", reason="half",
        event="d", batch=None,
    )  # fmt: skip
    after = gold(store, "r4-a", "S1")
    assert (before.basis, before.value) == (Basis.DISAGREED, None)
    assert (after.basis, after.value) == (Basis.ADJUDICATED, 0.5)
    (item,) = (found for found in double_scored(store, None) if found.replan == "r4-a")
    assert (item.waiting, item.pairs, item.ema) == (0, 2, 0.5)
    queue.note(store, batch, "ann", "r1-a", event="n", note="two goals")
    assert sample_notes(store, None, "r1-a") == {"ann": "two goals"}
