"""What the Calibrate page shows: lists, axis, texts, empty states, CSV."""

import csv
import io
import json
import math

import pytest

from annotations.calibration import (
    Pick,
    axis,
    board,
    compare,
    coverage_text,
    file_board,
    listed,
    side_names,
    still_blind,
    store_board,
    what_is_missing,
)
from annotations.calibration_csv import cells_csv, figures_csv
from annotations.pairs import Choices, Named, Selection, choices, load
from annotations.store import ScoreEntry, Store
from pararecover_core.agreement import measure
from pararecover_core.formats.items import InstanceRef, Item, Mark, Place, ReplanRef
from pararecover_core.pairing import Cell, Coverage
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source
from pararecover_core.rubric import JUDGED
from pararecover_core.score_files import file_cells, file_scores

CELLS = [
    Cell("a", "D3", 1.0, 1.0),
    Cell("b", "D3", 1.0, 0.5, judge_note="half a cause"),
    Cell("c", "D3", 0.0, 1.0, people=(("Ann", 0.0),)),
    Cell("a", "S1", 0.5, 1.0),
    Cell("b", "S1", 1.0, None, judge_gap="unparsable"),
    Cell("c", "S1", None, 1.0, human_gap="people disagree, not adjudicated"),
]


def _board(comparison, pick=None, page=1, size=50):
    pick = pick or Pick()
    some = listed(comparison, pick, page=page, size=size)
    return board(comparison.found, some, pick, label=lambda cell: (cell.sample, cell.sample))


def test_disagreements_come_largest_first_then_in_rubric_order():
    found = compare(CELLS, resamples=10)
    order = [(cell.sample, cell.dimension, cell.gap) for cell in found.disagreements]
    assert order == [("c", "D3", 1.0), ("a", "S1", 0.5), ("b", "D3", 0.5)]


def test_a_pick_narrows_the_list():
    found = compare(CELLS, resamples=10)
    assert listed(found, Pick("D3")).total == 2
    assert [c.sample for c in listed(found, Pick("D3", human=2, judge=1)).cells] == ["b"]
    assert listed(found, Pick("E4")).total == 0


@pytest.mark.parametrize("pick", [Pick(), Pick("D3"), Pick("D3", 2, 1), Pick("S1", 0, 2)])
def test_a_pick_goes_into_a_link_and_back(pick):
    assert Pick.parse(pick.text()) == pick


@pytest.mark.parametrize("text", ["D9", "<b>", "D3-2-9", "D3-1", "-", ""])
def test_a_link_that_makes_no_sense_asks_for_less(text):
    assert Pick.parse(text) in (Pick(), Pick("D3"))


def test_pages_stay_in_range_and_blind_items_are_kept_back():
    found = compare(CELLS, resamples=10)
    last = listed(found, Pick(), page=99, size=2)
    assert (last.page, last.pages, len(last.cells)) == (2, 2, 1)
    hidden = listed(found, Pick(), blind={"c"})
    assert (hidden.total, hidden.blind) == (2, 1)
    assert all(cell.sample != "c" for cell in hidden.cells)


def test_board_rows_say_what_the_figures_say():
    """D3: 1 of 3 equal, gaps 0, 0.5 and 1, people 2/3, judge 2.5/3."""
    data = _board(compare(CELLS, resamples=10))
    row = data["rows"][JUDGED.index("D3")]
    assert (row["ema"], row["mae"], row["human"], row["judge"]) == (
        "0.333",
        "0.500",
        "0.667",
        "0.833",
    )
    assert (row["bias"], row["both"], row["of"]) == ("+0.167", "3", "of 3")
    s1 = data["rows"][JUDGED.index("S1")]
    assert (s1["both"], s1["of"], s1["thin"]) == ("1", "of 3", True)
    assert "people disagree, not adjudicated: 1" in s1["coverage"]
    empty = data["rows"][JUDGED.index("E4")]
    assert (empty["ema"], empty["kappa"], empty["at"]) == ("–", "–", None)
    assert empty["note"] == "undefined: no cell has both scores"


