import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from annotations import queue
from annotations.batches import BatchPlan, create_batch
from annotations.blind import Reveal, shown
from annotations.queue import State
from annotations.store import Store, utc_now
from pararecover_core.errors import InputError, StoreError
from pararecover_core.rubric import JUDGED
from tests.queue_data import Clock, batch_of_all, make_store, score


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    return make_store(tmp_path, clock=clock)


def test_next_claims_in_the_order_of_the_batch(store):
    batch = batch_of_all(store).id
    first = queue.next_item(store, batch, "ann")
    assert (first.replan, first.position, first.total) == ("r1-a", 1, 4)
    assert (first.state, first.slot, first.slots) == (State.CLAIMED, 1, 1)
    assert first.can_score
    assert first.dimensions == JUDGED
    assert queue.next_item(store, batch, "bob").replan == "r2-a"


def test_next_again_continues_the_same_item(store, clock):
    batch = batch_of_all(store).id
    queue.next_item(store, batch, "ann")
    clock.on(5)
    second = queue.next_item(store, batch, "ann", after="r1-a")
    clock.on(5)
    assert second.replan == "r2-a"
    assert queue.next_item(store, batch, "ann").replan == "r2-a"


def test_an_empty_queue_gives_none(store):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    assert queue.next_item(store, batch, "bob") is None
    score(store, "r1-a", "ann", batch=batch)
    queue.submit(store, batch, "ann", "r1-a", event="e1")
    assert queue.next_item(store, batch, "ann") is None


def test_unknown_batch_is_named(store):
    batch_of_all(store)
    with pytest.raises(InputError, match=r"batch: got 9, expected one of 1\. Choose a batch"):
        queue.next_item(store, 9, "ann")


def test_an_item_of_another_batch_is_refused(store):
    batch = batch_of_all(store, items=2).id
    with pytest.raises(StoreError, match=r"open r4-a in batch 'Pilot': got no such item"):
        queue.open_item(store, batch, "ann", "r4-a")


def test_skipped_and_flagged_come_back_after_fresh_ones(store, clock):
    batch = batch_of_all(store).id
    served = []
    item = queue.next_item(store, batch, "ann")
    for action in (queue.skip, queue.flag, None, None, None, None):
        served.append(item.replan)
        clock.on(10)
        if action:
            action(store, batch, "ann", item.replan, event=f"e{item.replan}")
        else:
            score(store, item.replan, "ann", batch=batch)
            queue.submit(store, batch, "ann", item.replan, event=f"s{item.replan}")
        item = queue.next_item(store, batch, "ann", after=item.replan)
    assert served == ["r1-a", "r2-a", "r3-a", "r4-a", "r1-a", "r2-a"]
    assert item is None


def test_a_skipped_item_is_not_given_to_others(store):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    queue.skip(store, batch, "ann", "r1-a", event="e1")
    assert queue.next_item(store, batch, "bob") is None
    again = queue.next_item(store, batch, "ann", after="r1-a")
    assert again.replan == "r1-a"
    assert again.can_score


def test_an_item_left_unfinished_comes_back(store, clock):
    batch = batch_of_all(store, items=3).id
    served, after = [], ""
    for _ in range(4):
        clock.on(1)
        after = queue.next_item(store, batch, "ann", after=after).replan
        served.append(after)
    assert served == ["r1-a", "r2-a", "r3-a", "r1-a"]


def test_two_slots_go_to_two_people_and_nobody_gets_an_item_twice(store):
    batch = batch_of_all(store, items=1, annotators_per_item=2).id
    assert queue.next_item(store, batch, "ann").slot == 1
    assert queue.next_item(store, batch, "bob").slot == 2
    assert queue.next_item(store, batch, "ann").slot == 1
    assert queue.next_item(store, batch, "cleo") is None
    looked = queue.open_item(store, batch, "cleo", "r1-a")
    assert (looked.state, looked.slot, looked.can_score) == (State.OPEN, 0, False)


def test_the_database_itself_refuses_a_second_holder_of_a_slot(store):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    with pytest.raises(sqlite3.IntegrityError), store.write() as db:
        db.execute(
            "INSERT INTO assignment (batch, replan, annotator, slot, state, claimed_at, touched_at)"
            " VALUES (?, 'r1-a', 'bob', 1, 'claimed', '', '')",
            [batch],
        )


