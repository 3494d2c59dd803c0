import json
from collections import Counter

import pytest

from annotations.batches import (
    BatchPlan,
    Filter,
    Sampling,
    candidates,
    create_batch,
    get_batch,
    list_batches,
    paper_plan,
    preview,
)
from annotations.blind import Reveal
from annotations.sampling import Candidate, Stratum
from pararecover_core.errors import InputError
from pararecover_core.rubric import JUDGED
from tests.queue_data import fill, instance, make_store, replan


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path, items=10, agents=("agent-a", "agent-b"))


def rows(store, batch):
    with store.read() as db:
        return [
            tuple(row)
            for row in db.execute(
                "SELECT replan, position, slots, dimensions FROM batch_item"
                " WHERE batch = ? ORDER BY position",
                [batch],
            )
        ]


def test_a_batch_remembers_how_it_was_drawn(store):
    plan = BatchPlan("Pilot", sampling=Sampling(6, seed=3), created_by="ada", overlap=0.5)
    batch = create_batch(store, plan)
    assert (batch.name, batch.created_by, batch.created) == ("Pilot", "ada", store.now())
    assert (batch.items, batch.slots, batch.submitted) == (6, 6, 0)
    assert batch.dimensions == JUDGED
    assert batch.reveal is Reveal.AFTER_SUBMIT
    assert batch.plan["sampling"]["seed"] == 3
    assert batch.plan["available"] == 20
    assert [row[1] for row in rows(store, batch.id)] == [1, 2, 3, 4, 5, 6]
    assert list_batches(store) == [batch] == [get_batch(store, batch.id)]


def test_same_seed_draws_the_same_batch(store):
    one = create_batch(store, BatchPlan("A", sampling=Sampling(6, seed=3)))
    two = create_batch(store, BatchPlan("B", sampling=Sampling(6, seed=3)))
    assert rows(store, one.id) == rows(store, two.id)


def test_overlap_gives_a_share_of_items_more_annotators(store):
    plan = BatchPlan("A", sampling=Sampling(10), annotators_per_item=2, overlap=0.2)
    batch = create_batch(store, plan)
    assert Counter(row[2] for row in rows(store, batch.id)) == {1: 8, 2: 2}
    assert batch.slots == 12


def test_given_replans_keep_their_order_and_repeats_are_dropped(store):
    batch = create_batch(store, BatchPlan("A", replans=("r3-a", "r1-b", "r3-a")))
    assert [row[0] for row in rows(store, batch.id)] == ["r3-a", "r1-b"]


def test_dimensions_are_kept_in_rubric_order(store):
    batch = create_batch(store, BatchPlan("A", replans=("r1-a",), dimensions=("E1", "S2", "D5")))
    assert batch.dimensions == ("S2", "D5", "E1")


def test_an_item_asks_only_what_it_was_drawn_for(store):
    sampling = Sampling(8, seed=1, per_dimension=True)
    batch = create_batch(store, BatchPlan("A", sampling=sampling, dimensions=("S1", "D3")))
    asked = Counter()
    for _, _, _, dimensions in rows(store, batch.id):
        asked.update(json.loads(dimensions) if dimensions else ["S1", "D3"])
    assert asked == {"S1": 8, "D3": 8}
    assert 8 < batch.items <= 16


def test_the_paper_preset_says_that_fewer_exist(store):
    found = preview(store, paper_plan("Paper"))
    # 20 replans: all of them, each on 13 sub-dimensions; a fifth (4) by two annotators.
    assert (found.available, found.items, found.slots, found.cells) == (20, 20, 24, 24 * 13)
    assert found.short == (
        "Only 20 replans exist, 400 were asked for each sub-dimension; every item asks all of them."
    )
    assert create_batch(store, paper_plan("Paper")).plan["short"] == found.short
    assert list_batches(store)[0].annotators_per_item == 2


def test_a_plain_sample_says_that_fewer_exist(store):
    sampling = Sampling(5, where=Filter(agents=("agent-a",), levels=(2,), sources=("rollout",)))
    assert preview(store, BatchPlan("A", sampling=sampling)).short == ""
    short = preview(store, BatchPlan("A", sampling=Sampling(6, where=sampling.where))).short
    assert short == "Only 5 replans exist, 6 were asked for; all of them are taken."


def test_candidates_carry_the_newest_round_that_has_a_label(tmp_path):
    store = make_store(tmp_path, items=0)
    two = instance(1, level=2, tags=("Type_Error", "Cycle_Error"))
    fill(store, [two, replan(1), instance(2, tags=()), replan(2)])
    with store.read() as db:
        assert sorted(candidates(db, Filter()), key=lambda c: c.replan) == [
            Candidate("r1-a", 2, "Cycle_Error", "agent-a"),
            Candidate("r2-a", 1, "", "agent-a"),
        ]
        any_round = candidates(db, Filter(error_types=("Type_Error",)))
        assert [c.replan for c in any_round] == ["r1-a"]


def test_replans_of_other_batches_can_be_left_out(store):
    create_batch(store, BatchPlan("A", sampling=Sampling(15)))
    rest = create_batch(store, BatchPlan("B", sampling=Sampling(400, where=Filter(unbatched=True))))
    assert rest.items == 5


def test_stratified_by_level(store):
    fill(store, [r for n in range(11, 21) for r in (instance(n, level=1), replan(n))])
    # 30 replans: 20 of level 1, 10 of level 2; 6 in proportion are 4 and 2.
    sampling = Sampling(6, stratify=(Stratum.LEVEL,))
    batch = create_batch(store, BatchPlan("A", sampling=sampling))
    with store.read() as db:
        levels = Counter(
            row[0]
            for row in db.execute(
                "SELECT i.level FROM batch_item AS b JOIN replan AS r ON r.key = b.replan"
                " JOIN instance AS i ON i.key = r.instance WHERE b.batch = ?",
                [batch.id],
            )
        )
    assert levels == {1: 4, 2: 2}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (BatchPlan(" ", sampling=Sampling()), "batch name: got nothing"),
        (BatchPlan("A"), "replans: got neither"),
        (BatchPlan("A", replans=("r1-a",), sampling=Sampling()), "replans: got both"),
        (
            BatchPlan("A", sampling=Sampling(), dimensions=("S1", "S5")),
            "sub-dimensions: got S5, .* S5 is computed; leave it out",
        ),
        (BatchPlan("A", sampling=Sampling(), dimensions=()), "sub-dimensions: got none"),
        (
            BatchPlan("A", sampling=Sampling(), annotators_per_item=0),
            "annotators per item: got 0, expected 1 to 20",
        ),
        (BatchPlan("A", sampling=Sampling(), overlap=20), "overlap: got 20"),
        (BatchPlan("A", sampling=Sampling(), stale_minutes=0), "stale claims: got 0 minutes"),
        (BatchPlan("A", sampling=Sampling(0)), "sample size: got 0"),
        (BatchPlan("A", replans=("zzz",)), "replans: got 1 unknown: zzz"),
        (
            BatchPlan("A", sampling=Sampling(where=Filter(agents=("nobody",)))),
            "batch: got no replan to score",
        ),
    ],
)
def test_a_plan_that_cannot_work_says_why(store, plan, message):
    with pytest.raises(InputError, match=message):
        create_batch(store, plan)
    assert list_batches(store) == []


def test_a_name_is_given_once(store):
    create_batch(store, BatchPlan("A", replans=("r1-a",)))
    with pytest.raises(InputError, match="got 'A' twice, expected a new name"):
        create_batch(store, BatchPlan(" A ", replans=("r1-a",)))
