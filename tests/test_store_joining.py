"""Which records rows join, what is refused, and that an import overwrites nobody's score."""

from pathlib import Path

import msgspec
import pytest

from annotations.store import Store
from pararecover_core.formats.items import (
    Answer,
    InstanceRef,
    Item,
    Mark,
    Place,
    Reject,
    ReplanRef,
)
from pararecover_core.literals import dumps, loads
from pararecover_core.plan import Plan
from pararecover_core.records import Replan, Round, Score, Source, Trajectory
from tests.store_data import Clock, answer, entry, instance, items, one_replan, plan_text


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "p.db", clock=Clock())


def mark(id="1", value=0.5, dimension="S1", scorer="human:ann", **fields):
    """A score whose row names the instance by id."""
    names = ("agent", "thought", "plan", "key")
    ref = {name: fields.pop(name) for name in names if name in fields}
    where = fields.pop("ref", InstanceRef(id=id))
    return Mark(ReplanRef(where, **ref), dimension, scorer, value, **fields)


def reasons(report):
    return [(reject.place.line, reject.got) for reject in report.rejects]


# Instances


def test_importing_twice_changes_nothing_and_says_so(store):
    rows = items(instance("1"), instance("2"), answer("1"), mark("1", agent="cook-1"))
    first, second = store.ingest(rows), store.ingest(rows)
    assert first.kinds == {"instance": 2, "replan": 1, "score": 1}
    assert second.kinds == {}
    assert second.known == {"instance": 2, "replan": 1, "score": 1}
    assert (second.rejects, second.levels, second.tags) == ([], {}, {})
    assert store.counts().scores == 1


def test_a_row_that_joins_nothing_is_listed_once_whatever_cells_it_has(store):
    def cell(line, dimension, id="7", value=0.5):
        return Item(Place("f.csv", line, f"{dimension}_model"), mark(id, value, dimension))

    store.ingest(items(instance("1"), answer("1")))
    found = store.ingest([cell(2, "S1"), cell(2, "S2"), cell(3, "S1"), cell(4, "S1", "1", 0.7)])
    assert [str(one.place) for one in found.rejects] == [
        "f.csv, line 2",
        "f.csv, line 3, column S1_model",
        "f.csv, line 4, column S1_model",
    ]
    assert found.rejects[0].got == "no instance with id 7 in the database"


def facts(store):
    """Of each instance what a filter sees, and how many answers and scores it has."""
    with store.read() as db:
        query = """
        SELECT i.query_id, i.level, i.source, i.round_gt,
          (SELECT group_concat(error_type) FROM instance_error WHERE instance = i.key),
          (SELECT count(*) FROM replan_summary AS r
           WHERE r.instance = i.key AND r.level = i.level AND r.source = i.source),
          (SELECT count(*) FROM score_log JOIN replan AS r ON r.key = replan
           WHERE r.instance = i.key),
          (SELECT count(*) FROM instance_text WHERE instance_text MATCH 'q1' AND rowid = i.n)
        FROM instance AS i ORDER BY i.n"""
        return [tuple(row) for row in db.execute(query)]


POOR = {"query_id": "", "level": 0, "source": Source.UNKNOWN}
RICH = {"tags": ("Type_Error",), "round_gt": 3}


@pytest.mark.parametrize("calls", [True, False])
def test_a_spreadsheet_before_its_instance_file_makes_no_second_instance(store, calls):
    bare = instance("1", **POOR)
    bare = bare if calls else msgspec.structs.replace(bare, observations=())
    store.ingest(items(bare, answer("1"), mark("1", value=1.0)))
    for _ in range(2):  # the file itself, and the same file again
        report = store.ingest(items(instance("1", **RICH)))
        assert (report.kinds, report.known) == ({}, {"instance": 1})
        assert facts(store) == [("q1", 1, "augmented", 3, "Type_Error", 1, 1, 1)]
    whole = store.instance(bare.key)
    assert whole.observations == instance("1").observations
    assert [score.value for score in store.scores(store.replans_of(bare.key)[0].key)] == [1.0]
    later = store.ingest(items(mark("1", value=0.5, dimension="S2")))
    assert later.kinds == {"score": 1}


def test_an_instance_that_says_less_is_the_one_that_is_here(store):
    store.ingest(items(instance("1", **RICH)))
    assert store.ingest(items(instance("1", **POOR))).known == {"instance": 1}
    assert facts(store) == [("q1", 1, "augmented", 3, "Type_Error", 0, 0, 1)]