def test_a_stale_claim_goes_to_others_after_fresh_ones(store, clock):
    batch = batch_of_all(store, items=2).id
    queue.next_item(store, batch, "ann")
    clock.on(61 * 60)
    assert queue.next_item(store, batch, "bob").replan == "r2-a"
    assert queue.next_item(store, batch, "bob", after="r2-a").replan == "r1-a"
    lost = queue.open_item(store, batch, "ann", "r1-a")
    assert (lost.state, lost.can_score) == (State.RELEASED, False)
    score(store, "r1-a", "ann", batch=batch)
    with pytest.raises(StoreError, match="released and taken by another annotator"):
        queue.submit(store, batch, "ann", "r1-a", event="e1")
    assert queue.next_item(store, batch, "ann") is None


def test_whoever_comes_back_in_time_continues(store, clock):
    batch = batch_of_all(store, items=2).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", 0.5, ["S1"], batch=batch)
    clock.on(61 * 60)
    queue.next_item(store, batch, "bob")
    assert queue.next_item(store, batch, "ann").replan == "r1-a"
    score(store, "r1-a", "ann", 1.0, JUDGED[1:], batch=batch)
    assert queue.submit(store, batch, "ann", "r1-a", event="e1").state is State.SUBMITTED
    with store.read() as db:
        kept = db.execute("SELECT value FROM score_current WHERE dimension = 'S1'").fetchone()
    assert kept[0] == 0.5


def test_a_score_counts_as_a_touch(store, clock):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    clock.on(50 * 60)
    score(store, "r1-a", "ann", 1.0, ["S1"], batch=batch)
    clock.on(50 * 60)
    assert queue.next_item(store, batch, "bob") is None
    clock.on(11 * 60)
    assert queue.next_item(store, batch, "bob").replan == "r1-a"


def test_touch_keeps_a_claim_and_takes_a_free_one_back(store, clock):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    clock.on(59 * 60)
    queue.touch(store, batch, "ann", "r1-a")
    clock.on(59 * 60)
    assert queue.next_item(store, batch, "bob") is None
    assert queue.release_stale(store, batch, minutes=30) == 1
    assert queue.open_item(store, batch, "cleo", "r1-a").can_score
    assert not queue.touch(store, batch, "ann", "r1-a").can_score


def test_a_submitted_item_is_never_released(store, clock):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", batch=batch)
    queue.submit(store, batch, "ann", "r1-a", event="e1")
    queue.reopen(store, batch, "ann", "r1-a", event="e2")
    clock.on(24 * 3600)
    assert queue.next_item(store, batch, "bob") is None
    assert queue.release_stale(store, batch, minutes=1) == 0


def test_submit_names_what_is_missing(store):
    batch = batch_of_all(store, dimensions=("D3", "S1", "E4")).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", 0.0, ["D3"], batch=batch)
    assert queue.missing_scores(store, batch, "ann", "r1-a") == ("S1", "E4")
    with pytest.raises(StoreError) as caught:
        queue.submit(store, batch, "ann", "r1-a", event="e1")
    assert str(caught.value) == (
        "submit r1-a in batch 'Pilot': got S1, E4 without a score, expected a score on each."
        " Score what is missing, or skip the item."
    )


def test_a_withdrawn_score_is_missing(store):
    batch = batch_of_all(store, dimensions=("S1",)).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", 1.0, ["S1"], batch=batch)
    score(store, "r1-a", "ann", None, ["S1"], batch=batch)
    assert queue.missing_scores(store, batch, "ann", "r1-a") == ("S1",)


