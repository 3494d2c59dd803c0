"""What results say: time-outs, empty results, and errors that name their cause."""

import re
from collections.abc import Iterator

import msgspec

from pararecover_core.findings.calls import nearest
from pararecover_core.findings.model import Certainty, Finding, Where
from pararecover_core.findings.scene import Scene
from pararecover_core.results import ResultState, result_state
from pararecover_core.taxonomy import ErrorGroup, ErrorType

_NAMED = re.compile(
    r"(?:parameters?|arguments?|params?|fields?|keys?|参数|字段)[\s:：为是]*[`'\"“‘「\[]\s*"
    r"(?P<quoted>[A-Za-z_][\w.\-]*)|[`'\"“‘「](?P<bare>[A-Za-z_][\w.\-]*)[`'\"”’」]",
    re.I,
)
_QUOTED = r"[\s:：为是]*[`'\"“‘「\[(]?\s*[A-Za-z_][\w.\-]*"
_WORD = r"(?:parameters?|arguments?|params?|fields?|keys?|参数|字段)"

_CAUSES: tuple[tuple[ErrorType, str, Certainty, re.Pattern[str]], ...] = tuple(
    (kind, rule, certainty, re.compile(pattern, re.I))
    for kind, rule, certainty, pattern in (
        (
            ErrorType.TOOL_NAME_ERROR, "unknown tool", Certainty.CERTAIN,
            r"(?:unknown|no such|unrecogni[sz]ed|undefined) (?:tool|function)"
            r"|(?:tool|function)s?\b[^.]{0,60}(?:not (?:found|available|recogni[sz]ed|defined|exist"
            r"|in the)|does ?n[o']t exist|does not exist|is not a)"
            r"|(?:工具|函数)[^，。]{0,40}(?:不存在|未找到|未定义|不在)|(?:未知|不存在的)(?:工具|函数)",
        ),
        (
            ErrorType.PARAMETER_MISSING, "missing parameter", Certainty.CERTAIN,
            rf"(?:missing|requires?|lacks?|lacking|absent|without)\b[^.]{{0,30}}\b{_WORD}(?:{_QUOTED})?"
            rf"|required {_WORD}(?:{_QUOTED})?[^.]{{0,30}}(?:missing|not (?:provided|given|found)|absent)"
            rf"|{_WORD}{_QUOTED}[`'\"”’]? (?:is|was) (?:missing|required|not (?:provided|given))"
            rf"|缺少[^，。]{{0,12}}{_WORD}(?:{_QUOTED})?|{_WORD}[^，。]{{0,30}}(?:缺失|未提供|是必需的|为必填)"
            r"|缺少(?:必要|必需|必填)",
        ),
        (
            ErrorType.PARAMETER_ERROR, "unknown parameter", Certainty.CERTAIN,
            rf"(?:unknown|unexpected|unrecogni[sz]ed|undefined|unsupported|extra) (?:keyword )?{_WORD}"
            rf"(?:{_QUOTED})?|{_WORD}{_QUOTED}[`'\"”’]? (?:is|was)? ?(?:not (?:recogni[sz]ed|defined|accepted"
            rf"|supported|allowed|valid|a valid)|unknown|unexpected)"
            rf"|invalid (?:{_WORD}|{_WORD} names?)(?:{_QUOTED})?[^.]{{0,40}}[.;,]? ?(?:expected|did you mean"
            rf"|should be|use) [`'\"]?[a-z_]+[`'\"]?(?! (?:to be|number|string))"
            rf"|(?:未知|无法识别|不支持)的?{_WORD}(?:{_QUOTED})?"
            rf"|{_WORD}[^，。]{{0,30}}(?:不被接受|未定义|不存在|无法识别|不被识别|名称错误|名错误)",
        ),
        (
            ErrorType.TYPE_ERROR, "wrong type", Certainty.CERTAIN,
            r"type (?:mismatch|error)|(?:wrong|invalid|incorrect|unexpected|mismatched) (?:data )?types?"
            r"|(?:must|should) be (?:of type |in |a |an )?(?:valid )?(?:number|string|array|object|list"
            r"|boolean|integer|numeric|text\b|dict)"
            r"|expect(?:s|ed|ing)? (?:type )?(?:an? )?(?:number|string|array|object|list|boolean|integer"
            r"|numeric)|(?:got|received|not) (?:an? )?(?:the )?(?:string|integer|array|object|list|text)\b"
            r"|类型(?:错误|不匹配|不正确|不符)|(?:应|必须|需要|期望)(?:为|是|传入)?(?:一个)?"
            r"(?:数字|字符串|数组|对象|列表|布尔|整数|数值)",
        ),
        (
            ErrorType.PARAMETER_INVALID, "invalid value", Certainty.LIKELY,
            r"invalid|not (?:a )?valid|out of range|must be (?:positive|greater|at least|less|between|one"
            r"|non|within|in the)|cannot be (?:negative|zero|empty)|negative|not (?:be )?(?:found|exist"
            r"|recogni[sz]ed)|no such|does ?n[o']t exist|does not exist|unknown|malformed|is not an? "
            r"|unresolved|not supported|format|无效|非法|不合法|超出范围|不存在|未找到|格式|不能为(?:负|零|空)",
        ),
    )
)  # fmt: skip
_ORDER = re.compile(
    r"\b(?:not (?:yet )?(?:been )?(?:ready|available|completed?|finished|granted|started|prepared|set"
    r"|created|initiali[sz]ed|washed|heated|measured|mixed|chopped|opened|booked|confirmed)\b"
    r"|(?:must|should|needs? to|has to|have to) (?:first )?(?:be )?\w+ (?:first|before)|before "
    r"(?:you|it|the|this|using|calling)|still (?:active|running|open|locked|in progress)|nothing to"
    r"|(?:is|are|was) (?:empty|not ready)|yet\b|prerequisite|depend(?:s|ency|encies|ent)"
    r"|previous (?:step|task|node)|in progress)|尚未|还没有|还未|先(?:完成|执行)|前置|依赖|之前",
    re.I,
)
_AGAIN = re.compile(
    r"\balready\b|same as (?:the )?previous|duplicate|redundan|(?:no|without) (?:further )?(?:change|effect)"
    r"|nothing changed|unchanged|已经|重复|相同的结果",
    re.I,
)
_UNFIT = re.compile(
    r"not (?:suitable|appropriate|intended|designed|the right|what)|unsuitable|inappropriate"
    r"|(?:in)?correct tool|wrong tool|instead(?: of)?\b|different (?:tool|function)|should (?:have )?use"
    r"|however,|but (?:became|the|it|is|was|not)|\bnote[:：]|rather than|unlike|only (?:support|handle)"
    r"|不适合|不适用|应(?:该)?使用|错误的工具|注意[:：]|但(?:是)?",
    re.I,
)


