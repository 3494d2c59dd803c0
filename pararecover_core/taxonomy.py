"""The 14 error types, in three groups, with every spelling that files use for them.

Source: paper section 2.1.2, appendix C (table 12). Definitions are in our own words.
"""

import re
from enum import StrEnum
from typing import NamedTuple

OTHER = "other label"
"""Stands for every error label outside the 14 types."""


class ErrorGroup(StrEnum):
    """The three groups of tables 3 and 4."""

    STRUCTURAL = "Structural"
    PARAMETER = "Parameter"
    TOOL = "Tool"


class ErrorType(StrEnum):
    """An error type; the value is the paper's spelling."""

    DEPENDENCE_ERROR = "Dependence_Error"
    DEPENDENCE_NULL = "Dependence_Null"
    PARALLELISM_ERROR = "Parallelism_Error"
    SERIAL_ERROR = "Serial_Error"
    PARAMETER_ERROR = "Parameter_Error"
    PARAMETER_INVALID = "Parameter_Invalid"
    PARAMETER_MISSING = "Parameter_Missing"
    TYPE_ERROR = "Type_Error"
    NULL_ERROR = "Null_Error"
    TIMEOUT_ERROR = "Timeout_Error"
    TOOL_NAME_ERROR = "Tool_name_Error"
    TOOL_SELECT_ERROR = "Tool_select_Error"
    TOOLCALL_MISSING = "Toolcall_Missing"
    TOOLCALL_REDUNDANCY = "Toolcall_Redundancy"

    @property
    def group(self) -> ErrorGroup:
        """The group of the type (tables 3 and 4)."""
        return ERROR_TYPES[self].group

    @property
    def definition(self) -> str:
        """What the type means, in one sentence."""
        return ERROR_TYPES[self].definition


class ErrorDefinition(NamedTuple):
    """Group, meaning and other spellings of one error type."""

    group: ErrorGroup
    definition: str
    aliases: tuple[str, ...]


_S, _P, _T = ErrorGroup.STRUCTURAL, ErrorGroup.PARAMETER, ErrorGroup.TOOL

ERROR_TYPES: dict[ErrorType, ErrorDefinition] = {
    ErrorType.DEPENDENCE_ERROR: ErrorDefinition(
        _S,
        "A pending node depends on the wrong node: it needs one output, the plan names another.",
        ("依赖关系错误", "依赖错误", "dependency error", "wrong dependency"),
    ),
    ErrorType.DEPENDENCE_NULL: ErrorDefinition(
        _S,
        "A pending node lacks its dependencies.",
        ("依赖关系缺失", "依赖缺失", "dependency null", "dependency missing", "missing dependency"),
    ),
    ErrorType.PARALLELISM_ERROR: ErrorDefinition(
        _S,
        "Two nodes that must run one after the other are arranged in parallel.",
        ("错误并行", "并行错误", "parallel error", "incorrect parallelization"),
    ),
    ErrorType.SERIAL_ERROR: ErrorDefinition(
        _S,
        "Two nodes that could run in parallel are arranged one after the other.",
        ("错误串行", "串行错误", "serialization error", "incorrect serialization"),
    ),
    ErrorType.PARAMETER_ERROR: ErrorDefinition(
        _P,
        "A call gives a parameter that the tool does not define.",
        ("参数名称错误", "parameter name error", "param error"),
    ),
    ErrorType.PARAMETER_INVALID: ErrorDefinition(
        _P,
        "A parameter has the right type but a value that cannot be, such as the date 2026-02-32.",
        ("参数值非法", "参数值错误", "invalid parameter", "invalid parameter value"),
    ),
    ErrorType.PARAMETER_MISSING: ErrorDefinition(
        _P,
        "A call does not give a required parameter.",
        ("必要参数缺失", "参数缺失", "missing parameter", "missing required parameter"),
    ),
    ErrorType.TYPE_ERROR: ErrorDefinition(
        _P,
        'A parameter has a value of the wrong type, such as the text "16" for the number 16.',
        ("参数类型错误", "类型错误", "parameter type error", "param type error"),
    ),
    ErrorType.NULL_ERROR: ErrorDefinition(
        _T,
        "The tool returns an empty result.",
        ("空值错误", "返回为空", "empty result", "empty tool response", "null response"),
    ),
    ErrorType.TIMEOUT_ERROR: ErrorDefinition(
        _T,
        "The tool call runs into a time-out.",
        ("超时错误", "超时", "timeout", "time out error", "time-out"),
    ),
    ErrorType.TOOL_NAME_ERROR: ErrorDefinition(
        _T,
        "A call names a tool that is not in the tool list.",
        ("工具名称错误", "invalid tool name", "unknown tool"),
    ),
    ErrorType.TOOL_SELECT_ERROR: ErrorDefinition(
        _T,
        "A call uses a listed tool that is not the right one for the step.",
        ("工具选择错误", "wrong tool", "incorrect tool selection", "tool selection error"),
    ),
    ErrorType.TOOLCALL_MISSING: ErrorDefinition(
        _T,
        "A tool call that the task needs is not in the plan.",
        ("必要工具缺失", "工具缺失", "missing tool call", "tool missing"),
    ),
    ErrorType.TOOLCALL_REDUNDANCY: ErrorDefinition(
        _T,
        "The plan holds a tool call that the task does not need.",
        ("工具调用冗余", "冗余", "redundant tool call", "tool call redundant"),
    ),
}

BAD_REACTION = "异常应对错误"
"""A label of rollout files outside the 14 types: a bad reaction to an error (blind retry)."""

_SEPARATORS = re.compile(r"[,;，、；]")


def _fold(label: str) -> str:
    return re.sub(r"[\s_\-]+", "", label).casefold()


_BY_SPELLING: dict[str, ErrorType] = {
    _fold(spelling): error_type
    for error_type, definition in ERROR_TYPES.items()
    for spelling in (error_type.value, *definition.aliases)
}


def error_type(label: str) -> ErrorType | None:
    """The error type that a label means.

    Args:
        label: An English or Chinese label in any case, with spaces, hyphens or underscores.

    Returns:
        The type, or None for a label that is none of the 14.
    """
    return _BY_SPELLING.get(_fold(label))


def normalise(label: str) -> str:
    """A label in the paper's spelling, or as it was given where it is none of the 14.

    Args:
        label: One label.

    Returns:
        The type's value, or the label stripped of white space.
    """
    found = error_type(label)
    return found.value if found else label.strip()


def split_labels(cell: str) -> list[str]:
    """The labels of one cell, normalised, in order, without repeats.

    Args:
        cell: Labels separated by commas, semicolons or their Chinese forms.

    Returns:
        N labels, N >= 0.
    """
    labels = (normalise(part) for part in _SEPARATORS.split(cell))
    return list(dict.fromkeys(label for label in labels if label))
