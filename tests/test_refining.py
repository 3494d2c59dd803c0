"""Versions in a session, runs, the automatic loop and the methods text, over real HTTP."""

import json
import random
import re
import threading
import time

import pytest
from typer.testing import CliRunner

from annotations import sessions
from annotations.judge_job import JudgeJob
from annotations.methods import methods
from annotations.pairs import state
from annotations.prompts import get_prompt, list_prompts, save_version
from annotations.refine_job import RefineJob, start_refining, steps_of
from annotations.refine_words import refined_line, refining_line
from annotations.refining import dev_items, named, prepare_run, repeats, unrun, versions
from annotations.sessions import SessionPlan, Side, create_session
from pararecover_core.compare import Verdict
from pararecover_core.completions import Endpoint
from pararecover_core.errors import InputError, StoreError
from pararecover_core.llm import Model
from pararecover_core.refine import Fate, Rules
from pararecover_core.refine_models import ModelProposer
from pararecover_core.text_difference import difference
from tests.model_server import chat, serving
from tests.queue_data import batch_of_all, make_store, score

SIZE = 60


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "cache"))
    made = make_store(tmp_path, items=SIZE)
    batch = batch_of_all(made, items=SIZE, dimensions=("D1", "D2")).id
    for n in range(1, SIZE + 1):
        score(made, f"r{n}-a", "ann", (n % 3) / 2, ("D1", "D2"))
    create_session(made, SessionPlan("Pilot", batch=batch, created_by="ada"))
    return made


def reply(call):
    """A judge that is right for 60%, or for 95% when told to "weigh twice"."""
    system, user = (message["content"] for message in call.body["messages"])
    if system.startswith("You edit"):
        text = re.search(r"<data-\w+ name='instructions'>\n(.*?)\n</data", user, re.S)[1]
        better = "\nAlways weigh twice." if "edit one" in user else "\nIn good style: edit one."
        return chat(json.dumps({"note": better.strip(), "text": text + better}))
    number = int(re.search(r"query (\d+)", user)[1])
    right = random.Random(number).random() < (0.95 if "weigh twice" in system else 0.6)
    value = (number % 3) / 2 if right else ((number + 1) % 3) / 2
    asked = [d for d in ("D1", "D2", "D3", "D4", "D5") if f'"{d}": {{' in system]
    return chat(json.dumps({d: {"reason": f"read {number}", "score": value} for d in asked}))


@pytest.fixture
def server(monkeypatch):
    with serving(reply) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def run(store, prompts, side=Side.DEV):
    made = prepare_run(store, 1, "m", prompts, side)
    job = JudgeJob(store, made.parts).start()
    job.wait(60)
    assert job.outcome == "done"
    return made


def test_three_rounds_by_hand(store, server):
    made = run(store, "d-1")
    assert made.calls == len({k for k, _ in sessions.wanted(store, 1, Side.DEV)})
    assert {d for part in made.parts for call in part.todo for d in call.dimensions} == {"D1", "D2"}
    first = get_prompt(store, "d-1")
    second = save_version(store, first, first.text + "\nBe kind.", note="kinder", author="ada")
    third = save_version(
        store, second, second.text + "\nAlways weigh twice.", note="twice", author="ada"
    )
    run(store, second.name)
    run(store, third.name)
    rows = versions(store, 1, "m", resamples=300)
    assert [row.label for row in rows] == ["d-3", "d-2", "d-1"]
    newest, middle, oldest = rows
    assert (oldest.parent, oldest.changed) == ("", None)
    assert middle.parent == "judge:m@d-1"
    assert middle.changed.overall.verdict is Verdict.UNCLEAR
    assert (middle.changed.overall.fixed, middle.changed.overall.broken) == (0, 0)
    assert newest.changed.overall.verdict is Verdict.BETTER
    assert newest.changed.overall.broken == 0
    assert (newest.note, newest.author) == ("twice", "ada")
    run(store, third.name, Side.HELD_OUT)
    sessions.look(store, 1, newest.scorer, author="ada", resamples=50)
    text = methods(store, 1)
    assert "60 answers (120 cells)" in text
    assert "opened 1 time" in text
    assert "d-3" in text
    assert methods(store, 1, "markdown").count("\n| ") == 5
    latex = methods(store, 1, "latex")
    assert r"95\% interval" in latex
    assert latex.endswith(r"\end{tabular}")
    with pytest.raises(InputError, match="form"):
        methods(store, 1, "word")


