"""The score log: revisions, events sent twice, undo, replay, and the summary that follows."""

import pickle
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from annotations import score_log
from annotations.score_log import Summary, replay, summarise
from annotations.store import Store
from pararecover_core.errors import InputError, StaleScoreError, StoreError
from tests.store_data import Clock, answer, entry, instance, items, one_replan


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "p.db", clock=Clock())


def states(store: Store, replan: str) -> list[tuple[str, float | None, str]]:
    return [(score.dimension, score.value, score.note) for score in store.scores(replan)]


def test_an_acknowledgement_says_what_is_on_disk(store):
    replan = one_replan(store)
    saved = store.append([entry(replan, "S1", 0.5, note="hm"), entry(replan, "S2", 0.0)])
    assert [(one.dimension, one.revision, one.value, one.note) for one in saved] == [
        ("S1", 1, 0.5, "hm"),
        ("S2", 1, 0.0, ""),
    ]
    assert saved[0].at == "2030-01-02T12:00:02.000+00:00"
    assert states(store, replan) == [("S1", 0.5, "hm"), ("S2", 0.0, "")]
    log = store.history(replan)
    assert [(one.event, one.action, one.revealed, one.batch) for one in log] == [
        (f"{replan}-S1-human:ann-0", "score", False, None),
        (f"{replan}-S2-human:ann-0", "score", False, None),
    ]


def test_a_second_tab_is_refused_and_told_what_stands(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 0.5, event="tab 1")])
    with pytest.raises(StaleScoreError) as caught:
        store.append([entry(replan, "S1", 1.0, event="tab 2")])
    assert str(caught.value) == (
        f"S1 of replan {replan} by human:ann: got a change of revision 0, and revision 1 stands: "
        "0.5, at 2030-01-02T12:00:02.000+00:00, expected a change of the newest revision. "
        "Reload the item, then score it again."
    )
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    with pytest.raises(StaleScoreError, match="of revision 3, and nothing is scored yet"):
        store.append([entry(replan, "S2", 1.0, base=3)])
    assert states(store, replan) == [("S1", 0.5, "")]


def test_the_database_itself_refuses_a_revision_that_exists(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 0.5)])
    with pytest.raises(StaleScoreError, match=r"revision 1 stands: 0\.5"), store.write() as db:
        score_log.insert(db, entry(replan, "S1", 1.0, event="other"), "2030")


def test_one_stale_entry_keeps_the_whole_list_out(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 0.5)])
    with pytest.raises(StaleScoreError):
        store.append([entry(replan, "S2", 1.0), entry(replan, "S1", 1.0, event="stale")])
    assert states(store, replan) == [("S1", 0.5, "")]


def test_an_event_sent_twice_is_acknowledged_twice_and_stored_once(store):
    replan = one_replan(store)
    first, again = entry(replan, "S1", 0.5), entry(replan, "S3", 0.0)
    one = store.append([first])[0]
    listed = store.append([entry(replan, "S2", 1.0), first, again, again])
    assert listed[1] == one
    assert listed[2] == listed[3]
    assert [saved.dimension for saved in listed] == ["S2", "S1", "S3", "S3"]
    assert len(store.history(replan)) == 3
    # also when the score has moved on since
    store.append([entry(replan, "S1", 1.0, base=1)])
    assert store.append([first]) == [one]
    assert states(store, replan)[0] == ("S1", 1.0, "")


def test_an_event_id_stands_for_one_score(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", event="e")])
    with pytest.raises(StoreError, match=r"event e: got the event of .*/S1/human:ann, expected"):
        store.append([entry(replan, "S2", event="e")])


def test_values_that_a_sub_dimension_cannot_have(store):
    replan = one_replan(store)
    for value, dimension, action, message in (
        (0.75, "S1", "score", "S1: got 0.75, expected 1, 0.5 or 0"),
        (1.5, "E5", "score", "E5: got 1.5, expected a number from 0 to 1"),
        (float("nan"), "E5", "score", "E5: got nan, expected a number from 0 to 1"),
        (None, "S1", "score", "S1: got no value"),
        (1.0, "S1", "clear", "S1: got 1.0, expected no value with 'clear'"),
        (1.0, "S9", "score", "sub-dimension: got 'S9', expected one of S1, "),
    ):
        with pytest.raises(InputError, match=message.replace(".", r"\.")):
            store.append([entry(replan, dimension, value, action=action)])
    store.append([entry(replan, "E5", 0.33, scorer="program")])
    assert states(store, replan) == [("E5", 0.33, "")]


def test_a_score_of_an_unknown_replan_is_refused(store):
    with pytest.raises(StoreError, match="replan: got nokey, which is not in the database"):
        store.append([entry("nokey")])


def test_undo_appends_and_goes_back_step_by_step(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 1.0)])
    store.append([entry(replan, "S1", 0.5, base=1, note="why")])
    steps = []
    for base in (2, 3, 4):
        steps.append(store.undo(entry(replan, "S1", None, base=base, event=f"undo {base}")))
    assert [(step.value, step.note, step.revision) for step in steps[:2]] == [
        (1.0, "", 3),
        (None, "", 4),
    ]
    assert steps[2] is None  # nothing is left
    assert store.undo(entry(replan, "S1", None, base=2, event="undo 2")) == steps[0]  # sent twice
    assert [one.action for one in store.history(replan)] == ["score", "score", "undo", "undo"]
    # after a new score, undo goes back to what was undone before it
    store.append([entry(replan, "S1", 0.0, base=4)])
    assert store.undo(entry(replan, "S1", None, base=5, event="last")).value is None


