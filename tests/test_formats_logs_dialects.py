"""The same journey in every dialect, and the traps of each; all records are written here."""

import io
import json
import warnings

import pytest

from pararecover_core.formats import Reject, read
from tests.formats_data import rejects
from tests.logs_data import (
    AGAIN,
    BOOK,
    FAILED,
    FIND,
    MESSAGES,
    QUERY,
    TRAIN,
    WEATHER,
    calls_of,
    check_journey,
    edges,
    lines,
    parts,
    read_all,
)

STEPS = (
    ("Both at once.", (("a", FIND, TRAIN), ("b", WEATHER, "sunny"))),
    ("Book it.", (("c", BOOK, FAILED),)),
    ("The passenger was missing.", (("d", AGAIN, "booked"),)),
)
"""The journey's turns: thought, and calls with id, what and result."""
ANSWER = "You are booked."


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


class TestButton:
    def journey(self):
        system = f"You plan. <tool>{json.dumps([{'name': 'book'}])}</tool> Calls may be parallel."
        messages = [{"role": "systems", "content": system}, {"role": "user", "content": QUERY}]
        for thought, calls in STEPS:
            body = json.dumps([{"name": w[0], "arguments": w[1]} for _, w, _ in calls])
            content = f"{thought} <call>{body}</call>"
            messages.append({"role": "assistant", "content": content})
            results = [{"name": w[0], "arguments": w[1], "results": r} for _, w, r in calls]
            messages.append({"role": "tool", "content": json.dumps(results)})
        messages.append({"role": "assistant", "content": f"<final>{ANSWER}</final>"})
        return {"messages": messages}

    def test_the_journey(self):
        found = read_all(self.journey())
        check_journey(found)
        assert [tool.name for tool in found[0].tools] == ["book"]
        assert parts(found)[2].extra["mode"] == "parallel"

    def test_thoughts_in_tags(self):
        record = self.journey()
        for message in record["messages"]:
            if message["role"] == "assistant" and "<call>" in message["content"]:
                thought, _, call = message["content"].partition(" <call>")
                message["content"] = f"<thought>{thought}</thought>\n<call>{call}"
        found = read_all(record)
        check_journey(found)
        assert parts(found)[1].thought == "The passenger was missing."

    def test_one_call_at_a_time_is_kept_as_the_mode(self):
        record = self.journey()
        record["messages"][0]["content"] += " Make one call at a time."
        assert parts(read_all(record))[2].extra["mode"] == "one by one"


class TestAnthropic:
    def journey(self):
        messages = [{"role": "user", "content": QUERY}]
        for thought, calls in STEPS:
            blocks = [{"type": "thinking", "thinking": thought}]
            blocks += [
                {"type": "tool_use", "id": i, "name": w[0], "input": w[1]} for i, w, _ in calls
            ]
            messages.append({"role": "assistant", "content": blocks})
            given = [
                {"type": "tool_result", "tool_use_id": i,
                 "content": [{"type": "text", "text": text(r)}]}
                for i, _, r in calls
            ]  # fmt: skip
            messages.append({"role": "user", "content": given})
        return [*messages, {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}]

    def test_the_journey(self):
        record = {"model": "claude-x", "messages": self.journey()}
        check_journey(read_all(record), agent="claude-x")
        check_journey(read_all(self.journey()))

    def test_a_session_log_splits_one_message_over_lines(self):
        rows = []
        for at, message in enumerate(self.journey()):
            content = message["content"]
            for block in content if isinstance(content, list) else [content]:
                inner = {"id": f"m{at}", "role": message["role"], "model": "claude-x"}
                inner["content"] = [block] if isinstance(block, dict) else block
                rows.append({"sessionId": "s1", "type": message["role"], "message": inner})
        check_journey(read_all(lines(*rows)), agent="claude-x")

    def test_an_error_flag_is_a_failure_whatever_the_text_says(self):
        messages = self.journey()[:2]
        done = {"type": "tool_result", "tool_use_id": "a", "content": "nope", "is_error": True}
        messages.append({"role": "user", "content": [done]})
        instance, _, _ = parts(read_all(messages))
        assert calls_of(instance) == [("find_train", "Error: nope")]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (json.dumps(["one", "two"]), ["one", "two"]),
            ("one\n\ntwo", ["one", "two"]),
            ("all in one", ["all in one", "all in one"]),
        ],
    )
    def test_a_batch_tool_hides_a_parallel_set(self, given, expected):
        invocations = [
            {"name": name, "arguments": json.dumps(arguments)}
            for name, arguments in (FIND, WEATHER)
        ]
        batch = {"type": "tool_use", "id": "x", "name": "batch_tool",
                 "input": {"invocations": invocations}}  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": "x", "content": given}
        messages = [
            {"role": "user", "content": QUERY},
            {"role": "assistant", "content": [batch]},
            {"role": "user", "content": [result]},
        ]
        _, _, run = parts(read_all(messages))
        assert calls_of(run.rounds[0]) == [
            ("find_train", expected[0]),
            ("weather", expected[1]),
        ]
        assert run.rounds[0].observations[0].arguments == FIND[1]


