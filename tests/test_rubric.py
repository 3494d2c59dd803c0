"""The rubric as data: its 15 sub-dimensions, their anchors, and files that are none."""

import json
import re
from pathlib import Path

import pytest

from pararecover_core.errors import InputError, ParaRecoverError
from pararecover_core.rubric import DIMENSIONS, JUDGED, LEVELS, load_rubric, sde_rubric

SHARED = Path(__file__).parents[2] / "shared"


def test_the_15_sub_dimensions_in_order():
    assert " ".join(DIMENSIONS) == "S1 S2 S3 S4 S5 D1 D2 D3 D4 D5 E1 E2 E3 E4 E5"


def test_people_and_judges_score_13_of_them():
    assert [d for d in DIMENSIONS if d not in JUDGED] == ["S5", "E5"]
    assert len(JUDGED) == 13


def test_every_judged_sub_dimension_has_three_anchors_and_a_question():
    for dimension in sde_rubric().judged:
        assert len({dimension.anchors.of(level) for level in LEVELS}) == 3
        assert dimension.question.endswith("?")
        assert len(dimension.short) <= 20, "fits the scoring panel"


def test_every_sub_dimension_belongs_to_a_group():
    codes = {group.id: group.code for group in sde_rubric().groups}
    assert codes == {"S": "SI", "D": "DR", "E": "ES"}
    assert all(d.group == d.id[0] for d in sde_rubric().dimensions)


def test_names_of_the_paper():
    names = {d.id: d.name for d in sde_rubric().dimensions}
    assert names["S5"] == "Topological parsability"
    assert names["D3"] == "Root-cause depth"
    assert names["E1"] == "Modification minimality"


def test_one_sub_dimension_by_id():
    assert sde_rubric().dimension("D4").short == "Impact scope"
    with pytest.raises(InputError, match=r"sub-dimension: got 'D6', expected one of S1, S2.*E5\."):
        sde_rubric().dimension("D6")


def test_another_rubric_can_be_loaded(tmp_path):
    data = {
        "id": "mine",
        "version": "2",
        "groups": [{"id": "S", "name": "n", "code": "c", "question": "q?"}],
        "dimensions": [
            {
                "id": "S1", "group": "S", "name": "n", "short": "s", "question": "q?",
                "anchors": {"1": "good", "0.5": "so-so", "0": "bad"}, "scored_by": "judged",
            }
        ],
    }  # fmt: skip
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    rubric = load_rubric(path)
    assert rubric.dimension("S1").anchors.of(0.5) == "so-so"
    assert [d.id for d in rubric.judged] == ["S1"]


@pytest.mark.parametrize(
    ("content", "message"), [("{", "truncated"), ('{"id": 3}', "Expected `str`"), ("[]", "object")]
)
def test_a_file_that_is_no_rubric_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_rubric(path)
    assert caught.value.where == str(path)
    assert "Start from sde_rubric.json" in str(caught.value)


def test_a_missing_rubric_file_is_an_error_of_ours(tmp_path):
    with pytest.raises(ParaRecoverError, match="No such file"):
        load_rubric(tmp_path / "none.json")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the working anchors are not here")
def test_anchors_are_the_working_anchors_word_for_word():
    """Code names of the text are spelt out in the rubric: tau, G, G', O, and its code marks."""
    spelt = (("`tau`", "the thought"), ("`G'`", "the new plan"), ("`G`", "the previous plan"),
             ("`O`", "the observations"), ("`response`", "response"))  # fmt: skip
    rows = {}
    for line in (SHARED / "spec" / "rubric.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if re.fullmatch(r"[SDE][1-4]|D5", cells[0]):
            for code, words in spelt:
                cells = [cell.replace(code, words) for cell in cells]
            rows[cells[0]] = cells
    assert sorted(rows) == sorted(JUDGED)
    for dimension in sde_rubric().judged:
        _, name, one, half, zero, _ = rows[dimension.id]
        anchors = dimension.anchors
        assert (dimension.name, anchors.one, anchors.half, anchors.zero) == (name, one, half, zero)
