"""Traces, benchmark results and given plans: what spans repeat, and where edges are written."""

import json

import pytest

from tests.formats_data import rejects
from tests.logs_data import (
    AGAIN,
    BOOK,
    FAILED,
    QUERY,
    TRAIN,
    calls_of,
    check_journey,
    edges,
    lines,
    parts,
    read_all,
)
from tests.test_formats_logs_dialects import ANSWER, STEPS, text


def part_call(i, what):
    return {"type": "tool_call", "id": i, "name": what[0], "arguments": what[1]}


def histories():
    """For each call of the model: the history before it, its thought and calls, and the results."""
    history = [{"role": "user", "parts": [{"type": "text", "content": QUERY}]}]
    for thought, calls in STEPS:
        output = {"role": "assistant", "parts": [{"type": "text", "content": thought}]}
        output["parts"] += [part_call(i, w) for i, w, _ in calls]
        yield list(history), output, calls
        history.append(output)
        given = [{"type": "tool_call_response", "id": i, "response": text(r)} for i, _, r in calls]
        history.append({"role": "tool", "parts": given})
    final = {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}
    yield history, final, ()


def genai_span(at, attributes):
    return {
        "name": "chat gpt-x",
        "context": {"trace_id": "t1", "span_id": f"s{at}"},
        "start_time": f"2026-05-01T10:00:{at:02d}Z",
        "attributes": attributes,
    }


def genai(form=lambda value: value):
    return [
        genai_span(
            at,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-x",
                "gen_ai.input.messages": form(history),
                "gen_ai.output.messages": form([output]),
            },
        )
        for at, (history, output, _) in enumerate(histories())
    ]


def tool_span(at, attributes, **more):
    span = genai_span(at, {"gen_ai.operation.name": "execute_tool", **attributes})
    return span | {"name": "execute_tool"} | more


