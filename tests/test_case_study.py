"""Case studies: what they hold, every form of them, and that records stay text in each."""

import io
import json
import re
import zipfile
from html.parser import HTMLParser

import pytest
from PIL import Image

from pararecover_core.case_study import FORMS, Source, Spec, Subject, build, files, html, zipped
from pararecover_core.case_study.build import marks, origin, story
from pararecover_core.case_study.files import round_svg
from pararecover_core.case_study.html import LIMIT
from pararecover_core.case_study.latex import tex
from pararecover_core.case_study.markdown import plain
from pararecover_core.case_study.svg import escape, fitted, svg, text_width
from pararecover_core.draw import picture
from pararecover_core.errors import InputError
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Round, Score, ToolCall, parse_tools
from pararecover_core.records import Source as From

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \\input{/etc/passwd} $x$ `a` [b](c) |"
)


def task(id, name="", dep=(), done=False, **para):
    return {"id": id, "name": name, "para": para, "dep": list(dep), "status": done}


def plan(*tasks):
    return Plan.parse({"tasks": [task("root", done=True), *tasks]})


def chain(*, done=(), extra=(), last="2"):
    """Root, 1 find, 2 count, response; 2 is given a text where a number is wanted."""
    return plan(
        task("1", "find", ["root"], "1" in done, place="Leeds"),
        task("2", "count", ["1"], "2" in done, many="four"),
        *extra,
        task("response", dep=[last]),
    )


def again(done=()):
    return task("7", "find", ["root"], "7" in done, place="Leeds"), task(
        "8", "count", ["7"], "8" in done, many=4
    )


def call(node, name, result, **arguments):
    return ToolCall(name, arguments, result, node)


@pytest.fixture
def rounds():
    """Round 1 finds, 2 counts and gets nothing, 3 finds again, 4 counts rightly, 5 answers."""
    return (
        Round(chain(), (call("1", "find", "3 tents", place="Leeds"),)),
        Round(chain(done="1"), (call("2", "count", "", many="four"),), "Three tents."),
        Round(
            chain(done="12", extra=again(), last="8"),
            (call("7", "find", "3 tents", place="Leeds"),),
            "Nothing came back, so node 1 was wrong.",
        ),
        Round(
            chain(done="12", extra=again("7"), last="8"),
            (call("8", "count", "4", many=4),),
            "Counted.",
        ),
        Round(chain(done="12", extra=again("78"), last="8"), (), "Done."),
    )


@pytest.fixture
def instance(rounds):
    tools = parse_tools(
        [
            {"name": "find", "description": "Finds things.", "parameters": {}},
            {
                "name": "count",
                "parameters": {"type": "object", "properties": {"many": {"type": "integer"}}},
            },
        ]
    )
    return Instance(
        *("i1", "17", "q1", 1, From.AUGMENTED, "Count the tents.", tools),
        *(rounds[0].plan, rounds[0].observations),
        tags=("Type_Error",),
        round_gt=3,
    )


def source(rounds, **more):
    given = {"success": True, "outcome": "response", "taken": 5, "s5": 1, **more}
    return Source("agent-x", rounds, tuple(range(1, len(rounds) + 1)), **given)


def score(dimension, value, scorer="human:ada", note=""):
    return Score("r1", dimension, scorer, value, note, "", "1.2")


def test_the_story_of_a_run(rounds, instance):
    case = build(Subject(instance, (source(rounds),)), Spec())
    side = case.sides[0]
    assert case.title == "5 rounds for a task of 3"
    assert side.arithmetic == "3 / 5 = 0.60"
    assert side.formula == "E5 = S × min(1, G / T) = 1 × min(1, 3 / 5)"
    assert side.efficacy == pytest.approx(0.6)
    assert [mark.kind for mark in side.strip] == ["on", "failed", "repeat", "repair", "end"]
    assert [one.number for one in side.rounds] == [2, 3, 5]
    assert [one.caption for one in side.rounds] == [
        "The error begins",
        "The answer to it",
        "The goal",
    ]
    assert case.tools == (("find", "Finds things."), ("count", ""))
    assert case.item == "Item 17, LEVEL-1, Type_Error"


