"""What a tool's result says about its call: it worked, it failed, it ran out of time, or nothing.

Results are text: English or Chinese prose, JSON, a Python literal, a bare value.

Source: paper appendix C (Null_Error, Timeout_Error); the spellings are those of published files.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pararecover_core.literals import loads

_HEAD = 600
"""Characters of a prose result that are read: the verdict stands at its beginning."""
_PARSED = 200_000
"""Longest result that is parsed as JSON; a longer one is read as prose."""


class ResultState(StrEnum):
    """What a result says about its call."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    EMPTY = "empty"


_EMPTY_TEXTS = frozenset(
    {"", "null", "none", "nil", "undefined", "nan", "[]", "{}", "()", '""', "''", "[null]", "n/a"}
    | {"[[]]", "[{}]", "empty", "(empty)", "no result", "no results", "no data", "no output"}
    | {"空", "无", "无结果", "无数据", "结果为空", "返回为空", "返回结果为空", "空结果", "空列表"}
)
_TIMEOUT = re.compile(
    r"\btime[sd]?[ \-_]?outs?(?:[ _]?error|exception)?\b|timeouterror|超时|逾时", re.I
)
_NO_TIMEOUT = re.compile(
    r"\b(?:no|without(?: an?y?)?|never|not|before the|set(?:ting)?(?: the)?|configured?|default)"
    r"\s+time[sd]?[ \-]?outs?\b|\btime[ \-]?out\s*(?:is |was |has been )?"
    r"(?:set|configured|to \d|of \d|=|period|value"
    r"|setting|parameter|limit|game|corner)|(?:未|没有|无|不会|设置|设定)超时|超时(?:时间|设置|阈值|为)",
    re.I,
)
_NO_ERROR = re.compile(
    r"\b(?:no|zero|0|without(?: an?y?)?|free of|not? (?:find |found )?any)\s+"
    r"(?:\w+\s+){0,2}(?:errors?|failures?|exceptions?|problems?)\b"
    r"|\berror[ \-]free\b|(?:没有|无|未发现|未出现|不存在)(?:任何)?(?:错误|异常|失败|问题)",
    re.I,
)
_TROUBLE = re.compile(r"error|failure|exception|problem|错误|异常|失败|问题", re.I)
_GOOD_START = re.compile(
    r"(?:\W|的|已|结果|执行|调用|工具)*"
    r"(?:success\w*|ok\b|done\b|completed?\b|成功|完成)(?!\w*\s*[:=]\s*(?:false|no)\b)",
    re.I,
)
_BAD_START = re.compile(
    r"\W*(?:(?:tool|api|function|system|execution|runtime|network|server|validation|internal|http|"
    r"parameter|type|value|key|connection)\s*)?"
    r"(?:(?:[A-Za-z]*Error|[A-Za-z]*Exception)(?=\W|$)(?!\s+(?:log|report|rate|message|handling|"
    r"margin|analysis|code \w+ (?:is|means))s?\b)|ERR\b"
    r"|fail(?:ed|ure)\b(?!\s+(?:rate|analysis|log))"
    r"|traceback\b|unable to\b|cannot\b|can't\b|could ?n[o']t\b|could not\b|invalid\b"
    r"|missing (?:required )?(?:parameter|argument|field|value)|unknown (?:tool|function|parameter)"
    r"|unauthori[sz]ed\b|access denied|permission denied|forbidden\b|bad request"
    r"|(?:HTTP )?(?:4\d\d|5\d\d)\b\s*(?:error|[A-Z])"
    r"|错误|出错|报错|异常|失败|无法|无效|缺少|不支持|非法|抱歉)",
    re.I,
)
_BAD_INSIDE = re.compile(
    r"\b(?:missing (?:a )?required|required (?:parameter|argument|field)s?\b[^.]{0,60}\b(?:missing|"
    r"not provided|absent)|is not recogni[sz]ed|not a valid\b|is (?:in)valid(?<=invalid)"
    r"|must be (?:an?\b|positive|one of|of type|greater|non|provided)"
    r"|does ?n[o']t exist|does not exist"
    r"|(?:call|request|operation|execution|tool|attempt|connection|lookup|query|validation|upload|"
    r"download|booking|payment) (?:has |have |was )?(?:failed|unsuccessful|rejected|refused|denied)"
    r"|failed (?:to|because|due|with)\b|resulted in an? error|an error (?:has )?occurred"
    r"|encountered an (?:error|exception)|returned an error"
    r"|unexpected (?:keyword )?(?:argument|parameter)"
    r"|no such (?:tool|function|file|parameter))"
    r"|(?:调用|执行|操作|请求|获取|处理|查询|解析|验证)(?:时)?(?:失败|出错|异常|错误)|发生(?:了)?(?:错误|异常)"
    r"|参数[^，。]{0,40}(?:错误|无效|缺失|不被接受|不正确|不合法|不能为空)|缺少(?:必要|必需|必填|所需)|不存在|错误[：:]",
    re.I,
)
_NOT_FOUND = re.compile(
    r"\W*(?:the |an? |this |your )?[^.!?。\n]{1,80}?"
    r"\b(?:(?:was |were |is |could |can )?not (?:be )?"
    r"(?:found|located|recogni[sz]ed)|is (?:still active|not available|unavailable))\b",
    re.I,
)
_NOTHING = re.compile(
    r"\W*(?:(?:there (?:are|is|were|was)|found|returned|got) )?"
    r"(?:no|0|zero|empty)\b(?: \w+){0,6}? ?"
    r"(?:found|returned|available|matched|match(?:es|ing)?\b|results?\b|records?\b|data\b|items?\b|"
    r"entries\b|response\b|extracted|list\b|array\b|output\b|content\b)"
    r"|.{0,80}\b(?:returned|returns|is|was|are|were) (?:an )?"
    r"(?:empty|no|nothing|null)\b(?: \w+){0,2}"
    r" ?(?:results?|list|array|response|records?|data|string|object|matches|value|$|[.,;])"
    r"|.{0,40}(?:结果|返回|列表|数据|内容)(?:值)?为空"
    r"|.{0,20}(?:没有|未)(?:能)?(?:找到|查到|检索到|返回|获取到|搜索到|匹配到)"
    r"(?:任何|匹配|符合|相关|可用|有效|结果|数据|记录)",
    re.I,
)
_NOT_FOUND_ZH = re.compile(r".{0,40}(?:未找到|找不到|没有找到|未能找到)")

