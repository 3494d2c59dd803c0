import pytest
from streamlit.testing.v1 import AppTest

from annotations import queue
from annotations.adjudicate import Cell, Decision, ItemAgreement, Opinion, PairFigures, gold
from annotations.batches import BatchPlan, Filter, Sampling, list_batches
from annotations.blind import Reveal
from annotations.sampling import Allocation, Stratum
from pararecover_core.rubric import JUDGED, sde_rubric
from tests.queue_data import batch_of_all, make_store, score
from ui import batch_form, queue_view, session
from ui.access import Role, User
from ui.batch_form import Draw
from ui.queue_view import Which


def _page(module: str, role: str, linked: dict[str, str]):
    from importlib import import_module

    import streamlit as st

    from ui import session
    from ui.access import Role, User

    session.enter(User("ada", Role(role)))
    for name, value in linked.items():
        st.query_params.setdefault(name, value)
    import_module(f"pages.annotate.{module}").render()


def use(store, monkeypatch):
    """Let the app open this store; it keeps its database as long as it runs."""
    monkeypatch.setenv("PARARECOVER_DB", str(store.path))
    session.database.clear()
    return store


@pytest.fixture
def store(tmp_path, monkeypatch):
    yield use(make_store(tmp_path, items=6, agents=("agent-a", "agent-b")), monkeypatch)
    session.database.clear()


def open_page(module: str, role: str = "admin", **linked: str) -> AppTest:
    page = AppTest.from_function(
        _page, kwargs={"module": module, "role": role, "linked": linked}, default_timeout=30
    )
    page.run()
    assert not page.exception
    return page


def html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def press(page: AppTest, key: str) -> AppTest:
    next(button for button in page.button if button.key == key).click().run()
    assert not page.exception
    return page


# ---- the views -----------------------------------------------------------------------------


def test_an_annotator_cannot_make_batches_or_decide(store):
    assert "made by administrators" in html(open_page("admin", "annotator"))
    assert "Adjudicators decide here" in html(open_page("adjudication", "annotator"))


@pytest.mark.parametrize("value", ["²", "-1", "9" * 5000, "../../x", "<script>"])
@pytest.mark.parametrize("module", ["admin", "adjudication"])
def test_rubbish_in_a_link_opens_the_newest_batch(store, module, value):
    batch_of_all(store, name="Pilot")
    names = ("batch", "which", "replan", "dimension", "view")
    assert "Pilot" in str(open_page(module, **dict.fromkeys(names, value)))


def test_without_answers_the_page_says_where_to_get_them(tmp_path, monkeypatch):
    use(make_store(tmp_path, items=0), monkeypatch)
    assert "Import a results spreadsheet" in html(open_page("admin"))
    assert "Make a batch" in html(open_page("adjudication"))


def test_the_paper_batch_is_made_in_two_clicks(store):
    page = open_page("admin")
    page.segmented_control(key="prq_new_draw").set_value(Draw.PAPER).run()
    assert "Only 12 replans exist, 400 were asked for each sub-dimension" in html(page)
    assert page.text_input(key="prq_new_name").value == "Paper 1"
    press(page, "prq_make")
    (made,) = list_batches(store)
    assert (made.name, made.items, made.slots, made.created_by) == ("Paper 1", 12, 14, "ada")
    assert "Nobody has started." in html(page)


def test_a_name_that_is_taken_is_refused_on_the_page(store):
    batch_of_all(store, name="Pilot")
    page = press(open_page("admin"), "prq_toggle")
    page.text_input(key="prq_new_name").set_value("Pilot").run()
    press(page, "prq_make")
    assert "batch name: got &#x27;Pilot&#x27; twice" in html(page)
    assert len(list_batches(store)) == 1