@pytest.mark.parametrize(
    "other",
    [
        {"level": 2},
        {"source": Source.ROLLOUT},
        {"query_id": "q9"},
        {"query": "Bake two cakes"},
        {"plan": plan_text("mix", "bake", done=2)},
        {"id": "2", "query_id": ""},
    ],
)
def test_instances_that_differ_in_a_fact_stay_apart(store, other):
    more = {"query_id": ""} if "level" in other or "source" in other else {}
    given = instance(**{"id": "1", **more, **other})
    assert store.ingest(items(instance("1"), given)).kinds == {"instance": 2}
    assert store.ingest(items(given)).known == {"instance": 1}


def test_what_may_be_either_of_two_stays_apart(store):
    given = [instance("1", level=level) for level in (1, 2)]
    assert store.ingest(items(*given, instance("1", **POOR))).kinds == {"instance": 3}


def test_answers_follow_the_instance_that_was_here(store):
    bare, whole = instance("1", **POOR), instance("1")
    store.ingest(items(bare))
    own = Replan("r1", whole.key, "cook-1", "Stir.", Plan.parse(plan_text("mix")))
    assert store.ingest(items(whole, own)).kinds == {"replan": 1}
    assert [found.key for found in store.replans_of(bare.key)] == ["r1"]
    assert store.counts().instances == 1


def test_a_row_that_comes_twice_in_one_file_lands_once(store):
    report = store.ingest(items(instance("1"), instance("1")))
    assert (report.kinds, report.known) == ({"instance": 1}, {"instance": 1})


def test_more_instances_than_are_written_at_once(store):
    report = store.ingest(items(*(instance(str(number)) for number in range(600))))
    assert report.kinds == {"instance": 600}
    with store.read() as db:
        assert [row[0] for row in db.execute("SELECT n FROM instance")] == list(range(1, 601))


def test_an_unknown_id_says_what_to_import(store):
    report = store.ingest(items(answer("77"), mark("78")))
    assert str(report.rejects[0]) == (
        "f.jsonl, line 1: got no instance with id 77 in the database, expected one. "
        "Import the instance file first, then this file again."
    )
    assert reasons(report)[1] == (2, "no instance with id 78 in the database")
    assert store.counts().replans == 0


def test_the_whole_instance_of_a_row_serves_where_the_store_has_none(store):
    one = instance("5")
    report = store.ingest(items(answer("5", instance=one), answer("5", "cook-2", instance=one)))
    assert report.kinds == {"instance": 1, "replan": 2}
    assert report.levels == {1: 1}
    assert [replan.agent for replan in store.replans_of(one.key)] == ["cook-1", "cook-2"]


def test_an_id_in_two_files_is_narrowed_by_what_the_row_says(store):
    made = instance("5", level=1, source=Source.AUGMENTED, query="Make tea")
    rolled = instance("5", level=1, source=Source.ROLLOUT, query="Find a room", query_id="9")
    deep = instance("5", level=2, source=Source.ROLLOUT, query="Find a room", query_id="9")
    later = instance(
        "5", level=2, source=Source.ROLLOUT, query="Find a room", query_id="9",
        plan=plan_text("look", "book", done=2),
    )  # fmt: skip
    store.ingest(items(made, rolled, deep, later))

    def joined(**ref):
        report = store.ingest(items(answer(ref=InstanceRef(id="5", **ref), thought=str(ref))))
        return report

    for ref, key in (
        ({"source": "augmented"}, made.key),
        ({"query": " Make\n tea "}, made.key),
        ({"query_id": "q5"}, made.key),
        ({"level": 1, "source": "rollout"}, rolled.key),
        ({"level": 2, "plan": loads(plan_text("look", "book", done=2))}, later.key),
        ({"level": 2, "plan": dumps(loads(deep.plan.given)) + "\n"}, deep.key),
    ):
        assert joined(**ref).kinds == {"replan": 1}, ref
        assert [replan.thought for replan in store.replans_of(key)][-1] == str(ref)

    several = joined(level=2).rejects[0]
    assert several.got.startswith("id 5, which 2 instances have (level 2 rollout ")
    assert (several.expected, several.cure) == (
        "one",
        "Add a query or plan column: level and source are the same",
    )
    assert reasons(joined(query="Another"))[0][1] == (
        "no instance with id 5 and this query in the database"
    )
    assert "this plan in the database" in joined(plan=plan_text("x")).rejects[0].got


