"""Pictures of plans: layouts and marks derived by hand, and properties that hold for any plan."""

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pararecover_core.draw import pair, picture
from pararecover_core.draw_fold import FOLD_ABOVE, MOST_DRAWN
from pararecover_core.draw_layout import LANE, NODE_HEIGHT, ROW, layers_of, layout
from pararecover_core.plan import Plan
from pararecover_core.records import ToolCall


def node(id, name="", para=None, dep=(), done=False, desc=""):
    return {
        "id": id,
        "name": name,
        "para": para or {},
        "desc": desc,
        "dep": list(dep),
        "status": done,
    }


def plan(*tasks):
    return Plan.parse({"tasks": list(tasks)})


def by_key(drawn):
    return {node["key"]: node for node in drawn["nodes"]}


def edges(drawn):
    return {(edge["from"], edge["to"]): edge for edge in drawn["edges"]}


BEFORE = plan(
    node("root", done=True),
    node("1", "find_depot", {"city": "Lleida"}, ["root"], done=True),
    node("2", "road_route", {"depart": "2026-06-18"}, ["1"]),
    node("3", "rail_route", {"depart": "18 June"}, ["1"]),
    node("4", "rail_quote", {"route": "$3"}, ["3"]),
    node("5", "add_tolls", {"route": "$2"}, ["2"]),
    node("response", "response", {}, ["4", "5"]),
)
AFTER = plan(
    node("root", done=True),
    node("1", "find_depot", {"city": "Lleida"}, ["root"], done=True),
    node("2", "road_route", {"depart": "2026-06-18"}, ["1"], done=True),
    node("3", "rail_route", {"depart": "18 June"}, ["1"], done=True),
    node("6", "rail_route", {"depart": "2026-06-18"}, ["3"]),
    node("4", "rail_quote", {"route": "$6"}, ["6"]),
    node("response", "response", {}, ["4"]),
)
CALLS = (
    ToolCall("road_route", {}, "R-71, 742 km", "2"),
    ToolCall("rail_route", {}, "Error: expected YYYY-MM-DD", "3"),
)


class TestLayers:
    def test_longest_way_decides(self):
        # 1 -> 2 -> 3 and 1 -> 3: node 3 stands behind 2
        assert layers_of(["1", "2", "3"], [("1", "2"), ("2", "3"), ("1", "3")]) == {
            "1": 0,
            "2": 1,
            "3": 2,
        }

    def test_what_depends_on_nothing_stands_behind_the_root(self):
        assert layers_of(["a", "root"], [], first="root") == {"root": 0, "a": 1}

    def test_a_cycle_has_places_and_its_closing_edge_is_known(self):
        found = layout(
            {"1": 110, "2": 110, "3": 110}, [("1", "2"), ("2", "3"), ("3", "2"), ("2", "2")]
        )
        assert found.layers == {"1": 0, "2": 1, "3": 2}
        assert found.backward == {("3", "2"), ("2", "2")}

    def test_a_long_chain_is_no_recursion(self):
        ids = [str(i) for i in range(5000)]
        assert layers_of(ids, list(itertools.pairwise(ids)))["4999"] == 4999