def test_progress_and_release(store):
    batch = batch_of_all(store, name="<b>Pilot</b>").id
    queue.next_item(store, batch, "<i>ann</i>")
    page = open_page("admin")
    shown = html(page)
    assert "&lt;b&gt;Pilot&lt;/b&gt;" in shown
    assert "&lt;i&gt;ann&lt;/i&gt;" in shown
    assert "<i>ann" not in shown
    page.number_input(key="prq_minutes").set_value(1).run()
    press(page, "prq_release")
    with store.read() as db:
        state = db.execute("SELECT state FROM assignment").fetchone()[0]
    assert state == "released"


@pytest.fixture
def differing(store):
    batch = batch_of_all(store, annotators_per_item=2, dimensions=("S1", "D3")).id
    for name, values in (("ann", (1.0, 0.0)), ("bob", (0.5, 0.0))):
        queue.open_item(store, batch, name, "r1-a")
        for dimension, value in zip(("S1", "D3"), values, strict=True):
            score(store, "r1-a", name, value, [dimension], batch=batch, note=f"<u>{name}</u>")
        queue.submit(store, batch, name, "r1-a", event=name)
    return batch


@pytest.mark.parametrize("linked", [{}, {"batch": "all"}, {"batch": "1"}])
def test_a_disagreement_is_decided_with_a_reason(store, differing, linked):
    page = open_page("adjudication", **linked)
    assert "EMA 0.500, MAE 0.250 on 1 shared item; 1 of 1 disagreement waits" in html(page)
    assert "&lt;u&gt;ann&lt;/u&gt;" in html(page)
    page.segmented_control(key="prq_value/r1-a/S1/0").set_value(0.5).run()
    press(page, "prq_decide/r1-a/S1/0")
    assert "Say why first" in html(page)
    page.text_area(key="prq_why/r1-a/S1/0").set_value("one step is missing").run()
    press(page, "prq_decide/r1-a/S1/0")
    assert (gold(store, "r1-a", "S1").value, gold(store, "r1-a", "S1").basis) == (
        0.5,
        "adjudicated",
    )
    assert "Nothing waits." in html(page)
    page.segmented_control(key="prq_adj_which").set_value(Which.DECIDED).run()
    assert "one step is missing" in html(page)
    page.segmented_control(key="prq_adj_which").set_value(Which.ITEMS).run()
    assert "0.500" in html(page)


def test_before_two_have_submitted_the_view_says_what_is_missing(store):
    batch_of_all(store)
    assert "No item by two or more annotators yet." in html(open_page("adjudication"))


# ---- the form ------------------------------------------------------------------------------


def test_a_filled_form_becomes_a_plan():
    values = {
        "draw": Draw.STRATIFIED,
        "name": " Pilot ",
        "size": 40,
        "seed": 7,
        "stratify": ["level", "error_type"],
        "equal": True,
        "levels": [2],
        "agents": ["agent-a"],
        "unbatched": True,
        "dimensions": ["S1"],
        "annotators": 3,
        "share": 25,
        "reveal": Reveal.OPEN,
        "stale": 30,
        "hide_outcome": True,
    }
    assert batch_form.plan_of(values, "ada") == BatchPlan(
        "Pilot",
        sampling=Sampling(
            40,
            7,
            (Stratum.LEVEL, Stratum.ERROR_TYPE),
            Allocation.EQUAL,
            where=Filter(levels=(2,), agents=("agent-a",), unbatched=True),
        ),
        dimensions=("S1",),
        annotators_per_item=3,
        overlap=0.25,
        reveal=Reveal.OPEN,
        stale_minutes=30.0,
        hide_outcome=True,
        created_by="ada",
    )


def test_an_untouched_form_is_a_random_sample_of_all_judged_sub_dimensions():
    plan = batch_form.plan_of({"name": "A"})
    assert plan == BatchPlan("A", sampling=Sampling(100), dimensions=JUDGED)


def test_strata_of_a_form_count_only_where_it_is_stratified():
    assert batch_form.plan_of({"name": "A", "stratify": ["level"]}).sampling.stratify == ()