def test_where_the_error_began_and_what_it_reached(rounds, instance):
    found = origin(source(rounds), instance)
    assert (found.round, found.node, found.said) == (2, "2", "returned nothing")
    assert found.call == "count(many=four)"
    assert "many" in found.cause
    assert found.reached == ("response",)
    named = origin(source(rounds), instance, "7")
    assert (named.round, named.said) == (3, "returned a result: 3 tents")
    assert named.reached == ("8", "response")
    with pytest.raises(InputError, match="a node's id"):
        origin(source(rounds), instance, "99")


def test_impact_is_marked_until_the_goal(rounds, instance):
    case = build(Subject(instance, (source(rounds),)), Spec(rounds=(1, 2, 5)))
    assert [one.reached for one in case.sides[0].rounds] == [(), ("response",), ()]


def test_pictures_mark_what_ran_and_what_came(rounds, instance):
    case = build(Subject(instance, (source(rounds),)), Spec(rounds=(3,)))
    states = {node["id"]: node["state"] for node in case.sides[0].rounds[0].picture["nodes"]}
    assert states == {
        "root": "done",
        "1": "done",
        "2": "failed",
        "7": "added",
        "8": "added",
        "response": "changed",
    }
    assert case.sides[0].rounds[0].changes == "added: 7, 8; changed: response"


@pytest.mark.parametrize(
    ("more", "arithmetic", "formula"),
    [
        ({"success": False, "outcome": "round limit"}, "E5 = 0", "S = 0: round limit"),
        ({"taken": 2}, "E5 = 1", "E5 = S × min(1, G / T) = 1 × min(1, 3 / 2)"),
        ({"taken": 40}, "E5 = 0", "40 rounds reach the limit, which counts as a failure"),
        ({"success": None, "taken": None}, "", ""),
    ],
)
def test_efficacy_in_words(rounds, instance, more, arithmetic, formula):
    side = build(Subject(instance, (source(rounds, **more),)), Spec()).sides[0]
    assert (side.arithmetic, side.formula) == (arithmetic, formula)


def test_annotators_have_no_names_unless_asked_for(rounds, instance):
    scores = (
        score("D3", 0.0, note="Blames node 1."),
        score("D3", 0.5, "human:ben"),
        score("D3", 0.5, "judge:gpt-4o@v7", "Shallow."),
    )
    subject = Subject(instance, (source(rounds, scores=scores),))
    case = build(subject, Spec())
    text = json.dumps(case.data()) + html(case)
    assert "ada" not in text
    assert "ben" not in text.replace("benchmark", "")
    line = next(line for line in case.sides[0].scores if line.dimension == "D3")
    assert line.gold is None  # they differ, nobody decided
    assert line.people == (("Annotator 1", 0.0, "Blames node 1."), ("Annotator 2", 0.5, ""))
    assert line.judges == (("gpt-4o@v7", 0.5, "Shallow."),)
    assert case.versions == ("Rubric 1.2", "Judge gpt-4o, prompt v7", "Agent agent-x")
    named = build(subject, Spec(names=True)).sides[0].scores
    assert next(one for one in named if one.dimension == "D3").people[0][0] == "ada"


def test_means_follow_the_scores(rounds, instance):
    """S1 to S4 of 1, 1, 0, 0.5 and S5 of 1: SI is 3.5 / 5 = 70."""
    given = {"S1": 1.0, "S2": 1.0, "S3": 0.0, "S4": 0.5}
    scores = tuple(score(name, value) for name, value in given.items())
    side = build(Subject(instance, (source(rounds, scores=scores),)), Spec()).sides[0]
    assert side.means == {"people": {"SI": 70.0, "DR": None, "ES": None}}


def test_many_scorers_get_wider_tables_and_prompts_only_where_needed(rounds, instance):
    """Four columns of scores: 150 + 4 x 65 = 410 pixels a table."""
    judges = ("judge:gpt-4o@v1", "judge:gpt-4o@v2", "judge:program@1")
    scores = (score("D3", 0.5), *(score("D3", 1.0, judge) for judge in judges))
    page = html(build(Subject(instance, (source(rounds, scores=scores),)), Spec()))
    assert '<div class="bt many" style="--m:410px">' in page
    heads = re.findall(r"<th>([^<]+)</th>", page)
    assert heads[:4] == ["People", "gpt-4o@v1", "gpt-4o@v2", "program"]
    few = html(build(Subject(instance, (source(rounds, scores=scores[:2]),)), Spec()))
    assert '<div class="bt">' in few