def test_board_key_figures():
    key = {figure["label"].split(" (")[0]: figure for figure in _board(compare(CELLS))["key"]}
    assert key["exact match"]["value"] == "0.167"  # mean of 1/3 and 0
    (covered,) = [figure for name, figure in key.items() if name.startswith("cells of people")]
    assert (covered["value"], covered["of"]) == ("4", "of 6")
    assert "unparsable" in covered["label"]


def test_matrix_has_people_in_rows_from_one_down():
    data = _board(compare(CELLS, resamples=10))
    matrix = data["matrices"][JUDGED.index("D3")]
    assert [[cell["n"] for cell in row] for row in matrix["rows"]] == [
        [0, 1, 1],
        [0, 0, 0],
        [0, 0, 1],
    ]
    assert matrix["rows"][0][1] == {"n": 1, "share": 0.5, "same": False, "at": [2, 1]}


def test_list_rows_carry_the_reason():
    rows = _board(compare(CELLS, resamples=10), Pick("D3"))["list"]["rows"]
    assert [(row["human"], row["judge"], row["gap"]) for row in rows] == [
        ("0", "1", "1.0"),
        ("1", "0.5", "0.5"),
    ]
    assert rows[0]["people"] == "Ann 0"
    assert rows[1]["reason"] == "half a cause"


@pytest.mark.parametrize("shares", [(0.0,), (1.0,), (0.8, 0.82, 0.79), (0.0, 1.0), (0.33, 0.34)])
def test_axis_holds_every_point(shares):
    figures = [
        measure(
            [Cell(f"{n}", "D1", 1, 1 if n < 100 * share else 0) for n in range(100)],
            dimensions=("D1",),
        ).overall
        for share in shares
    ]
    low, high, ticks = axis(figures)
    assert 0 <= low < high <= 1
    for one in figures:
        assert low - 1e-9 <= one.ema.low
        assert one.ema.high <= high + 1e-9
    assert 2 <= len(ticks) <= 6
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_axis_without_figures():
    assert axis([measure([]).overall]) == (0.0, 1.0, [0.0, 0.5, 1.0])


def test_coverage_in_words():
    words = coverage_text(Coverage(4, 1, 2, 0, {"no human score": 2}, {"unparsable": 1}))
    assert words == (
        "4 cells with both scores; 1 with people's alone; 2 with the judge's alone; "
        "no human score: 2; unparsable: 1"
    )


def test_what_is_missing_says_what_to_do():
    nobody = Choices([], [], [], [], [], [])
    people, judge = [("human:Ann", 3)], [("judge:m@p", 3)]
    empty, full = compare([]), compare(CELLS, resamples=10)
    assert "neither people nor a judge" in what_is_missing(nobody, Selection(), empty)
    assert "no person has" in what_is_missing(nobody._replace(judges=judge), Selection(), empty)
    assert "no judge has" in what_is_missing(nobody._replace(people=people), Selection(), empty)
    both = nobody._replace(people=people, judges=judge)
    chosen = Selection(judge="judge:m@p")
    assert what_is_missing(both, chosen, full) == ""
    assert "Widen them" in what_is_missing(both, chosen, empty)
    apart = compare([CELLS[4], CELLS[5]], resamples=0)
    assert what_is_missing(both, chosen, apart).startswith("No cell has both scores: 0 cells with")


def _rows(data):
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


def test_figures_as_csv():
    rows = _rows(figures_csv(compare(CELLS, resamples=50).found))
    assert [row["dimension"] for row in rows] == [*JUDGED, "overall", "pooled"]
    d3 = rows[JUDGED.index("D3")]
    assert float(d3["ema"]) == 1 / 3
    assert float(d3["ema_low"]) <= 1 / 3 <= float(d3["ema_high"])
    assert rows[0]["both"] == "1"
    assert rows[-3]["ema"] == ""  # undefined is empty, not 0


