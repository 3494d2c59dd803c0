"""Pairing two sides' scores: the gold rule, gaps, filters, and a file against the store."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotations.pairs import (
    Selection,
    choices,
    judge_alone,
    load,
    load_shared,
    names,
    state,
    with_notes,
)
from annotations.store import ScoreEntry, Store
from pararecover_core.agreement import measure
from pararecover_core.errors import InputError
from pararecover_core.formats.items import InstanceRef, Item, Mark, Place, Reject, ReplanRef
from pararecover_core.pairing import (
    AFTER_REVEAL,
    DISAGREE,
    GOLD,
    NO_HUMAN,
    NO_JUDGE,
    WITHDRAWN,
    Cell,
    Coverage,
    gold_score,
    pair,
)
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Score, Source
from pararecover_core.score_files import file_cells, file_scores

ANN, BEN, JUDGE = "human:Ann", "human:Ben", "judge:m@p1"


def _score(scorer, value, *, replan="r1", dimension="D3", note="", revealed=False):
    extra = {"revealed": True} if revealed else {}
    return Score(replan, dimension, scorer, value, note, extra=extra)


def _one(scores, **options):
    cells = pair(scores, judge=JUDGE, **options)
    assert len(cells) == 1
    return cells[0]


def test_the_only_annotator_counts():
    cell = _one([_score(ANN, 0.5, note="half"), _score(JUDGE, 1.0, note="why")])
    assert (cell.human, cell.judge, cell.gap) == (0.5, 1.0, 0.5)
    assert (cell.human_note, cell.judge_note) == ("half", "why")
    assert cell.people == (("Ann", 0.5),)


def test_agreed_score_counts_and_disagreement_does_not():
    agreed = [_score(ANN, 1.0), _score(BEN, 1.0), _score(JUDGE, 1.0)]
    assert _one(agreed).human == 1.0
    apart = [_score(ANN, 1.0), _score(BEN, 0.0), _score(JUDGE, 1.0)]
    for order in (apart, apart[::-1]):
        cell = _one(order)
        assert (cell.human, cell.human_gap) == (None, DISAGREE)  # no mean, no first come
        assert len(cell.people) == 2


def test_adjudicated_score_wins():
    apart = [_score(ANN, 1.0), _score(BEN, 0.0), _score(JUDGE, 1.0)]
    assert _one(apart, gold={("r1", "D3"): 0.0}).human == 0.0
    assert _one(apart[2:], gold={("r1", "D3"): 0.5}).human == 0.5


def test_gaps_say_why():
    assert _one([_score(ANN, 1.0)]).judge_gap == NO_JUDGE
    assert _one([_score(JUDGE, 1.0)]).human_gap == NO_HUMAN
    assert _one([_score(ANN, None), _score(JUDGE, 1.0)]).human_gap == WITHDRAWN
    failed = [_score(ANN, 1.0), _score(JUDGE, None, note="unparsable: no JSON in the reply")]
    assert _one(failed).judge_gap == "unparsable"
    assert _one([_score(ANN, 1.0), _score(JUDGE, None)]).judge_gap == WITHDRAWN
    noted = [_score(ANN, None, note="see later"), _score(JUDGE, 1.0)]
    assert _one(noted).human_gap == "a note without a score"


def test_scores_after_the_reveal_are_left_out_unless_asked_for():
    scores = [_score(ANN, 1.0, revealed=True), _score(JUDGE, 1.0)]
    cell = _one(scores)
    assert (cell.human, cell.human_gap, cell.people) == (None, AFTER_REVEAL, ())
    assert _one(scores, revealed=True).human == 1.0
    both = [*scores, _score(BEN, 0.0)]
    assert _one(both).human == 0.0  # only Ben scored blind


def test_one_person_as_the_human_side():
    scores = [_score(ANN, 1.0), _score(BEN, 0.0), _score(JUDGE, 1.0)]
    assert _one(scores, human=BEN).human == 0.0
    assert pair([_score(ANN, 1.0)], human=BEN, judge=JUDGE) == []  # nobody was asked


def test_person_with_person():
    scores = [_score(ANN, 1.0), _score(BEN, 0.0), _score(JUDGE, 1.0)]
    (cell,) = pair(scores, human=ANN, judge=BEN)
    assert (cell.human, cell.judge) == (1.0, 0.0)
    (cell,) = pair(scores, human=GOLD, judge=BEN)
    assert (cell.human, cell.judge) == (1.0, 0.0)  # Ben has no say in the gold score here


def test_wanted_cells_are_counted_though_nobody_scored_them():
    (cell,) = pair([], judge=JUDGE, wanted=[("r1", "D3"), ("r1", "S5")])
    assert (cell.human_gap, cell.judge_gap) == (NO_HUMAN, NO_JUDGE)


@given(st.permutations([_score(ANN, 1.0), _score(BEN, 0.5), _score("human:Cy", 1.0)]))
def test_gold_does_not_depend_on_order(people):
    assert gold_score(people).value is None
    assert gold_score(people, 0.5).value == 0.5


def test_coverage_adds_up():
    cells = [Cell("a", "D1", 1, None, judge_gap="x"), Cell("b", "D1", None, None)]
    total = Coverage.of(cells) + Coverage.of(cells[:1])
    assert (total.only_human, total.neither, total.cells) == (2, 1, 3)
    assert total.judge_gaps == {"x": 2, NO_JUDGE: 1}


# Files


def _mark(line, dimension, scorer, value, *, column="", file="s.xlsx", extra=None, **ref):
    ref = ReplanRef(InstanceRef(**ref))
    place = Place(file, line, column)
    return Item(place, Mark(ref, dimension, scorer, value, extra=extra or {}))


def _file_cells(items, **options):
    return file_cells(file_scores(items), **options)


def test_wide_rows_without_any_name_are_samples():
    items = [
        _mark(2, "D1", ANN, 1.0), _mark(2, "D1", JUDGE, 1.0),
        _mark(3, "D1", ANN, 1.0), _mark(3, "D1", JUDGE, 0.5),
    ]  # fmt: skip
    cells = _file_cells(items)
    assert [(cell.human, cell.judge) for cell in cells] == [(1.0, 1.0), (1.0, 0.5)]


def test_long_form_rows_are_joined_by_what_names_the_replan():
    items = [
        _mark(2, "D1", ANN, 1.0, id="7"),
        _mark(3, "D1", JUDGE, 0.5, id="7"),
        _mark(4, "D1", JUDGE, 0.0, id="8"),
    ]
    cells = _file_cells(items)
    assert [(cell.human, cell.judge) for cell in cells] == [(1.0, 0.5), (None, 0.0)]


def test_wide_rows_that_repeat_a_name_stay_apart():
    """Two agents' answers under one id, the agent not named: two samples, nothing overwritten."""
    items = [
        _mark(line, "D1", scorer, value, id="7")
        for line, human, judge in ((2, 1.0, 1.0), (3, 0.0, 0.5))
        for scorer, value in ((ANN, human), (JUDGE, judge))
    ]
    cells = _file_cells(items)
    assert [(cell.human, cell.judge) for cell in cells] == [(1.0, 1.0), (0.0, 0.5)]


