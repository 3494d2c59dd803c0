"""Browsing: filters, order, pages, facets, blindness, links, rounds; expected rows by hand."""

import contextlib
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotations import browse, queue, rounds
from annotations.batches import BatchPlan, Reveal, create_batch
from annotations.search import (
    OTHER,
    Filter,
    Sort,
    facets,
    find,
    labels_of,
    search,
    terms,
)
from annotations.search_index import indexed, match_text
from annotations.search_links import from_query, to_query
from annotations.search_table import table
from annotations.store import ScoreEntry, Store
from pararecover_core.formats.items import Item, Place
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Round, Source, Tool, ToolCall, Trajectory
from pararecover_core.rubric import JUDGED
from pararecover_core.taxonomy import ErrorType


def plan(*tasks):
    return Plan.parse(
        {
            "tasks": [
                {"id": id, "name": name, "para": {}, "dep": list(dep), "status": done}
                for id, name, dep, done in tasks
            ]
        }
    )


STEPS = (("1", "find_depot", (), True), ("2", "rail_route", ("1",), False))


def instance(n, *, level=1, source=Source.ROLLOUT, query="", tags=(), tasks=STEPS, query_id=None):
    return Instance(
        f"i{n}",
        str(n),
        query_id if query_id is not None else f"q{n}",
        level,
        source,
        query or f"query {n}",
        (Tool("find_depot"), Tool("rail_route")),
        plan(*tasks),
        (ToolCall("rail_route", {}, "Error: no such date", "2"),),
        tags,
        round_gt=3,
    )


def replan(n, agent="agent-a", thought="a thought", tasks=STEPS):
    return Replan(f"r{n}-{agent}", f"i{n}", agent, thought, plan(*tasks))


def fill(store, *records):
    report = store.ingest(Item(Place("f", at), one) for at, one in enumerate(records, 1))
    assert not report.rejects


def score(store, replan_key, scorer, value, dimensions=JUDGED):
    with store.read() as db:
        events = db.execute("SELECT COUNT(*) FROM score_log").fetchone()[0]
    store.append(
        [
            ScoreEntry(f"e{events}-{d}", replan_key, d, scorer, value, base_revision=0)
            for d in dimensions
        ]
    )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s.db")
    fill(
        store,
        instance(1, tags=("Type_Error",), query="Apples from Lleida to Lyon"),
        instance(2, level=2, tags=("Type_Error", "Null_Error"), query="帮我规划去里昂的旅行"),
        instance(3, source=Source.AUGMENTED, tags=("异常应对错误",), query="Book a room"),
        replan(1),
        replan(1, "agent-b", "The rail_route call failed because of 日期格式错误"),
        replan(2, tasks=(("1", "x", ("9",), False),)),
    )
    return store


def keys(store, wanted=Filter(), sort=Sort(), **options):  # noqa: B008
    return [row.key for row in search(store, wanted, sort, **options).rows]