def test_free_names():
    assert batch_form.free_name({"Batch 2", "x"}, Draw.RANDOM) == "Batch 3"
    assert batch_form.free_name(set(), Draw.PAPER) == "Paper 1"
    assert batch_form.is_free_name("Paper 12")
    assert batch_form.is_free_name("")
    assert not batch_form.is_free_name("Paper 12b")


# ---- text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("agent-a", r"agent\-a"),
        ("[x](http://y)", r"\[x\]\(http\://y\)"),
        ("**b** $x$", r"\*\*b\*\* \$x\$"),
        ("two\nlines", "two lines"),
        (":red[x]", r"\:red\[x\]"),
    ],
)
def test_labels_are_shown_as_they_are(text, shown):
    assert queue_view.plain(text) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "\N{EN DASH}"), (5, "0:05"), (59.6, "1:00"), (125, "2:05")]
)
def test_clock(seconds, shown):
    assert queue_view.clock(seconds) == shown


def test_moments_are_utc_and_what_is_none_stays():
    assert queue_view.moment("2026-12-01T09:05:00.000+01:00") == "1 Dec 2026, 08:05 UTC"
    assert queue_view.moment("yesterday") == "yesterday"


def _item(values, decision=None, position=1):
    opinions = tuple(Opinion(f"a{n}", v, "", "t1", False) for n, v in enumerate(values))
    cells = (Cell("r", "S1", opinions, decision),)
    return ItemAgreement("r", "i", position, ("a0", "a1"), cells, 1, 0.0, 0.5)


def test_lists_of_disagreements():
    decision = Decision("r", "S1", 1, 0.5, "eve", "so", "t0")
    waits, decided, agreed = _item((1, 0)), _item((1, 0.5), decision), _item((1, 1))
    items = [waits, decided, agreed]
    found = {which: len(queue_view.cells_of(items, which)) for which in Which}
    assert found == {Which.WAITING: 1, Which.DECIDED: 1, Which.ALL: 2, Which.ITEMS: 2}
    assert queue_view.cell_label(waits, waits.cells[0]) == "**S1** item 1"
    assert queue_view.cell_caption(waits.cells[0]) == "a0 1, a1 0"
    assert queue_view.cell_caption(decided.cells[0]).endswith(
        r"decided 0\.5 by eve; scores changed since"
    )


def test_agreement_in_words():
    figures = PairFigures(2, 26, 0.5, 0.25, 3, 1)
    assert queue_view.pairs_line(figures) == (
        "EMA 0.500, MAE 0.250 on 2 shared items; 1 of 3 disagreements waits"
    )


def test_descriptions_of_batches(store):
    plain = batch_of_all(store, created_by="ada")
    assert queue_view.description(plain, JUDGED) == (
        "4 items · all 13 judged sub-dimensions · one annotator each · revealed after submitting"
        " · given replans · made 2 Jun 2025, 09:00 UTC by ada"
    )
    shared = batch_of_all(
        store, name="B", annotators_per_item=2, overlap=0.2, dimensions=("S1", "D3")
    )
    assert "S1, D3 · 20% of items by 2 annotators, others by one" in queue_view.description(
        shared, JUDGED
    )


def test_anchors_show_all_three():
    shown = queue_view.anchors(sde_rubric().dimension("D3"))
    assert "names the true cause" in shown
    assert "wrong cause, or none" in shown


@pytest.mark.parametrize("which", [one for one in Which if one is not Which.WAITING])
def test_a_link_opens_what_adjudication_listed(store, which):
    page = open_page("adjudication", which=which.name.lower())
    assert page.segmented_control(key="prq_adj_which").value == which
    page.segmented_control(key="prq_adj_which").set_value(Which.WAITING).run()
    assert "which" not in page.query_params


def test_an_admin_may_adjudicate():
    assert User("ada", Role.ADMIN).may(Role.ADJUDICATOR)