def test_unreadable_cells_are_counted_not_lost():
    items = [
        _mark(2, "D1", ANN, 1.0, column="D1_human"),
        _mark(2, "D1", JUDGE, 1.0, column="D1_model"),
        _mark(3, "D1", ANN, 1.0, column="D1_human"),
        Item(
            Place("s.xlsx", 3, "D1_model"),
            Reject(Place("s.xlsx", 3, "D1_model"), "0.75", "1, 0.5 or 0", "Correct it"),
        ),
    ]
    coverage = measure(_file_cells(items)).overall.coverage
    assert (coverage.both, coverage.only_human) == (1, 1)
    assert coverage.judge_gaps == {"unreadable score in the file": 1}


def test_file_sides_that_cannot_be_chosen_say_so():
    items = [_mark(2, "D1", ANN, 1.0), _mark(2, "D1", JUDGE, 1.0), _mark(2, "D1", "judge:x@y", 1)]
    with pytest.raises(InputError, match=r"judge side: got 2 scorers, expected one of judge:m@p1"):
        _file_cells(items)
    assert len(_file_cells(items, judge="x@y")) == 1
    with pytest.raises(InputError, match=r"human side: got 'Zoe', expected one of human:Ann"):
        _file_cells(items, human="Zoe", judge="x@y")
    with pytest.raises(InputError, match=r"judge side: got no such scores"):
        _file_cells(items[:1])


