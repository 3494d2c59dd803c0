"""Logs of agents: one journey in many chat dialects gives the same rounds; traps of each."""

import json

from annotations import rounds
from annotations.store import Store
from pararecover_core.formats.items import Item, Place
from tests.formats_data import good, rejects
from tests.logs_data import (
    AGAIN,
    BOOK,
    FAILED,
    FIND,
    MESSAGES,
    QUERY,
    TRAIN,
    WEATHER,
    assistant,
    call,
    calls_of,
    check_journey,
    edges,
    lines,
    parts,
    read_all,
    result,
)

USER = {"role": "user", "content": QUERY}


class TestOpenAIChat:
    def test_a_record_with_messages(self):
        check_journey(read_all({"model": "gpt-x", "messages": MESSAGES}), agent="gpt-x")

    def test_a_file_that_is_the_list_of_messages(self):
        check_journey(read_all(MESSAGES))
        check_journey(read_all(json.dumps(MESSAGES, indent=1)))

    def test_one_message_a_line_and_one_conversation_a_line(self):
        check_journey(read_all(lines(*MESSAGES)))
        found = read_all(lines(MESSAGES, MESSAGES))
        assert [type(one).__name__ for one in found] == ["Instance", "Replan", "Trajectory"] * 2
        assert found[0].key == found[3].key

    def test_the_answer_in_a_logged_response(self):
        record = {
            "model": "gpt-x",
            "messages": MESSAGES[:-1],
            "choices": [{"message": MESSAGES[-1]}],
        }
        check_journey(read_all(record), agent="gpt-x")

    def test_legacy_function_calls_have_no_ids(self):
        def legacy(text, what):
            name, arguments = what
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {"role": "assistant", "content": text, "function_call": function}

        messages = [
            USER,
            legacy("", FIND),
            {"role": "function", "name": "find_train", "content": json.dumps(TRAIN)},
            legacy("", BOOK),
            {"role": "function", "name": "book", "content": "booked"},
        ]
        _, replan, run = parts(read_all({"messages": messages}))
        assert replan is None
        assert edges(run.rounds[1].plan) == {"2": {"1": "values"}}
        assert calls_of(run.rounds[1]) == [("book", "booked")]
        assert (run.success, run.outcome) == (False, "no response")

    def test_arguments_that_are_no_json_are_kept_as_text(self):
        broken = {"id": "x", "function": {"name": "book", "arguments": '{"train": '}}
        messages = [USER, assistant("", broken), result("x", "Error: no JSON")]
        instance, replan, run = parts(read_all({"messages": messages}))
        assert instance.observations[0].arguments == '{"train": '
        assert replan is None
        assert run.rounds[0].plan.by_id["1"].parameters.positional == ('{"train": ',)

    def test_an_agent_that_the_log_does_not_name(self):
        from pararecover_core.formats import ReadOptions

        found = read_all({"messages": MESSAGES}, options=ReadOptions(agent="mine", level=2))
        assert parts(found)[1].agent == "mine"
        assert parts(found)[0].level == 2

    def test_a_conversation_without_calls_is_named(self):
        assert rejects(json.dumps({"messages": [USER, assistant("Hello.")]}), name="chat.json") == [
            "chat.json, line 1: got a run without a tool call, expected at least one call of a "
            "tool. Take the run out of the file."
        ]

    def test_good_lines_beside_bad_ones_still_load(self):
        text = lines({"messages": MESSAGES}) + "{nonsense\n" + lines({"messages": [USER]})
        assert len(rejects(text)) == 2
        whole = lines({"messages": MESSAGES}, {"messages": MESSAGES})
        assert len(good(whole)) == 6

    def test_a_call_without_a_result_stays_pending(self):
        messages = [USER, assistant("", call("a", FIND), call("b", WEATHER)), result("a", TRAIN),
                    assistant("", call("c", BOOK)), result("c", "booked")]  # fmt: skip
        _, _, run = parts(read_all(messages))
        assert calls_of(run.rounds[0]) == [("find_train", json.dumps(TRAIN))]
        assert run.rounds[1].plan.frontier() == ("2", "3")


class TestOrder:
    def test_where_no_value_is_quoted_the_order_is_what_is_known(self):
        messages = [USER, assistant("", call("a", FIND), call("b", WEATHER)), result("a", "ok1"),
                    result("b", "sunny"), assistant("", call("c", ("pay", {})))]  # fmt: skip
        _, _, run = parts(read_all(messages))
        assert edges(run.rounds[1].plan) == {"3": {"1": "order", "2": "order"}}


def item(id, what):
    name, arguments = what
    return {
        "type": "function_call",
        "call_id": id,
        "name": name,
        "arguments": json.dumps(arguments),
    }


class TestResponses:
    ITEMS = (
        USER,
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Both at once."}]},
        item("a", FIND),
        item("b", WEATHER),
        {"type": "function_call_output", "call_id": "a", "output": json.dumps(TRAIN)},
        {"type": "function_call_output", "call_id": "b", "output": "sunny"},
        item("c", BOOK),
        {"type": "function_call_output", "call_id": "c", "output": FAILED},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "The passenger was missing."}]},
        item("d", AGAIN),
        {"type": "function_call_output", "call_id": "d", "output": "booked"},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "You are booked."}]},
    )  # fmt: skip

    def test_items_of_a_conversation(self):
        check_journey(read_all(self.ITEMS))
        check_journey(read_all(lines(*self.ITEMS)))

    def test_a_request_with_its_response(self):
        record = {"model": "gpt-x", "input": self.ITEMS[:-3], "output": self.ITEMS[-3:]}
        check_journey(read_all(record), agent="gpt-x")
        record = {"model": "gpt-x", "input": QUERY, "output": self.ITEMS[1:]}
        check_journey(read_all(record), agent="gpt-x")


class TestTheStore:
    def test_an_imported_run_is_listed_and_shown_whole(self, tmp_path):
        store = Store(tmp_path / "x.db")
        found = read_all({"model": "gpt-x", "messages": MESSAGES})
        report = store.ingest(Item(Place("log", 1), one) for one in found)
        assert report.kinds == {"instance": 1, "replan": 1, "trajectory": 1}
        instance, replan, run = parts(found)
        again = store.ingest(Item(Place("log", 1), one) for one in found)
        assert again.landed == 0
        story = rounds.rounds_of(store, store.instance(instance.key), replan, run=run)
        assert story.numbers == (1, 2, 3, 4)
        assert story.instances == ("", instance.key, "", "")
        assert (story.at, story.kind, story.answered) == (2, "run", True)
        assert [one["mark"] for one in rounds.strip(story)] == ["ran", "failed", "grew", "grew"]
