"""JSON lines, arrays and documents: the published records, and lines that are none."""

import io
import json
import time
import tracemalloc

import pytest

from pararecover_core.formats import ReadOptions, Reject, read, text
from pararecover_core.literals import dumps
from pararecover_core.records import (
    Instance,
    Replan,
    Round,
    Score,
    Source,
    ToolCall,
    Trajectory,
    instance_key,
    to_data,
)
from tests.formats_data import (
    AUGMENTED,
    CALLS,
    PLAN,
    ROLLOUT_1,
    ROLLOUT_2,
    TASKS,
    TOOLS,
    contents,
    good,
    items_of,
    jsonl,
    rejects,
)

# --- published records ----------------------------------------------------------------------------


def test_an_augmented_record():
    (found,) = good(jsonl(AUGMENTED))
    assert isinstance(found, Instance)
    assert (found.id, found.query_id, found.level) == ("12", "3073", 1)
    assert found.source is Source.AUGMENTED
    assert found.query == "Make tea."
    assert found.tags == ("Type_Error",)
    assert (found.round_gt, found.funcall_times_gt) == (2, 1)
    assert [tool.given for tool in found.tools] == TOOLS
    assert found.plan.given == PLAN
    assert found.plan.s5 == 1
    assert found.observations == (
        ToolCall("boil_water", {"litres": "1"}, CALLS[0]["results"], "1"),
    )
    assert found.extra == {}


def test_rollout_records():
    one, two = good(jsonl(ROLLOUT_1, ROLLOUT_2))
    assert (one.level, two.level) == (1, 2)
    assert one.source is two.source is Source.ROLLOUT
    assert one.tags == ("Type_Error",)
    assert two.tags == ("Type_Error", "异常应对错误")
    assert one.query_id == two.query_id == "2920"
    assert one.error_reason == "任务1的参数类型错误。"
    assert one.observations[0].node == "1"
    assert two.observations == ()


def test_a_round_without_label_keeps_its_place():
    row = ROLLOUT_2 | {"tag_1": "错误串行", "tag_2": None, "tag_3": "参数值非法、冗余"}
    (found,) = good(jsonl(row))
    assert found.tags == ("Serial_Error", "", "Parameter_Invalid, Toolcall_Redundancy")


def test_the_key_is_that_of_the_content_in_every_form():
    """Observations as list, JSON text or Python text: the same instance, the same key."""
    forms = [CALLS, json.dumps(CALLS), json.dumps(CALLS, ensure_ascii=False, indent=1), repr(CALLS)]
    keys = {good(jsonl(ROLLOUT_1 | {"fun_call": form}))[0].key for form in forms}
    assert keys == {
        instance_key(
            id="1", query_id="2920", level=1, source="rollout", query="Make tea.", plan=PLAN,
            calls=CALLS,
        )
    }  # fmt: skip


def test_options_override_level_and_source():
    (found,) = good(jsonl(AUGMENTED), options=ReadOptions(level=2, source="sandbox"))
    assert (found.level, found.source) == (2, Source.SANDBOX)


def test_stated_level_and_source_come_before_labels():
    (found,) = good(jsonl(AUGMENTED | {"level": "LEVEL-2", "source": "Sandbox"}))
    assert (found.level, found.source) == (2, Source.SANDBOX)


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"tag": ""}, Source.UNKNOWN),
        ({"query_id": 3073}, Source.UNKNOWN),
        ({"error_reason": "wrong type"}, Source.UNKNOWN),
        ({"tag": "错误串行"}, Source.ROLLOUT),
        ({"tag": "", "error_reason": "参数错误"}, Source.ROLLOUT),
    ],
)
def test_source_is_only_told_by_sure_signs(changes, source):
    assert good(jsonl(AUGMENTED | changes))[0].source is source


def test_other_fields_are_kept():
    (found,) = good(jsonl(AUGMENTED | {"difficulty": {"n": 3}, "empty": None}))
    assert found.extra == {"difficulty": {"n": 3}}


def test_dialects_of_the_augmented_file():
    wrapped = json.dumps({"original_plan": PLAN, "error": "Expecting ',' delimiter"})
    rows = good(
        jsonl(
            AUGMENTED | {"plan": wrapped},
            AUGMENTED | {"tool_list": repr(TOOLS)},
            AUGMENTED | {"plan": {"tasks": TASKS}},
            AUGMENTED | {"plan": "{broken"},
        )
    )
    assert [row.plan.s5 for row in rows] == [1, 1, 1, 0]
    assert rows[1].tools[0].given == TOOLS[0]
    assert rows[3].plan.given == "{broken", "an unparsable plan is shown and scored"


