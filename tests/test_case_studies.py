"""Case studies from a database: items, blindness, the gallery, versions, the command."""

import json
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

from annotations import case_studies
from annotations.store import Store
from pararecover_cli.main import cli
from pararecover_core.case_study import Spec, build
from pararecover_core.errors import InputError, StoreError

RUN = "1474b3e11aef"
"""The long run of the sample data."""
INSTANCE = "31f8c54d1944"


@pytest.fixture
def store(sample_database, tmp_path):
    path = tmp_path / "study.db"
    shutil.copy(sample_database, path)
    return Store(path)


def replan(store, agent):
    return next(one.key for one in store.replans_of(INSTANCE) if one.agent == agent)


def test_the_shipped_example_tells_appendix_b(store):
    """Node 3 returns nothing for an argument of the wrong type; node 7 starts again; 6 / 18."""
    case = case_studies.make(store, case_studies.example(store))
    side = case.sides[0]
    assert side.arithmetic == "6 / 18 = 0.33"
    assert (len(side.strip), side.optimal, side.taken) == (18, 6, 18)
    assert (side.origin.round, side.origin.node) == (3, "3")
    assert side.origin.said == "returned nothing"
    assert "must be an array" in side.origin.cause
    assert side.origin.reached == ("4", "5", "response")
    answer = next(one for one in side.rounds if one.number == 4)
    assert "node 7 starts the whole workflow again" in answer.thought
    assert "added: 7, 8, 9, 10, 11" in answer.changes
    assert "removed: 4, 5" in answer.changes
    assert side.scores


def test_no_example_where_the_sample_is_not(tmp_path):
    assert case_studies.example(Store(tmp_path / "empty.db")) is None


def test_an_item_is_a_replan_an_instance_or_a_run(store):
    by_run = case_studies.subject(store, RUN)
    by_replan = case_studies.subject(store, replan(store, "agent-b"))
    assert by_run == by_replan
    assert case_studies.subject(store, INSTANCE).instance.key == INSTANCE
    with pytest.raises(StoreError, match="not in the database"):
        case_studies.subject(store, "0" * 12)


def test_two_agents_on_one_instance(store):
    both = case_studies.subject(store, RUN, replan(store, "agent-a"))
    assert [source.agent for source in both.sources] == ["agent-b", "agent-a"]
    assert [source.taken for source in both.sources] == [18, 6]
    with store.read() as db:
        query = "SELECT key FROM replan WHERE instance <> ? LIMIT 1"
        elsewhere = db.execute(query, (INSTANCE,)).fetchone()["key"]
    with pytest.raises(InputError, match="expected one instance"):
        case_studies.subject(store, RUN, elsewhere)


def test_what_one_still_scores_blind_is_refused(store):
    from annotations.queue import next_item

    with store.read() as db:
        batch = db.execute("SELECT id FROM batch").fetchone()["id"]
    work = next_item(store, batch, "zoe")
    assert case_studies.subject(store, work.replan)
    with pytest.raises(InputError, match="still score blind"):
        case_studies.subject(store, work.replan, reader="zoe")


def test_every_save_is_a_version(store):
    first = case_studies.save(store, " My  case ", RUN, Spec(title="A"), event="e1", author="ada")
    again = case_studies.save(store, "My case", RUN, Spec(title="A"), event="e1")
    second = case_studies.save(
        store, "My case", RUN, Spec(title="B", rounds=(3,), notes={3: "n"}), event="e2"
    )
    assert (first.name, first.version, first.author) == ("My case", 1, "ada")
    assert again == first
    assert second.version == 2
    assert [one.spec.title for one in case_studies.versions(store, "My case")] == ["B", "A"]
    assert case_studies.gallery(store) == [second]
    assert case_studies.saved(store, "My case", 1) == first
    assert case_studies.saved(store, "My case").spec.notes == {3: "n"}
    with pytest.raises(InputError, match="one of: My case"):
        case_studies.saved(store, "Other")
    with pytest.raises(InputError, match="got none, expected a name"):
        case_studies.save(store, "  ", RUN, Spec(), event="e3")


def test_taking_out_keeps_versions_and_a_later_save_goes_on(store):
    case_studies.save(store, "C", RUN, Spec(), event="e1")
    case_studies.take_out(store, "C", event="e2")
    assert case_studies.gallery(store) == []
    assert case_studies.save(store, "C", RUN, Spec(), event="e3").version == 3
    with store.write() as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute("DELETE FROM case_study")


def test_a_saved_one_shows_new_scores(store):
    made = case_studies.save(store, "C", RUN, Spec(), event="e1")
    before = build(case_studies.subject(store, RUN), made.spec)
    assert case_studies.make(store, made) == before


def run(*words):
    return CliRunner().invoke(cli, ["export", "case-study", *words])


def test_the_command_writes_each_form(store, tmp_path):
    page = tmp_path / "case.html"
    done = run("--item", RUN, "--db", str(store.path), "--out", str(page), "--title", "T <1>")
    assert done.exit_code == 0, done.output
    assert "<h1>T &lt;1&gt;</h1>" in page.read_text(encoding="utf-8")
    folder = tmp_path / "pictures"
    done = run("--item", RUN, "--db", str(store.path), "--form", "svg", "--out", str(folder))
    assert done.exit_code == 0, done.output
    assert next(path.name for path in sorted(folder.iterdir())) == "a-round-03.svg"
    data = tmp_path / "case.json"
    done = run("--example", "--out", str(data), "--hide", "people", "--hide", "judge")
    assert done.exit_code == 0, done.output
    assert json.loads(data.read_text(encoding="utf-8"))["sides"][0]["scores"] == []


def test_the_command_says_what_is_missing(store, tmp_path):
    done = run("--db", str(store.path), "--out", str(tmp_path / "case.html"))
    assert "expected one of --item, --saved and --example" in str(done.exception)
    done = run("--item", RUN, "--db", str(store.path), "--out", str(tmp_path / "case.docx"))
    assert "--form" in str(done.exception)