# Store


def _add_instance(key, level, tag):
    record = Instance(
        key, f"file-{key}", "q", level, Source.AUGMENTED, "query", (), Plan.parse(None), (), (tag,)
    )
    return Item(Place("x"), record)


@pytest.fixture
def store(tmp_path):
    """Two instances with two replans each; Ann, Ben and a judge scored some."""
    store = Store(tmp_path / "s.db")
    items = [_add_instance("i1", 1, "Serial_Error"), _add_instance("i2", 2, "Type_Error")]
    for instance in ("i1", "i2"):
        for agent in ("a", "b"):
            replan = Replan(f"{instance}{agent}", instance, agent, "why", Plan.parse(None))
            items.append(Item(Place("x"), replan))
    report = store.ingest(items)
    assert not report.rejects
    given = [
        ("i1a", ANN, 1.0), ("i1a", BEN, 0.5), ("i1a", JUDGE, 1.0),
        ("i1b", ANN, 1.0), ("i1b", JUDGE, 0.5),
        ("i2a", ANN, 0.0), ("i2a", BEN, 0.0), ("i2a", JUDGE, 0.0),
        ("i2b", JUDGE, 1.0),
    ]  # fmt: skip
    _append(store, *[(replan, scorer, value, 0, False) for replan, scorer, value in given])
    return store


def _append(store, *entries):
    store.append(
        [
            ScoreEntry(
                f"{replan}-{scorer}-{base}", replan, "D3", scorer, value,
                note=f"note of {scorer}", base_revision=base, revealed=revealed,
                action="clear" if value is None else "score",
            )
            for replan, scorer, value, base, revealed in entries
        ]
    )  # fmt: skip


def _by_sample(cells):
    return {cell.sample: (cell.human, cell.judge) for cell in cells}


def test_store_pairs(store):
    cells = load(store, Selection(judge=JUDGE))
    assert _by_sample(cells) == {
        "i1a": (None, 1.0),
        "i1b": (1.0, 0.5),
        "i2a": (0.0, 0.0),
        "i2b": (None, 1.0),
    }
    coverage = Coverage.of(cells)
    assert coverage.human_gaps == {DISAGREE: 1, NO_HUMAN: 1}


def test_store_filters(store):
    def samples(**options):
        return sorted(_by_sample(load(store, Selection(judge=JUDGE, **options))))

    assert samples(level=2) == ["i2a", "i2b"]
    assert samples(agent="b") == ["i1b", "i2b"]
    assert samples(error_type="Serial_Error") == ["i1a", "i1b"]
    assert samples(error_type="Serial_Error", agent="a") == ["i1a"]
    assert samples(human=BEN, level=1) == ["i1a", "i1b"]


def _same_figures(store, **options):
    selection = Selection(**{"judge": JUDGE} | options)
    every, shared = load(store, selection), load_shared(store, selection)
    found = measure(shared.cells, resamples=20, alone=shared.alone)
    whole = measure(every, resamples=20)
    assert msgspec.json.encode(found) == msgspec.json.encode(whole)  # undefined ones are null
    return shared


def test_what_the_judge_alone_scored_is_counted_and_figures_are_the_same(store):
    shared = _same_figures(store)
    assert sorted(_by_sample(shared.cells)) == ["i1a", "i1b", "i2a"]  # nobody scored i2b
    assert shared.alone == {"D3": 1}
    assert _same_figures(store, agent="a").alone == {}
    assert _same_figures(store, human=BEN, level=2).alone == {"D3": 1}
    assert _same_figures(store, human=ANN, judge=BEN).alone == {}
    assert _same_figures(store, judge="").alone == {}
    others = judge_alone(store, Selection(judge=JUDGE))
    assert [(cell.sample, cell.judge, cell.human_gap) for cell in others] == [
        ("i2b", 1.0, NO_HUMAN)
    ]