class TestLayout:
    def test_a_chain_is_one_level_row(self):
        found = layout({"1": 110, "2": 110, "3": 110}, [("1", "2"), ("2", "3")])
        assert len(set(found.y.values())) == 1
        # margin 8, width 110, gap 26: centres at 63, 199, 335
        assert [column.x for column in found.columns] == [63, 199, 335]
        assert found.width == 335 + 55 + 8

    def test_two_in_parallel_stand_evenly_about_their_neighbours(self):
        found = layout(dict.fromkeys("abcd", 110), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
        assert found.y["c"] - found.y["b"] == ROW
        assert found.y["a"] == found.y["d"] == (found.y["b"] + found.y["c"]) / 2

    def test_crossings_are_undone(self):
        # a -> d and b -> c given in crossing order: the second column is turned round
        found = layout(dict.fromkeys("abcd", 110), [("a", "d"), ("b", "c")])
        assert (found.y["a"] < found.y["b"]) == (found.y["d"] < found.y["c"])

    def test_an_edge_that_skips_a_layer_passes_no_node(self):
        found = layout(dict.fromkeys("abc", 110), [("a", "b"), ("b", "c"), ("a", "c")])
        [(layer, y)] = found.via["a", "c"]
        assert layer == found.layers["b"] == 1
        assert abs(y - found.y["b"]) >= LANE > NODE_HEIGHT / 2


class TestMarks:
    def test_before_and_after_share_their_places(self):
        first, second = map(by_key, pair(BEFORE, AFTER, CALLS))
        for key in first.keys() & second.keys():
            assert (first[key]["x"], first[key]["y"]) == (second[key]["x"], second[key]["y"])

    def test_before_shows_what_failed_and_what_goes(self):
        first = pair(BEFORE, AFTER, CALLS)[0]
        states = {key: one["state"] for key, one in by_key(first).items()}
        assert states == {
            "root": "done",
            "1": "done",
            "2": "pending",
            "3": "failed",
            "4": "pending",
            "5": "removed",
            "response": "pending",
        }
        assert edges(first)["3", "4"]["mark"] == "removed"
        assert edges(first)["1", "2"]["mark"] == ""
        assert by_key(first)["3"]["shape"] == "octagon"
        assert by_key(first)["root"]["shape"] == by_key(first)["response"]["shape"] == "pill"

    def test_after_shows_what_came(self):
        second = pair(BEFORE, AFTER, CALLS)[1]
        nodes = by_key(second)
        assert {key: (one["state"], one["badges"]) for key, one in nodes.items()} == {
            "root": ("done", []),
            "1": ("done", ["done"]),
            "2": ("new", ["new"]),
            "3": ("failed", ["failed", "new"]),
            "6": ("added", ["added"]),
            "4": ("changed", ["changed"]),
            "5": ("ghost", []),
            "response": ("changed", ["changed"]),
        }
        assert nodes["2"]["sub"] == "R-71, 742 km"
        assert nodes["4"]["sub"] == "route=$6"
        assert nodes["response"]["sub"] == ""
        assert edges(second)["3", "6"]["mark"] == edges(second)["6", "4"]["mark"] == "added"

    def test_counts_and_words(self):
        second = pair(BEFORE, AFTER, CALLS)[1]
        assert second["counts"] == {
            "nodes": 7,
            "added": 1,
            "removed": 1,
            "changed": 2,
            "newly_done": 2,
            "failed": 1,
        }
        assert second["alt"] == (
            "Plan after: 7 nodes in 6 layers; 1 failed; 1 added; 1 removed; 2 changed; "
            "2 newly done; runs next: 6."
        )
        assert by_key(second)["3"]["say"] == "3 rail_route: failed, newly done, needs 1"

    def test_bands_mark_what_ran_and_what_runs_next(self):
        first, second = pair(BEFORE, AFTER, CALLS)
        assert [(b["caption"], b["layers"]) for b in first["bands"]] == [("ran this round", [2, 2])]
        assert [(b["caption"], b["layers"]) for b in second["bands"]] == [("runs next", [3, 3])]

    def test_without_an_answer_nothing_counts_as_removed(self):
        first, second = pair(BEFORE, None, CALLS)
        assert second is None
        assert first["counts"]["removed"] == 0

    def test_a_node_that_is_no_longer_done_is_changed(self):
        second = pair(plan(node("1", "a", done=True)), plan(node("1", "a")))[1]
        assert by_key(second)["1"]["state"] == "changed"
        assert by_key(second)["1"]["sub"] == "no longer done"

    def test_a_new_description_alone_is_no_change(self):
        second = pair(plan(node("1", "a")), plan(node("1", "a", desc="Result: 3")))[1]
        assert by_key(second)["1"]["state"] == "pending"

    @pytest.mark.parametrize(
        ("value", "shown"),
        [("16", 'x="16"'), (16, "x=16"), ("18 June", 'x="18 June"'), ("$2", "x=$2")],
    )
    def test_text_and_number_can_be_told_apart(self, value, shown):
        assert by_key(picture(plan(node("1", "a", {"x": value}))))["1"]["sub"] == shown


class TestBrokenPlans:
    def test_a_missing_dependency_is_drawn_and_its_edge_is_broken(self):
        drawn = picture(plan(node("1", "a", dep=["9"])))
        assert by_key(drawn)["9"]["state"] == "missing"
        assert edges(drawn)["9", "1"]["mark"] == "broken"
        assert drawn["fault"] == "node 1 depends on 9, which does not exist"

    def test_a_cycle_and_a_self_loop_are_marked(self):
        drawn = picture(plan(node("1", "a", dep=["2", "1"]), node("2", "b", dep=["1"])))
        marks = {pair: edge["mark"] for pair, edge in edges(drawn).items()}
        assert sorted(marks.values()) == ["", "cycle", "cycle"]
        assert marks["1", "1"] == "cycle"

    def test_a_repeated_id_is_drawn_twice(self):
        drawn = picture(plan(node("1", "a"), node("1", "b")))
        assert [(one["id"], one["title"]) for one in drawn["nodes"]] == [("1", "a"), ("1", "b")]

    def test_an_unreadable_plan_shows_its_text(self):
        drawn = picture(Plan.parse("I would rather not."))
        assert drawn["nodes"] == []
        assert drawn["raw"] == "I would rather not."
        assert drawn["alt"] == "Plan: no nodes could be read."


class TestLargePlans:
    def test_finished_chains_fold(self):
        tasks = [node("root", done=True)]
        tasks += [
            node(str(i), f"t{i}", dep=[str(i - 1) if i else "root"], done=i < 30)
            for i in range(FOLD_ABOVE)
        ]
        drawn = picture(plan(*tasks))
        fold = next(one for one in drawn["nodes"] if one["kind"] == "fold")
        assert fold["title"] == "30 done"
        assert len(drawn["nodes"]) == 1 + 1 + 10
        assert edges(drawn)[fold["key"], "30"]["mark"] == ""

    def test_what_a_call_failed_on_is_not_folded_away(self):
        tasks = [node(str(i), "t", dep=[str(i - 1)] if i else [], done=i < 49) for i in range(50)]
        drawn = picture(
            plan(*tasks), before=plan(*tasks), observations=[ToolCall("t", {}, "Error: no", "20")]
        )
        assert by_key(drawn)["20"]["state"] == "failed"

    def test_a_plan_of_5000_nodes_is_capped_and_says_so(self):
        tasks = [node(str(i), "t", dep=[str(i // 2)] if i else []) for i in range(5000)]
        start = time.process_time()
        drawn = picture(plan(*tasks))
        assert time.process_time() - start < 5  # about 0.3 s; wide for a busy machine
        assert len(drawn["nodes"]) == MOST_DRAWN
        assert drawn["note"] == f"{5000 - MOST_DRAWN:,} more nodes are not drawn"

    def test_long_texts_are_cut(self):
        drawn = picture(plan(node("i" * 900, "n" * 900, {"p" * 900: "v" * 2_000_000})))
        one = drawn["nodes"][0]
        assert len(one["title"]) <= 16
        assert len(one["label"]) <= 9
        assert len(one["sub"]) <= 22
        assert len(one["tip"]) < 1000


IDS = st.sampled_from(["root", "1", "2", "3", "4", "5", "2.1", "6A", "response", ""])
TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "id": IDS,
            "name": st.sampled_from(["a", "b", "", "find_a_very_long_tool_name"]),
            "dep": st.lists(IDS, max_size=4),
            "status": st.booleans(),
            "para": st.dictionaries(st.sampled_from("xyz"), st.integers() | st.text(max_size=5)),
        }
    ),
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@given(TASKS, TASKS, st.lists(IDS, max_size=3))
def test_any_two_plans_can_be_drawn(before, after, called):
    calls = [ToolCall("a", {}, "Error", node) for node in called]
    drawn = pair(Plan.parse({"tasks": before}), Plan.parse({"tasks": after}), calls)
    places = {}
    for one in drawn:
        boxes = []
        for n in one["nodes"]:
            assert all(math.isfinite(n[field]) for field in "xywh")
            boxes.append((n["x"], n["y"], n["w"], n["h"]))
            assert places.setdefault(n["key"], (n["x"], n["y"])) == (n["x"], n["y"])
        for at, (x, y, w, h) in enumerate(boxes):
            for ox, oy, ow, oh in boxes[at + 1 :]:
                assert abs(x - ox) >= (w + ow) / 2 or abs(y - oy) >= (h + oh) / 2
        shown = by_key(one)
        for edge in one["edges"]:
            start, end = shown[edge["from"]], shown[edge["to"]]
            assert edge["mark"] == "cycle" or start["x"] < end["x"]
            for point in edge["via"]:
                assert all(
                    n["layer"] != point["layer"] or abs(n["y"] - point["y"]) > n["h"] / 2
                    for n in one["nodes"]
                )


class TestOriginOfDependencies:
    """Logs do not write dependencies down: the picture tells how each was found."""

    PLAN = plan(
        node("root", done=True),
        node("1", "find", {}, ["root"], done=True),
        node("2", "look", {}, ["root"], done=True),
        node("3", "book", {}, ["1", "2"]) | {"edge_origin": {"1": "values", "2": "order"}},
        node("4", "pay", {}, ["1"]) | {"edge_origin": {"1": "given"}},
    )

    def test_edges_and_legend(self):
        drawn = picture(self.PLAN)
        assert {pair: edge["origin"] for pair, edge in edges(drawn).items()} == {
            ("root", "1"): "",
            ("root", "2"): "",
            ("1", "3"): "values",
            ("2", "3"): "order",
            ("1", "4"): "given",
        }
        assert drawn["legend"] == [
            ["given", "given in the log"],
            ["values", "inferred from values"],
            ["order", "inferred from order"],
        ]
        assert by_key(drawn)["3"]["say"] == "3 book: pending, needs 1 (quoted), 2 (order)"
        assert "needs 1 (quoted), 2 (order)" in by_key(drawn)["3"]["tip"]

    def test_a_plan_that_says_nothing_of_it_has_no_legend(self):
        drawn = picture(BEFORE)
        assert drawn["legend"] == []
        assert {edge["origin"] for edge in drawn["edges"]} == {""}

    @pytest.mark.parametrize("strange", [None, 3, [1], {"1": []}, {"1": "guessed"}])
    def test_a_strange_origin_is_none(self, strange):
        odd = plan(node("1", "a"), node("2", "b", {}, ["1"]) | {"edge_origin": strange})
        assert [edge["origin"] for edge in picture(odd)["edges"]] == [""]
