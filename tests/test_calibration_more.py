"""Tables and charts under the Calibrate board."""

import pytest

from annotations import calibration_more as more
from annotations.calibration import board, compare, listed
from annotations.pairs import Selection, load, load_shared
from annotations.score_log import ScoreEntry
from pararecover_core.pairing import Cell
from tests.queue_data import make_store, score
from ui import charts

FIRST, SECOND = "judge:a@p-1", "judge:b@p-1"


@pytest.fixture
def store(tmp_path):
    made = make_store(tmp_path, items=6, agents=("agent-a", "agent-b"))
    for n in range(1, 7):
        for agent in "ab":
            good = 1.0 if agent == "a" else 0.0
            for name in ("ann", "bob"):
                score(made, f"r{n}-{agent}", name, good, ("D1", "D2"))
            made.append(
                [
                    ScoreEntry(f"{judge}{n}{agent}{d}", f"r{n}-{agent}", d, judge, value)
                    for judge, value in ((FIRST, good), (SECOND, 1.0 - good))
                    for d in ("D1", "D2")
                ]
            )
    return made


def test_slices_by_level_error_type_and_agent(store):
    cells = load(store, Selection(judge=FIRST))
    table, points = more.slices(store, cells, "agent")
    assert [(row[0], row[1], row[2]) for row in table.rows] == [
        ("agent-a", 12, 6), ("agent-b", 12, 6),
    ]  # fmt: skip
    assert [point.value for point in points] == [1.0, 1.0]
    assert [row[0] for row in more.slices(store, cells, "level")[0].rows] == ["LEVEL-1", "LEVEL-2"]
    assert [row[0] for row in more.slices(store, cells, "error type")[0].rows] == ["Type_Error"]


def test_judges_compared_by_level_with_their_ranks(store):
    table = more.cross_judge(store, [FIRST, SECOND])
    assert table.heads == ("Level", "Agent", "a@p-1", "b@p-1", "n")
    assert table.rows[:3] == [
        ("LEVEL-1", "agent-a", "100.00", "0.00", 6),
        ("LEVEL-1", "agent-b", "0.00", "100.00", 6),
        ("LEVEL-1", "Kendall's tau with the first judge", "", "-1.000", 2),
    ]


def test_undefined_is_said(store):
    cells = load(store, Selection(judge=FIRST))
    assert {row[1] for row in more.scales(cells).rows} == {0}  # nobody scored all of a group
    assert "undefined" in more.scales(cells).rows[0]
    found = compare(cells, resamples=20).found
    assert "undefined" in more.other_figures(found).rows[0]
    assert more.curve([])[0].rows == []


def test_powered_means_and_replacement(store):
    cells = load_shared(store, Selection(judge=FIRST)).cells
    rows = more.powered(store, Selection(judge=FIRST), cells).rows
    assert (rows[0][0], rows[0][1], rows[0][5]) == ("agent-a", "LEVEL-1", 6)
    table, found = more.replacement(cells)
    assert [row[0] for row in table.rows] == ["ann", "bob"]
    assert "epsilon 0.15" in table.note
    assert found.passes


def test_the_ceiling_stands_on_the_board(store):
    comparison = compare(load(store, Selection(judge=SECOND)), resamples=50)
    data = board(
        comparison.found, listed(comparison, _no_pick()), _no_pick(),
        label=lambda cell: ("", ""), top=comparison.top,
    )  # fmt: skip
    row = next(row for row in data["rows"] if row["id"] == "D1")
    assert row["top"] > row["at"]  # people agree on all, the judge on nothing
    assert row["top_text"].startswith("people with people 1.000")
    lone = next(row for row in data["rows"] if row["id"] == "S1")
    assert (lone["top"], lone["top_text"]) == (None, "undefined: no cell was scored by two people")
    assert data["key"][1]["value"] == "1.000"


def _no_pick():
    from annotations.calibration import Pick

    return Pick()


def test_charts_become_svg():
    cells = [Cell(f"s{n}", "D1", 1.0, float(n % 2)) for n in range(60)]
    _, widths = more.curve(cells)
    points = [more.Point("a <b>", 0.5, 0.4, 0.6, 10), more.Point("b", 0.7, None, None, 1)]
    for chart in (
        charts.curve(widths),
        charts.dots(points, "EMA"),
        charts.versions([("e-1", 0.7, 0.6, 0.8), ("e-2", 0.8, 0.7, 0.9)], 0.9),
    ):
        drawn = charts.svg(chart).decode()
        assert drawn.startswith("<svg")
        assert "<b>" not in drawn