def test_a_row_without_id_is_joined_by_query(store):
    one = instance("1", query="Water the  plants\nplease")
    store.ingest(items(one))
    for ref in (InstanceRef(query="Water the plants please"), InstanceRef(query_id="q1")):
        assert not store.ingest(items(answer(ref=ref))).rejects
    report = store.ingest(items(answer(ref=InstanceRef(query="Water"))))
    assert reasons(report) == [(1, "no instance with this query in the database")]
    report = store.ingest(items(answer(ref=InstanceRef())))
    assert reasons(report) == [(1, "a row that names no instance")]


def test_of_several_instances_the_one_in_the_row_is_meant(store):
    one, other = instance("5", level=1), instance("5", level=2)
    store.ingest(items(one, other))
    row = answer(ref=InstanceRef(id="5"), instance=other)
    assert store.ingest(items(row)).kinds == {"replan": 1}
    assert len(store.replans_of(other.key)) == 1


# Replans


def test_a_score_joins_the_only_replan(store):
    replan = one_replan(store)
    assert store.ingest(items(mark())).kinds == {"score": 1}
    assert store.scores(replan)[0].value == 0.5
    store.ingest(items(answer(agent="cook-2", thought="Other")))
    report = store.ingest(items(mark(dimension="S2"), mark(dimension="S2", agent="cook-2")))
    assert reasons(report) == [(1, "an instance that 2 replans answer (of cook-1, cook-2)")]
    assert report.rejects[0].cure == "Add an agent column, or pass --agent"
    assert report.kinds == {"score": 1}


def test_a_score_without_any_replan_is_refused_and_leaves_nothing(store):
    store.ingest(items(instance("1")))
    report = store.ingest(items(mark(), mark(agent="cook-1"), mark(ref=InstanceRef(key="abc"))))
    assert reasons(report) == [
        (1, "a score, and no replan for its instance in the database"),
        (2, "a score, and no replan of cook-1 for its instance in the database"),
        (3, "a score, and no replan for its instance in the database"),
    ]
    assert store.counts().instances == 1  # no stub of abc


def test_a_score_of_another_agent_names_those_that_answered(store):
    one_replan(store)
    (refused,) = store.ingest(items(mark(agent="cook-9"))).rejects
    assert refused.got == "a score, and no replan of cook-9 for its instance in the database"
    assert (refused.expected, refused.cure) == ("one of cook-1", "Correct the agent, or --agent")


def test_a_score_with_thought_and_plan_joins_the_same_answer_of_any_agent(store):
    replan = one_replan(store)
    plan = dumps(loads(answer().plan))
    same = mark(thought=" Bake it\r\nnow", plan=plan)
    assert store.ingest(items(same)).kinds == {"score": 1}
    assert len(store.scores(replan)) == 1
    # other content, nobody named: a new replan of an unnamed agent
    report = store.ingest(items(mark(thought="Freeze it", plan=plan)))
    assert report.kinds == {"replan": 1, "score": 1}
    agents = [one.agent for one in store.replans_of(store.replan(replan).instance)]
    assert agents == ["cook-1", "unnamed"]


def test_names_are_kept_apart_and_the_unnamed_join_both_ways(store):
    one = instance("1")
    # the human sheet names nobody, the judge's names the agent: one replan
    store.ingest(items(one, answer(agent="")))
    judged = items(answer(agent="cook-9"), mark(agent="cook-9", thought="Bake it now", plan=None))
    report = store.ingest(judged)
    assert (report.kinds, report.known) == ({"score": 1}, {"replan": 1})
    assert [replan.agent for replan in store.replans_of(one.key)] == ["unnamed"]
    # the same words of two named agents are two replans
    other = instance("2")
    report = store.ingest(items(other, answer("2", "a"), answer("2", "b"), answer("2", "")))
    assert (report.kinds, report.known) == ({"instance": 1, "replan": 2}, {"replan": 1})
    marks = items(
        mark("2", agent="b", thought="Bake it now", plan=answer().plan),
        mark("2", thought="Bake it now", plan=answer().plan),
    )
    report = store.ingest(marks)
    assert report.kinds == {"score": 1}
    assert reasons(report) == [(2, "an instance that 2 replans answer (of a, b)")]


def test_a_row_with_only_a_thought_or_only_a_plan_is_told_by_that(store):
    replan = one_replan(store)
    rows = (
        mark(thought="Bake it now", dimension="S1"),
        mark(plan=answer().plan, dimension="S2"),
        mark(thought="", plan=answer().plan, dimension="S3"),
    )
    assert store.ingest(items(*rows)).kinds == {"score": 3}
    assert len(store.scores(replan)) == 3
    assert store.ingest(items(answer(plan=None))).known == {"replan": 1}


