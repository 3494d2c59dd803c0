"""Judging runs: what is to do, results as they come, failures, stops and kills."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections import Counter

import pytest

from annotations.judge_job import JudgeJob, current_job, start_job
from annotations.judges import Order, prepare
from annotations.judging import Scope, list_runs, open_failures
from annotations.pairs import Selection, choices, load
from annotations.prompts import get_prompt, get_prompts, import_prompt, list_prompts, save_version
from annotations.store import Store
from pararecover_core.completions import Usage
from pararecover_core.errors import ConfigError, InputError, StoreError
from pararecover_core.judges import Prompt, built_in_prompts
from pararecover_core.pairing import Coverage
from pararecover_core.rubric import JUDGED
from tests.judge_data import asked, filled, number, score_of, verdict
from tests.model_server import Answer, chat, failure, serving
from tests.store_data import entry

SCORER = "judge:m@sde-1"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    return filled(tmp_path / "study.db")


def order(**fields):
    return Order(**{"judge": "m", "timeout": 5.0} | fields)


def judged(store, server, monkeypatch, **fields):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    job = JudgeJob(store, prepare(store, order(**fields)).parts).start()
    job.wait(60)
    assert not job.running
    return job


def keys(store):
    with store.read() as db:
        return [row[0] for row in db.execute("SELECT key FROM replan ORDER BY n")]


def judge_scores(store, scorer=SCORER):
    return {
        (n, row.dimension): row.score
        for n, key in enumerate(keys(store))
        for row in store.score_rows(scorer=scorer, replans=[key])
    }


def expected(count=3, dimensions=JUDGED):
    return {(n, d): score_of(n, d) for n in range(count) for d in dimensions}


# Results


def test_every_score_is_in_the_log_with_its_reason(store, monkeypatch):
    with serving(verdict) as server:
        job = judged(store, server, monkeypatch)
    assert (job.outcome, job.message, len(server.calls)) == ("done", "", 3)
    assert judge_scores(store) == expected()
    (row, *_) = store.score_rows(scorer=SCORER)
    assert row.note == f"why {row.dimension}"
    assert row.rubric
    now = job.progress()
    assert (now.total, now.done, now.failed, now.share) == (3, 3, 0, 1.0)
    assert now.usage == Usage(30, 15)
    assert now.cost is None  # nobody knows what "m" costs


def test_a_second_run_has_nothing_to_do(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch)
        work = prepare(store, order()).works[0]
        assert (work.todo, work.done, work.replans) == ([], 3, 3)
        assert judged(store, server, monkeypatch).progress().total == 0
    assert len(server.calls) == 3


def test_only_missing_dimensions_are_asked(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch, dimensions=("S1", "D3"))
        judged(store, server, monkeypatch, dimensions=("D3", "E1"))
    assert [asked(call) for call in server.calls] == [["S1", "D3"]] * 3 + [["E1"]] * 3
    assert judge_scores(store) == expected(dimensions=("S1", "D3", "E1"))


def test_a_withdrawn_score_is_judged_again(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch)
        key = keys(store)[1]
        store.append([entry(key, "D3", None, scorer=SCORER, base=1, action="clear")])
        judged(store, server, monkeypatch)
    assert asked(server.calls[-1]) == ["D3"]
    assert judge_scores(store) == expected()
    (score,) = [s for s in store.scores(key) if s.dimension == "D3"]
    assert score.extra["revision"] == 3


def test_prompts_share_the_work(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch, prompt="s+d-1+e")
    assert len(server.calls) == 9
    assert judge_scores(store, "judge:m@s-1+d-1+e-1") == expected()


def test_runs_of_the_same_judge_have_names_of_their_own(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch, samples=3)
    assert len(server.calls) == 9  # no answer is used twice
    names = [name for name, _ in choices(store).judges]
    assert names == [f"{SCORER}#1", f"{SCORER}#2", f"{SCORER}#3"]
    assert {call.body["temperature"] for call in server.calls} == {0.7}
    assert {row.settings["temperature"] for row in list_runs(store)} == {0.7}


def test_a_name_stands_for_one_temperature(store, monkeypatch):
    with serving(verdict) as server:
        judged(store, server, monkeypatch)
        assert {call.body["temperature"] for call in server.calls} == {0.0}
        with pytest.raises(InputError, match=r"got 0\.5, expected 0 as before\. .*own names"):
            judged(store, server, monkeypatch, temperature=0.5)
        judged(store, server, monkeypatch, samples=2, temperature=1.0)
        assert server.calls[-1].body["temperature"] == 1.0
        asked = len(server.calls)
        judged(store, server, monkeypatch, samples=3)  # a third run, like the others
        assert {call.body["temperature"] for call in server.calls[asked:]} == {1.0}


def test_the_scope_says_which_replans(store, monkeypatch):
    first, second, third = keys(store)
    store.append([entry(second)])
    with store.write() as db:
        db.execute("INSERT INTO batch (id, name, created, dimensions) VALUES (4, 'b', '', '[]')")
        db.execute(
            "INSERT INTO batch_item (batch, replan, position) VALUES (4, ?, 2), (4, ?, 1)",
            (first, third),
        )

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    def found(**scope):
        (work,) = prepare(store, order(scope=Scope(**scope))).works
        return [one.replan for one in work.todo]

    assert found() == [first, second, third]
    assert found(scored=True) == [second]
    assert found(batch=4) == [third, first]
    assert found(limit=2) == [first, second]
    assert found(replans=(third,)) == [third]
    assert found(level=2) == found(agent="nobody") == []
    assert found(level=1, agent="cook-1") == [first, second, third]


# Failures


def failing(how):
    """The scripted judge, but replan 1 fails."""
    return lambda call: how if number(call) == 1 else verdict(call)


FAILURES = {
    "unparsable": chat("I would say it is fine."),
    "refused": chat(None, refusal="I cannot"),
    "truncated": chat("{", finish_reason="length"),
    "endpoint error": failure(400, "no", "context_length_exceeded"),
}


@pytest.mark.parametrize("status", FAILURES)
def test_a_failure_is_counted_and_never_a_score(store, monkeypatch, status):
    with serving(failing(FAILURES[status])) as server:
        job = judged(store, server, monkeypatch)
        again = prepare(store, order()).works[0]
    assert job.outcome == "done"
    assert job.progress().statuses == {"ok": 2, status: 1}
    assert judge_scores(store) == {at: v for at, v in expected().items() if at[0] != 1}
    (one,) = open_failures(store, SCORER)
    assert (one.replan, one.status, one.dimensions) == (keys(store)[1], status, JUDGED)
    assert (again.todo, again.failed) == ([], {status: 1})


def test_the_whole_reply_of_a_failure_is_kept(store, monkeypatch):
    with serving(failing(FAILURES["unparsable"])) as server:
        judged(store, server, monkeypatch)
    with store.read() as db:
        raw = db.execute("SELECT raw FROM judgement WHERE status = 'unparsable'").fetchone()[0]
    assert b"I would say it is fine." in zlib.decompress(raw)


def test_failed_calls_alone_are_tried_again_and_really_asked(store, monkeypatch):
    with serving(failing(FAILURES["unparsable"])) as server:
        judged(store, server, monkeypatch)
        judged(store, server, monkeypatch, retry_failed=True)  # the same bad answer, asked anew
    assert [number(call) for call in server.calls].count(1) == 2
    with serving(verdict) as server:
        job = judged(store, server, monkeypatch, retry_failed=True)
    assert [number(call) for call in server.calls] == [1]
    assert job.progress().total == 1
    assert judge_scores(store) == expected()
    assert open_failures(store, SCORER) == []


def test_a_refusal_is_an_answer_and_not_tried_again(store, monkeypatch):
    with serving(failing(FAILURES["refused"])) as server:
        judged(store, server, monkeypatch)
        judged(store, server, monkeypatch, retry_failed=True)
    assert len(server.calls) == 3


def test_calibration_says_why_a_judge_has_no_score(store, monkeypatch):
    store.append([entry(key, "D3", 1.0) for key in keys(store)])
    with serving(failing(FAILURES["truncated"])) as server:
        judged(store, server, monkeypatch)
    cells = load(store, Selection(judge=SCORER), dimensions=("D3",))
    found = Coverage.of(cells)
    assert (found.both, found.only_human, found.judge_gaps) == (2, 1, {"truncated": 1})
    with serving(verdict) as server:
        judged(store, server, monkeypatch, retry_failed=True)
    assert Coverage.of(load(store, Selection(judge=SCORER), dimensions=("D3",))).both == 3


def test_a_judge_that_only_failed_can_be_chosen(store, monkeypatch):
    with serving(lambda call: FAILURES["refused"]) as server:
        judged(store, server, monkeypatch)
    assert choices(store).judges == [(SCORER, 0)]


# Ends


def test_a_run_that_the_endpoint_stops_says_why_and_goes_on_later(store, monkeypatch):
    def out_of_credit(call):
        return verdict(call) if number(call) == 0 else failure(402, "no balance left")

    with serving(out_of_credit) as server:
        job = judged(store, server, monkeypatch, concurrency=1)
    assert job.outcome == "stopped"
    assert "no balance left" in job.message
    assert job.progress().statuses == {"ok": 1}
    with serving(verdict) as server:
        assert judged(store, server, monkeypatch).outcome == "done"
    assert len(server.calls) == 2
    assert judge_scores(store) == expected()


def test_a_run_can_be_stopped_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    store = filled(tmp_path / "many.db", 40)
    with serving(lambda call: Answer(verdict(call), delay=0.05)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        job = JudgeJob(store, prepare(store, order(concurrency=2)).parts).start()
        while job.progress().done < 4:
            time.sleep(0.01)
        job.stop()
        job.wait(30)
        assert job.outcome == "cancelled"
        assert 4 <= job.progress().done < 40
        assert judged(store, server, monkeypatch).outcome == "done"
    assert judge_scores(store) == expected(40)
    assert max(Counter(number(call) for call in server.calls).values()) == 1


def test_progress_guesses_time_and_money(store):
    clock = iter([0.0, 0.0, 10.0]).__next__
    job = JudgeJob(store, [], clock=clock)
    job._total, job._cost = 10, 0.5
    job._statuses["ok"] = 5
    job._statuses["refused"] = 1
    job._cached = 1
    job._began = 0.0
    clock()
    now = job.progress()
    assert (now.done, now.failed, now.share) == (6, 1, 0.6)
    assert now.seconds_left == 10.0 / 5 * 4  # five calls were asked, four are left
    assert now.cost_left == 0.5 / 5 * 4


def test_two_jobs_on_a_database_do_not_run_at_once(store, monkeypatch):
    with serving(lambda call: Answer(verdict(call), delay=0.5)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        job = start_job(store, prepare(store, order()).parts)
        assert current_job(store) is job
        with pytest.raises(StoreError, match="one that is still going"):
            start_job(store, prepare(store, order()).parts)
        job.stop()
        job.wait(30)
    assert current_job(store) is job


KILLED = """
import sys
from pathlib import Path
from annotations.judge_job import JudgeJob
from annotations.judges import Order, prepare
from annotations.store import Store
store = Store(Path(sys.argv[1]))
JudgeJob(store, prepare(store, Order("m", concurrency=6)).parts).start().wait()
"""


def kept(folder):
    """Keys of the answers in the cache."""
    with contextlib.closing(sqlite3.connect(folder / "answers" / "answers.db")) as db:
        return {row[0] for row in db.execute("SELECT key FROM answer")}


def test_killed_at_any_moment_a_run_loses_no_answer_and_repeats_none(tmp_path, monkeypatch):
    """Three kills: at most the calls under way at a kill are made again."""
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    store = filled(tmp_path / "killed.db", 90)
    kept_at_kills = set()
    with serving(lambda call: Answer(verdict(call), delay=0.04)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for goal in (15, 35, 60):
            process = subprocess.Popen(
                [sys.executable, "-c", KILLED, str(store.path)], env=dict(os.environ)
            )
            until = time.monotonic() + 60
            while len({number(c) for c in list(server.calls)}) < goal:
                assert time.monotonic() < until
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kept_at_kills |= kept(tmp_path)
        assert judged(store, server, monkeypatch, concurrency=6).outcome == "done"
    assert judge_scores(store) == expected(90)  # none is lost
    counts = Counter(number(call) for call in server.calls)
    assert set(counts) == set(range(90))
    assert sum(counts.values()) - 90 <= 3 * 6  # those under way alone are made again
    assert kept_at_kills
    assert kept_at_kills <= kept(tmp_path)
    assert len(kept(tmp_path)) == 90
    with store.read() as db:
        revisions = db.execute("SELECT MAX(revision) FROM score_log").fetchone()[0]
    assert revisions == 1


# The list of runs, the forecast, settings


def test_the_list_says_who_judged_what_when_with_which_prompt(store, monkeypatch):
    with serving(failing(FAILURES["refused"])) as server:
        judged(store, server, monkeypatch, started_by="Ada", dimensions=("S1",))
        judged(store, server, monkeypatch, judge="program")
    program, model = list_runs(store)
    assert (program.scorer, program.calls, program.statuses) == ("judge:program@1", 3, {"ok": 3})
    assert program.cost == 0.0
    assert (model.scorer, model.base_url, model.started_by) == (SCORER, server.url, "Ada")
    assert (model.calls, model.statuses) == (3, {"ok": 2, "refused": 1})
    assert (model.dimensions, model.outcome, model.cost) == (("S1",), "done", None)
    assert model.usage == Usage(30, 15)
    assert model.started < model.ended


def test_a_known_price_gives_a_forecast_and_a_cost(store, monkeypatch):
    with serving(verdict) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        before = prepare(store, order(judge="gpt-4o")).forecast
        job = judged(store, server, monkeypatch, judge="gpt-4o")
        assert before.calls == 3
        assert before.counted == 0
        assert before.usage.completion == 3 * 13 * 60
        assert before.cost == pytest.approx(
            (before.usage.prompt * 2.5 + before.usage.completion * 10) / 1e6
        )
        assert job.progress().cost == pytest.approx((30 * 2.5 + 15 * 10) / 1e6)
        assert list_runs(store)[0].cost == pytest.approx((30 * 2.5 + 15 * 10) / 1e6)


def test_counted_tokens_replace_the_guess(tmp_path, monkeypatch):
    monkeypatch.setenv("PARARECOVER_CACHE", str(tmp_path / "answers"))
    store = filled(tmp_path / "more.db", 12)
    with serving(verdict) as server:
        judged(store, server, monkeypatch, scope=Scope(limit=6))
        found = prepare(store, order()).forecast
    assert (found.calls, found.counted, found.usage) == (6, 6, Usage(60, 30))


def test_an_impossible_order_says_what_is_wrong(store, monkeypatch):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        prepare(store, order())
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="prompt: got 'x', expected one of d-1, e-1, s-1, sde-1"):
        prepare(store, order(prompt="x"))
    with pytest.raises(InputError, match="got S1 asked by s-1 and sde-1"):
        prepare(store, order(prompt="s+sde"))
    with pytest.raises(InputError, match="dimensions: got D1, expected some of S1, S2, S3, S4"):
        prepare(store, order(prompt="s", dimensions=("D1",)))


def test_the_program_needs_no_endpoint_and_scores_all(store):
    prepared = prepare(store, order(judge="program"))
    assert prepared.forecast is None
    job = JudgeJob(store, prepared.parts).start()
    job.wait(60)
    assert job.outcome == "done"
    assert len(judge_scores(store, "judge:program@1")) == 3 * 13


# Prompts


def test_an_edited_prompt_is_a_new_version_with_a_parent(store):
    parent = get_prompt(store, "sde")
    made = save_version(store, parent, parent.text + "\nBe strict.", note="milder", author="Ada")
    assert (made.name, made.parent, made.note) == ("sde-2", 1, "milder")
    assert get_prompt(store, "sde") == made  # the newest
    assert get_prompt(store, "sde-1") == parent
    other = save_version(store, parent, parent.text + "\nBe mild.", note="", author="Ben")
    assert (other.name, other.parent) == ("sde-3", 1)
    listed = {one.prompt.name: (one.author, one.built_in) for one in list_prompts(store)}
    assert listed["sde-1"] == ("", True)
    assert listed["sde-2"] == ("Ada", False)


def test_a_prompt_that_cannot_work_is_not_saved(store):
    parent = get_prompt(store, "sde")
    with pytest.raises(InputError, match=r"got no \{\{rubric\}\}"):
        save_version(store, parent, "Just score.", note="", author="")
    with pytest.raises(InputError, match="got the text of version 1, expected a changed text"):
        save_version(store, parent, parent.text + "\r\n", note="", author="")


def test_a_prompt_comes_in_from_a_file_once(store):
    one = Prompt("own", 1, "{{rubric}} {{answer_form}}", dimensions=("S1",))
    assert import_prompt(store, one)
    assert not import_prompt(store, one)
    assert not import_prompt(store, built_in_prompts()["sde-1"])
    assert get_prompts(store, "own+d") == (one, built_in_prompts()["d-1"])
    with pytest.raises(InputError, match="got own-1 with another text than the own-1 that is here"):
        import_prompt(store, Prompt("own", 1, "{{rubric}}! {{answer_form}}"))


def test_prompts_survive_in_the_file(store):
    import_prompt(store, Prompt("own", 1, "{{rubric}} {{answer_form}}"), author="Ada")
    assert get_prompt(Store(store.path), "own").version == 1