class TestFilter:
    def test_everything_has_a_row_for_each_answer_and_each_instance_without_one(self, store):
        assert keys(store) == ["r1-agent-a", "r1-agent-b", "r2-agent-a", "i3"]

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (Filter(levels=(2,)), ["r2-agent-a"]),
            (Filter(sources=("augmented",)), ["i3"]),
            (Filter(agents=("agent-b",)), ["r1-agent-b"]),
            (Filter(agents=("nobody",)), []),
            (Filter(errors=("Null_Error",)), ["r2-agent-a"]),  # its second round
            (Filter(errors=("Null_Error", OTHER)), ["r2-agent-a", "i3"]),
            (Filter(s5=0), ["r2-agent-a"]),
            (Filter(answer="no"), ["i3"]),
            (Filter(answer="yes", levels=(1,)), ["r1-agent-a", "r1-agent-b"]),
        ],
    )
    def test_each_field(self, store, wanted, expected):
        assert keys(store, wanted) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("lleida", ["r1-agent-a", "r1-agent-b"]),
            ("lle", ["r1-agent-a", "r1-agent-b"]),  # the beginning of a word
            ("lyon apples", ["r1-agent-a", "r1-agent-b"]),  # both, in any order
            ('"to Lyon"', ["r1-agent-a", "r1-agent-b"]),
            ('"Lyon to"', []),
            ("rail_route failed", ["r1-agent-b"]),  # tool of the instance, word of the thought
            ("里昂", ["r2-agent-a"]),
            ("规划去", ["r2-agent-a"]),
            ("昂", ["r2-agent-a"]),
            ("日期格式错误", ["r1-agent-b"]),
            ("格式 lleida", ["r1-agent-b"]),
            ("错日", []),
            ("i3", ["i3"]),  # its key
            ("find_depot", ["r1-agent-a", "r1-agent-b", "r2-agent-a", "i3"]),
            ("-- * ' ( ", ["r1-agent-a", "r1-agent-b", "r2-agent-a", "i3"]),  # no word asked
            ('NEAR("x") OR', []),
        ],
    )
    def test_text(self, store, text, expected):
        assert keys(store, Filter(text=text)) == expected

    def test_scores_and_gap(self, store):
        score(store, "r1-agent-a", "human:x", 1.0)
        score(store, "r1-agent-a", "judge:m@1", 0.5)
        score(store, "r1-agent-b", "judge:m@1", 0.0)
        # people's SI counts S5 = 1 too: all ones; the judge's SI is (4 * 0.5 + 1) / 5 = 0.6
        assert keys(store, Filter(low=90)) == ["r1-agent-a"]
        assert keys(store, Filter(by="judges", measure="si", low=60, high=60)) == ["r1-agent-a"]
        assert keys(store, Filter(by="judges", measure="dr", low=0, high=10)) == ["r1-agent-b"]
        assert keys(store, Filter(gap=0.5)) == ["r1-agent-a"]
        assert keys(store, Filter(gap=0.75)) == []
        # by people's total where there is one, else the judges'; unscored rows come last
        assert keys(store, Filter(), Sort("total", True)) == [
            *("r1-agent-a", "r1-agent-b", "r2-agent-a", "i3"),
        ]
        assert keys(store, Filter(), Sort("total")) == [
            *("r1-agent-b", "r1-agent-a", "r2-agent-a", "i3"),
        ]
        row = find(store, "r1-agent-a")
        assert row is not None
        assert row.marks == {**dict.fromkeys(JUDGED, 1.0), "S5": 1.0}
        assert row.figures["gap"] == 0.5

    def test_labels_are_shown_in_order_of_rounds_and_as_given(self, store):
        assert find(store, "r2-agent-a").errors == ("Type_Error", "Null_Error")
        assert find(store, "i3").errors == ("异常应对错误",)

    def test_pages(self, store):
        found = search(store, Filter(), size=3, page=2)
        assert ([row.key for row in found.rows], found.total, found.pages) == (["i3"], 4, 2)
        assert search(store, Filter(), size=3, page=99).number == 2
        assert search(store, Filter(text="nothing like it")).pages == 1

    def test_an_empty_database(self, tmp_path):
        empty = Store(tmp_path / "empty.db")
        assert search(empty, Filter(text="x", agents=("a",)), Sort("agent")).total == 0
        assert facets(empty, Filter()).levels == {}
        assert find(empty, "x") is None


class TestFacets:
    def test_each_field_counts_under_all_others(self, store):
        found = facets(store, Filter(levels=(1,), answer="yes"))
        assert found.levels == {1: 2, 2: 1}  # under "has an answer"
        assert found.answer == {"yes": 2, "no": 1}  # under level 1
        assert found.agents == {"agent-a": 1, "agent-b": 1}
        assert found.errors == {"Type_Error": 2}
        assert found.s5 == {1: 2}

    def test_every_error_type_has_its_bit(self):
        bits = (1 << 15) - 1
        assert labels_of(bits) == (*(kind.value for kind in ErrorType), OTHER)


