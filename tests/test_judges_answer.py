"""Answers of judges: what is a score and what is none, text by text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.judges import UnparsableError, answer_schema, parse_answer
from pararecover_core.judges.answer import Scored
from pararecover_core.literals import dumps

GOOD = '{"S1": {"reason": "node 3 is there", "score": 0.5}}'

ACCEPTED = {
    "plain": (GOOD, 0.5),
    "whole number": ('{"S1": {"reason": "r", "score": 1}}', 1.0),
    "float": ('{"S1": {"reason": "r", "score": 1.0}}', 1.0),
    "zero": ('{"S1": {"reason": "r", "score": 0}}', 0.0),
    "exponent": ('{"S1": {"score": 1e0}}', 1.0),
    "text 1.0": ('{"S1": {"score": "1.0"}}', 1.0),
    "text 0.50": ('{"S1": {"score": "0.50"}}', 0.5),
    "comma": ('{"S1": {"score": "0,5"}}', 0.5),
    "spaces": ('{"S1": {"score": " 1 "}}', 1.0),
    "no zero": ('{"S1": {"score": ".5"}}', 0.5),
    "score alone": ('{"S1": 0.5}', 0.5),
    "flat names": ('{"S1_score": 0.5, "S1_reason": "r"}', 0.5),
    "rationale": ('{"S1": {"rationale": "r", "score": 0}}', 0.0),
    "more keys": ('{"S1": {"score": 1, "confidence": 0.9}, "S2": {"score": 7}}', 1.0),
    "fenced": (f"```json\n{GOOD}\n```", 0.5),
    "fence without a name": (f"```\n{GOOD}\n```", 0.5),
    "text around": (f"Here you are:\n{GOOD}\nI hope this helps.", 0.5),
    "braces in the text before": (f"The form is {{S1: ...}}.\n{GOOD}", 0.5),
    "fence inside a reason": ('{"S1": {"reason": "it says ```x``` here", "score": 0}}', 0.0),
    "brace inside a reason": ('{"S1": {"reason": "para } is {wrong", "score": 0}}', 0.0),
    "thinking": (f'<think>maybe {{"S1": {{"score": 1}}}}</think>{GOOD}', 0.5),
    "thinking without its start": (f'maybe {{"S1": {{"score": 1}}}}</think>\n{GOOD}', 0.5),
    "byte order mark": ("\ufeff" + GOOD, 0.5),
    "trailing comma": ('{"S1": {"reason": "r", "score": 0.5,},}', 0.5),
    "single quotes": ("{'S1': {'reason': 'it\\'s there', 'score': 0.5}}", 0.5),
    "single quotes, comma": ("{'S1': {'reason': 'a', 'score': 1},}", 1.0),
    "raw newline": ('{"S1": {"reason": "line\nline", "score": 0.5}}', 0.5),
    "said twice alike": (GOOD + "\n" + GOOD, 0.5),
    "wrapped": ('{"scores": {"S1": {"score": 0.5}}}', 0.5),
    "Chinese": ('{"S1": {"reason": "节点3缺失", "score": 0.5}}', 0.5),
}
REJECTED = {
    "true": ('{"S1": {"score": true}}', "S1 is 'True'"),
    "false": ('{"S1": false}', "S1 is 'False'"),
    "null": ('{"S1": {"reason": "r", "score": null}}', "S1 has no score"),
    "NaN": ('{"S1": {"score": NaN}}', "S1 is 'nan'"),
    "infinite": ('{"S1": {"score": Infinity}}', "S1 is 'inf'"),
    "the scale echoed": ('{"S1": {"score": "1/0.5/0"}}', "S1 is '1/0.5/0'"),
    "two choices": ('{"S1": {"score": "1 or 0.5"}}', "S1 is '1 or 0.5'"),
    "percent": ('{"S1": {"score": "100%"}}', "S1 is '100%'"),
    "between": ('{"S1": {"score": 0.75}}', "S1 is '0.75'"),
    "almost": ('{"S1": {"score": 0.5000001}}', "S1 is '0.5000001'"),
    "two": ('{"S1": {"score": 2}}', "S1 is '2'"),
    "negative": ('{"S1": {"score": -1}}', "S1 is '-1'"),
    "thousands": ('{"S1": {"score": "1,000"}}', "S1 is '1,000'"),
    "words": ('{"S1": {"score": "one"}}', "S1 is 'one'"),
    "a list": ('{"S1": [1]}', r"S1 is '\[1\]'"),
    "key twice": ('{"S1": {"score": 1}, "S1": {"score": 0}}', "a key stands twice"),
    "key twice, quotes": ("{'S1': 1, 'S1': 0}", "a key stands twice"),
    "key twice, comma": ('{"S1": {"score": 1, "score": 0,}}', "a key stands twice"),
    "two answers": ('{"S1": {"score": 1}}\n{"S1": {"score": 0}}', "two different answers"),
    "wrong key": ('{"s1": {"score": 1}}', "no JSON object"),
    "missing score": ('{"S1": {"reason": "fine"}}', "S1 has no score"),
    "cut in a text": ('{"S1": {"reason": "the plan', "no JSON object"),
    "cut behind the score": ('{"S1": {"reason": "r", "score": "1', "no JSON object"),
    "cut before the end": ('{"S1": {"reason": "r", "score": 1}', "no JSON object"),
    "thinking alone": ('<think>{"S1": {"score": 1}}</think>', "no JSON object"),
    "thinking without end": ('<think>{"S1": {"score": 1}}', "the thinking does not end"),
    "prose": ("The score of S1 is 1.", "no JSON object"),
    "a bare number": ("1", "no JSON object"),
    "empty": ("", "no JSON object"),
    "a list of answers": ('[["S1", 1]]', "no JSON object"),
    "deep": ('{"S1":' * 3000 + "1" + "}" * 3000, "no JSON object|S1"),
    "code": ("{__import__('os'): 1}", "no JSON object"),
}


@pytest.mark.parametrize(("text", "score"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_score_is_read(text, score):
    assert parse_answer(text, ["S1"])["S1"].score == score


@pytest.mark.parametrize(("text", "why"), REJECTED.values(), ids=REJECTED)
def test_what_is_no_score_is_never_taken_for_one(text, why):
    with pytest.raises(UnparsableError, match=why):
        parse_answer(text, ["S1"])


def test_reasons_come_with_their_scores():
    found = parse_answer('{"S1": {"reason": "a", "score": 1}, "D2": {"score": 0}}', ["D2", "S1"])
    assert found == {"D2": Scored(0.0, ""), "S1": Scored(1.0, "a")}
    assert list(found) == ["D2", "S1"]


def test_each_asked_dimension_must_have_its_score():
    with pytest.raises(UnparsableError, match="D1 has no score"):
        parse_answer(GOOD, ["S1", "D1"])


@given(
    st.dictionaries(
        st.sampled_from(["S1", "S2", "D3", "E4"]),
        st.tuples(st.sampled_from([0, 0.5, 1]), st.text(max_size=60)),
        min_size=1,
    )
)
def test_what_the_schema_allows_is_read_as_it_is(given_scores):
    answer = {d: {"reason": reason, "score": score} for d, (score, reason) in given_scores.items()}
    found = parse_answer(dumps(answer), list(given_scores))
    assert {d: (s.score, s.reason) for d, s in found.items()} == {
        d: (float(score), reason.replace("\ufeff", ""))
        for d, (score, reason) in given_scores.items()
    }


@given(st.text(alphabet="{}[]\"'\\,:S1 0.5score<think>/`\n", max_size=80))
def test_any_text_is_read_or_rejected(text):
    with contextlib.suppress(UnparsableError):
        assert parse_answer(text, ["S1"])["S1"].score in (0.0, 0.5, 1.0)


def test_the_schema_asks_for_each_dimension_and_the_three_levels():
    schema = answer_schema(["S1", "E4"])
    assert schema["required"] == ["S1", "E4"]
    assert schema["properties"]["S1"]["properties"]["score"]["enum"] == [0, 0.5, 1]
    assert schema["additionalProperties"] is False
