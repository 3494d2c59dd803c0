"""Reports from a database: any scorer, kept up to date, and the commands that print them."""

import json
import shutil
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from annotations import results
from annotations.results import REPORTS, Wanted
from annotations.search import search
from annotations.search_links import from_query
from annotations.store import ScoreEntry, Store
from pages.results.table import html
from pararecover_cli.main import cli
from pararecover_core.errors import InputError
from pararecover_core.report import Cell, Report, Row
from pararecover_core.report.counts import distribution_tables
from pararecover_core.report.figures import chart, drawn
from tests.paper_tables import TABLE_8, TABLE_10, TABLE_11, table

JUDGE = "judge:judge-a@v1"


@pytest.fixture
def store(sample_database, tmp_path):
    path = tmp_path / "study.db"
    shutil.copy(sample_database, path)
    return Store(path)


def score(store, replan, dimension, value, scorer=JUDGE, base=0):
    entry = ScoreEntry(
        event=f"{replan}{dimension}{scorer}{base}",
        replan=replan,
        dimension=dimension,
        scorer=scorer,
        value=value,
        base_revision=base,
        action="score" if value is not None else "clear",
    )
    return store.append([entry])


def test_a_scorer_is_named_with_or_without_its_kind(store):
    for whole in (JUDGE, "human:ann"):
        short = whole.partition(":")[2]
        one, other = (
            results.make(store, Wanted("leaderboard", name, resamples=0)) for name in (whole, short)
        )
        assert [made.notes for made in one] == [made.notes for made in other]


def test_the_scorers_and_a_report_of_each(store):
    assert results.scorers(store) == [JUDGE, "gold", "human:ann", "human:ben"]
    for scorer in results.scorers(store):
        made = results.make(store, Wanted("leaderboard", scorer, resamples=0))[0]
        assert [row.labels[0] for row in made.rows][:2] == ["agent-a", "agent-b"]
    for name in set(REPORTS) - {"cross-judge"}:
        assert results.make(store, Wanted(name, resamples=50))[0].rows


def test_means_are_those_of_the_log(store):
    """S1 of agent-a at LEVEL-1 by hand from SQL; the report's SI is the mean of five such."""
    with store.read() as db:
        query = (
            "SELECT s.dimension, AVG(s.value) FROM score_current s"
            " JOIN replan r ON r.key = s.replan JOIN instance i ON i.key = r.instance"
            " WHERE s.scorer = ? AND r.agent = 'agent-a' AND i.level = 1 GROUP BY s.dimension"
        )
        means = {row[0]: row[1] for row in db.execute(query, (JUDGE,))}
        s5 = db.execute(
            "SELECT AVG(r.s5) FROM replan r JOIN instance i ON i.key = r.instance"
            " WHERE r.agent = 'agent-a' AND i.level = 1"
        ).fetchone()[0]
    wanted = 100 * (sum(means[f"S{n}"] for n in range(1, 5)) + s5) / 5
    made = results.make(store, Wanted("leaderboard", JUDGE, resamples=0))[0]
    assert made.rows[0].cells[0].value == pytest.approx(wanted)


@pytest.mark.parametrize("name", sorted(set(REPORTS) - {"cross-judge"}))
def test_each_figure_leads_to_what_is_behind_it(store, name):
    for made in results.make(store, Wanted(name, resamples=0, types=True)):
        rows = [row for row in made.rows if row.labels != ("Overall",)]
        counted = [cell for row in rows for cell in row.cells if cell.n]
        assert counted
        assert all(cell.link for cell in counted)


def test_a_judge_free_figure_opens_its_runs(store):
    with store.read() as db:
        instance = dict(db.execute("SELECT key, instance FROM trajectory").fetchall())
    for row in results.make(store, Wanted("judge-free", types=True))[0].rows:
        (query,) = {cell.link for cell in row.cells if cell.n}
        shown = search(store, from_query(parse_qs(query))[0], size=500).rows
        listed = {one.instance for one in shown if one.run}
        assert {instance[key] for cell in row.cells for key in cell.keys} <= listed


