"""Refine as a page: empty, with a session, with versions, and refused to who may not."""

import pytest
from streamlit.testing.v1 import AppTest

from annotations import sessions
from annotations.judge_job import JudgeJob
from annotations.prompts import get_prompt, save_version
from annotations.refine_board import CellPick, board, people_ceiling, worst_cells
from annotations.refining import prepare_run, versions
from annotations.score_log import ScoreEntry
from annotations.sessions import SessionPlan, Side, create_session
from annotations.store import Store
from tests.model_server import serving
from tests.queue_data import batch_of_all, make_store, score
from tests.test_pages_calibrate import _said, _script
from tests.test_refining import reply, store  # noqa: F401 (a fixture)


@pytest.fixture
def refined(store, monkeypatch):  # noqa: F811
    """A session with two versions of a judge on dev."""
    first = get_prompt(store, "d-1")
    second = save_version(
        store, first, first.text + "\nAlways <b>weigh twice</b>.", note="<i>twice</i>", author="ada"
    )
    with serving(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for prompt, side in ((first, Side.DEV), (second, Side.DEV), (second, Side.HELD_OUT)):
            job = JudgeJob(store, prepare_run(store, 1, "m", prompt.name, side).parts).start()
            job.wait(60)
    return store


def page(monkeypatch, db, role="admin"):
    monkeypatch.setenv("PARARECOVER_DB", str(db))
    app = AppTest.from_function(_script, args=("refine", role), default_timeout=60).run()
    assert not app.exception
    return app


def test_an_empty_database_says_what_to_do(monkeypatch, tmp_path):
    Store(tmp_path / "empty.db")
    app = page(monkeypatch, tmp_path / "empty.db")
    assert "No calibration session yet" in _said(app)
    assert not app.get("bidi_component")


def test_a_session_without_a_judge_says_what_to_do(monkeypatch, store):  # noqa: F811
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    said = _said(page(monkeypatch, store.path))
    assert "Pilot has no figures yet" in said
    assert "No model has judged dev" in said


def test_versions_are_drawn(monkeypatch, refined):
    app = page(monkeypatch, refined.path)
    assert len(app.get("bidi_component")) == 1
    assert app.selectbox(key="refine_session").value == "Pilot"


def test_calibrate_leaves_out_what_is_held_out_until_a_look_is_counted(monkeypatch, refined):
    monkeypatch.setenv("PARARECOVER_DB", str(refined.path))
    app = AppTest.from_function(_script, args=("calibrate", "admin"), default_timeout=60)
    app.query_params["judge"] = "judge:m@d-2"
    app.run()
    assert not app.exception
    assert "held out by Pilot and sealed" in _said(app)
    button = app.button(key="calibrate_open")
    assert button.label == "Count them in: look 1"
    button.click().run()
    assert not app.exception
    assert "With what Pilot holds out: looks so far 1" in _said(app)
    assert [one.data["scorer"] for one in sessions.looks(refined, 1)] == ["judge:m@d-2"]
    app.button(key="calibrate_seal").click().run()
    assert "and sealed" in _said(app)
    app.query_params["judge"] = "judge:m@d-1"  # judged dev alone: nothing to open
    assert sessions.readiness(refined, 1, "judge:m@d-1").judged == 0


def test_a_version_that_waits_is_offered_to_be_run(monkeypatch, refined):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    save_version(
        refined, get_prompt(refined, "d-2"), get_prompt(refined, "d-2").text + "\nShort.",
        note="short", author="ada",
    )  # fmt: skip
    app = page(monkeypatch, refined.path)
    assert "d-3 is saved; m has not run it on dev: short" in _said(app)
    label = app.button(key="refine_run_new").label
    assert label.startswith("Run d-3 on dev, ")


def test_a_version_that_judged_in_part_says_so(refined):
    one, *_ = [c for c, _ in sessions.wanted(refined, 1, Side.DEV)]
    third = save_version(
        refined, get_prompt(refined, "d-2"), get_prompt(refined, "d-2").text + "\nShort.",
        note="short", author="ada",
    )  # fmt: skip
    scorer = f"judge:m@{third.name}"
    refined.append([ScoreEntry("only", one, "D1", scorer, 1.0)])
    session, rows = sessions.get_session(refined, 1), versions(refined, 1, "m", resamples=20)
    data = board(refined, session, rows, rows[0], people_ceiling(refined, session))
    assert data["rows"][0]["note"] == "Only 1 of 80 cells judged: run it again. short"
    assert data["rows"][1]["note"] == "<i>twice</i>"


def test_a_prompt_of_some_sub_dimensions_is_whole_with_its_own(tmp_path):
    made = make_store(tmp_path, items=12)
    batch = batch_of_all(made, items=12, dimensions=("S1", "D1")).id
    for n in range(1, 13):
        score(made, f"r{n}-a", "ann", 1.0, ("S1", "D1"))
    session = create_session(made, SessionPlan("Pilot", batch=batch))
    made.append(
        [ScoreEntry(f"e{n}", f"r{n}-a", "D1", "judge:m@d-1", 1.0, "why") for n in range(1, 13)]
    )
    rows = versions(made, session.id, "m", resamples=20)
    data = board(made, session, rows, rows[0], people_ceiling(made, session))
    assert data["rows"][0]["note"] == get_prompt(made, "d-1").note
    assert (data["sealed"]["ready"], data["sealed"]["whole"]) == ("4 of 4 cells judged", True)


def test_no_chart_of_versions_without_a_figure(monkeypatch, tmp_path):
    made = make_store(tmp_path, items=2)
    create_session(made, SessionPlan("Pilot", batch=batch_of_all(made, items=2).id))
    for name in ("d-1", "sde-1"):
        made.append([ScoreEntry(name, f"r{n}-a", "D1", f"judge:m@{name}", 1.0) for n in (1, 2)][:1])
    app = page(monkeypatch, made.path)
    assert app.get("bidi_component")
    assert "EMA over prompt versions" not in {one.label for one in app.expander}


def test_cells_are_listed_by_kind_sub_dimension_and_page(refined):
    session, rows = sessions.get_session(refined, 1), versions(refined, 1, "m", resamples=20)
    top = people_ceiling(refined, session)

    def cells(**pick):
        return board(refined, session, rows, rows[0], top, pick=CellPick(**pick))["cells"]

    moved = rows[0].changed.overall
    texts = [kind["text"] for kind in cells()["kinds"]]
    assert texts == [
        f"Fixed {moved.fixed}", f"Broken {moved.broken}", f"Unchanged {moved.same}",
    ]  # fmt: skip
    assert {row["move"] for row in cells(move="same")["rows"]} == {"same"}
    assert {row["dimension"] for row in cells(move="same", dimension="D2")["rows"]} == {"D2"}
    assert cells(move="same", page=99)["page"] == cells(move="same")["pages"]
    assert CellPick.of({"move": "x", "dimension": "Z9", "page": "2"}) == CellPick()
    assert cells()["rows"][0]["item"].endswith("agent-a")


def test_annotators_stay_blind(monkeypatch, refined):
    app = page(monkeypatch, refined.path, role="annotator")
    assert "open to adjudicators and admins" in _said(app)
    assert not app.get("bidi_component")


def test_what_the_board_draws(refined):
    session = sessions.get_session(refined, 1)
    rows = versions(refined, 1, "m", resamples=200)
    top = people_ceiling(refined, session)
    data = board(refined, session, rows, rows[0], top, repeats=["a b"])
    newest, oldest = data["rows"]
    assert (newest["label"], newest["verdict"], newest["by"]) == ("d-2", "better", "ada")
    assert (oldest["verdict"], oldest["diff"]) == ("start", "")
    assert newest["note"] == "<i>twice</i>"  # text; the page puts it in as text
    assert data["chosen"]["title"] == "d-1 to d-2"
    assert data["chosen"]["words"] == "1 line added, 0 removed"
    assert data["chosen"]["lines"][-1]["parts"] == [["Always <b>weigh twice</b>.", True]]
    assert data["ceiling"]["at"] is None  # nobody scored twice
    assert {m["id"] for m in data["moved"]} == {"D1", "D2"}
    fixed = [row for row in data["cells"]["rows"] if row["move"] == "fixed"]
    assert len(fixed) == min(newest["fixed"], 60)
    assert data["sealed"]["looks"] == 0
    assert data["sealed"]["next"] == 1
    sessions.look(refined, 1, rows[0].scorer, author="ada", resamples=20)
    after = board(refined, session, rows, rows[0], top)["sealed"]
    assert (after["looks"], after["opened"], after["next"]) == (1, True, 2)
    assert "gap" in after["lines"][0]["text"]
    first = board(refined, session, rows, rows[1], top)
    assert first["cells"]["rows"] == first["moved"] == []
    assert first["chosen"]["whole"]


def test_disagreements_beside_the_editor_are_of_dev(refined):
    dev = {key for key, _ in sessions.wanted(refined, 1, Side.DEV)}
    found = worst_cells(refined, 1, "judge:m@d-1")
    assert found
    assert {cell.sample for cell in found} <= dev
    only = worst_cells(refined, 1, "judge:m@d-1", ("D2",), most=2)
    assert [cell.dimension for cell in only] == ["D2", "D2"]
    assert [cell.gap for cell in found] == sorted((c.gap for c in found), reverse=True)