def observed(scene: Scene) -> Iterator[Finding]:
    """Findings from the results of this round, and from failures noted in earlier nodes."""
    for call in scene.observations:
        state = result_state(call.result)
        node = call.node
        if call.name and scene.by_name and call.name not in scene.by_name:
            planned = scene.plan.by_id.get(node)
            if planned is None or planned.name in scene.by_name:
                yield _unlisted(scene, call.name, node)
        if state is ResultState.OK:
            yield from _remark(node, call.name, call.result)
        else:
            yield from _failure(node, call.name, call.result, state, Certainty.CERTAIN)
    for node_id, text in scene.noted.items():
        state = scene.failed.get(node_id, ResultState.OK)
        if state is ResultState.OK or node_id in scene.retried:
            continue
        name = scene.plan.by_id[node_id].name
        yield from _failure(node_id, name, text, state, Certainty.LIKELY)


def _unlisted(scene: Scene, name: str, node: str) -> Finding:
    near = nearest(name, list(scene.by_name))
    return Finding(
        ErrorType.TOOL_NAME_ERROR,
        "unknown tool",
        node,
        f"{_subject(node, name)} went to '{name}', which is not in the tool list."
        + (f" The nearest is '{near}'." if near else ""),
        where=Where.OBSERVATION,
        suggestion=near,
    )


def _subject(node: str, name: str) -> str:
    return f"The call of node {node}" if node else f"A call of {name or 'an unnamed tool'}"


def _failure(
    node: str, name: str, text: str, state: ResultState, certainty: Certainty
) -> Iterator[Finding]:
    subject = _subject(node, name)
    if state is ResultState.TIMEOUT:
        yield _of(
            ErrorType.TIMEOUT_ERROR, "timeout", node, f"{subject} ran into a time-out.", certainty
        )
        yield _of(
            ErrorType.NULL_ERROR,
            "no result after a timeout",
            node,
            f"{subject} gave no result, because it ran into a time-out.",
            Certainty.POSSIBLE,
        )
    elif state is ResultState.EMPTY:
        yield _of(
            ErrorType.NULL_ERROR, "empty result", node, f"{subject} gave nothing back.", certainty
        )
    else:
        yield from _error(node, subject, text, certainty)


def _of(
    kind: ErrorType | None, rule: str, node: str, message: str, certainty: Certainty
) -> Finding:
    return Finding(kind, rule, node, message, where=Where.OBSERVATION, certainty=certainty)


def _error(node: str, subject: str, text: str, certainty: Certainty) -> Iterator[Finding]:
    said = _shortened(text)
    known = False
    for kind, rule, sure, pattern in _CAUSES:
        match = pattern.search(text[:400])
        if match and not (known and kind is ErrorType.PARAMETER_INVALID):
            known = True
            finding = _of(
                kind, rule, node, f"{subject} failed: {said}", max(sure, certainty, key=_rank)
            )
            named = _NAMED.search(text[:400]) if kind.group is ErrorGroup.PARAMETER else None
            parameter = (named["quoted"] or named["bare"]) if named else ""
            yield msgspec.structs.replace(finding, parameter=parameter)
            if kind in (ErrorType.TOOL_NAME_ERROR, ErrorType.TYPE_ERROR):
                break
    if _ORDER.search(text[:400]):
        message = f"{subject} failed as if it came too early: {said}"
        yield _of(ErrorType.PARALLELISM_ERROR, "too early", node, message, Certainty.POSSIBLE)
        yield _of(ErrorType.DEPENDENCE_ERROR, "too early", node, message, Certainty.POSSIBLE)
    elif not known:
        yield _of(None, "other error", node, f"{subject} failed: {said}", certainty)


def _rank(certainty: Certainty) -> int:
    return certainty.rank


def _remark(node: str, name: str, text: str) -> Iterator[Finding]:
    """Hints in the text of a call that worked."""
    head = text[:600]
    if _AGAIN.search(head):
        message = f"{_subject(node, name)} changed nothing: {_shortened(text)}"
        yield _of(ErrorType.TOOLCALL_REDUNDANCY, "nothing new", node, message, Certainty.POSSIBLE)
    if _UNFIT.search(head) and not head.lstrip().startswith(("{", "[")):
        message = f"{_subject(node, name)} worked with a reservation: {_shortened(text)}"
        yield _of(ErrorType.TOOL_SELECT_ERROR, "reservation", node, message, Certainty.POSSIBLE)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    flat = flat if len(flat) <= 160 else flat[:157] + "..."
    return flat if flat.endswith((".", "!", "?", "。")) else flat + "."
