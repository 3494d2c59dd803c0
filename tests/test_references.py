import pytest

from pararecover_core.plan import Plan
from pararecover_core.references import ReferenceReader, is_placeholder, is_symbol

IDS = (*(str(n) for n in range(1, 16)), "2.1", "1_retry", "2_retry", "4-1", "4-4", "6A")
NAMES = {"1": "getMeasurementTool", "2": "fetch_plant_details", "3": "create_group_for_garden"}


@pytest.fixture(scope="module")
def reader():
    tasks = [{"id": "root", "dep": []}]
    tasks += [{"id": i, "name": NAMES.get(i, f"tool_{i}"), "dep": ["root"]} for i in IDS]
    return ReferenceReader(Plan.parse({"tasks": tasks}))


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("$3", ["3"]),
        ("$3.flights", ["3"]),
        ("${4}", ["4"]),
        ("{{5.rows}}", ["5"]),
        ("@2", ["2"]),
        ("<node-3>", ["3"]),
        ("<GENERATED>-3", ["3"]),
        ("$99.rows", ["99"]),
        ("output_of_task3", ["3"]),
        ("task3_output", ["3"]),
        ("task3 output", ["3"]),
        ("output_of_5", ["5"]),
        ("output of task3", ["3"]),
        ("Output from Task 4", ["4"]),
        ("Output content of Task 7", ["7"]),
        ("output of task2.location", ["2"]),
        ("task4_output[0]", ["4"]),
        ("task13_output_demographic", ["13"]),
        ("task4_accommodation_id", ["4"]),
        ("task4 output (unopened members)", ["4"]),
        ("count_from_5", ["5"]),
        ("timer_from_step3", ["3"]),
        ("photo_id_from_7", ["7"]),
        ("interpretation3", ["3"]),
        ("assembled sandwich from id 15", ["15"]),
        ("combined outputs from task8, task9, and task10", ["8", "9", "10"]),
        ("tasks 8, 9 and 10", ["8", "9", "10"]),
        ("values of 4-1 to 4-4", ["4-1", "4-4"]),
        ("output of 1_retry", ["1_retry"]),
        ("the cheaper of task2 and 2_retry", ["2", "2_retry"]),
        ("task3 vendor_id", ["3"]),
        ("output_from_node_1", ["1"]),
        ("contents from task 3", ["3"]),
        ("root.output", ["root"]),
        ("output of getMeasurementTool", ["1"]),
        ("(output from fetch_plant_details)", ["2"]),
        ("output_from_create_group_for", ["3"]),
        ("task1中输出的员工邮箱", ["1"]),
        ("任务1的返回结果", ["1"]),
        ("1的结果", ["1"]),
        ("2.1的结果", ["2.1"]),
        ("3中返回的植物列表", ["3"]),
        ("3的值除以4的值", ["3", "4"]),
        ("步骤4中输出的釉料混合物", ["4"]),
        ("task3采摘的香菜叶", ["3"]),
        ("捐赠列表: task4中输出的捐赠信息.", ["4"]),
        ("3", ["3"]),
    ],
)
def test_every_convention_is_read(reader, text, nodes):
    assert sorted(r.node for r in reader.in_text(text)) == sorted(nodes)


@pytest.mark.parametrize(
    "text",
    ["The pool is closed", "2026-03-02", "ann@example.com", "Table 5", "room 3", "3 of hearts",
     "5 minutes of music", "measured_flour", "https://example.com/a/3", "results of 2025", "",
     "x" * 30_000],
)  # fmt: skip
def test_plain_values_refer_to_nothing(reader, text):
    assert list(reader.in_text(text)) == []


def test_doubtful_forms_are_not_sure(reader):
    assert [r.sure for r in reader.in_text("3")] == [False]
    assert [r.sure for r in reader.in_text("step 2 of the recipe")] == [False]
    assert [r.sure for r in reader.in_text("task3_output")] == [True]


def test_a_step_in_long_prose_is_the_prose_s_own(reader):
    prose = "Dear all, please come at nine. As said in step 2 of our letter, bring gloves. " * 3
    assert list(reader.in_text(prose)) == []


def test_references_are_found_at_any_depth_and_never_name_the_node_itself():
    plan = Plan.parse(
        {
            "tasks": [
                {"id": "1", "name": "a", "dep": []},
                {
                    "id": "2",
                    "name": "b",
                    "para": {"rows": [{"id": "task1_output"}], "me": "task2_output"},
                    "dep": ["1"],
                },
                {"id": "3", "name": "c", "para": ["task1中输出的结果", {"x": "2"}], "dep": []},
            ]
        }
    )
    reader = ReferenceReader(plan)
    assert [(r.node, r.path) for r in reader.of_node("2")] == [("1", "rows.id")]
    assert {r.node for r in reader.of_node("3")} == {"1", "2"}


@pytest.mark.parametrize(
    "text",
    ["placeholder", "Pending user input", "To be filled after user provides", "[Insert Date]",
     "Email content to be inserted.", "assumed confirmation ID", "user's location", "xxx", "TBD",
     "location_placeholder", "to_be_chosen_by_user", "user_name_here", "path/to/captured/photo",
     "当前任务中输出的日期", "第一个蛋糕的ID", "Lin的邮箱地址",
     "用户提供的HTML文本", "<your name>"],
)  # fmt: skip
def test_placeholders(text):
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text", ["Come here", "Your order is ready", "5 Elm Court", "holder", "[1, 2]", "to be or not"]
)
def test_no_placeholders(text):
    assert not is_placeholder(text)


def test_symbols():
    assert is_symbol("measured_flour")
    assert not is_symbol("flour")
    assert not is_symbol("a, b")