def test_a_record_without_tools_is_an_instance():
    row = {k: v for k, v in AUGMENTED.items() if k not in ("tool_list", "fun_call")}
    (found,) = good(jsonl(row))
    assert found.tools == found.observations == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": " "}, "file, line 1, column query: got nothing, expected a query. "),
        ({"plan": None}, "file, line 1, column plan: got nothing, expected a plan. "),
        ({"tool_list": "none"}, "file, line 1, column tool_list: got 'none' ("),
        ({"tool_list": [1]}, "file, line 1, column tool_list: got [1] (a tool is int"),
        ({"fun_call": "called"}, "file, line 1, column fun_call: got 'called' ("),
        ({"round_gt": "two"}, "file, line 1, column round_gt: got 'two', expected a whole number"),
        ({"round_gt": 1.5}, "file, line 1, column round_gt: got 1.5, expected a whole number"),
        ({"round_gt": True}, "file, line 1, column round_gt: got True, expected a whole number"),
        ({"funcall_times_gt": "-1"}, "file, line 1, column funcall_times_gt: got '-1'"),
        ({"level": 3}, "file, line 1, column level: got 3, expected level 1 or 2"),
    ],
)
def test_a_bad_field_rejects_the_record_and_names_it(changes, message):
    (found,) = rejects(jsonl(AUGMENTED | changes))
    assert found.startswith(message)


def test_good_rows_beside_bad_ones_land():
    data = "\n".join([jsonl(AUGMENTED), "{broken", "", jsonl(ROLLOUT_1), jsonl({"a": 1})])
    found = items_of(data)
    assert [(i.place.line, type(i.content).__name__) for i in found] == [
        (1, "Instance"), (3, "Reject"), (5, "Instance"), (7, "Reject"),
    ]  # fmt: skip


# --- lines that are no record ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "got the bare value 7, expected an object: an instance"),
        ('"text"', "got the bare value 'text'"),
        ("null", "got the bare value None"),
        ("[]", "got a list"),
        ("[1, 2]", "got a list"),
        ("{}", "got an empty object"),
        ('{"a": 1, "b": 2}', "got fields 'a, b', expected an instance (query, tool_list, plan"),
        ('{"id": 1 "query": 2}', "got no JSON ("),
        ("\x00\x00\x00", "got no JSON ("),
        ("[" * 1_000_000, "got no JSON (nested deeper than 200 levels"),
        ('{"plan":' * 1_000_000, "got no JSON (nested deeper than 200 levels"),
        ('{"id": 1, "id": 2, "query": "q", "plan": "p"}', "got two fields named id with different"),
        ('{"id": 1, "ID": 2, "query": "q", "plan": "p"}', "got two fields named like id"),
        ('{"kind": "score", "replan": "r"}', "got a broken score (dimension: missing)"),
    ],
)
def test_a_line_that_is_no_record(line, message):
    found = items_of(jsonl(AUGMENTED) + line + "\n" + jsonl(ROLLOUT_1))
    assert [type(i.content) for i in found] == [Instance, Reject, Instance]
    assert str(found[1].content).startswith(f"file, line 2: {message}")


def test_errors_count_characters_in_the_line():
    (found,) = rejects(jsonl(AUGMENTED) + '{"id": 1 "query": 2}\n' + jsonl(ROLLOUT_1))
    assert "at character 10)" in found
    assert "line 1" not in found


def test_the_first_line_may_be_bad():
    for bad in ("7", "{broken", "[1]", "null", '{"a": "cut off'):
        found = contents(f"{bad}\n" + jsonl(AUGMENTED, ROLLOUT_1))
        assert [type(c) for c in found] == [Reject, Instance, Instance], bad


def test_a_last_line_that_is_cut_off_says_so():
    data = jsonl(AUGMENTED) + jsonl(ROLLOUT_1)[:200]
    (found,) = rejects(data)
    assert found.startswith("file, line 2: got no JSON (")
    assert found.endswith("The file seems to end in the middle of a record: fetch it again.")


def test_a_field_twice_with_the_same_value_does_no_harm():
    line = json.dumps(AUGMENTED)[:-1] + ', "id": 12}\n'
    assert len(good(line)) == 1


def test_strings_of_two_megabytes_and_odd_characters_survive():
    odd = (
        "<script>alert(1)</script> =cmd() \u202eright to left\u202c \ud800 \x00 " + "x" * 2_000_000
    )
    (found,) = good(json.dumps(AUGMENTED | {"query": odd}))
    assert found.query == odd


