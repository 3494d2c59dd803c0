"""The guidelines: words of the rubric, examples that fit it, keys that the page has."""

from pathlib import Path

from annotations.guide import KEYS, examples, guide
from pararecover_core.rubric import DIMENSIONS, JUDGED, LEVELS, sde_rubric

ROOT = Path(__file__).parents[1]


def test_every_sub_dimension_with_its_anchors():
    data = guide()
    shown = [d for group in data["groups"] for d in group["dimensions"]]
    assert [d["id"] for d in shown] == list(DIMENSIONS)
    d3 = sde_rubric().dimension("D3")
    (found,) = [d for d in shown if d["id"] == "D3"]
    assert found["anchors"] == [
        ["1", d3.anchors.one],
        ["0.5", d3.anchors.half],
        ["0", d3.anchors.zero],
    ]
    assert [d["id"] for d in shown if not d["judged"]] == ["S5", "E5"]
    assert data["edge_cases"] == list(sde_rubric().edge_cases)


def test_two_worked_examples_with_plans_from_the_sample_data():
    assert len(examples()) == 2
    for example in examples():
        assert [score.dimension for score in example.scores] == list(JUDGED)
        assert all(score.score in LEVELS for score in example.scores)
        assert all(score.reason for score in example.scores)
    for data in guide()["examples"]:
        assert data["query"]
        assert data["thought"]
        assert data["before"]["nodes"]
        assert data["after"]["counts"]


def test_keys_are_those_of_the_annotate_page():
    scripts = sorted((ROOT / "ui" / "assets").glob("annotate*.js"))
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    for keys, what in KEYS:
        if keys != "?":
            assert f'"{keys}"' in script
            assert f'"{what}"' in script
