"""Logs that are broken, hostile or long: nothing raises, nothing takes long, good rows land."""

import copy
import io
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pararecover_core.formats import Reject, read
from pararecover_core.formats.logs.build import MOST_TASKS
from pararecover_core.formats.logs.edges import Evidence
from pararecover_core.records import Trajectory, from_data, to_data
from tests import test_formats_logs_dialects as dialects
from tests import test_formats_logs_traces as traces
from tests.formats_data import contents, good, rejects
from tests.logs_data import MESSAGES, assistant, call, lines, parts, read_all, result

RECORDS = (
    {"model": "m", "messages": MESSAGES},
    {"messages": dialects.TestAnthropic().journey()},
    dialects.TestButton().journey(),
    {"simulations": [{"reward_info": {"reward": 1}, "messages": dialects.TestTau().tau2()}]},
    {"task_id": 1, "reward": 1.0, "traj": MESSAGES, "info": {}},
    dialects.HEADER | {"samples": [dialects.inspect_sample()]},
    traces.genai()[2],
    {"context": {"trace_id": "t"}, "attributes": dict(traces.inference_flat())[2]},
    {"trace": {}, "observations": [*traces.TestLangSmithAndLangfuse().observations()]},
    {"id": "multi_turn_1", "latency": 1, "result": [[[{"f": "{}"}]]],
     "inference_log": [{"begin_of_turn_query": [], "step_0": [{"role": "tool", "content": "x"}]}]},
    {"task_nodes": [{"task": "a", "arguments": ["<node-1>"]}],
     "task_links": [{"source": "a", "target": "b"}]},
    {"schema_version": "ATIF-v1", "steps": [{"source": "agent", "tool_calls": [{"function_name":
     "f"}], "observation": {"results": [{"content": "x"}]}}]},
    {"messages": [{"role": "tool_call", "content": [{"name": "f", "depend_on": ["x.1"]}]}]},
)  # fmt: skip
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=5),
    st.just([]), st.just({}), st.just([None]), st.just({"": {}}), st.just([[[]]]),
    st.just("[1"), st.just('{"a": [1]}'), st.just([{"type": "tool_use"}]), st.just("\ud800"),
)  # fmt: skip