class TestKeepingUp:
    def test_what_is_written_later_is_found(self, store):
        assert find(store, "i3").replan == ""
        fill(store, replan(3, "agent-c", "late"), instance(4))
        assert keys(store, Filter(agents=("agent-c",))) == ["r3-agent-c"]
        assert keys(store, Filter(text="late")) == ["r3-agent-c"]
        assert keys(store) == ["r1-agent-a", "r1-agent-b", "r2-agent-a", "r3-agent-c", "i4"]

    def test_a_score_is_seen_at_once(self, store):
        assert keys(store, Filter(low=10)) == []
        score(store, "r1-agent-a", "human:x", 0.5)
        assert keys(store, Filter(low=10)) == ["r1-agent-a"]

    def test_memory_holds_what_the_table_holds(self, store):
        search(store, Filter())
        score(store, "r1-agent-b", "human:x", 0.5)
        fill(store, instance(5), replan(5, "z"))
        with store.read() as db:
            held = table(store.path, db)
            rows = db.execute("SELECT * FROM search_item ORDER BY n").fetchall()
        assert held["n"].tolist() == [row["n"] for row in rows]
        assert [held.names["agent"][code] for code in held["agent"]] == [r["agent"] for r in rows]
        assert [None if v != v else round(float(v), 4) for v in held["total"]] == [
            None if row["total"] is None else round(row["total"], 4) for row in rows
        ]

    def test_a_stored_run_gives_its_rounds(self, store):
        steps = tuple(Round(plan(*STEPS)) for _ in range(7))
        fill(store, Trajectory("t1", "i1", "agent-a", steps, True, "response"))
        fill(store, Trajectory("t3", "i3", "agent-z", steps[:2], False, "round limit"))
        assert [
            (row.key, row.agent, row.rounds, row.run) for row in search(store, Filter()).rows
        ] == [
            ("r1-agent-a", "agent-a", 7, True),
            ("r1-agent-b", "agent-b", 2, False),  # one round lies behind the plan
            ("r2-agent-a", "agent-a", 2, False),
            ("i3", "agent-z", 2, True),
        ]
        assert keys(store, Filter(), Sort("rounds", True))[0] == "r1-agent-a"

    def test_an_old_database_gets_its_search_tables(self, store):
        before = search(store, Filter()).rows
        with contextlib.closing(sqlite3.connect(store.path)) as db:
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'search_*'"
            ).fetchall():
                db.execute(f"DROP TRIGGER {name}")
            for name in ("search_item", "instance_text", "replan_text"):
                db.execute(f"DROP TABLE {name}")
            db.execute("PRAGMA user_version = 1")
        copy = store.path.with_name("old.db")  # a file that this process has not checked
        copy.write_bytes(store.path.read_bytes())
        old = Store(copy)
        assert search(old, Filter()).rows == before
        assert keys(old, Filter(text="里昂")) == ["r2-agent-a"]
        assert keys(old, Filter(errors=(OTHER,))) == ["i3"]


