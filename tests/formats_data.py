"""Rows and records for the tests of formats, and short ways to read them."""

import io
import json

from pararecover_core.formats import Reject, read

TOOLS = [
    {
        "name": "boil_water",
        "description": "Boils water.",
        "parameters": {"litres": {"type": "number", "description": "How much."}},
        "required": ["litres"],
    }
]
TASKS = [
    {"id": "root", "name": "", "para": {}, "desc": "Make tea.", "dep": [], "status": True},
    {"id": "1", "name": "boil_water", "para": {"litres": "1"}, "desc": "Boil.", "dep": ["root"],
     "status": False},
    {"id": "response", "name": "", "para": {}, "desc": "Reply.", "dep": ["1"], "status": False},
]  # fmt: skip
CALLS = [{"name": "boil_water", "arguments": {"litres": "1"}, "results": "错误：litres 应为数字"}]
PLAN = json.dumps({"tasks": TASKS}, ensure_ascii=False)
NEW_TASKS = [TASKS[0], TASKS[1] | {"status": True}, TASKS[2]]
NEW_PLAN = json.dumps({"tasks": NEW_TASKS}, ensure_ascii=False)

AUGMENTED = {
    "id": 12,
    "query_id": "3073",
    "tool_list": json.dumps(TOOLS),
    "query": "Make tea.",
    "funcall_times_gt": "1",
    "round_gt": "2",
    "tag": "Type_Error",
    "plan": PLAN,
    "fun_call": json.dumps(CALLS, ensure_ascii=False),
}
ROLLOUT_1 = {
    "id": 1,
    "query_id": 2920,
    "query": "Make tea.",
    "tool_list": json.dumps(TOOLS),
    "plan": PLAN,
    "error_reason": "任务1的参数类型错误。",
    "funcall_times_gt": 1,
    "round_gt": 2,
    "tag": "参数类型错误",
    "fun_call": CALLS,
}
ROLLOUT_2 = {k: v for k, v in ROLLOUT_1.items() if k not in ("tag", "fun_call")} | {
    "id": 1422,
    "tag_1": "参数类型错误",
    "tag_2": "异常应对错误",
    "tag_3": None,
    "fun_call": [],
}


def items_of(data, name="file", options=None):
    """Items of bytes or text."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    kwargs = {} if options is None else {"options": options}
    return list(read(io.BytesIO(data), name=name, **kwargs))


def contents(data, **kwargs):
    """What the items hold."""
    return [item.content for item in items_of(data, **kwargs)]


def good(data, **kwargs):
    """What the items hold; no reject among them."""
    found = contents(data, **kwargs)
    assert [str(c) for c in found if isinstance(c, Reject)] == []
    return found


def rejects(data, **kwargs):
    """The rejects as texts."""
    return [str(c) for c in contents(data, **kwargs) if isinstance(c, Reject)]


def jsonl(*records, **kwargs):
    """Records as JSON lines."""
    return "".join(json.dumps(r, ensure_ascii=False, **kwargs) + "\n" for r in records)