class TestTau:
    def test_ids_are_used_again_and_the_reward_decides(self):
        trial = {"task_id": 7, "trial": 0, "reward": 0.0, "info": {}, "traj": MESSAGES}
        instance, replan, run = parts(read_all([trial]))
        assert instance.id == "7 trial 0"
        assert instance.observations[0].result == FAILED
        assert edges(replan.plan) == {"3": {"1": "values"}, "4": {"1": "values"}}
        assert (run.success, run.outcome, run.extra["reward"]) == (False, "task failed", 0.0)
        _, _, run = parts(read_all([trial | {"reward": 1.0}]))
        assert (run.success, run.outcome) == (True, "response")

    def test_a_trial_that_broke_down_is_named(self):
        trial = {"task_id": 7, "reward": 0.0, "info": {"error": "429 slow down"}, "traj": []}
        assert rejects(json.dumps([trial]), name="r.json") == [
            "r.json, line 1: got a run that broke down (429 slow down), expected at least one call "
            "of a tool. Take the run out of the file."
        ]

    def test_two_trials_of_a_task_are_two_runs(self):
        trials = [
            {"task_id": 7, "trial": n, "reward": 1.0, "info": {}, "traj": MESSAGES} for n in (0, 1)
        ]
        found = read_all(trials)
        assert len({one.key for one in found}) == 6

    def tau2(self):
        messages = [{"role": "user", "content": QUERY, "turn_idx": 0}]
        for thought, calls in STEPS:
            flat = [
                {"id": i, "name": w[0], "arguments": w[1], "requestor": "assistant"}
                for i, w, _ in calls
            ]
            messages.append({"role": "assistant", "content": thought, "tool_calls": flat})
            messages += [
                {"role": "tool", "id": i, "content": text(r), "error": r == FAILED,
                 "requestor": "assistant"}
                for i, _, r in calls
            ]  # fmt: skip
        messages.append({"role": "assistant", "content": ANSWER, "tool_calls": None})
        return [m | {"turn_idx": at} for at, m in enumerate(messages)]

    def test_tau2_with_flat_calls(self):
        value = {
            "timestamp": "x",
            "info": {"agent_info": {"llm": "gpt-x"}},
            "tasks": [],
            "simulations": [
                {"task_id": "t1", "trial": 0, "reward_info": {"reward": 1.0},
                 "messages": self.tau2()},
            ],
        }  # fmt: skip
        check_journey(read_all(value), agent="gpt-x")

    def test_calls_of_the_simulated_user_are_a_lane_of_their_own(self):
        messages = self.tau2()
        own = {"id": "u1", "name": "toggle_wifi", "arguments": {"on": True}, "requestor": "user"}
        messages[4:4] = [
            {"role": "user", "content": None, "tool_calls": [own], "turn_idx": 3},
            {"role": "tool", "id": "u1", "content": "on", "requestor": "user", "turn_idx": 3},
        ]
        value = {"reward_info": {"reward": 1.0}, "messages": messages}
        found = read_all(value)
        check_journey(found)
        extra = parts(found)[2].extra
        assert extra["user_calls"] == [{"name": "toggle_wifi", "arguments": {"on": True}}]
        assert "results_without_a_call" not in extra


def inspect_sample():
    messages = [{"role": "user", "content": QUERY}]
    for thought, calls in STEPS:
        given = [{"id": i, "function": w[0], "arguments": w[1]} for i, w, _ in calls]
        messages.append({"role": "assistant", "content": thought, "tool_calls": given})
        messages += [
            {"role": "tool", "tool_call_id": i, "function": w[0], "content": text(r)}
            for i, w, r in calls
        ]
    messages.append({"role": "assistant", "content": ANSWER})
    return {"id": 3, "epoch": 1, "messages": messages, "scores": {"match": {"value": "C"}}}


HEADER = {"version": 2, "status": "success", "eval": {"task": "trips", "model": "gpt-x"}}


def eval_file(samples, method):
    from backports.zstd import zipfile

    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")
        archive.writestr("header.json", json.dumps(HEADER))
        archive.writestr("_journal/start.json", json.dumps(HEADER))
        for at, sample in enumerate(samples, start=1):
            body = sample if isinstance(sample, str) else json.dumps(sample)
            archive.writestr(f"samples/{at}_epoch_1.json", body)
    return stream.getvalue()