def test_an_empty_answer_is_a_replan_with_s5_zero(store):
    one = instance("1")
    rows = items(one, answer(), answer(thought="", plan=None), mark(agent="cook-1", thought=""))
    assert store.ingest(rows).kinds == {"instance": 1, "replan": 2, "score": 1}
    empty = store.replans_of(one.key)[1]
    assert (empty.thought, empty.plan.s5) == ("", 0)
    assert len(store.scores(empty.key)) == 1
    assert store.ingest(rows).known == {"instance": 1, "replan": 2, "score": 1}


def test_an_ambiguous_instance_is_settled_by_the_answer_itself(store):
    one, other = instance("5", level=1), instance("5", level=2)
    store.ingest(items(one, other, answer(ref=InstanceRef(id="5", level=2))))
    row = mark("5", thought="Bake it now", plan=answer().plan)
    assert store.ingest(items(row)).kinds == {"score": 1}
    report = store.ingest(items(mark("5"), mark("5", thought="New", plan="{}")))
    assert [got.split(" (")[0] for _, got in reasons(report)] == [
        "id 5, which 2 instances have"
    ] * 2


def test_whole_records_from_our_own_files(store):
    one = instance("1")
    replan = Replan("r1", one.key, "cook-1", "Hm", Plan.parse(plan_text("mix")))
    run = Trajectory("t1", "not yet here", "cook-1", (Round(one.plan),), False, "round limit")
    rows = items(replan, one, Score("r1", "S1", "human:ann", 1.0), run, Score("r2", "S1", "x", 1.0))
    report = store.ingest(rows)
    assert report.kinds == {"instance": 1, "replan": 1, "score": 1, "trajectory": 1}
    assert reasons(report) == [(5, "a score of replan r2, which is not in the database")]
    assert store.instance(one.key).query == "Bake a cake"
    assert store.counts().stubs == 1
    assert store.ingest(rows).known == {"instance": 1, "replan": 1, "score": 1, "trajectory": 1}


# Scores


def test_an_import_never_overwrites_what_a_person_scored(store):
    replan = one_replan(store)
    store.append([entry(replan, "S1", 0.5, note="hm")])  # at 2030-01-02T12:00:02
    report = store.ingest(items(mark(value=1.0)))
    assert str(report.rejects[0]) == (
        "f.jsonl, line 1: got 1 for S1, and human:ann already holds 0.5 with the note 'hm' since "
        "2030-01-02T12:00:02.000+00:00, expected the same score, or a newer one with its time. "
        "Add an 'at' column with the newer time, or change the score in the app."
    )
    for older in ("2029-12-31T23:00:00Z", "2030-01-02T13:00:00+02:00", "yesterday"):
        assert len(store.ingest(items(mark(value=1.0, at=older))).rejects) == 1
    assert store.ingest(items(mark(value=0.5, at="2029-01-01"))).known == {"score": 1}
    assert store.scores(replan)[0].value == 0.5

    report = store.ingest(items(mark(value=1.0, at="2030-01-02T12:00:03Z")))
    assert report.kinds == {"score": 1}
    assert [(one.value, one.action) for one in store.history(replan)] == [
        (0.5, "score"),
        (1.0, "import"),
    ]
    # what an old export says is in the history: nothing to do
    old = mark(value=0.5, note="hm", at="2030-01-02T12:00:02.000+00:00")
    assert store.ingest(items(old)).known == {"score": 1}


def test_a_withdrawn_score_does_not_come_back_by_an_old_file(store):
    replan = one_replan(store)
    store.ingest(items(mark(value=1.0, at="2029-01-01T00:00:00Z")))
    store.append([entry(replan, "S1", None, base=1, action="clear")])
    assert store.ingest(items(mark(value=1.0, at="2029-01-01T00:00:00Z"))).known == {"score": 1}
    assert "already holds no score" in store.ingest(items(mark(value=1.0))).rejects[0].got
    assert store.scores(replan)[0].value is None


def test_a_note_may_be_added_and_is_not_replaced(store):
    replan = one_replan(store)
    store.ingest(items(mark(value=0.5)))
    assert store.ingest(items(mark(value=0.5, note="because"))).kinds == {"score": 1}
    assert store.ingest(items(mark(value=0.5))).known == {"score": 1}
    assert len(store.ingest(items(mark(value=0.5, note="other"))).rejects) == 1
    assert store.scores(replan)[0].note == "because"