def test_repeated_events_change_nothing(store, clock):
    batch = batch_of_all(store).id
    queue.next_item(store, batch, "ann")
    queue.flag(store, batch, "ann", "r1-a", event="f", note="odd")
    queue.note(store, batch, "ann", "r1-a", event="n", note="first")
    score(store, "r1-a", "ann", batch=batch)
    done = queue.submit(store, batch, "ann", "r1-a", event="s")
    clock.on(60)
    assert queue.flag(store, batch, "ann", "r1-a", event="f", note="odd").state is State.SUBMITTED
    assert queue.note(store, batch, "ann", "r1-a", event="n", note="first").note == "first"
    assert queue.submit(store, batch, "ann", "r1-a", event="s") == done
    assert queue.submit(store, batch, "ann", "r1-a", event="s2").submitted_at == done.submitted_at
    with store.read() as db:
        kinds = Counter(
            row[0] for row in db.execute("SELECT kind FROM event_log WHERE kind <> 'open'")
        )
    assert kinds == {"flag": 1, "note": 1, "submit": 2}


def test_an_old_note_sent_again_does_not_replace_a_newer_one(store):
    batch = batch_of_all(store).id
    queue.next_item(store, batch, "ann")
    queue.note(store, batch, "ann", "r1-a", event="n1", note="first")
    queue.note(store, batch, "ann", "r1-a", event="n2", note="second")
    assert queue.note(store, batch, "ann", "r1-a", event="n1", note="first").note == "second"


def test_skip_after_submit_says_to_reopen(store):
    batch = batch_of_all(store).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", batch=batch)
    queue.submit(store, batch, "ann", "r1-a", event="s")
    with pytest.raises(StoreError, match=r"got a submitted item, .* Re-open it to change scores\."):
        queue.skip(store, batch, "ann", "r1-a", event="k")


def test_an_action_without_a_claim_is_refused(store):
    batch = batch_of_all(store).id
    with pytest.raises(StoreError, match=r"flag r1-a in batch 'Pilot': got no claim of 'bob'"):
        queue.flag(store, batch, "bob", "r1-a", event="k")


def test_a_flag_stands_until_the_item_is_submitted(store):
    batch = batch_of_all(store, items=1).id
    queue.next_item(store, batch, "ann")
    queue.flag(store, batch, "ann", "r1-a", event="f", note="odd")
    assert queue.open_item(store, batch, "ann", "r1-a").state is State.FLAGGED
    assert queue.next_item(store, batch, "ann").state is State.FLAGGED


def test_previous_and_next_walk_the_own_history(store, clock):
    batch = batch_of_all(store).id
    item = None
    for n in (1, 2, 3):
        clock.on(60)
        item = queue.next_item(store, batch, "ann", after=item.replan if item else "")
        if n == 1:
            score(store, item.replan, "ann", batch=batch)
            item = queue.submit(store, batch, "ann", item.replan, event="s")
    back = queue.neighbour(store, batch, "ann", "r3-a", step=-1)
    assert back.replan == "r2-a"
    oldest = queue.neighbour(store, batch, "ann", "r2-a", step=-1)
    assert (oldest.replan, oldest.state) == ("r1-a", State.SUBMITTED)
    assert queue.neighbour(store, batch, "ann", "r1-a", step=-1) is None
    assert queue.neighbour(store, batch, "ann", "r1-a", step=1).replan == "r2-a"
    assert queue.neighbour(store, batch, "ann", "r3-a", step=1) is None


def test_opening_the_same_item_again_writes_nothing(store, clock):
    batch = batch_of_all(store).id
    queue.next_item(store, batch, "ann")
    for _ in range(5):
        clock.on(2)
        queue.open_item(store, batch, "ann", "r1-a")
    with store.read() as db:
        assert db.execute("SELECT count(*) FROM event_log").fetchone()[0] == 1


# ---- blind ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reveal", "submitted", "revealed", "blind", "can_reveal", "marks"),
    [
        (Reveal.AFTER_SUBMIT, "", "", True, False, False),
        (Reveal.AFTER_SUBMIT, "t", "", True, True, False),
        (Reveal.AFTER_SUBMIT, "t", "t", False, False, True),
        (Reveal.NEVER, "t", "t", True, False, False),
        (Reveal.OPEN, "", "", False, False, True),
    ],
)
def test_what_may_be_shown(reveal, submitted, revealed, blind, can_reveal, marks):
    rule = shown(reveal, submitted_at=submitted, revealed_at=revealed)
    assert {rule.judge, rule.agent, rule.tags, rule.others} == {not blind}
    assert (rule.blind, rule.can_reveal, rule.marks_revealed) == (blind, can_reveal, marks)