class TestBlind:
    @pytest.fixture
    def batch(self, store):
        score(store, "r1-agent-a", "judge:m@1", 0.5)
        batch = create_batch(
            store, BatchPlan("b", replans=("r1-agent-a", "r2-agent-a"), reveal=Reveal.AFTER_SUBMIT)
        )
        return batch.id

    def row(self, store, key, reader):
        found = find(store, key, reader=reader)
        assert found is not None
        return found

    def test_who_has_no_part_in_the_batch_sees_all(self, store, batch):
        assert self.row(store, "r1-agent-a", "ada").agent == "agent-a"

    def test_what_waits_for_the_reader_is_hidden(self, store, batch):
        queue.next_item(store, batch, "ada")
        row = self.row(store, "r1-agent-a", "ada")
        assert (row.hidden, row.agent, row.errors, row.figures, row.marks) == (True, "", (), {}, {})
        # a free slot that may come to the reader is hidden as well, other answers are not
        assert self.row(store, "r2-agent-a", "ada").hidden
        other = self.row(store, "r1-agent-b", "ada")
        assert (other.hidden, other.agent, other.errors) == (False, "agent-b", ())

    def test_another_answer_to_the_same_instance_does_not_tell(self, store, batch):
        queue.next_item(store, batch, "ada")
        data = browse.respond(store, browse.View(item="r1-agent-b"), reader="ada")[2]
        assert data["item"]["agent"] == "agent-b"
        assert data["item"]["others"] == [{"key": "r1-agent-b", "agent": "agent-b"}]
        assert (data["item"]["errors"], data["item"]["reason"]) == ([], "")

    def test_a_filter_that_would_tell_leaves_them_out_and_says_so(self, store, batch):
        queue.next_item(store, batch, "ada")
        found = search(store, Filter(errors=("Type_Error",)), reader="ada")
        assert (found.rows, found.left_out) == ((), 3)
        assert search(store, Filter(), Sort("dr"), reader="ada").left_out == 3
        plain = search(store, Filter(levels=(1,)), reader="ada")
        assert (plain.total, plain.left_out) == (3, 0)

    def test_after_the_reveal_all_is_seen(self, store, batch):
        item = queue.next_item(store, batch, "ada")
        score(store, item.replan, "human:ada", 1.0)
        queue.submit(store, batch, "ada", item.replan, event="s")
        assert self.row(store, item.replan, "ada").hidden
        queue.reveal(store, batch, "ada", item.replan, event="r")
        assert self.row(store, item.replan, "ada").figures["judge_dr"] == 0.5

    def test_the_page_hides_what_happened_later(self, store, batch):
        steps = tuple(Round(plan(*STEPS)) for _ in range(7))
        fill(store, Trajectory("t1", "i1", "agent-a", steps, True, "response"))
        queue.next_item(store, batch, "ada")
        _, _, data = browse.respond(store, browse.View(item="r1-agent-a"), reader="ada")
        assert len(data["item"]["strip"]) == 2
        assert data["item"]["e5"] == data["item"]["reason"] == ""
        assert data["item"]["others"] == []
        assert data["item"]["note"] == browse.BLIND


PARAMETERS = (
    *("q", "level", "error", "source", "agent", "s5", "score", "gap", "answer", "sort"),
    *("page", "round"),
)


class TestLinks:
    def test_a_view_survives_its_link(self):
        view = browse.View(
            Filter(
                *('rail "to Lyon"', (1, 2), ("Type_Error", OTHER), ("rollout",), ("a&b", "中")),
                *(1, "si", "judges", 20.0, 80.5, 0.5, "yes"),
            ),
            Sort("gap", True),
            *(4, "r1-agent-a", 3),
        )
        assert browse.view_from(browse.view_query(view)) == view

    def test_defaults_are_no_part_of_a_link(self):
        assert to_query(Filter(), Sort()) == {}
        assert browse.view_query(browse.View()) == {}

    @given(
        st.dictionaries(
            st.sampled_from(
                [
                    "q",
                    "level",
                    "error",
                    "source",
                    "agent",
                    "s5",
                    "score",
                    "gap",
                    "answer",
                    "sort",
                    "page",
                    "round",
                ]
            ),
            st.lists(st.text(max_size=8) | st.sampled_from(["total.people.nan-inf", "1", "-1"])),
        )
    )
    def test_any_link_gives_a_view(self, params):
        view = browse.view_from(params)
        assert 0 <= view.wanted.low <= view.wanted.high <= 100
        assert view.page >= 1
        assert from_query(to_query(view.wanted, view.sort))[1] == view.sort

    def test_a_round_out_of_range_shows_the_item_itself(self, store):
        view, _, data = browse.respond(store, browse.View(item="r1-agent-a", round=40))
        assert view.round is None
        assert data["rounds"]["shown"] == 1

    def test_a_link_to_an_instance_shows_its_first_answer(self, store):
        view, opened, _ = browse.respond(store, browse.View(item="i1"))
        assert opened is not None
        assert (view.item, opened.row.key) == ("r1-agent-a", "r1-agent-a")

    def test_an_item_that_is_gone(self, store):
        _, opened, data = browse.respond(store, browse.View(item="nothing"))
        assert opened is None
        assert data["item"] == {"missing": "nothing"}


class TestWordIndex:
    def test_chinese_goes_in_as_pairs(self):
        assert indexed("abc 计划书!").split() == ["abc", "计划", "划书", "书", "!"]

    def test_queries(self):
        assert match_text("find_depot") == '"find depot" *'
        assert match_text("计划书") == '"计划 划书" *'
        assert match_text("书") == '"书" *'
        assert match_text('"*"') == ""
        assert terms('a "b c" d "e') == ["a", "b c", "d", "e"]