def test_raw_control_characters_in_a_line_are_read():
    line = json.dumps(AUGMENTED | {"query": "a\tb"}).replace("\\t", "\t").replace("Boil.", "\x00")
    assert good(line)[0].query == "a\tb"


def test_a_line_over_64_mb_is_rejected_and_the_next_is_read(monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 5000)
    data = jsonl(AUGMENTED) + "x" * 3_000_000 + "\n" + jsonl(ROLLOUT_1)
    found = items_of(data)
    assert [i.place.line for i in found] == [1, 2, 3]
    assert "a line longer than" in str(found[1].content)


# --- arrays and documents -------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_an_array_of_records(indent):
    found = items_of(json.dumps([AUGMENTED, ROLLOUT_1, ROLLOUT_2], indent=indent))
    assert [type(i.content) for i in found] == [Instance] * 3
    lines = [i.place.line for i in found]
    assert lines == ([1, 1, 1] if indent is None else sorted(set(lines)))
    assert lines[0] == (1 if indent is None else 2)


def test_one_indented_record():
    assert len(good(json.dumps(AUGMENTED, indent=2))) == 1


def test_indented_records_one_after_the_other():
    data = "\n".join(json.dumps(r, indent=2) for r in (AUGMENTED, ROLLOUT_1))
    assert [i.id for i in good(data)] == ["12", "1"]


@pytest.mark.parametrize("name", ["data", "records"])
def test_records_inside_a_wrapper(name):
    assert len(good(json.dumps({"version": 1, name: [AUGMENTED, ROLLOUT_1]}, indent=1))) == 2


def test_a_bad_element_of_an_array_leaves_the_others():
    data = f'[\n{json.dumps(AUGMENTED)},\n{{"id": 1 "x"}},\n7, "a]",\n{json.dumps(ROLLOUT_1)}\n]\n'
    found = items_of(data)
    assert [(i.place.line, type(i.content).__name__) for i in found] == [
        (2, "Instance"), (3, "Reject"), (4, "Reject"), (5, "Instance"),
    ]  # fmt: skip


def test_an_array_that_is_cut_off_keeps_what_came_before():
    data = json.dumps([AUGMENTED, ROLLOUT_1], indent=1)[:-150]
    found = contents(data)
    assert [type(c) for c in found] == [Instance, Reject]


def test_a_deep_array_is_a_reject():
    (found,) = rejects("[\n" + "[" * 1_000_000 + "\n")
    assert "nested deeper than 200 levels" in found


def test_long_arrays_are_read_across_chunks(monkeypatch):
    monkeypatch.setattr(text, "_CHUNK", 700)
    rows = [
        AUGMENTED | {"id": n, "query": 'brackets ]}[{ "quotes\\" and 中文 ' * n}
        for n in range(1, 40)
    ]
    found = good(json.dumps(rows, indent=1, ensure_ascii=False))
    assert [i.id for i in found] == [str(n) for n in range(1, 40)]
    assert found[-1].query == rows[-1]["query"]


def test_a_document_over_64_mb_ends_the_file_with_a_reject(monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 5000)
    monkeypatch.setattr(text, "_CHUNK", 1000)
    data = json.dumps([AUGMENTED, {"query": "x" * 20_000}, AUGMENTED], indent=1)
    found = contents(data)
    assert [type(c) for c in found] == [Instance, Reject]
    assert "what follows it was not read" in str(found[1])


# --- our own records ------------------------------------------------------------------------------


def test_own_records_come_back_as_they_were():
    (instance,) = good(jsonl(AUGMENTED))
    records = [
        instance,
        Replan("r" * 12, instance.key, "agent", "thought \ud800", instance.plan, usage={"n": 1}),
        Trajectory(
            "t", instance.key, "agent", (Round(instance.plan, instance.observations),), True
        ),
        Score("r" * 12, "D1", "human:ann", 0.5, "note", "2026-01-01T00:00:00Z"),
        Score("r" * 12, "E5", "program", 1 / 3),
    ]
    assert good("".join(dumps(to_data(r)) + "\n" for r in records)) == records


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": 0.75}, "value: 0.75 is not 1, 0.5 or 0"),
        ({"value": True}, "value: Expected `float | null`, got `bool`"),
        ({"dimension": "D9"}, "dimension: 'D9' is none of the 15"),
        ({"dimension": "S5", "value": 0.5}, "value: 0.5 is not 1 or 0"),
        ({"dimension": "E5", "value": 1.5}, "value: 1.5 is not a number from 0 to 1"),
    ],
)
def test_own_scores_are_checked(changes, message):
    row = {"kind": "score", "replan": "r", "dimension": "D1", "scorer": "human:a", "value": 1}
    assert message in rejects(jsonl(row | changes))[0]