def test_reveal_only_after_submit_and_for_this_annotator_alone(store, clock):
    batch = batch_of_all(store, annotators_per_item=2).id
    for name in ("ann", "bob"):
        queue.next_item(store, batch, name)
        score(store, "r1-a", name, batch=batch)
    with pytest.raises(StoreError, match=r"got an item at work, expected a submitted one"):
        queue.reveal(store, batch, "ann", "r1-a", event="v0")
    queue.submit(store, batch, "ann", "r1-a", event="s1")
    queue.submit(store, batch, "bob", "r1-a", event="s2")
    assert queue.may_show(store, batch, "ann", "r1-a").can_reveal
    item = queue.reveal(store, batch, "ann", "r1-a", event="v1")
    assert not item.shown.blind
    assert item.shown.revealed_at == store.now()
    assert queue.may_show(store, batch, "bob", "r1-a").blind
    clock.on(60)
    assert queue.reveal(store, batch, "ann", "r1-a", event="v2").revealed_at == item.revealed_at
    opened = queue.reopen(store, batch, "ann", "r1-a", event="o1")
    assert opened.can_score
    assert opened.shown.marks_revealed


def test_a_batch_that_stays_blind_refuses_the_reveal(store):
    batch = batch_of_all(store, reveal=Reveal.NEVER).id
    queue.next_item(store, batch, "ann")
    score(store, "r1-a", "ann", batch=batch)
    queue.submit(store, batch, "ann", "r1-a", event="s")
    with pytest.raises(StoreError, match="a batch that stays blind"):
        queue.reveal(store, batch, "ann", "r1-a", event="v")


def test_seen_in_another_batch_is_blind_again_but_recorded(store):
    first = batch_of_all(store, reveal=Reveal.AFTER_SUBMIT).id
    second = batch_of_all(store, name="Second").id
    queue.next_item(store, first, "ann")
    score(store, "r1-a", "ann", batch=first)
    queue.submit(store, first, "ann", "r1-a", event="s")
    queue.reveal(store, first, "ann", "r1-a", event="v")
    item = queue.next_item(store, second, "ann")
    assert item.replan == "r1-a"
    assert item.shown.blind
    assert item.shown.marks_revealed


# ---- many at once --------------------------------------------------------------------------


def _work_through(path: str, batch: int, annotator: str) -> list[tuple[str, int]]:
    store = Store(path)
    got, after = [], ""
    while item := queue.next_item(store, batch, annotator, after=after):
        got.append((item.replan, item.slot))
        score(store, item.replan, annotator, 1.0, ["S1"], batch=batch)
        queue.submit(store, batch, annotator, item.replan, event=f"{annotator}/{item.replan}")
        after = item.replan
    return got


def _threads(path: str, batch: int, names: list[str]) -> list[tuple[str, int]]:
    with ThreadPoolExecutor(len(names)) as pool:
        return [
            got
            for part in pool.map(_work_through, [path] * 99, [batch] * 99, names)
            for got in part
        ]


def test_two_processes_with_25_threads_never_claim_the_same_slot(tmp_path: Path):
    store = make_store(tmp_path, items=60)
    store.clock = utc_now
    keys = tuple(f"r{n}-a" for n in range(1, 61))
    plan = BatchPlan("Race", replans=keys, dimensions=("S1",), annotators_per_item=3, overlap=0.5)
    batch = create_batch(store, plan)
    assert batch.slots == 60 + 2 * 30
    names = [[f"p{p}t{t}" for t in range(n)] for p, n in ((0, 13), (1, 12))]
    context = get_context("spawn")
    with context.Pool(2) as pool:
        parts = pool.starmap(_threads, [(str(store.path), batch.id, group) for group in names])
    got = [slot for part in parts for slot in part]
    assert len(got) == len(set(got)) == 120
    with store.read() as db:
        done = db.execute("SELECT count(*) FROM assignment WHERE state = 'submitted'").fetchone()
        most = db.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM assignment GROUP BY replan, annotator)"
        ).fetchone()
    assert (done[0], most[0]) == (120, 1)