DONE_1 = (("1", "find", (), True), ("2", "book", ("1",), False))
DONE_2 = (("1", "find", (), True), ("2", "book", ("1",), True), ("3", "pay", ("2",), False))
OTHER_WAY = (("1", "find", (), True), ("9", "sing", ("1",), True))
DONE_3 = (*DONE_2[:2], ("3", "pay", ("2",), True), ("4", "tell", ("3",), False))


class TestRounds:
    def chained(self, store):
        for n, tasks in ((11, DONE_2), (12, DONE_1), (13, OTHER_WAY), (14, DONE_3)):
            fill(store, instance(n, tasks=tasks, query_id="77", query="Same query"))
        fill(store, instance(15, tasks=DONE_3, query_id="77", query="Another query"))
        fill(store, instance(16, tasks=DONE_1, query_id="77", query="Same query", level=2))

    def test_records_that_continue_one_another_are_one_trajectory(self, store):
        self.chained(store)
        for key in ("i11", "i12", "i14"):
            assert [one.key for one in rounds.chain(store, store.instance(key))] == [
                *("i12", "i11", "i14"),
            ]
        # another branch of the same query goes on from the first record only
        assert [one.key for one in rounds.chain(store, store.instance("i13"))] == ["i12", "i13"]

    def test_augmented_records_are_variants_not_rounds(self, store):
        for n, tasks in ((21, DONE_1), (22, DONE_2)):
            fill(store, instance(n, tasks=tasks, query_id="5", source=Source.AUGMENTED, query="S"))
        assert len(rounds.chain(store, store.instance("i21"))) == 1

    def test_rounds_of_records_and_of_an_answer(self, store):
        self.chained(store)
        story = rounds.rounds_of(store, store.instance("i11"))
        assert (story.numbers, story.at, story.kind) == ((2, 3, 4), 1, "records")
        assert [one["mark"] for one in rounds.strip(story)] == ["failed", "failed", "failed"]
        fill(store, replan(11, tasks=DONE_3, thought="Pay, then tell"))
        replanned = store.replan("r11-agent-a")
        story = rounds.rounds_of(store, store.instance("i11"), replanned)
        assert (story.numbers, story.at, story.answered) == ((2, 3, 4), 2, True)
        shown = rounds.content(story, 2)
        assert (shown["since"], shown["answer"]) == (3, True)
        assert [(c["mark"], c["ids"]) for c in shown["changes"]] == [
            ("failed", ["2"]),
            ("new", ["3"]),
            ("added", ["4"]),
        ]

    def test_a_run_of_forty_rounds(self, store):
        steps = tuple(
            Round(plan(*((str(i), "t", (), i < n) for i in range(1, n + 2))), (), f"thought {n}")
            for n in range(1, 41)
        )
        fill(store, Trajectory("t1", "i1", "agent-a", steps, False, "round limit"))
        _, opened, data = browse.respond(store, browse.View(item="r1-agent-a"))
        assert opened is not None
        assert len(data["item"]["strip"]) == 41  # the instance, then the run from another plan
        assert data["item"]["e5"] == "E5 = 0: round limit"
        assert sorted(data["rounds"]["contents"]) == ["0", "1", "2"]
        last = browse.respond(
            store, browse.View(item="r1-agent-a", round=data["item"]["strip"][-1]["number"])
        )
        assert last[2]["rounds"]["shown"] == 40

    def test_only_what_changed_is_sent_again(self, store):
        view, opened, first = browse.respond(store, browse.View(item="r1-agent-a"))
        assert {"list", "facets", "item", "rounds"} <= set(first)
        later = browse.View(item="r1-agent-a", round=2)
        _, _, second = browse.respond(store, later, before=view, opened=opened)
        assert not {"list", "facets", "item"} & set(second)

    def test_no_answer_says_how_to_get_one(self, store):
        data = browse.respond(store, browse.View(item="i3"))[2]
        assert "pararecover import results.xlsx" in data["item"]["note"]