_ERROR_KEYS = ("error", "errors", "err", "exception", "error_message", "errorMessage", "错误")
_STATE_KEYS = ("status", "state", "result", "outcome", "状态")
_FLAG_KEYS = ("success", "ok", "succeeded", "is_success", "成功")
_TEXT_KEYS = (
    "message",
    "msg",
    "detail",
    "details",
    "reason",
    "description",
    "code",
    "type",
    "信息",
)
_BAD_STATES = frozenset(
    {"error", "failed", "failure", "fail", "exception", "invalid", "rejected", "错误", "失败"}
)
_QUIET_KEYS = frozenset(
    {
        "status",
        "success",
        "ok",
        "message",
        "msg",
        "count",
        "total",
        "code",
        "query",
        "page",
        "error",
    }
    | {"errors", "total_count", "num_results", "note", "info", "timestamp"}
)


def result_state(text: str) -> ResultState:
    """What a tool's result says about its call.

    Args:
        text: The result as text, in English or Chinese: prose, JSON or a Python literal.

    Returns:
        TIMEOUT where the call ran out of time, ERROR where it failed otherwise, EMPTY where it
        gave nothing ("", null, [], {}, "no results found"), else OK. Prose that only mentions
        errors ("no errors were found") is OK.

    Source: paper appendix C, table 12 (Null_Error, Timeout_Error); the reading of prose is ours.
    """
    stripped = text.strip()
    if len(stripped) < 20 and stripped.rstrip(".。").casefold() in _EMPTY_TEXTS:
        return ResultState.EMPTY
    if stripped[0] in "{[\"'(" and len(stripped) <= _PARSED:
        try:
            value = loads(stripped)
        except ValueError:
            return _shaped_like_an_error(stripped) or _prose_state(stripped)
        return _value_state(value)
    return _prose_state(stripped)