def test_new_scores_are_taken_in(store):
    before = results.load(store, JUDGE)
    with store.read() as db:
        fresh = db.execute(
            "SELECT key FROM replan WHERE key NOT IN (SELECT replan FROM score_log) LIMIT 1"
        ).fetchone()["key"]
    score(store, fresh, "S1", 0.5)
    after = results.load(store, JUDGE)
    count = [int((~(one.values[:, 0] != one.values[:, 0])).sum()) for one in (before, after)]
    assert count[1] == count[0] + 1
    score(store, fresh, "S1", None, base=1)
    again = results.load(store, JUDGE)
    assert int((again.values[:, 0] == again.values[:, 0]).sum()) == count[0]


def test_two_judges(store):
    with pytest.raises(InputError, match="expected two judges"):
        results.make(store, Wanted("cross-judge"))
    with store.read() as db:
        rows = db.execute(
            "SELECT replan, dimension, value FROM score_current WHERE scorer = ?", (JUDGE,)
        ).fetchall()
    for row in rows[:200]:
        score(store, row["replan"], row["dimension"], row["value"], "judge:other@1")
    made = results.make(store, Wanted("cross-judge", resamples=0))[0]
    assert made.columns[:2] == ("L1 judge-a@v1", "L1 other@1")
    assert made.rows[0].cells[0].n == made.rows[0].cells[1].n


def test_words_that_are_wrong_are_named(store):
    for wanted, words in (
        (Wanted("table-9"), "got 'table-9'"),
        (Wanted("leaderboard", "judge:none"), "got 'judge:none'"),
        (Wanted("leaderboard", "gold", agents=("nobody",)), "got nobody"),
    ):
        with pytest.raises(InputError, match=words):
            results.make(store, wanted)


def test_an_empty_database_has_reports_without_rows(tmp_path):
    store = Store(tmp_path / "empty.db")
    assert results.scorers(store) == []
    for name in set(REPORTS) - {"cross-judge"}:
        assert not any(
            cell.n
            for one in results.make(store, Wanted(name))
            for r in one.rows
            for cell in r.cells
        )


def test_table_10_and_11():
    """Totals, counts and shares as printed, but table 11's third total (2,750 for 2,749)."""
    counts = {(1, 1, kind): int(f[0]) for kind, f in table(TABLE_10).items() if kind != "Total"}
    for kind, figures in table(TABLE_11).items():
        if kind != "Total":
            counts |= {(2, r + 1, kind): int(figures[2 * r]) for r in range(3)}
    first, second = distribution_tables(counts)
    rows = {row.labels[0]: row.cells for row in first.rows}
    for kind, figures in table(TABLE_10).items():
        assert rows[kind][0].value == int(figures[0])
        assert rows[kind][1].value == pytest.approx(
            float(figures[1]), abs=0.0101
        )  # cut, not rounded
    rows = {row.labels[0]: row.cells for row in second.rows}
    for kind, figures in table(TABLE_11).items():
        for place, figure in enumerate(figures):
            wanted = 2749 if (kind, place) == ("Total", 4) else float(figure)
            assert rows[kind][place].value == pytest.approx(wanted, abs=0.0151)
    assert second.rows[-1].cells[4].value == 2749


def test_table_8_has_its_columns(store):
    made = results.make(store, Wanted("judge-free"))[0]
    assert len(next(iter(table(TABLE_8).values()))) == 8  # four figures a level
    assert made.columns[:4] == ("Tool Use Eff.", "E5", "Invalid DAG Rate", "Pass@1")
    rows = {row.labels[:2]: row.cells for row in made.rows}
    # agent-b at LEVEL-1: E5 6/18 and, at the limit of 40 rounds, 0; one of two passes
    assert rows["agent-b", "1"][1].value == pytest.approx(100 * (6 / 18) / 2)
    assert rows["agent-b", "1"][3].value == 50
    typed = results.make(store, Wanted("judge-free", types=True))[0].rows
    assert [row for row in typed if row.labels[2] == "all"] == list(made.rows)
    kinds = {row.labels[2]: row.cells[1].n for row in typed if row.labels[:2] == ("agent-b", "1")}
    assert kinds == {"all": 2, "Tool_name_Error": 1, "Type_Error": 1}


def test_pictures(store):
    made = results.make(store, Wanted("frequency"))[0]
    for kind, begin in {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}.items():
        assert drawn(chart(made, log=True), kind).startswith(begin)


