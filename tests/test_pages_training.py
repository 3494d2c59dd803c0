"""Training data and Dataset as pages: on the sample, on nothing, by link, and for whom."""

import shutil

import pytest

from annotations import training
from annotations.batches import BatchPlan, create_batch
from annotations.judge_job import current_job
from annotations.store import Store
from annotations.training_files import KINDS
from pararecover_core.preferences import Rules, select
from tests.store_data import entry
from tests.test_pages_calibrate import _page, _said
from tests.training_data import JUDGE, scored_store


def page(monkeypatch, db, **more):
    return _page(monkeypatch, db, page="training", **more)


def keys(app, start):
    return [one.key for one in app.button if one.key and one.key.startswith(start)]


@pytest.fixture
def scored(tmp_path):
    return scored_store(tmp_path / "t.db", tasks=10)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_shows_its_counts_and_examples(monkeypatch, scored, kind):
    app = page(monkeypatch, scored.path, kind=kind)
    said = _said(app)
    assert "<b>9</b> tasks to train" in said
    assert "<b>1</b> tasks to test" in said
    assert app.selectbox(key=f"tr_scorer_{JUDGE}").value == JUDGE
    if kind == "stepwise":
        assert "No run has a label for each of its rounds" in said
        return
    # 14.5 above 10 and 4 below; a pair of both; KTO: 14.5 good, 4 bad
    assert f"<b>{18 if kind == 'kto' else 9}</b>" in said
    assert "trajectories?item=" in said
    assert len(keys(app, "tr_read_")) == (12 if kind == "kto" else 9)


def test_an_example_is_read_and_put_back(monkeypatch, scored):
    first = select(training.candidates(scored, JUDGE), Rules(), kind="sft").examples[0]
    why = {"reason": "<i>dull</i>", "by": "Ada", "event": "1"}
    training.decide(scored, "sft", first.id, keep=False, **why)
    app = page(monkeypatch, scored.path)
    app.button(key="tr_read_0").click().run()
    assert "I am good" in _said(app)
    assert "dropped by hand" in _said(app)
    app.segmented_control(key="tr_side").set_value("out").run()
    assert "Taken out by Ada" in _said(app)
    assert "&lt;i&gt;dull&lt;/i&gt;" in _said(app)
    app.button(key="tr_undo_0").click().run()
    assert [one.keep for one in training.decisions(scored)] == [False, True]
    assert "Nothing was taken out by hand" in _said(app)


def test_thresholds_that_nothing_passes_say_what_to_do(monkeypatch, scored):
    app = page(monkeypatch, scored.path)
    app.number_input(key="tr_above").set_value(14.5).run()
    assert "No total is above 14.5: the best one is 14.5. Lower the threshold." in _said(app)
    app = page(monkeypatch, scored.path, kind="dpo")
    app.number_input(key="tr_gap").set_value(11.0).run()
    assert "No two answers to one instance differ enough" in _said(app)


def test_a_list_that_leaks_is_refused(monkeypatch, tmp_path):
    store = scored_store(tmp_path / "t.db", tasks=4)
    app = page(monkeypatch, store.path)
    app.text_area(key="tr_queries").set_value("nothing of this").run()
    assert "none of them in the data" in _said(app)


def test_the_sample_gives_pairs_after_a_click(monkeypatch, sample_database, tmp_path):
    db = shutil.copy(sample_database, tmp_path / "sample.db")
    app = page(monkeypatch, db, kind="dpo")
    assert "Lower the gap" in _said(app)
    app.button(key="tr_program").click().run()
    store = Store(tmp_path / "sample.db")
    current_job(store).wait(60)
    app = page(monkeypatch, db, kind="dpo")
    assert app.selectbox(key="tr_scorer_judge:program@1").value == "judge:program@1"
    assert keys(app, "tr_read_")


def test_nothing_to_show_says_what_to_do(monkeypatch, tmp_path):
    Store(tmp_path / "empty.db")
    assert "There are no answers here yet" in _said(page(monkeypatch, tmp_path / "empty.db"))
    scored_store(tmp_path / "bare.db", tasks=1, scorer="human:ann")
    store = Store(tmp_path / "bare.db")
    with store.write() as db:
        db.execute("DROP TRIGGER IF EXISTS score_log_delete")
        names = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'")
        ]
        for name in names:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM score_log WHERE dimension = 'E5'")
    said = _said(page(monkeypatch, tmp_path / "bare.db"))
    assert "No answer has all 15 sub-dimensions scored yet" in said
    assert "E5 comes from running on" in said


def test_annotators_stay_blind(monkeypatch, scored):
    app = page(monkeypatch, scored.path, role="annotator")
    assert "so that annotators stay blind" in _said(app)
    assert not app.selectbox


def test_the_dataset_page_takes_a_batch_from_the_link(monkeypatch, scored):
    key = training.candidates(scored, JUDGE)[0].replan
    batch = create_batch(scored, BatchPlan("First <b>", replans=(key,), created_by="lead"))
    app = _page(monkeypatch, scored.path, page="dataset", batch=str(batch.id))
    assert app.selectbox(key="_export_batch").value == batch.id
    app.selectbox(key="_export_shape").set_value("log").run()
    assert app.selectbox(key="_export_batch").disabled
    assert app.segmented_control(key="_export_form_log").options == ["JSONL"]
    app = _page(monkeypatch, scored.path, page="dataset", batch="77")
    assert app.selectbox(key="_export_batch").value is None
    scored.append([entry(key, "S1", 1.0)])
    monkeypatch.setattr("pages.dataset.take._DOWNLOADED", 1)
    app = _page(monkeypatch, scored.path, page="dataset", batch=str(batch.id))
    app.toggle(key="_export_hidden").set_value(True).run()
    said = _said(app)
    assert "too much to pass through a browser" in said
    assert "--batch &#x27;First &lt;b&gt;&#x27; --anonymise --out scores.csv" in said