class TestGenAI:
    @pytest.mark.parametrize("form", [lambda value: value, json.dumps], ids=["objects", "texts"])
    def test_later_spans_repeat_the_history(self, form):
        check_journey(read_all(lines(*genai(form))), agent="gpt-x")
        check_journey(read_all(genai(form)), agent="gpt-x")

    def test_the_order_of_spans_in_the_file_does_not_matter(self):
        check_journey(read_all(lines(*reversed(genai()))), agent="gpt-x")

    def test_otlp(self):
        spans = []
        for span in genai(json.dumps):
            attributes = [
                {"key": k, "value": {"stringValue": v}} for k, v in span["attributes"].items()
            ]
            spans.append({"traceId": "t1", "name": "chat", "attributes": attributes,
                          "startTimeUnixNano": f"17{len(spans):017d}"})  # fmt: skip
        value = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
        check_journey(read_all(value), agent="gpt-x")

    def test_responses_under_the_role_user_with_the_key_result(self):
        spans = genai()
        for span in spans:
            for message in span["attributes"]["gen_ai.input.messages"]:
                if message["role"] == "tool":
                    message["role"] = "user"
                    for part in message["parts"]:
                        part["result"] = part.pop("response", part.get("result"))
        check_journey(read_all(json.dumps(spans)), agent="gpt-x")

    def test_messages_in_events_of_older_emitters(self):
        spans = []
        for at, (_, output, calls) in enumerate(histories()):
            events = [{"name": "gen_ai.user.message", "attributes": {"content": QUERY}}]
            if at:
                events += [
                    {"name": "gen_ai.tool.message", "attributes": {"id": i, "content": text(r)}}
                    for i, _, r in STEPS[at - 1][1]
                ]
            message = {
                "content": output["parts"][0]["content"],
                "tool_calls": [
                    {"id": i, "function": {"name": w[0], "arguments": json.dumps(w[1])}}
                    for i, w, _ in calls
                ],
            }
            events.append({"name": "gen_ai.choice", "attributes": {"message": json.dumps(message)}})
            spans.append(genai_span(at, {"gen_ai.operation.name": "chat"}) | {"events": events})
        check_journey(read_all(lines(*spans)))

    def test_results_that_only_the_tools_own_spans_hold(self):
        spans = []
        for at, (_, output, calls) in enumerate(histories()):
            given = [{"role": "user", "parts": [{"type": "text", "content": QUERY}]}]
            spans.append(
                genai_span(2 * at, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": given,
                                    "gen_ai.output.messages": [output]})
            )  # fmt: skip
            spans += [
                tool_span(2 * at + 1, {"gen_ai.tool.name": w[0], "gen_ai.tool.call.id": i,
                                       "gen_ai.tool.call.result": text(r)})
                for i, w, r in calls
            ]  # fmt: skip
        check_journey(read_all(lines(*spans)))

    def test_a_failed_span_marks_the_result(self):
        spans = genai()[:2]
        error = {"status": {"status_code": "ERROR", "description": "boom"}}
        spans.insert(1, tool_span(0, {"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "b"})
                     | error)  # fmt: skip
        instance, _, _ = parts(read_all(lines(*spans)))
        assert dict(calls_of(instance))["weather"] == "Error: sunny"

    def test_without_captured_content_the_tools_between_two_calls_are_a_round(self):
        spans = [
            genai_span(0, {"gen_ai.operation.name": "chat"}),
            tool_span(1, {"gen_ai.tool.name": "find_train"}),
            tool_span(2, {"gen_ai.tool.name": "weather"}),
            genai_span(3, {"gen_ai.operation.name": "chat"}),
            tool_span(4, {"gen_ai.tool.name": "book"}),
        ]
        _, _, run = parts(read_all(lines(*spans)))
        assert [len(one.plan.nodes) for one in run.rounds] == [3, 4]
        assert edges(run.rounds[1].plan) == {"3": {"1": "order", "2": "order"}}
        assert run.rounds[1].plan.frontier() == ("3",)

    def test_two_traces_are_two_runs(self):
        spans = genai() + [s | {"context": {"trace_id": "t2"}} for s in genai()]
        found = read_all(lines(*spans))
        assert [type(one).__name__ for one in found] == ["Instance", "Replan", "Trajectory"] * 2

    def test_spans_without_any_call_are_named(self):
        span = genai_span(0, {"gen_ai.operation.name": "chat"})
        assert "got a run without a tool call" in rejects(lines(span))[0]


def inference_flat():
    """Attributes with flat dotted names, one object a span."""
    for at, (_, output, calls) in enumerate(histories()):
        flat = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-x",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": QUERY,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": output["parts"][0]["content"]}  # fmt: skip
        if at:
            for j, (i, w, r) in enumerate(STEPS[at - 1][1], start=1):
                head = f"llm.input_messages.{j}.message."
                flat |= {f"{head}role": "tool", f"{head}tool_call_id": i, f"{head}content": text(r),
                         f"{head}name": w[0]}  # fmt: skip
        for j, (i, w, _) in enumerate(calls):
            head = f"llm.output_messages.0.message.tool_calls.{j}.tool_call."
            flat |= {f"{head}id": i, f"{head}function.name": w[0],
                     f"{head}function.arguments": json.dumps(w[1])}  # fmt: skip
        yield at, flat


class TestOpenInference:
    def test_flat_names(self):
        spans = [
            genai_span(at, flat) | {"span_kind": "LLM", "parent_id": None}
            for at, flat in inference_flat()
        ]
        check_journey(read_all(lines(*spans)), agent="gpt-x")

    def test_rows_of_a_dataframe(self):
        rows = [
            {"name": "llm", "span_kind": "LLM", "context.trace_id": "t1", "start_time": f"{at}",
             **{f"attributes.{name}": value for name, value in flat.items()}}
            for at, flat in inference_flat()
        ]  # fmt: skip
        check_journey(read_all(lines(*rows)), agent="gpt-x")

    def test_lists_with_dotted_names_inside(self):
        spans = []
        for at, flat in inference_flat():
            out = {k.split("message.", 1)[1]: v for k, v in flat.items() if "output_messages" in k}
            calls = {}
            for name, value in out.items():
                if name.startswith("tool_calls."):
                    _, j, rest = name.split(".", 2)
                    calls.setdefault(j, {})[rest] = value
            message = {f"message.{k}": v for k, v in out.items() if "tool_calls" not in k}
            message["message.tool_calls"] = list(calls.values())
            kept = {k: v for k, v in flat.items() if "output_messages" not in k}
            spans.append(genai_span(at, kept | {"llm.output_messages": [message]}))
        check_journey(read_all(lines(*spans)), agent="gpt-x")

    def test_tool_spans_without_ids_are_matched_by_name_and_arguments(self):
        spans = []
        for at, flat in inference_flat():
            kept = {k: v for k, v in flat.items()
                    if "tool_call.id" not in k and "input_messages.1" not in k
                    and "input_messages.2" not in k}  # fmt: skip
            spans.append(genai_span(2 * at, kept))
            for _, w, r in (STEPS[at][1] if at < len(STEPS) else ())[::-1]:
                attributes = {"openinference.span.kind": "TOOL", "tool.name": w[0],
                              "input.value": json.dumps(w[1]), "output.value": text(r)}  # fmt: skip
                spans.append(genai_span(2 * at + 1, attributes))
        check_journey(read_all(lines(*spans)), agent="gpt-x")


def langchain():
    """For each call of the model: its history and its message as LangChain writes them."""
    history = [{"type": "human", "content": QUERY}]
    for thought, calls in STEPS:
        given = [{"name": w[0], "args": w[1], "id": i} for i, w, _ in calls]
        message = {"type": "ai", "content": thought, "tool_calls": given}
        yield list(history), message, calls
        history.append(message)
        history += [
            {"type": "tool", "content": text(r), "tool_call_id": i, "name": w[0]}
            for i, w, r in calls
        ]
    yield history, {"type": "ai", "content": ANSWER, "tool_calls": []}, ()


class TestLangSmithAndLangfuse:
    def test_langsmith_runs(self):
        runs = []
        for at, (history, message, calls) in enumerate(langchain()):
            kwargs = [{"lc": 1, "id": ["x", "Message"], "kwargs": m} for m in history]
            generation = {"message": {"lc": 1, "id": ["x", "AIMessage"], "kwargs": message}}
            runs.append(
                {"id": f"r{at}", "trace_id": "t1", "run_type": "llm", "name": "llm",
                 "dotted_order": f"a.{at:02d}0", "inputs": {"messages": [kwargs]},
                 "outputs": {"generations": [[generation]]},
                 "extra": {"metadata": {"ls_model_name": "gpt-x"}}}
            )  # fmt: skip
            runs += [
                {"id": i, "trace_id": "t1", "run_type": "tool", "name": w[0],
                 "dotted_order": f"a.{at:02d}1", "inputs": {"input": json.dumps(w[1])},
                 "outputs": {"output": {"kwargs": {"content": text(r), "tool_call_id": i}}},
                 "error": None}
                for i, w, r in calls
            ]  # fmt: skip
        check_journey(read_all(lines(*reversed(runs))), agent="gpt-x")

    def test_langsmith_runs_without_content(self):
        run = {"id": "r", "trace_id": "t", "run_type": "llm", "inputs": None, "outputs": None,
               "inputs_s3_urls": {"ROOT": {}}}  # fmt: skip
        assert "got a run without a tool call" in rejects(lines(run))[0]

    def observations(self):
        for at, (history, message, _) in enumerate(langchain()):
            yield {"id": f"o{at}", "traceId": "t1", "type": "GENERATION", "model": "gpt-x",
                   "startTime": f"2026-05-01T10:00:{at:02d}Z", "input": history,
                   "output": json.dumps(message)}  # fmt: skip

    def test_langfuse_sorts_by_time(self):
        value = {"trace": {"id": "t1"}, "observations": [*self.observations()][::-1]}
        check_journey(read_all(value), agent="gpt-x")
        check_journey(read_all(lines(*self.observations())), agent="gpt-x")

    def test_an_answer_that_is_a_text_alone(self):
        *before, last = self.observations()
        value = {"trace": {"id": "t1"}, "observations": [*before, {**last, "output": ANSWER}]}
        check_journey(read_all(value), agent="gpt-x")


class TestBfcl:
    def test_one_turn_of_parallel_calls(self):
        row = {"id": "parallel_3", "result": [{"f": '{"a": 1}'}, {"g": '{"b": 2}'}], "latency": 1}
        _, _, run = parts(read_all(lines(row)))
        nodes = run.rounds[0].plan.nodes
        assert [(n.id, n.name, n.parameters.named) for n in nodes[1:]] == [
            ("1", "f", {"a": 1}),
            ("2", "g", {"b": 2}),
        ]
        assert run.rounds[0].plan.frontier() == ("1", "2")

    def test_calls_written_as_python(self):
        row = {"id": "parallel_4", "result": "[f(a=1, b=[x for x in y]), m.g('z')]", "latency": 1}
        _, _, run = parts(read_all(lines(row)))
        nodes = run.rounds[0].plan.nodes[1:]
        assert [(n.name, n.parameters.named, n.parameters.positional) for n in nodes] == [
            ("f", {"a": 1, "b": "[x for x in y]"}, ()),
            ("m.g", {}, ("z",)),
        ]

    def test_steps_of_several_turns_with_results_from_the_log(self):
        row = {
            "id": "multi_turn_base_1",
            "result": [[[{"cd": '{"folder": "x"}'}], [{"ls": "{}"}], "done"], [[{"rm": "{}"}]]],
            "inference_log": [
                [{"role": "state_info"}],
                {"begin_of_turn_query": [{"role": "user", "content": QUERY}],
                 "step_0": [{"role": "assistant", "content": "x"}, {"role": "handler_log"},
                            {"role": "tool", "content": '{"error": "no such folder"}'}],
                 "step_1": [{"role": "tool", "content": "[\"a.txt\"]"}]},
                {"begin_of_turn_query": [{"role": "user", "content": "Now delete it"}]},
            ],
        }  # fmt: skip
        instance, replan, run = parts(read_all(lines(row)))
        assert instance.query == QUERY
        assert calls_of(instance) == [("cd", '{"error": "no such folder"}')]
        assert [len(one.plan.nodes) for one in run.rounds] == [2, 3, 4]
        assert edges(replan.plan) == {"2": {"1": "order"}}
        assert run.outcome == "no response"

    def test_a_score_file_has_sums_and_failures(self):
        sums = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
        failure = {"id": "simple_1", "test_category": "simple", "valid": False, "error": ["bad"],
                   "model_result_raw": "f(a=1)"}  # fmt: skip
        _, _, run = parts(read_all(lines(sums, failure)))
        assert (run.success, run.extra["failure"]) == (False, ["bad"])


class TestGivenPlans:
    def test_llmcompiler(self):
        plan = (
            '1. search("tallest tower")\nThought: then\n2. search("it\'s (old")\n'
            '3. math("$1 + ${2}", ["$1"])\n4. join()<END_OF_PLAN>\n'
            "1. lonely(x=3)\n2. late($3)\n"
        )
        found = read_all(plan)
        first, second = [one for one in found if type(one).__name__ == "Trajectory"]
        given = first.rounds[0].plan
        assert [n.dependencies for n in given.nodes] == [
            *((), ("root",), ("root",), ("1", "2"), ("3",)),
        ]
        assert edges(given)["3"] == {"1": "given", "2": "given"}
        assert given.nodes[-1].id == "response"
        assert first.rounds[0].thought == "then"
        assert (first.success, first.outcome) == (False, "plan")
        assert [n.dependencies for n in second.rounds[0].plan.nodes] == [(), ("root",), ("root",)]

    def test_llmcompiler_with_questions(self):
        plans = (
            f"Question: {QUERY}\n1. find()\n2. join()\n1. find()\n"
            "Question: And back\nThought: then\n1. find()\n2. book($1)\n"
        )
        found = [one for one in read_all(plans) if type(one).__name__ == "Instance"]
        assert [one.query for one in found] == [QUERY, QUERY, "And back"]
        assert [node.name for node in found[2].plan.nodes][1:] == ["find", "book"]

    @pytest.mark.parametrize(("word", "nested"), [("tool", False), ("task", True), ("tool", True)])
    def test_taskbench_by_other_names_and_as_an_answer(self, word, nested):
        plan = {f"{word}_nodes": [{"task": "load", "arguments": []}, {"task": "crop"}],
                f"{word}_links": [{"source": "load", "target": "crop"}],
                f"{word}_steps": ["one"]}  # fmt: skip
        row = {"id": "9", "user_request": QUERY, **({"result": plan} if nested else plan)}
        instance, _, run = parts(read_all(lines(row)))
        assert instance.query == QUERY
        assert edges(run.rounds[0].plan) == {"2": {"1": "given"}}
        assert run.rounds[0].thought == "one"

    @pytest.mark.parametrize("base", [0, 1])
    def test_taskbench_counts_from_0_or_from_1(self, base):
        nodes = [
            {"task": "load", "arguments": ["a.png"]},
            {"task": "load", "arguments": ["b.png"]},
            {"task": "crop", "arguments": [f"<node-{base}>"]},
            {"task": "send", "arguments": [{"name": "x", "value": f"<node-{base + 2}>"}]},
        ]
        row = {"id": "9", "type": "dag", "user_request": QUERY, "task_nodes": json.dumps(nodes),
               "task_steps": ["one"], "task_links": [{"source": "load", "target": "crop"},
                                                    {"source": "crop", "target": "send"}],
               "sampled_nodes": "[]"}  # fmt: skip
        instance, _, run = parts(read_all(lines(row)))
        assert instance.query == QUERY
        assert edges(run.rounds[0].plan) == {"3": {"1": "given"}, "4": {"3": "given"}}

    def test_traject_bench(self):
        step = {"tool name": "find", "required parameters": [{"name": "x", "value": 1}],
                "executed_output": "{'a': 1}"}  # fmt: skip
        row = {"query": QUERY, "tool list": [step, step | {"tool name": "sum"}],
               "final_answer": {"answer": "7", "reason": "r"}}  # fmt: skip
        _, _, run = parts(read_all([row | {"trajectory_type": "parallel"}]))
        assert [len(one.plan.nodes) for one in run.rounds] == [3, 4]
        assert edges(run.rounds[0].plan) == {}
        _, _, run = parts(read_all([row]))
        assert edges(run.rounds[1].plan) == {"2": {"1": "given"}}


def test_what_is_booked_is_what_was_found():
    """The fixtures say what they mean: the booking quotes the train that was found."""
    assert BOOK[1]["train"] == AGAIN[1]["train"] == TRAIN["train"]
    assert FAILED.startswith("Error")
