"""The 14 error types: names, groups, and every spelling that files use."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.taxonomy import (
    BAD_REACTION,
    ERROR_TYPES,
    ErrorGroup,
    ErrorType,
    error_type,
    normalise,
    split_labels,
)

SHARED = Path(__file__).parents[2] / "shared"

# The Chinese labels of the published rollout files, with the paper's names.
ROLLOUT_LABELS = {
    "参数类型错误": "Type_Error",
    "参数名称错误": "Parameter_Error",
    "参数值非法": "Parameter_Invalid",
    "必要参数缺失": "Parameter_Missing",
    "必要工具缺失": "Toolcall_Missing",
    "工具调用冗余": "Toolcall_Redundancy",
    "工具名称错误": "Tool_name_Error",
    "工具选择错误": "Tool_select_Error",
    "错误串行": "Serial_Error",
    "错误并行": "Parallelism_Error",
    "依赖关系错误": "Dependence_Error",
    "依赖关系缺失": "Dependence_Null",
}


def test_there_are_14_types_in_three_groups():
    groups = [kind.group for kind in ErrorType]
    assert len(ERROR_TYPES) == len(ErrorType) == 14
    assert [groups.count(group) for group in ErrorGroup] == [4, 4, 6]
    assert all(kind.definition.endswith(".") for kind in ErrorType)


@pytest.mark.parametrize(("label", "name"), ROLLOUT_LABELS.items())
def test_labels_of_rollout_files(label, name):
    assert error_type(label) == name
    assert normalise(f" {label} ") == name


@pytest.mark.parametrize(
    "label",
    ["Tool_name_Error", "tool name error", "TOOL-NAME-ERROR", " ToolNameError ", "tool_name error"],
)
def test_case_hyphens_and_spaces_do_not_matter(label):
    assert error_type(label) is ErrorType.TOOL_NAME_ERROR


@pytest.mark.parametrize(
    ("label", "name"),
    [("timeout", "Timeout_Error"), ("Dependency Error", "Dependence_Error")],
)  # fmt: skip
def test_aliases(label, name):
    assert normalise(label) == name


def test_no_spelling_means_two_types():
    spellings = [
        (spelling, kind)
        for kind, definition in ERROR_TYPES.items()
        for spelling in (kind.value, *definition.aliases)
    ]
    assert [error_type(spelling) for spelling, _ in spellings] == [kind for _, kind in spellings]


def test_the_13th_rollout_label_is_none_of_the_14_and_is_kept():
    assert error_type(BAD_REACTION) is None
    assert normalise(f" {BAD_REACTION}\n") == BAD_REACTION


@pytest.mark.parametrize("separator", [",", ";", "，", "、", "；", " , "])
def test_cells_with_several_labels(separator):
    cell = separator.join(["参数类型错误", "type error", BAD_REACTION, "错误串行"])
    assert split_labels(cell) == ["Type_Error", BAD_REACTION, "Serial_Error"]


def test_empty_cells_hold_no_label():
    assert split_labels("") == split_labels(" ; ") == []


@given(st.text())
def test_normalising_twice_changes_nothing(label):
    assert normalise(normalise(label)) == normalise(label)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's tables are not here")
def test_names_are_those_of_the_papers_tables():
    found = set()
    for table in (SHARED / "paper" / "tables").glob("*.csv"):
        with table.open(encoding="utf-8-sig") as file:
            for row in csv.reader(file):
                found.update(cell for cell in row if cell in set(ErrorType))
    assert found == set(ErrorType)
