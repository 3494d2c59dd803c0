"""What the text of a failed call says about its cause, in English and Chinese."""

import re

import msgspec

from pararecover_core.findings.model import Certainty
from pararecover_core.taxonomy import ErrorGroup, ErrorType

_READ = 400
"""Characters of a result that are read for its cause."""
_PARAMETER = r"(?:parameters?|arguments?|params?|fields?|keys?|参数|字段)"
_NAME = r"[\s:：为是]*[`'\"“‘「\[(]?\s*[A-Za-z_][\w.\-]*"
_KIND = r"(?:number|string|array|object|list|boolean|integer|numeric|dict|text)\b"
_KIND_ZH = r"(?:数字|字符串|数组|对象|列表|布尔|整数|数值)"
_NO_RANGE = r"(?! ?(?:from|between|greater|less|larger|smaller|in the|of at|above|below|[<>]))"


class Cause(msgspec.Struct, frozen=True):
    """A cause that an error text names.

    Attributes:
        parameter: The parameter that it names, "" where none.
    """

    error_type: ErrorType
    rule: str
    certainty: Certainty
    parameter: str = ""


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.I)


_TOOL = _pattern(
    r"(?:unknown|no such|unrecogni[sz]ed|undefined) (?:tool|function)",
    r"(?:tool|function)s?\b[^.]{0,60}(?:not (?:found|available|recogni[sz]ed|defined|exist|in the)"
    r"|does ?n[o']t exist|does not exist|is not a)",
    r"(?:工具|函数)[^，。]{0,40}(?:不存在|未找到|未定义|不在)",
    r"(?:未知|不存在的)(?:工具|函数)",
)
_MISSING = _pattern(
    rf"(?:missing|requires?|lacks?|lacking|absent|without)\b[^.]{{0,30}}\b{_PARAMETER}",
    rf"required {_PARAMETER}[^.]{{0,60}}(?:missing|not (?:provided|given|found)|absent)",
    rf"{_PARAMETER}{_NAME}[`'\"”’]? (?:is|was) (?:missing|required|not (?:provided|given))",
    rf"缺少[^，。]{{0,12}}{_PARAMETER}",
    rf"{_PARAMETER}[^，。]{{0,30}}(?:缺失|未提供|是必需的|为必填)",
    r"缺少(?:必要|必需|必填)",
)
_UNKNOWN = _pattern(
    rf"(?:unknown|unexpected|unrecogni[sz]ed|undefined|unsupported"
    rf"|extra) (?:keyword )?{_PARAMETER}",
    rf"{_PARAMETER}{_NAME}[`'\"”’]? (?:is|was)? ?(?:not (?:recogni[sz]ed|defined|accepted|supported"
    r"|allowed)|unknown|unexpected)",
    rf"invalid {_PARAMETER}(?: names?)?(?:{_NAME})?[^.]{{0,40}}[.;,]? ?(?:expected|did you mean"
    rf"|should be|use) (?!(?:an? |to be |type )?{_KIND})[`'\"]?[a-z_]+",
    rf"{_PARAMETER} names?[^.]{{0,30}}(?:invalid|incorrect|wrong)",
    rf"(?:未知|无法识别|不支持)的?{_PARAMETER}",
    rf"{_PARAMETER}[^，。]{{0,30}}(?:不被接受|未定义|不存在|无法识别|不被识别|名称错误|名错误)",
)
_TYPE = _pattern(
    r"type (?:mismatch|error)",
    r"(?:wrong|invalid|incorrect|unexpected|mismatched) (?:data )?types?\b",
    rf"(?:must|should) be (?:of type |in |a |an )?(?:valid )?{_KIND}{_NO_RANGE}",
    rf"expect(?:s|ed|ing)? (?:type )?(?:an? )?{_KIND}{_NO_RANGE}",
    rf"(?:got|received|not) (?:an? )?(?:the )?{_KIND}",
    r"类型(?:错误|不匹配|不正确|不符)",
    rf"(?:应|必须|需要|期望)(?:为|是|传入)?(?:一个)?{_KIND_ZH}",
)
_INVALID = _pattern(
    r"invalid|not (?:a )?valid|out of range|malformed|unresolved|not supported|\bformat\b|negative",
    r"must be (?:positive|greater|at least|less|between|one|non|within|in the)",
    r"cannot be (?:negative|zero|empty)|is not an? |no such|unknown",
    r"not (?:be )?(?:found|exist|recogni[sz]ed)|does ?n[o']t exist|does not exist",
    r"无效|非法|不合法|超出范围|不存在|未找到|格式|不能为(?:负|零|空)",
)
_CAUSES = (
    (ErrorType.TOOL_NAME_ERROR, "unknown tool", Certainty.CERTAIN, _TOOL),
    (ErrorType.PARAMETER_ERROR, "unknown parameter", Certainty.CERTAIN, _UNKNOWN),
    (ErrorType.PARAMETER_MISSING, "missing parameter", Certainty.CERTAIN, _MISSING),
    (ErrorType.TYPE_ERROR, "wrong type", Certainty.CERTAIN, _TYPE),
    (ErrorType.PARAMETER_INVALID, "invalid value", Certainty.LIKELY, _INVALID),
)
_SAYS_VALUE = re.compile(r"invalid value|值.{0,12}(?:无效|非法|不合法)", re.I)
_ORDER = _pattern(
    r"\b(?:not (?:yet )?(?:been )?(?:ready|available|completed?|finished|granted|started|prepared"
    r"|set|created|initiali[sz]ed|washed|heated|measured|mixed|chopped|opened|booked|confirmed"
    r"|executed))\b",
    r"\b(?:must|should|needs? to|has to|have to) (?:first )?(?:be )?\w+ (?:first|before)\b",
    r"\bbefore (?:you|it|the|this|using|calling)\b",
    r"\bstill (?:active|running|open|locked|in progress)\b|\bnothing to\b|\byet\b|\bprerequisite",
    r"\b(?:is|are|was) (?:empty|not ready|not there)\b|\bdepend(?:s|ency|encies|ent)\b",
    r"\bprevious (?:step|task|node)\b|\bin progress\b|\bunresolved reference",
    r"尚未|还没有|还未|先(?:完成|执行)|前置|依赖|之前",
)
_AGAIN = _pattern(
    r"\balready\b|same as (?:the )?previous|duplicate|redundan|nothing changed|\bunchanged\b",
    r"(?:no|without) (?:further )?(?:change|effect)|已经|重复|相同的结果",
)
_UNFIT = _pattern(
    r"not (?:suitable|appropriate|intended|designed|the right|what)|unsuitable|inappropriate",
    r"(?:in)?correct tool|wrong tool|instead(?: of)?\b|different (?:tool|function)",
    r"should (?:have )?use|however,|but (?:became|the|it|is|was|not)|\bnote[:：]|rather than",
    r"\bunlike\b|only (?:support|handle)|不适合|不适用|应(?:该)?使用|错误的工具|注意[:：]"
    r"|但(?:是)?",
)
_NAMED = re.compile(
    rf"{_PARAMETER}[\s:：为是]*[`'\"“‘「\[]\s*(?P<after>[A-Za-z_][\w.\-]*)"
    r"|[`'\"“‘「](?P<quoted>[A-Za-z_][\w.\-]*)[`'\"”’」]",
    re.I,
)


