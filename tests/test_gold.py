"""One rule says which scores of people count, everywhere: pairs, adjudication, summaries, lists."""

import time

import pytest

from annotations import queue
from annotations.adjudicate import Basis, adjudicate, gold, human_scores
from annotations.pairs import Selection, load, state
from annotations.score_log import ScoreEntry
from annotations.search import Filter, search
from pararecover_core.pairing import DISAGREE, NO_HUMAN, gold_value
from tests.queue_data import batch_of_all, make_store, score

JUDGE = "judge:m@p-1"


@pytest.fixture
def store(tmp_path):
    made = make_store(tmp_path, items=2)
    made.append([ScoreEntry(f"j{n}", f"r{n}-a", "D1", JUDGE, 0.5) for n in (1, 2)])
    return made


def everywhere(store, replan="r1-a"):
    """The gold score of D1 as pairs, adjudication, summary and list see it."""
    (cell,) = [
        c for c in load(store, Selection(judge=JUDGE)) if (c.sample, c.dimension) == (replan, "D1")
    ]
    bulk = {(s.replan, s.dimension): s.value for s in human_scores(store)}
    with store.read() as db:
        query = "SELECT dr FROM replan_summary WHERE replan = ?"
        summary = db.execute(query, (replan,)).fetchone()[0]
    (row,) = [row for row in search(store, Filter()).rows if row.replan == replan]
    listed = row.marks.get("D1")  # the judge's where there is no gold
    found = {cell.human, gold(store, replan, "D1").value, bulk.get((replan, "D1")), summary}
    assert len(found) == 1, found
    (value,) = found
    assert listed == (0.5 if value is None else value)
    return value, cell.human_gap


def begin(store, batch, name, value, dimensions=("D1",)):
    queue.open_item(store, batch, name, "r1-a")
    score(store, "r1-a", name, value, dimensions, batch=batch)


def test_a_score_of_a_batch_counts_once_submitted(store):
    batch = batch_of_all(store, items=1, dimensions=("D1", "D2"), annotators_per_item=2).id
    begin(store, batch, "ann", 1.0)
    assert everywhere(store) == (None, NO_HUMAN)  # half scored
    score(store, "r1-a", "ann", 1.0, ("D2",), batch=batch)
    assert everywhere(store) == (None, NO_HUMAN)  # all scored, not handed in
    before = state(store)
    queue.submit(store, batch, "ann", "r1-a", event="s")
    assert everywhere(store) == (1.0, "")
    assert state(store) != before  # so that what is kept is measured anew


def test_people_who_differ_have_no_gold_until_somebody_decides(store):
    score(store, "r1-a", "ann", 1.0, ("D1",))
    score(store, "r1-a", "bob", 0.0, ("D1",))
    assert everywhere(store) == (None, DISAGREE)
    adjudicate(
        store, replan="r1-a", dimension="D1", value=0.0, adjudicator="eve", reason="so", event="d"
    )
    assert everywhere(store) == (0.0, "")


def test_a_second_batch_does_not_hide_the_first_until_it_is_submitted(store):
    first = batch_of_all(store, items=1, dimensions=("D1",)).id
    begin(store, first, "ann", 1.0)
    queue.submit(store, first, "ann", "r1-a", event="s1")
    second = batch_of_all(store, name="Again", items=1, dimensions=("D1",)).id
    begin(store, second, "ann", 0.0)
    assert everywhere(store) == (1.0, "")
    score(store, "r1-a", "ann", None, ("D1",), batch=second)  # withdrawn there, not here
    assert everywhere(store) == (1.0, "")
    score(store, "r1-a", "ann", 0.0, ("D1",), batch=second)
    queue.submit(store, second, "ann", "r1-a", event="s2")
    assert everywhere(store) == (0.0, "")
    assert gold(store, "r1-a", "D1").basis is Basis.SINGLE


def test_a_reopened_item_counts_on(store):
    batch = batch_of_all(store, items=1, dimensions=("D1",)).id
    begin(store, batch, "ann", 1.0)
    queue.submit(store, batch, "ann", "r1-a", event="s")
    queue.reopen(store, batch, "ann", "r1-a", event="o")
    assert everywhere(store) == (1.0, "")


def test_scores_of_a_file_count_at_once(store):
    score(store, "r1-a", "imported", 1.0, ("D1",))
    assert everywhere(store) == (1.0, "")


@pytest.mark.parametrize(
    ("values", "adjudicated", "expected"),
    [
        ((), None, None),
        ((0.5,), None, 0.5),
        ((1.0, 1.0, 0.0), None, None),
        ((1.0, 1.0), 0.0, 0.0),
        ((), 1.0, 1.0),
    ],
)
def test_the_rule(values, adjudicated, expected):
    assert gold_value(values, adjudicated) == expected


def test_bulk_reading_is_quick(store):
    batch = batch_of_all(store, items=2, dimensions=("D1",)).id
    rows = []
    for number in range(2000):  # 2,000 revisions of one cell: the worst case of a newest search
        rows.append(
            ScoreEntry(f"e{number}", "r2-a", "D1", "human:ann", 1.0, "", number, batch=batch)
        )
    store.append(rows)
    start = time.process_time()
    assert [s for s in human_scores(store) if s.replan == "r2-a"] == []
    assert time.process_time() - start < 2