def _value_state(value: Any) -> ResultState:
    if isinstance(value, str):
        return _prose_state(value.strip()) if value.strip() else ResultState.EMPTY
    if isinstance(value, Mapping):
        return _object_state(value)
    if _is_nothing(value):
        return ResultState.EMPTY
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], Mapping | str):
        return _value_state(value[0])
    return ResultState.OK


def _object_state(value: Mapping[Any, Any]) -> ResultState:
    words = " ".join(
        str(value[key])[:_HEAD] for key in (*_ERROR_KEYS, *_STATE_KEYS, *_TEXT_KEYS) if key in value
    )
    if _says_failed(value):
        return ResultState.TIMEOUT if _times_out(words) else ResultState.ERROR
    if any(_state_word(value, key) in ("timeout", "timed_out", "timedout") for key in _STATE_KEYS):
        return ResultState.TIMEOUT
    content = [item for key, item in value.items() if str(key).casefold() not in _QUIET_KEYS]
    if (content or not value) and all(_is_nothing(item) for item in content):
        return ResultState.EMPTY
    if len(value) == 1 and not content:
        return _value_state(next(iter(value.values())))
    return ResultState.OK


def _says_failed(value: Mapping[Any, Any]) -> bool:
    for key in _ERROR_KEYS:
        given = value.get(key)
        if given not in (None, "", False, 0, [], {}) and str(given).casefold() not in (
            "none",
            "null",
            "false",
            "no",
        ):
            return True
    if any(value.get(key) is False for key in _FLAG_KEYS):
        return True
    return any(_state_word(value, key) in _BAD_STATES for key in _STATE_KEYS)


def _state_word(value: Mapping[Any, Any], key: str) -> str:
    given = value.get(key)
    return given.strip().casefold() if isinstance(given, str) else ""


def _is_nothing(value: Any) -> bool:
    """Whether a value holds nothing: null, blank, or containers of such values alone."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Mapping):
        return all(_is_nothing(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(_is_nothing(item) for item in value)
    return False


def _shaped_like_an_error(text: str) -> ResultState | None:
    """Broken or cut JSON that still opens with an error."""
    opening = re.match(r"[\s{\['\"]*(?:error|错误)['\"]?\s*[:：]", text, re.I)
    status = re.search(r"['\"]status['\"]\s*:\s*['\"](?:error|fail\w*)['\"]", text[:_HEAD], re.I)
    if not (opening or status):
        return None
    return ResultState.TIMEOUT if _times_out(text[:_HEAD]) else ResultState.ERROR


def _times_out(text: str) -> bool:
    return bool(_TIMEOUT.search(text) and _TIMEOUT.search(_NO_TIMEOUT.sub(" ", text)))


def _prose_state(text: str) -> ResultState:
    head = text[:_HEAD]
    if _TROUBLE.search(head):
        head = _NO_ERROR.sub(" ", head)
    head = head.strip()
    first = re.split(r"(?<=[.!?])\s|[。！？\n]", head, maxsplit=1)[0]
    if not head or _GOOD_START.match(head):
        return ResultState.OK
    bad = bool(_BAD_START.match(head) or _BAD_INSIDE.search(first))
    if _times_out(head if bad else first):
        return ResultState.TIMEOUT
    if bad:
        return ResultState.ERROR
    if _NOTHING.match(first):
        return ResultState.EMPTY
    if _NOT_FOUND.match(first) or _NOT_FOUND_ZH.match(first):
        return ResultState.ERROR
    return ResultState.OK