def test_scored_again_withdrawn_and_sealed_cells_are_not_counted_alone(store):
    _append(store, ("i2b", JUDGE, 0.5, 1, False))
    assert _same_figures(store).alone == {"D3": 1}  # scored twice, one cell
    _append(store, ("i2b", JUDGE, None, 2, False))
    shared = _same_figures(store)
    assert (shared.alone, _by_sample(shared.cells)["i2b"]) == ({}, (None, None))
    _append(store, ("i2b", JUDGE, 1.0, 3, False))
    with store.write() as db:
        db.execute(
            "INSERT INTO gold (event, replan, dimension, revision, value, adjudicator, at) "
            "VALUES ('g', 'i2b', 'D3', 1, 0.5, 'Cy', '2026-01-01')"
        )
    assert _by_sample(_same_figures(store).cells)["i2b"] == (0.5, 1.0)


def test_people_with_people(store):
    cells = load(store, Selection(human=ANN, judge=BEN))
    assert _by_sample(cells) == {"i1a": (1.0, 0.5), "i1b": (1.0, None), "i2a": (0.0, 0.0)}


def test_newest_score_counts_and_before_the_reveal_by_default(store):
    before = state(store)
    _append(store, ("i1b", ANN, 0.0, 1, False))
    assert state(store) != before
    assert _by_sample(load(store, Selection(judge=JUDGE)))["i1b"] == (0.0, 0.5)
    _append(store, ("i1b", ANN, 0.5, 2, True))
    assert _by_sample(load(store, Selection(judge=JUDGE)))["i1b"] == (0.0, 0.5)
    with_revealed = load(store, Selection(judge=JUDGE, revealed=True))
    assert _by_sample(with_revealed)["i1b"] == (0.5, 0.5)


def test_adjudicated_and_batch(store):
    with store.write() as db:
        db.execute(
            "INSERT INTO gold (event, replan, dimension, revision, value, adjudicator, at) "
            "VALUES ('g', 'i1a', 'D3', 1, 0.5, 'Cy', '2026-01-01')"
        )
        db.execute(
            "INSERT INTO batch (id, name, created, dimensions) VALUES (1, 'b', '', ?)",
            ('["D3", "S1"]',),
        )
        db.execute("INSERT INTO batch_item (batch, replan, position) VALUES (1, 'i1a', 1)")
        db.execute("INSERT INTO batch_item (batch, replan, position) VALUES (1, 'i2b', 2)")
    cells = load(store, Selection(judge=JUDGE, batch=1))
    assert {(c.sample, c.dimension): (c.human, c.judge) for c in cells} == {
        ("i1a", "D3"): (0.5, 1.0),
        ("i1a", "S1"): (None, None),
        ("i2b", "D3"): (None, 1.0),
        ("i2b", "S1"): (None, None),
    }
    assert Coverage.of(cells).neither == 2


def test_choices_names_and_notes(store):
    found = choices(store)
    assert found.people == [(ANN, 3), (BEN, 2)]
    assert found.judges == [(JUDGE, 4)]
    assert (found.levels, found.agents) == ([1, 2], ["a", "b"])
    assert found.error_types == ["Serial_Error", "Type_Error"]
    assert names(store, ["i2b"])["i2b"] == ("file-i2", "q", 2, "b")
    (cell,) = with_notes(store, load(store, Selection(judge=JUDGE, level=2, agent="a")), JUDGE)
    assert cell.judge_note == f"note of {JUDGE}"
    assert cell.human_note == f"note of {ANN}; note of {BEN}"


def test_empty_store(tmp_path):
    store = Store(tmp_path / "empty.db")
    assert choices(store).people == []
    assert load(store, Selection(judge=JUDGE)) == []


def test_a_file_gives_the_numbers_of_the_store(store):
    """The store's own scores as a long form: same figures, same coverage, same intervals."""
    items = []
    for line, row in enumerate(store.score_rows(), start=2):
        ref = ReplanRef(InstanceRef(key=row.instance, id=row.id), key=row.replan)
        items.append(Item(Place("f.csv", line), Mark(ref, row.dimension, row.scorer, row.score)))
    ours = measure(load(store, Selection(judge=JUDGE)))
    theirs = measure(_file_cells(items))
    assert msgspec.json.encode(theirs.as_data()) == msgspec.json.encode(ours.as_data())