@pytest.mark.parametrize(
    ("hide", "gone"),
    [
        ("query", "Count the tents"),
        ("thoughts", "so node 1 was wrong"),
        ("observations", "3 tents"),
        ("efficacy", "3 / 5"),
        ("origin", "Where the error began"),
        ("agent", "agent-x"),
        ("item", "Item 17"),
        ("tools", "Tools used"),
        ("versions", "Rubric 1.2"),
        ("judge", "gpt-4o"),
        ("notes", "Secret note"),
        ("people", "Annotator"),
    ],
)
def test_what_is_hidden_is_in_no_form(rounds, instance, hide, gone):
    scores = (
        score("D3", 0.0, note="Secret note"),
        score("D3", 0.0, "judge:gpt-4o@v7", "Secret note"),
    )
    subject = Subject(instance, (source(rounds, scores=scores),))
    shown, hidden = build(subject, Spec()), build(subject, Spec(hide=(hide,), title="T"))
    assert gone in html(shown)
    for form in ("html", "markdown", "latex", "json"):
        data = b"".join(v for k, v in files(hidden, form).items() if not k.endswith(".png"))
        assert gone not in data.decode()


def test_bad_choices_are_named(rounds, instance):
    subject = Subject(instance, (source(rounds),))
    with pytest.raises(InputError, match="got round 9, expected rounds 1 to 5"):
        build(subject, Spec(rounds=(9,)))
    with pytest.raises(InputError, match="what to hide: got colour"):
        build(subject, Spec(hide=("colour",)))
    with pytest.raises(InputError, match="form: got 'docx'"):
        files(build(subject, Spec()), "docx")


