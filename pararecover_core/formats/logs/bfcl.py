"""BFCL v4 results: calls without ids; results of tools stand only in ``inference_log``.

Dependencies through the state of a file system or a session are invisible here: where no value is
quoted, only the order is known.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.run import (
    Call,
    Run,
    Turn,
    arguments_of,
    joined,
    obj,
    objects,
    result_text,
    seq,
    txt,
    unpacked,
)
from pararecover_core.literals import as_json

NAME = "bfcl"
_ID = re.compile(
    r"(?:live_|multi_turn_|parallel|multiple|simple|irrelevance|web_search|memory|java|exec_)\w*"
)
_LONGEST = 100_000
_SIGNS = ("input_token_count", "output_token_count", "latency", "inference_log")


def is_result(value: Any) -> bool:
    """One line of a result file."""
    if not isinstance(value, Mapping) or "id" not in value or "result" not in value:
        return False
    return any(name in value for name in _SIGNS) or bool(_ID.match(txt(value["id"])))


def is_score(value: Any) -> bool:
    """One line of a score file: the sums, or a failure."""
    if not isinstance(value, Mapping):
        return False
    return {"accuracy", "total_count"} <= value.keys() or {"test_category", "valid"} <= value.keys()


def scores(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of a failure; the line of sums tells none."""
    if "accuracy" in value and "id" not in value:
        return
    given = value.get("model_result_raw", value.get("model_result"))
    run = _run({**value, "result": given})
    run.success = value.get("valid") is True
    run.extra["failure"] = value.get("error")
    yield run


def results(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of one test."""
    yield _run(value)


def _run(value: Mapping[str, Any]) -> Run:
    result = unpacked(value.get("result"))
    log = [item for item in seq(value.get("inference_log")) if isinstance(item, Mapping)]
    said = [_said(item) for item in log if "begin_of_turn_query" in item]
    run = Run(NAME, id=txt(value.get("id")), agent=txt(value.get("model_name")))
    if isinstance(result, list) and result and all(isinstance(item, list) for item in result):
        steps = [item for item in log if "begin_of_turn_query" in item]
        for number, turn in enumerate(result):
            about = said[number] if number < len(said) else ""
            _multi(run, turn, steps[number] if number < len(steps) else {}, about)
    else:
        calls = calls_of(result)
        run.turns = [Turn(calls, said=_question(value))]
        if not calls:
            run.answer = txt(result)
    run.said = run.said or ""
    return run


def _question(value: Mapping[str, Any]) -> str:
    prompt = value.get("prompt") or value.get("question")
    inner = obj(prompt).get("question", prompt)
    flat = [m for part in seq(inner) for m in (part if isinstance(part, list) else [part])]
    return joined(*(txt(m.get("content")) for m in objects(flat) if m.get("role") == "user"))


def _said(item: Mapping[str, Any]) -> str:
    return joined(*(txt(m.get("content")) for m in objects(item["begin_of_turn_query"])))


def _multi(run: Run, turn: list[Any], log: Mapping[str, Any], said: str) -> None:
    """The steps of one turn of the user; a step without calls ends it."""
    run.answer = None
    for number, step in enumerate(turn):
        calls = calls_of(step)
        if not calls:
            run.answer = txt(step) or run.answer
            continue
        entries = list(objects(log.get(f"step_{number}")))
        returned = [m for m in entries if m.get("role") == "tool"]
        for call, message in zip(calls, returned, strict=False):
            call.result = result_text(message.get("content"))
        thoughts = [
            txt(m.get("reasoning_content")) for m in entries if m.get("role") == "assistant"
        ]
        run.turns.append(Turn(calls, joined(*thoughts), said))
        said = ""
    if said:
        run.said = joined(run.said, said)


def calls_of(value: Any) -> list[Call]:
    """The calls of one step: ``{function: JSON}`` objects, or Python calls in a text.

    Args:
        value: A list of either, or one text such as ``[f(a=1), g(b=2)]``.
    """
    value = unpacked(value)
    if isinstance(value, str):
        return python_calls(value)
    found: list[Call] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):
            found += [Call(str(name), arguments_of(given)) for name, given in item.items()]
        elif isinstance(item, str):
            found += python_calls(item)
    return found


def python_calls(text: str) -> list[Call]:
    """Calls written as Python; read, never run. [] for any other text."""
    text = text.strip().strip("`").removeprefix("python").strip()
    if not text or len(text) > _LONGEST or "(" not in text:
        return []
    try:
        body = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    items = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
    if not all(isinstance(item, ast.Call) for item in items):
        return []
    return [_python_call(item) for item in items if isinstance(item, ast.Call)]


def _python_call(call: ast.Call) -> Call:
    named = {word.arg: _literal(word.value) for word in call.keywords if word.arg}
    positional = [_literal(item) for item in call.args]
    arguments: Any = [*positional, named] if positional and named else positional or named
    return Call(_source(call.func), arguments)


def _literal(node: ast.expr) -> Any:
    try:
        return as_json(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _source(node)


def _source(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return "(nested too deep)"