def test_a_hostile_name_is_text_in_the_table():
    cell = Cell(1.0, 3, low=0.5, high=1.5, link='agent="><b>')
    report = Report("<b>T", ("Model",), ("L1 <i>",), (Row(("<script>x",), (cell,)),), (2,))
    page = html(report, intervals=True, page="trajectories")
    assert "<script>" not in page
    assert "<b>" not in page.replace("<b>T", "")
    assert "&lt;script&gt;x" in page
    assert "[0.50, 1.50]" in page


def run(*words):
    return CliRunner().invoke(cli, ["report", *words])


def test_commands_print_each_table(store, tmp_path):
    db = str(store.path)
    for name in ("leaderboard", "error-types", "agreement", "training", "e5-pass1", "frequency"):
        done = run(name, "--db", db, "--format", "markdown")
        assert done.exit_code == 0, done.output
        assert done.output.startswith("**")
    for name in ("judge-free", "distribution"):
        assert run(name, "--db", db).exit_code == 0
    picture = tmp_path / "lead.svg"
    done = run("leaderboard", "--db", db, "--json", "--figure", str(picture), "--scorer", "gold")
    assert json.loads(done.output)["title"] == "Leaderboard"
    assert picture.read_bytes().startswith(b"<svg")
    assert "a name that ends in" in str(
        run("leaderboard", "--db", db, "--figure", "x.docx").exception
    )
    assert "a database" in str(run("leaderboard", "--db", str(tmp_path / "no.db")).exception)


def test_both_commands_ask_which_of_several_judges(store):
    with store.read() as db:
        replan = db.execute("SELECT key FROM replan ORDER BY key").fetchone()[0]
    score(store, replan, "D1", 1.0, "judge:judge-b@v2")
    compare = ["report", "agreement", "--resamples", "0"], ["agree", "--resamples", "0"]
    for words in compare:
        words += ["--db", str(store.path)]
        refused = CliRunner().invoke(cli, words)
        assert "got 2 scorers" in str(refused.exception)
        assert "judge:judge-b@v2" in str(refused.exception)
        assert "got 'nobody'" in str(
            CliRunner().invoke(cli, [*words, "--human", "nobody"]).exception
        )
        done = CliRunner().invoke(cli, [*words, "--judge", "judge-a@v1", "--human", "ann"])
        assert JUDGE in done.output
        assert "human:ann" in done.output


def test_commands_say_what_is_missing_in_an_empty_database(tmp_path):
    db = str(Store(tmp_path / "empty.db").path)
    assert "no run" in str(run("judge-free", "--db", db).exception)
    for words in (["report", "agreement"], ["agree"]):
        refused = str(CliRunner().invoke(cli, [*words, "--db", db]).exception)
        assert "no judge's scores in the database" in refused
        refused = str(CliRunner().invoke(cli, [*words, "--db", db, "--judge", "j"]).exception)
        assert "pararecover judge" in refused


def page_of(name, path, monkeypatch, **query):
    monkeypatch.setenv("PARARECOVER_DB", str(path))

    def script(name):
        from importlib import import_module

        from ui import session
        from ui.access import Role, User

        session.enter(User("Ada", Role.ADMIN))
        import_module(f"pages.{name}").render()

    test = AppTest.from_function(script, args=(name,), default_timeout=30)
    for key, value in query.items():
        test.query_params[key] = value
    import streamlit as st

    st.cache_resource.clear()
    st.cache_data.clear()
    return test.run()


def test_the_pages_render(store, monkeypatch):
    made = page_of("results", store.path, monkeypatch, report="training")
    assert not made.exception
    assert made.selectbox(key="rs_report").value == "training"
    made = page_of("case_study", store.path, monkeypatch)
    assert not made.exception
    assert made.button(key="cs_example")
    made = page_of("case_study", store.path, monkeypatch, item="1474b3e11aef")
    assert not made.exception
    made.text_input(key="cs_name_1474b3e11aef_").set_value("Mine").run()
    made.button(key="cs_save").click().run()
    assert not made.exception
    from annotations.case_studies import gallery

    assert [one.name for one in gallery(store)] == ["Mine"]


def test_pages_of_an_empty_database_say_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "empty.db"
    Store(path)
    for name in ("results", "case_study"):
        made = page_of(name, path, monkeypatch)
        assert not made.exception
        assert "yet" in " ".join(
            str(one.value) for one in made.get("html") if hasattr(one, "value")
        )