class Parser(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.events = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.events += [name for name, _ in attrs if name.startswith("on")]
        self.events += [v for n, v in attrs if n in ("href", "src") and v]


@pytest.fixture
def hostile(instance):
    bad = plan(
        task(HOSTILE, HOSTILE, ["root"], False, **{HOSTILE: HOSTILE}),
        task("response", dep=[HOSTILE]),
    )
    rounds = (Round(bad, (ToolCall(HOSTILE, HOSTILE, f"Error: {HOSTILE}", HOSTILE),), HOSTILE),)
    scores = (score("D3", 0.0, f"human:{HOSTILE}", HOSTILE), score("D3", 1.0, f"judge:{HOSTILE}"))
    given = Source(HOSTILE, rounds, (1,), False, HOSTILE, 1, 1, scores)
    one = Instance("i", HOSTILE, "q", 1, From.UNKNOWN, HOSTILE, (), bad, (), tags=(HOSTILE,))
    notes = {1: HOSTILE}
    spec = Spec(title=HOSTILE, lead=HOSTILE, captions=notes, notes=notes, names=True)
    return build(Subject(one, (given, given)), spec)


def test_a_hostile_record_is_text_in_html(hostile):
    page = html(hostile)
    parser = Parser()
    parser.feed(page)
    assert parser.tags.count("script") == 1
    assert "img" not in parser.tags
    assert parser.events == []
    assert "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_hostile_record_is_text_in_markdown(hostile):
    text = files(hostile, "markdown")["case-study.md"].decode()
    outside = re.sub(r"(`+)(?:(?!\1).)+?\1(?!`)", "", text)  # code shows what it holds
    assert not re.search(r"(?<!\\)<", outside)
    assert not re.search(r"(?<![\\\]])\[b\]\(", outside)


def test_a_hostile_record_is_text_in_latex(hostile):
    text = files(hostile, "latex")["case-study.tex"].decode()
    assert "\\input{" not in text
    assert "\\textbackslash{}input\\{/etc/passwd\\}" in text
    bare = re.sub(r"\\[{}\\]", "", text)
    assert bare.count("{") == bare.count("}")


def test_special_characters_of_each_form():
    assert tex("50% of_a {b} \\x") == "50\\% of\\_a \\{b\\} \\textbackslash{}x"
    assert tex("a\x00b\ud800c") == "abc"
    assert plain("- *a* <b>") == "\\- \\*a\\* \\<b\\>"
    assert plain("1. a | b") == "1\\. a \\| b"
    assert escape("a\x01<\ud800") == "a\ufffd&lt;\ufffd"


def test_every_form_is_what_it_says(rounds, instance):
    case = build(Subject(instance, (source(rounds),)), Spec())
    made = {form: files(case, form) for form in FORMS}
    assert made["html"]["case-study.html"].startswith(b"<!doctype html>")
    assert json.loads(made["json"]["case-study.json"])["sides"][0]["arithmetic"] == "3 / 5 = 0.60"
    assert all(data.startswith(b"<svg ") for data in made["svg"].values())
    assert all(data.startswith(b"%PDF") for data in made["pdf"].values())
    for data in made["png"].values():
        with Image.open(io.BytesIO(data)) as image:
            assert image.width > 300
    text = made["markdown"]["case-study.md"].decode()
    named = re.findall(r"\]\(([\w.-]+)\)", text)
    assert named == [name for name in made["markdown"] if name.endswith(".png")]
    archive = zipfile.ZipFile(io.BytesIO(zipped(made["markdown"])))
    assert archive.namelist() == list(made["markdown"])


def test_a_page_of_large_plans_stays_below_its_limit(instance):
    """Twelve rounds of 200 nodes with long texts: large drawings are left out, the page stands."""
    long = "x" * 400
    big = [
        plan(
            *(task(str(n), f"tool_{n}", ["root"], n < m, text=long) for n in range(40)),
            task("response", dep=["3"]),
        )
        for m in range(12)
    ]
    given = source(tuple(Round(one, (), long) for one in big), taken=12)
    page = html(build(Subject(instance, (given,)), Spec(rounds=tuple(range(1, 13)))))
    assert len(page.encode()) < LIMIT


def test_two_agents_beside_each_other(rounds, instance):
    other = Source("agent-y", rounds[:2], (1, 2), False, "unparsable", 2)
    case = build(Subject(instance, (source(rounds), other)), Spec())
    assert case.title == "agent-x and agent-y on the same task"
    page = html(case)
    assert '<main class="pp two">' in page
    assert page.index("<h2>agent-x</h2>") < page.index("<h2>agent-y</h2>")
    hidden = build(Subject(instance, (source(rounds), other)), Spec(hide=("agent",)))
    assert [side.agent for side in hidden.sides] == ["Agent A", "Agent B"]


def test_a_broken_plan_is_drawn_as_far_as_it_goes(instance):
    broken = (Round(Plan.parse("no plan at all <b>"), ()),)
    case = build(Subject(instance, (Source("a", broken, (1,), False, "unparsable", 1),)), Spec())
    page = html(case)
    assert "No node of this plan could be read" in page
    assert "no plan at all &lt;b&gt;" in page
    assert marks(Source("a", broken, (1,))) == ["end"]
    assert story(Source("a", broken, (1,)), None) == [1]


def test_drawing_marks_impact_and_fits_text():
    drawn = picture(chain())
    assert svg(drawn, reached=["2"], origin="1").count("url(#hatch)") == 1
    cut = fitted("check_branch_stock_of_everything", 12, 80)
    assert cut.endswith("…")
    assert text_width(cut, 12) <= 80
    assert text_width("中文", 12) == 24


def test_where_edges_come_from_is_drawn_and_said_in_every_form(instance):
    """A log: 2 quotes the result of 1, 3 only came a turn later; 1 was planned before all."""
    first, second, third = (
        task("1", "find", ["root"]) | {"edge_origin": {"root": "given"}},
        task("2", "count", ["1"]) | {"edge_origin": {"1": "values"}},
        task("3", "pay", ["1"]) | {"edge_origin": {"1": "order"}},
    )
    run = (Round(plan(first, second, third, task("response", dep=["2", "3"]))),)
    case = build(Subject(instance, (Source("a", run, (1,)),)), Spec())
    drawn = round_svg(case.sides[0].rounds[0], case.sides[0])
    assert sorted(re.findall(r"stroke-dasharray:(8 3|1.5 3.5)", drawn)) == ["1.5 3.5", "8 3"]
    words = "solid given in the log, dashed inferred from values, dotted inferred from order."
    page = html(case)
    assert all(f'class="e-{kind}"' in page for kind in ("given", "values", "order"))
    assert words in files(case, "markdown")["case-study.md"].decode()
    source = files(case, "latex")["case-study.tex"].decode()
    assert words in source
    assert "dash pattern=on 4pt off 1.5pt" in source
    assert "dash pattern=on 0.75pt off 1.75pt" in source


def test_plans_without_inferred_edges_have_no_legend_of_edges(instance, rounds):
    case = build(Subject(instance, (source(rounds),)), Spec())
    assert 'class="e-' not in html(case)
    assert "Edges:" not in files(case, "markdown")["case-study.md"].decode()