def test_cells_as_csv_hold_no_formulas():
    cell = Cell("r", "D1", 1.0, 0.0, judge_note='=HYPERLINK("http://x")', people=(("@Ann", 1.0),))
    (row,) = _rows(cells_csv([cell], lambda sample: Named("7", "q", 1, "+agent")))
    assert row["judge_reason"] == '\'=HYPERLINK("http://x")'
    assert (row["people"], row["agent"]) == ("'@Ann 1", "'+agent")
    assert (row["human"], row["judge"], row["gap"]) == ("1.0", "0.0", "1.0")


def test_sides_are_called_by_what_they_are():
    assert side_names("gold", "judge:m@p") == ("people", "judge")
    assert side_names("human:Ann", "human:Ben") == ("Ann", "Ben")


def test_board_of_a_file_opens_nothing():
    def mark(scorer, value):
        ref = ReplanRef(InstanceRef(id="<b>7</b>"))
        return Item(Place("f.csv", 2), Mark(ref, "D1", scorer, value, "why"))

    found = file_scores([mark("human:Ann", 1.0), mark("judge:m@p", 0.0)])
    data = file_board(
        found, compare(file_cells(found), resamples=0), Pick(), 1, ("gold", "judge:m@p")
    )
    (row,) = data["list"]["rows"]
    assert (row["item"], row["full"], row["link"]) == ("<b>7</b>", "f.csv, line 2", "")
    assert row["reason"] == "why"


def test_hostile_texts_are_cut_and_can_be_sent():
    def mark(scorer, value):
        ref = ReplanRef(InstanceRef(id="\ud800" * 3))
        note = "<script>" + "x" * 2_000_000
        return Item(Place("f.csv", 2), Mark(ref, "D1", scorer, value, note))

    found = file_scores([mark("human:\udfffAnn", 1.0), mark("judge:m@p", 0.0)])
    data = file_board(
        found, compare(file_cells(found), resamples=0), Pick(), 1, ("gold", "judge:m@p")
    )
    sent = json.dumps(data, ensure_ascii=False).encode("utf-8")  # raises on a lone surrogate
    assert len(sent) < 30_000
    assert data["list"]["rows"][0]["reason"].startswith("<script>")  # text, drawn as text


def test_board_of_a_store(tmp_path):
    store = Store(tmp_path / "s.db")
    empty = Plan.parse(None)
    instance = Instance("i", "77", "q", 2, Source.ROLLOUT, "query", (), empty, ())
    store.ingest(
        Item(Place("x"), one) for one in (instance, Replan("r", "i", "agent-a", "", empty))
    )
    store.append(
        [
            ScoreEntry("1", "r", "D3", "human:Ann", 1.0, "saw it"),
            ScoreEntry("2", "r", "D3", "judge:m@p", 0.0, "named no cause"),
        ]
    )
    selection = Selection(judge="judge:m@p")
    comparison = compare(load(store, selection), resamples=0)
    data = store_board(store, comparison, selection, Pick(), 1, "Zoe")
    (row,) = data["list"]["rows"]
    assert (row["item"], row["link"]) == ("77 agent-a", "trajectories?item=r")
    assert (row["reason"], row["note"], row["people"]) == ("named no cause", "saw it", "Ann 1")
    assert what_is_missing(choices(store), selection, comparison) == ""

    with store.write() as db:
        db.execute(
            "INSERT INTO batch (id, name, created, dimensions) VALUES (1, 'b', '', '[\"D3\"]')"
        )
        db.execute("INSERT INTO batch_item (batch, replan, position) VALUES (1, 'r', 1)")
        db.execute(
            "INSERT INTO assignment (batch, replan, annotator, slot, state, claimed_at, touched_at)"
            " VALUES (1, 'r', 'Zoe', 1, 'claimed', '', '')"
        )
    assert still_blind(store, "Zoe") == {"r"}
    hidden = store_board(store, comparison, selection, Pick(), 1, "Zoe")["list"]
    assert (hidden["rows"], hidden["blind"]) == ([], 1)
    assert math.isclose(comparison.found.overall.mae.value, 1.0)