def causes(text: str) -> list[Cause]:
    """The causes that an error text names, the most specific first.

    Args:
        text: The result of a failed call.

    Returns:
        N causes, N >= 0. A missing parameter beside an unknown one is only possible: the call
        gave it under the wrong name.
    """
    head = text[:_READ]
    found: list[Cause] = []
    for error_type, rule, certainty, pattern in _CAUSES:
        match = pattern.search(head)
        if match and _counts(error_type, head, found):
            if error_type is ErrorType.PARAMETER_MISSING and found:
                certainty = Certainty.POSSIBLE
            found.append(Cause(error_type, rule, certainty, _parameter(error_type, head)))
            if error_type is ErrorType.TOOL_NAME_ERROR:
                break
    return found


def _counts(error_type: ErrorType, head: str, found: list[Cause]) -> bool:
    if error_type is ErrorType.PARAMETER_INVALID:
        return not found
    return not (error_type is ErrorType.TYPE_ERROR and _SAYS_VALUE.search(head))


def _parameter(error_type: ErrorType, head: str) -> str:
    if error_type.group is not ErrorGroup.PARAMETER:
        return ""
    named = _NAMED.search(head)
    return (named["after"] or named["quoted"]) if named else ""


def came_too_early(text: str) -> bool:
    """Whether an error text sounds as if an earlier step was not done yet."""
    return bool(_ORDER.search(text[:_READ]))


def changed_nothing(text: str) -> bool:
    """Whether a result says that the call repeated what was there already."""
    return bool(_AGAIN.search(text[:_READ]))


def has_reservation(text: str) -> bool:
    """Whether a prose result of a call that worked voices a doubt about the tool."""
    return not text.lstrip().startswith(("{", "[")) and bool(_UNFIT.search(text[:_READ]))