def test_two_scores_of_one_cell_in_one_file(store):
    one_replan(store)
    report = store.ingest(items(mark(value=0.5), mark(value=0.5), mark(value=1.0)))
    assert (report.kinds, report.known) == ({"score": 1}, {"score": 1})
    assert reasons(report)[0][0] == 3


def test_values_and_sub_dimensions_are_checked(store):
    one_replan(store)
    report = store.ingest(items(mark(value=0.7), mark(dimension="X1"), mark(value=None)))
    assert reasons(report) == [(1, "S1 0.7"), (2, "sub-dimension 'X1'")]
    assert report.known == {"score": 1}  # no value and no note: nothing to keep


def test_an_import_carries_time_note_reveal_and_the_rest(store):
    replan = one_replan(store)
    given = mark(note="n\ud83d", at="2029-01-01T00:00:00+00:00", rubric="1.0",
                 extra={"revealed": True, "cost": 2})  # fmt: skip
    store.ingest(items(given))
    score = store.scores(replan)[0]
    assert (score.note, score.at, score.rubric) == ("n\ud83d", "2029-01-01T00:00:00+00:00", "1.0")
    assert score.extra == {"cost": 2, "revision": 1, "revealed": True}
    assert next(iter(store.score_rows())).revealed


def test_the_summary_follows_imports(store):
    replan = one_replan(store)
    store.ingest(items(mark(value=1.0), mark(value=0.0, scorer="judge:m@1", note="bad")))
    with store.read() as db:
        row = db.execute("SELECT * FROM replan_summary WHERE replan = ?", (replan,)).fetchone()
    # S5 = 1: (1 + 1) / 2 and (0 + 1) / 2
    assert (row["si"], row["judge_si"], row["gap"]) == (1.0, 0.5, 1.0)
    assert (row["humans"], row["judges"]) == (1, 1)


# What cannot be kept


def test_a_record_that_cannot_be_kept_is_listed_and_the_rest_lands(store):
    deep = None
    for _ in range(5_000):
        deep = [deep]
    bad = instance("2", extra={"deep": deep})
    huge = instance("4", round_gt=10**30)
    report = store.ingest(items(instance("1"), bad, instance("3"), huge, answer("1")))
    assert report.kinds == {"instance": 2, "replan": 1}
    assert reasons(report) == [
        (2, "nested too deep to be kept"),
        (4, "round_gt is larger than can be kept"),
    ]
    with store.read() as db:
        assert db.execute("SELECT COUNT(*) FROM instance_body").fetchone()[0] == 2


def test_a_row_whose_answer_cannot_be_kept_brings_no_instance(store):
    deep = None
    for _ in range(5_000):
        deep = [deep]
    report = store.ingest(items(answer("9", instance=instance("9"), extra={"deep": deep})))
    assert reasons(report) == [(1, "nested too deep to be kept")]
    assert report.kinds == {}
    assert store.counts().instances == 0


def test_rejects_of_the_reader_are_passed_on(store):
    reject = Reject(Place("f.csv", 3, "S1"), "0.75", "1, 0.5 or 0", "Correct the cell")
    report = store.ingest([Item(reject.place, reject)])
    assert report.rejects == [reject]
    assert report.landed == 0


def test_a_reader_that_breaks_off_leaves_nothing(store):
    def broken():
        yield from items(instance("1"), answer("1"))
        raise OSError("the stick was pulled")

    with pytest.raises(OSError, match="pulled"):
        store.ingest(broken())
    assert store.counts().instances == 0


def test_progress_counts_items(store):
    seen = []
    store.ingest(items(*(instance(str(number)) for number in range(300))), progress=seen.append)
    assert seen == [256, 300]
    assert isinstance(answer(), Answer)


@pytest.mark.parametrize(
    ("other", "cure"),
    [
        ({"level": 2}, "Add a level or source column, or pass --level or --source"),
        (
            {"query": "Fry an egg", "query_id": "q2"},
            "Add a query or plan column: level and source are the same",
        ),
    ],
)
def test_the_cure_for_an_id_of_two_instances_tells_them_apart(store, other, cure):
    store.ingest(items(instance("1"), instance(**{"id": "1", **other})))
    (reject,) = store.ingest(items(answer("1"))).rejects
    assert reject.cure == cure