def test_undo_of_a_stale_view_is_refused(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 1.0)])
    with pytest.raises(StaleScoreError):
        store.undo(entry(replan, "S1", None, base=0, event="u"))
    assert store.undo(entry(replan, "S2", None, base=0, event="v")) is None


def test_figures_of_a_replan():
    # people: S1 gold 1 (not the mean 0.25), S2 0.5; SI = (1 + 0.5 + S5 1) / 3 = 0.8333
    # judges: S1 mean of 0 and 0.5 = 0.25; SI = (0.25 + 1) / 2 = 0.625; D1 = 1; total 0.8125
    # gap: S1 |1 - 0.25| = 0.75, S2 has no judge
    scores = [
        ("S1", "human:ann", 0.5),
        ("S1", "human:bob", 0.0),
        ("S2", "human:ann", 0.5),
        ("S3", "human:cem", None),
        ("S1", "judge:m@1", 0.0),
        ("S1", "judge:n@1", 0.5),
        ("D1", "judge:m@1", 1.0),
    ]
    found = summarise(1, scores, {"S1": 1.0})
    assert found == Summary(
        si=pytest.approx(0.8333, abs=1e-4), dr=None, es=None, total=pytest.approx(2.5 / 3),
        judge_si=0.625, judge_dr=1.0, judge_es=None, judge_total=0.8125, gap=0.75,
        humans=2, judges=2,
    )  # fmt: skip
    assert summarise(1, []) == Summary()
    assert summarise(None, [("S1", "human:ann", 0.0)]).si == 0.0
    # E5 of the program counts once somebody scored in its group: (1 + 0.5) / 2
    computed = ("E5", "program", 0.5)
    assert summarise(1, [("E1", "human:ann", 1.0), computed]).es == 0.75
    assert summarise(1, [computed]) == Summary()


def test_replay_notices_a_hole(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 1.0)])
    store.append([entry(replan, "S1", 0.5, base=1)])
    log = store.history(replan)
    assert replay(log)[replan, "S1", "human:ann"].value == 0.5
    with pytest.raises(StoreError, match="got revision 2, expected 1"):
        replay(log[1:])


class LogMachine(RuleBasedStateMachine):
    """Any order of scores, notes, withdrawals, undos, repeats and stale writes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name) / "p.db", clock=Clock())
        self.events = count()
        self.sent: list = []
        self.model: dict = {}

    @initialize()
    def fill(self) -> None:
        one = instance()
        self.store.ingest(items(one, answer(agent="a"), answer(agent="b")))
        self.replans = [replan.key for replan in self.store.replans_of(one.key)]

    keys = st.tuples(
        st.integers(0, 1),
        st.sampled_from(["S1", "D2", "E5"]),
        st.sampled_from(["human:ann", "human:bob", "judge:m@1", "program"]),
    )

    def _next(self, key, value, action, note=""):
        replan, dimension, scorer = self.replans[key[0]], key[1], key[2]
        states = self.model.setdefault((replan, dimension, scorer), [(None, "")])
        return states, entry(
            *(replan, dimension, value),
            scorer=scorer,
            base=len(self._log((replan, dimension, scorer))),
            event=f"event {next(self.events)}",
            action=action,
            note=note,
        )

    def _log(self, key):
        return [one for one in self.store.history(key[0]) if one.key == key]

    @rule(key=keys, value=st.sampled_from([0.0, 0.5, 1.0]), note=st.text(max_size=3))
    def score(self, key, value, note):
        states, one = self._next(key, value, "score", note)
        states.append((value, note))
        self.sent.append((one, self.store.append([one])[0]))

    @rule(key=keys, note=st.sampled_from(["", "lone \ud83d"]))
    def clear(self, key, note):
        states, one = self._next(key, None, "clear", note)
        states.append((None, note))
        self.sent.append((one, self.store.append([one])[0]))

    @rule(key=keys)
    def undo(self, key):
        states, one = self._next(key, None, "undo")
        saved = self.store.undo(one)
        if len(states) == 1:
            assert saved is None
        else:
            states.pop()
            assert (saved.value, saved.note) == states[-1]

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data):
        one, saved = data.draw(st.sampled_from(self.sent))
        assert self.store.append([one]) == [saved]

    @rule(key=keys, off=st.sampled_from([-1, 1, 5]))
    def send_stale(self, key, off):
        _, one = self._next(key, 1.0, "score")
        stale = entry(
            *(one.replan, one.dimension, 1.0),
            scorer=one.scorer,
            base=max(one.base_revision + off, 0 if off > 0 else -1),
            event="stale",
        )
        with pytest.raises(StaleScoreError):
            self.store.append([stale])

    @invariant()
    def views_and_replay_agree(self):
        if not hasattr(self, "replans"):
            return
        for replan in self.replans:
            newest = replay(self.store.history(replan))
            current = {
                (score.replan, score.dimension, score.scorer): (score.value, score.note)
                for score in self.store.scores(replan)
            }
            assert current == {key: (one.value, one.note) for key, one in newest.items()}
            for key, state in current.items():
                assert state == self.model[key][-1]
            with self.store.read() as db:
                row = db.execute(
                    f"SELECT {', '.join(Summary._fields)} FROM replan_summary WHERE replan = ?",
                    (replan,),
                ).fetchone()
            scores = [(key[1], key[2], state[0]) for key, state in current.items()]
            assert Summary(*row) == pytest.approx(summarise(1, scores))

    def teardown(self):
        self.folder.cleanup()


def test_any_history_replays_to_what_the_views_say():
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=12,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