def test_the_command_refines_and_goes_on(store, server):
    from pararecover_cli.main import cli

    arguments = ["refine", "--db", str(store.path), "--judge", "m", "--session", "Pilot"]
    arguments += ["--prompt", "d-1", "--tries", "2", "--most", "2"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "Best prompt: d-3. 1 of 2 edits accepted." in result.output
    fates = [step.fate for step in steps_of(store, 1, "m", "d-1")]
    assert fates == [Fate.START, Fate.NO_WIN, Fate.ACCEPTED]
    assert get_prompt(store, "d-3").parent == 1
    assert "Always weigh twice." in get_prompt(store, "d-3").text
    authors = {one.prompt.name: one.author for one in list_prompts(store) if not one.built_in}
    assert authors == {"d-2": "proposer", "d-3": "proposer"}
    before = len(server.calls)
    again = CliRunner().invoke(cli, [*arguments, "--json"])
    assert again.exit_code == 0
    assert len(server.calls) == before  # nothing is asked twice
    shown = CliRunner().invoke(cli, ["methods", "--db", str(store.path), "--session", "Pilot"])
    assert "Of 2 edits proposed by a model, 1 was accepted; the j-th edit" in shown.output
    assert sessions.judged(store, 1, "judge:m@d-3", Side.HELD_OUT) == {}  # sealed: never judged


def test_a_refinement_that_is_stopped_while_judging_takes_the_edit_up_again(store, monkeypatch):
    held = threading.Event()

    def slow(call):
        system = call.body["messages"][0]["content"]
        if "edit one" in system and "weigh twice" not in system:
            held.wait(0.5)
        return reply(call)

    with serving(slow) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        start = get_prompt(store, "d-1")

        def job():
            def propose():
                return ModelProposer(
                    Model(Endpoint("m", server.url, retries=0)), dev_items(store, 1)
                )

            return RefineJob(store, 1, "m", start, propose, rules=Rules(tries=2, most=2))

        first = start_refining(store, job)
        with pytest.raises(StoreError, match="one at a time"):
            start_refining(store, job)
        until = time.monotonic() + 30
        while not any("edit one" in c.body["messages"][0]["content"] for c in server.calls):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert "judging dev with d-2" in refining_line(first)
        first.stop()
        first.wait(60)
        held.set()
        assert first.outcome.stopped == "stopped by hand"
        assert [step.fate for step in first.steps] == [Fate.START]  # no try is lost or held against
        assert refined_line(first).startswith("Stopped by hand. Best prompt: d-1.")
        again = start_refining(store, job)
        again.wait(60)
    assert [step.fate for step in again.steps] == [Fate.START, Fate.NO_WIN, Fate.ACCEPTED]
    assert [step.prompt.name for step in again.steps] == ["d-1", "d-2", "d-3"]  # d-2 goes on
    assert "to win: below 0.025" in again.steps[1].detail
    assert "Best prompt: d-3, EMA on dev" in refined_line(again)


def test_a_saved_version_waits_to_be_run(store, server):
    run(store, "d-1")
    first = get_prompt(store, "d-1")
    rows = versions(store, 1, "m", resamples=20)
    assert unrun(store, rows) == []
    second = save_version(store, first, first.text + "\nBe kind.", note="kinder", author="ada")
    (waiting,) = unrun(store, rows)
    assert (waiting.prompts, waiting.label, waiting.note) == ("d-2", "d-2", "kinder")
    run(store, second.name)
    assert unrun(store, versions(store, 1, "m", resamples=20)) == []


def test_versions_are_measured_again_only_where_something_changed(store, server):
    run(store, "d-1")
    kept = {}
    (first,) = versions(store, 1, "m", resamples=20, kept=kept)
    assert versions(store, 1, "m", resamples=20, kept=kept)[0] is first
    before = state(store)
    score(store, "r1-a", "ann", 0.5, ("D1", "D2"))
    sessions.take_scores(store, 1)
    assert state(store) != before
    again = versions(store, 1, "m", resamples=20, kept=kept)[0]
    assert again is not first
    taken = state(store)
    sessions.take_scores(store, 1)  # nothing changed but the round
    assert state(store) != taken


def test_failed_dev_calls_are_run_again_alone(store, monkeypatch):
    broken = [True]

    def flaky(call):
        return chat("?") if broken[0] and "query 7" in call.text else reply(call)

    with serving(flaky) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        side = next(s for s in Side if ("r7-a", "D1") in sessions.wanted(store, 1, s))
        run(store, "d-1", side)
        assert prepare_run(store, 1, "m", "d-1", side).calls == 0
        if side is Side.HELD_OUT:
            assert sessions.readiness(store, 1, "judge:m@d-1").failed == 2
        made = prepare_run(store, 1, "m", "d-1", side, retry_failed=True)
        assert made.calls == made.forecast.calls == len(made.parts[0].todo) > 0
        broken[0] = False
        job = JudgeJob(store, made.parts).start()
        job.wait(60)
    assert ("r7-a", "D1") in sessions.judged(store, 1, "judge:m@d-1", side)


def test_a_job_that_fails_says_why(store):
    def proposer():
        raise InputError("x", "y", "z", "Do it")

    start = get_prompt(store, "d-1")
    job = start_refining(store, lambda: RefineJob(store, 1, "m", start, proposer))
    job.wait(10)
    assert "x: got y" in str(job.error)


def test_difference_marks_words():
    lines = difference(
        "Keep.\nGive 1 if all is well.\nEnd.", "Keep.\nGive 1 if most is well.\nEnd.\nMore."
    )
    assert [(one.kind, one.before, one.after) for one in lines] == [
        ("same", 1, 1), ("removed", 2, 0), ("added", 0, 2), ("same", 3, 3), ("added", 0, 4),
    ]  # fmt: skip
    assert lines[1].parts == (("Give 1 if ", False), ("all", True), (" is well.", False))
    assert lines[2].parts[1] == ("most", True)
    assert lines[4].parts == (("More.", True),)


def test_names_of_scorers():
    assert named("judge:a/b@c@s-1+d-2#3") == ("a/b@c", ("s-1", "d-2"))
    assert named("program") == ("program", ())


def test_repeats_of_dev_samples(store):
    assert repeats(store, 1, get_prompt(store, "d-1").text) == []
