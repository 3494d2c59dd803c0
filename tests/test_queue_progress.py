import pytest

from annotations import queue
from annotations.progress import (
    ItemTime,
    Moment,
    batch_progress,
    flags,
    progress,
    reading_seconds,
    state,
    words,
    work,
)
from pararecover_core.plan import Plan
from tests.queue_data import Clock, batch_of_all, fill, instance, make_store, replan, score


def test_gaps_belong_to_the_item_and_long_ones_are_idle():
    spent = work(
        [
            Moment(0, "a", "open"),
            Moment(20, "a", "score"),
            Moment(30, "a", "submit"),
            Moment(33, "b", "open"),  # 3 s on a after the submit
            Moment(333, "b", "score"),  # 300 s: idle
            Moment(343, "b", "submit"),
        ]
    )
    assert spent.items == {"a": ItemTime(33, 33), "b": ItemTime(10, 310)}
    assert (spent.active, spent.idle) == (43, 300)
    assert spent.median_seconds == (33 + 10) / 2
    assert spent.pace_per_hour == pytest.approx(2 / 43 * 3600)


def test_a_gap_of_exactly_two_minutes_is_work():
    spent = work([Moment(0, "a", "open"), Moment(120, "a", "submit")])
    assert spent.items["a"] == ItemTime(120, 120)


def test_nothing_done_has_no_pace():
    assert work([]).median_seconds is None
    assert work([]).pace_per_hour is None
    lone = work([Moment(5, "a", "submit")])
    assert lone.items == {"a": ItemTime(0, 0)}
    assert lone.pace_per_hour is None


def test_moments_in_any_order_and_submits_by_the_last_one():
    spent = work([Moment(9, "a", "submit"), Moment(0, "a", "submit"), Moment(5, "b", "submit")])
    assert spent.submitted == ("b", "a")


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("two words", 2), ("node_1 failed: 3.5", 5), ("查询天气", 4), ("查a b", 3)],
)
def test_words(text, count):
    assert words(text) == count


def test_reading_time_counts_names_and_values_of_the_plan():
    plan = Plan.parse(
        {"tasks": [{"id": "1", "name": "find", "para": {"city": "Lleida"}, "dep": []}]}
    )
    # 2 + 6 + 2 words at 10 a second
    assert reading_seconds("find it", "I look it up in Lleida", plan) == pytest.approx(1.0)


def test_an_unparsable_plan_is_read_as_text():
    assert reading_seconds("", "", Plan.parse("no plan at all")) == pytest.approx(0.4)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    return make_store(tmp_path, clock=clock)


def _do(store, clock, batch, annotator, seconds, after=""):
    item = queue.next_item(store, batch, annotator, after=after)
    clock.on(seconds)
    score(store, item.replan, annotator, batch=batch)
    queue.submit(store, batch, annotator, item.replan, event=f"{annotator}{item.replan}")
    return item.replan


def test_progress_of_mine_and_of_the_batch(store, clock):
    batch = batch_of_all(store, annotators_per_item=2).id
    after = _do(store, clock, batch, "ann", 60)
    _do(store, clock, batch, "ann", 30, after)
    _do(store, clock, batch, "bob", 10)
    found = progress(store, batch, "ann")
    assert (found.mine_done, found.mine_total) == (2, 4)
    assert (found.batch_done, found.batch_total) == (3, 8)
    assert found.median_seconds == 45
    assert found.pace_per_hour == pytest.approx(2 / 90 * 3600)
    assert (found.active_seconds, found.idle_seconds) == (90, 0)
    assert found.too_fast is None


def test_what_others_took_goes_off_my_total(store, clock):
    batch = batch_of_all(store).id
    _do(store, clock, batch, "bob", 10)
    assert progress(store, batch, "ann").mine_total == 3


def test_nothing_done_yet(store):
    batch = batch_of_all(store).id
    found = progress(store, batch, "ann")
    assert (found.mine_done, found.mine_total, found.batch_total) == (0, 4, 4)
    assert found.median_seconds is None


def test_faster_than_reading_is_said_gently(tmp_path, clock):
    store = make_store(tmp_path, items=0, clock=clock)
    fill(store, [instance(1), replan(1, thought="word " * 296)])
    # 296 words and 2 of the query ("query 1") and 2 of the plan: 300 words, 30 s.
    batch = batch_of_all(store, items=1).id
    _do(store, clock, batch, "ann", 4)
    warning = progress(store, batch, "ann").too_fast
    assert (warning.replan, warning.seconds) == ("r1-a", 4)
    assert warning.needed == pytest.approx(30.1, abs=0.2)
    assert str(warning).startswith(
        "Your last item took 4 s; its query, thought and plan take about 30 s to read"
    )


def test_idle_time_with_the_item_counts_as_reading(tmp_path, clock):
    store = make_store(tmp_path, items=0, clock=clock)
    fill(store, [instance(1), replan(1, thought="word " * 296)])
    batch = batch_of_all(store, items=1).id
    _do(store, clock, batch, "ann", 500)
    found = progress(store, batch, "ann")
    assert found.too_fast is None
    assert found.idle_seconds == 500


def test_the_state_changes_with_claims_scores_and_submits(store, clock):
    batch = batch_of_all(store).id
    seen = [state(store)]
    queue.next_item(store, batch, "ann")
    seen.append(state(store))
    score(store, "r1-a", "ann", batch=batch)
    seen.append(state(store))
    queue.submit(store, batch, "ann", "r1-a", event="s")
    seen.append(state(store))
    assert len(set(seen)) == 4
    assert state(store) == seen[-1]


def test_overview_of_a_batch(store, clock):
    batch = batch_of_all(store, annotators_per_item=2).id
    after = _do(store, clock, batch, "ann", 60)
    queue.next_item(store, batch, "ann", after=after)
    queue.skip(store, batch, "ann", "r2-a", event="k")
    queue.next_item(store, batch, "bob")
    queue.flag(store, batch, "bob", "r1-a", event="f", note="two goals")
    ann, bob = batch_progress(store, batch)
    assert (ann.annotator, ann.done, ann.open, ann.skipped, ann.flagged) == ("ann", 1, 1, 1, 0)
    assert (bob.annotator, bob.done, bob.open, bob.skipped, bob.flagged) == ("bob", 0, 1, 0, 1)
    assert ann.median_seconds == 60
    assert bob.median_seconds is None
    assert ann.last_seen == store.now()
    (raised,) = flags(store, batch)
    assert (raised.replan, raised.annotator, raised.note) == ("r1-a", "bob", "two goals")
    clock.on(3601)
    assert queue.release_stale(store, batch) == 2
    ann, bob = batch_progress(store, batch)
    assert (ann.open, ann.released, bob.open, bob.released) == (0, 1, 0, 1)