def test_a_published_record_may_have_a_field_named_kind():
    assert len(good(jsonl(AUGMENTED | {"kind": "hard"}, ROLLOUT_1 | {"kind": [1]}))) == 2


# --- encodings and memory -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030"],
)
def test_every_encoding(encoding):
    data = jsonl(AUGMENTED, ROLLOUT_1, ROLLOUT_2).encode(encoding)
    assert good(data) == good(jsonl(AUGMENTED, ROLLOUT_1, ROLLOUT_2))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_mark_and_with_hardly_any_ascii(encoding):
    data = jsonl(AUGMENTED | {"query": "泡茶" * 50_000}).encode(encoding)
    assert good(data)[0].query == "泡茶" * 50_000


def test_lone_surrogates_survive_in_every_form():
    raw = jsonl(AUGMENTED | {"query": "a\ud800b"})
    forms = [
        json.dumps(AUGMENTED | {"query": "a\ud800b"}).encode(),
        raw.encode("utf-8", "surrogatepass"),
        raw.encode("utf-16", "surrogatepass"),
    ]
    assert {good(form)[0].query for form in forms} == {"a\ud800b"}


def test_a_broken_byte_rejects_its_line_alone():
    data = jsonl(ROLLOUT_1, ROLLOUT_2, ROLLOUT_1).encode()
    lines = data.split(b"\n")
    lines[1] = lines[1].replace("异".encode(), b"\xe5\xbc", 1)
    found = contents(b"\n".join(lines))
    assert [type(c) for c in found] == [Instance, Reject, Instance]
    assert "line 2: got bytes that are no UTF-8" in str(found[1])
    assert found[0].error_reason == ROLLOUT_1["error_reason"]


def test_windows_line_ends():
    assert len(good(jsonl(AUGMENTED, ROLLOUT_1).replace("\n", "\r\n"))) == 2


def test_line_separators_inside_texts_end_no_line():
    (found,) = good(jsonl(AUGMENTED | {"query": "a\u2028b\x85c"}))
    assert found.query == "a\u2028b\x85c"


def test_memory_does_not_grow_with_the_file():
    line = json.dumps(AUGMENTED | {"query": "q" * 50_000}).encode() + b"\n"

    class Endless(io.RawIOBase):
        """A file of 60 MB that is nowhere."""

        def __init__(self):
            self.at, self.size = 0, 1200 * len(line)

        def readable(self):
            return True

        def seekable(self):
            return True

        def seek(self, offset, whence=0):
            self.at = offset + (0, self.at, self.size)[whence]
            return self.at

        def tell(self):
            return self.at

        def readinto(self, buffer):
            start = self.at % len(line)
            piece = (line * 30)[start : start + min(len(buffer), self.size - self.at)]
            buffer[: len(piece)] = piece
            self.at += len(piece)
            return len(piece)

    tracemalloc.start()
    count = sum(isinstance(item.content, Instance) for item in read(io.BufferedReader(Endless())))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 1200
    assert peak < 20_000_000


def test_a_thousand_records_take_no_time():
    data = jsonl(*(AUGMENTED | {"id": n} for n in range(1000)))
    start = time.process_time()
    assert len(good(data)) == 1000
    assert time.process_time() - start < 2


CHAT = """{"messages":[
{"role":"user","content":"Tea?"},
{"role":"assistant","tool_calls":[
 {"id":"a","type":"function","function":{"name":"boil","arguments":"{}"}},
 {"id":"b","type":"function","function":{"name":"pour","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"a","content":"Error: no water"},
{"role":"tool","tool_call_id":"b","content":"ok"},
{"role":"assistant","content":"No tea."}]}
"""


def test_a_document_written_by_hand_over_lines_is_one_document():
    """A bracket or comma at the end of its first line says that it goes on."""
    assert [type(item) for item in good(CHAT.encode())] == [Instance, Replan, Trajectory]
    indented = CHAT.replace('{"messages":[\n', '{"messages":[')
    assert [type(item) for item in good(indented.encode())] == [Instance, Replan, Trajectory]


def test_a_broken_document_is_named_once_with_its_line():
    (broken,) = rejects(CHAT.replace('"Tea?"}', '"Tea?",}').encode())
    assert "at line 2, character 32" in str(broken)
    (cut,) = rejects(CHAT[:200].encode())
    assert "The file seems to end in the middle of a record" in str(cut)