class TestInspect:
    @pytest.mark.parametrize("method", [0, 8, 93])  # stored, deflate, zstd
    def test_an_archive(self, method):
        found = read_all(eval_file([inspect_sample()], method))
        check_journey(found, agent="gpt-x")
        assert found[0].id == "trips 3"
        assert parts(found)[2].extra["scores"] == {"match": "C"}

    def test_a_json_log_and_a_sample_alone(self):
        log = HEADER | {"plan": {}, "results": {}, "stats": {}, "samples": [inspect_sample()]}
        check_journey(read_all(log), agent="gpt-x")
        check_journey(read_all(inspect_sample()))

    def test_texts_in_attachments(self):
        sample = inspect_sample()
        sample["messages"][0]["content"] = "attachment://abc"
        sample["messages"][2]["content"] = [{"type": "text", "text": "attachment://def"}]
        sample["attachments"] = {"abc": QUERY, "def": json.dumps(TRAIN)}
        check_journey(read_all(sample))

    def test_messages_in_a_pool(self):
        sample = inspect_sample()
        *pool, last = sample.pop("messages")
        sample["events_data"] = {"messages": pool}
        sample["events"] = [{"event": "model", "output": {"choices": [{"message": last}]}}]
        check_journey(read_all(sample))

    def test_an_error_object_of_a_tool(self):
        sample = inspect_sample()
        tool = sample["messages"][5]
        tool |= {"content": "", "error": {"type": "parsing", "message": "missing passenger"}}
        instance, _, _ = parts(read_all(sample))
        assert instance.observations[0].result == "Error: parsing: missing passenger"

    def test_a_broken_sample_beside_good_ones(self):
        data = eval_file([inspect_sample(), "{nonsense", inspect_sample()], 93)
        found = [item.content for item in read(io.BytesIO(data), name="log.eval")]
        bad = [str(one) for one in found if isinstance(one, Reject)]
        assert len(found) == 7
        assert bad[0].startswith("log.eval/samples/2_epoch_1.json: got a broken member (")
        assert bad[0].endswith("Write the log again with: inspect log convert --to json.")

    def test_an_archive_that_was_cut_off_is_named(self):
        data = eval_file([inspect_sample()], 93)[:-40]
        assert len(rejects(data)) == 1

    def test_a_log_without_samples_is_named(self):
        assert (
            "an Inspect log without samples (status error)"
            in rejects(json.dumps({"eval": {}, "status": "error"}))[0]
        )

    def test_a_bomb_is_refused(self, monkeypatch):
        from pararecover_core.formats.logs import inspect

        monkeypatch.setattr(inspect, "MAX_RECORD", 1 << 20)
        bomb = '{"messages": [' + " " * (8 << 20) + "]}"
        found = rejects(eval_file([bomb], 93))
        assert "a sample longer than 1 MB" in found[0]
        monkeypatch.setattr(inspect, "MOST_UNPACKED", 1 << 20)
        assert "GB of samples" in rejects(eval_file([bomb], 93))[0]


class TestAtif:
    def test_the_journey(self):
        steps = [{"step_id": 1, "source": "user", "message": QUERY}]
        for at, (thought, calls) in enumerate(STEPS, start=2):
            given = [
                {"tool_call_id": i, "function_name": w[0], "arguments": w[1]} for i, w, _ in calls
            ]
            results = [{"source_call_id": i, "content": text(r)} for i, _, r in calls]
            steps.append(
                {"step_id": at, "source": "agent", "message": thought, "tool_calls": given,
                 "observation": {"results": results}}
            )  # fmt: skip
        steps.append({"step_id": 9, "source": "agent", "message": ANSWER})
        value = {"schema_version": "ATIF-v1.5", "agent": {"model_name": "m"}, "steps": steps}
        check_journey(read_all(value), agent="m")


class TestToolHub:
    def test_edges_are_given_and_links_are_edges_too(self):
        first = [
            {"name": "find", "parameters": {"x": 1}, "depend_on": []},
            {"name": "find", "parameters": {"x": 2}, "depend_on": []},
        ]
        second = [
            {"name": "pay", "parameters": {"id": "<link>find.1.price</link>"},
             "depend_on": ["find.0"]},
        ]  # fmt: skip
        conversation = [
            {"role": "user", "content": QUERY},
            {"role": "tool_call", "content": first},
            {"role": "tool_response", "content": {"find.0": {"a": "W77"}, "find.1": {"a": "W88"}}},
            {"role": "tool_call", "content": second},
            {"role": "tool_response", "content": {"pay.0": {"ok": "yes"}}},
            {"role": "assistant", "content": ANSWER},
        ]
        for data in (conversation, {"messages": conversation}, lines(conversation)):
            _, _, run = parts(read_all(data))
            assert edges(run.rounds[1].plan) == {"3": {"1": "given", "2": "given"}}
            assert calls_of(run.rounds[0]) == [("find", '{"a":"W77"}'), ("find", '{"a":"W88"}')]
            assert run.outcome == "response"