def places(value, path=()):
    """Every place inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            found += places(inner, (*path, key))
        else:
            found.append((*path, key))
    return found


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_value_in_any_place_is_read_or_rejected(data):
    record = copy.deepcopy(data.draw(st.sampled_from(RECORDS)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(record) or [("x",)]))
        holder = record
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(data.draw(ODD))
        except (KeyError, IndexError, TypeError):
            continue
    text = json.dumps([record]).encode()
    for one in (item.content for item in read(io.BytesIO(text), name="x")):
        if isinstance(one, Trajectory):
            assert from_data(to_data(one)) == one
            assert len(one.rounds) >= 1
        elif isinstance(one, Reject):
            assert one.cure


@settings(max_examples=100, deadline=None)
@given(st.lists(st.recursive(ODD, lambda inner: st.lists(inner, max_size=3), max_leaves=5)))
def test_evidence_never_raises_and_names_only_calls(values):
    evidence = Evidence(["metric"])
    for at, value in enumerate(values):
        assert {int(node) for node in evidence.sources(value)} <= set(range(at))
        evidence.called(str(at), value)
        evidence.returned(str(at), json.dumps(value))


class TestEvidence:
    def found(self, result, arguments, *, own=None, said="", known=()):
        evidence = Evidence(known)
        evidence.heard(said)
        evidence.called("1", own or {})
        evidence.returned("1", result)
        return evidence.sources(arguments)

    @pytest.mark.parametrize(
        ("result", "value"),
        [
            ('{"id": "W77"}', "x W77123"),  # another id
            ('{"id": "W77"}', "W77"),  # three characters
            ('{"year": 2024}', 2024),  # a year
            ('{"n": 12}', 12),  # too short a number
            ('{"n": 5000}', 5000),  # too round a number
            ('{"ok": "true"}', "true"),
            ('{"id": "W7712"}', True),
            ("the route is open", "open"),  # a plain word in prose
        ],
    )
    def test_what_is_no_quotation(self, result, value):
        assert self.found(result, {"x": value}) == ()

    @pytest.mark.parametrize(
        ("result", "value"),
        [
            ('{"id": "W7712"}', "W7712"),
            ('{"id": "w7712"}', "W7712"),
            ('{"n": 48213}', "48213"),
            ('{"n": "48213"}', 48213.0),
            ('{"price": 23.5}', 23.50),
            ("Your order W7712 was sent", {"deep": [["W7712"]]}),
            ("Your order W7712 was sent", "please cancel W7712 now"),
            ("It goes by Sant Cugat del Valles today", "Sant Cugat del Valles"),
            ('{"kind": "economy"}', "economy"),
            ("结果：巴塞罗那桑茨站 有票", "巴塞罗那桑茨站"),
        ],
    )
    def test_what_is_one(self, result, value):
        assert self.found(result, {"x": value}) == ("1",)

    def test_what_the_user_said_the_schema_lists_or_the_call_itself_holds_is_none(self):
        result = '{"city": "Lleida", "unit": "metric"}'
        assert self.found(result, {"x": "Lleida"}) == ("1",)
        assert self.found(result, {"x": "Lleida"}, said="From Lleida to Reus") == ()
        assert self.found(result, {"x": "Lleida"}, own={"city": "Lleida"}) == ()
        assert self.found(result, {"x": "metric"}, known=["metric"]) == ()

    def test_a_result_that_the_user_confirms_stays_a_source(self):
        evidence = Evidence()
        evidence.returned("1", '{"id": "W7712"}')
        evidence.heard("Yes, take W7712")
        assert evidence.sources({"x": "W7712"}) == ("1",)

    def test_of_several_sources_the_newest(self):
        evidence = Evidence()
        for node in "12":
            evidence.called(node, {"q": node})
            evidence.returned(node, '{"id": "W7712"}')
        evidence.called("3", {"id": "W7712"})
        evidence.returned("3", '{"id": "W7712", "open": true}')
        assert evidence.sources({"x": "W7712"}) == ("2",)


class TestHostile:
    def test_deep_nesting(self):
        deep = "[" * 100_000 + "]" * 100_000
        record = {"messages": [*MESSAGES[:-1], {"role": "user", "content": "x"}]}
        text = lines(record) + '{"messages": [{"role": "user", "content": ' + deep + "}]}\n"
        found = contents(text)
        assert [type(one).__name__ for one in found] == [
            *("Instance", "Replan", "Trajectory", "Reject"),
        ]
        messages = copy.deepcopy(MESSAGES)
        messages[2]["tool_calls"][0]["function"]["arguments"] = deep
        assert parts(read_all(messages))[2].rounds[0].plan.s5 == 1

    def test_huge_texts_stay_out_of_the_plans(self):
        huge = "lorem W77123 " * 400_000
        messages = copy.deepcopy(MESSAGES)
        messages[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"start": huge})
        messages[4]["content"] = huge
        begun = time.perf_counter()
        _, _, run = parts(read_all(messages))
        assert time.perf_counter() - begun < 5
        assert run.rounds[0].observations[0].result == huge
        assert len(json.dumps(run.rounds[-1].plan.given)) < 10_000

    def test_a_long_run_takes_time_in_proportion(self):
        def run(count):
            messages = [{"role": "user", "content": "go"}]
            for at in range(count):
                given = {"id": f"W{at - 1:06d}", "note": "plain words " * 20}
                messages.append(assistant("", call(f"c{at}", ("next", given))))
                messages.append(result(f"c{at}", {"id": f"W{at:06d}", "text": "word " * 200}))
            return messages

        begun = time.perf_counter()
        _, _, found = parts(read_all(run(300)))
        assert time.perf_counter() - begun < 10
        assert found.rounds[250].plan.by_id["251"].dependencies == ("250",)
        told = rejects(json.dumps({"messages": run(400)}))
        assert told == [
            f"file, line 1: got a run of 400 rounds and 400 calls, expected at most {MOST_TASKS:,} "
            "tasks in the plans of all rounds together. Cut the log into several runs."
        ]

    def test_wide_rounds_have_few_edges_of_order(self):
        wide = [call(f"a{n}", ("f", {})) for n in range(800)]
        more = [call(f"b{n}", ("g", {})) for n in range(800)]
        messages = [{"role": "user", "content": "go"}, assistant("", *wide), assistant("", *more)]
        _, _, run = parts(read_all(messages))
        assert sum(len(n.dependencies) for n in run.rounds[1].plan.nodes) == 800 + 800 * 20

    def test_gathered_records_have_a_limit(self, monkeypatch):
        from pararecover_core.formats import logs

        monkeypatch.setattr(logs, "MOST_GATHERED", 2_000)
        text = lines(*MESSAGES[:6], *[{"role": "user", "content": "x" * 900}] * 9, *MESSAGES[6:])
        found = contents(text)
        told = [str(one) for one in found if isinstance(one, Reject)]
        assert len(told) == 1
        assert "MB of chat messages in one file" in told[0]
        assert [type(one).__name__ for one in found][1:] == ["Instance", "Trajectory"]

    def test_published_records_and_answers_are_no_logs(self):
        row = {"id": 1, "query": "x", "thought": "t", "replan": {"tasks": []},
               "messages": MESSAGES}  # fmt: skip
        assert [type(one).__name__ for one in good(lines(row))] == ["Answer"]

    def test_a_zip_that_is_neither_log_nor_workbook(self):
        assert "a broken workbook" in rejects(b"PK\x03\x04" + b"\0" * 60)[0]


class TestLarge:
    @pytest.mark.parametrize("indent", [None, 1])
    def test_a_large_results_file_is_read_run_by_run(self, monkeypatch, indent):
        from pararecover_core.formats.logs import large

        trial = {"task_id": "t", "reward_info": {"reward": 1}, "messages": MESSAGES}
        trials = [trial | {"trial": at} for at in range(3)]
        value = {"info": {"agent_info": {"llm": "gpt-x"}}, "simulations": trials, "x": {"y": [1]}}
        text = json.dumps(value, indent=indent)
        whole = good(text)
        monkeypatch.setattr(large, "LARGE", 100)
        assert good(text) == whole
        log = json.dumps(
            dialects.HEADER | {"samples": [dialects.inspect_sample()] * 2, "z": []}, indent=indent
        )
        assert [type(one).__name__ for one in good(log)] == ["Instance", "Replan", "Trajectory"] * 2
        both = lines(value) + lines(value)
        assert good(both) == whole * 2
        broken = text.replace('"trial": 1', '"trial": nonsense')
        assert len(rejects(broken)) == 1
        assert len(contents(broken)) == 7

    def test_an_object_with_such_a_list_further_inside_is_read_as_a_whole(self, monkeypatch):
        from pararecover_core.formats.logs import large

        monkeypatch.setattr(large, "LARGE", 10)
        text = json.dumps({"messages": MESSAGES, "meta": {"samples": [{"a": 1}]}})
        assert len(good(text)) == 3
