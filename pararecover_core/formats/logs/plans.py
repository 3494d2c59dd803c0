"""Plans with their edges given: LLMCompiler's text, TaskBench, TRAJECT-Bench."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.bfcl import python_calls
from pararecover_core.formats.logs.run import Call, Run, Turn, obj, objects, result_text, seq, txt
from pararecover_core.plan import text_of
from pararecover_core.records import as_text

LLMCOMPILER, TASKBENCH, TRAJECT = "llmcompiler", "taskbench", "traject-bench"
_STEP = re.compile(r"[ \t]*(\d{1,6})\.[ \t]*([A-Za-z_][\w.\-]*)[ \t]*\((.*)")
_REF = re.compile(r"\$\{?(\d{1,6})\}?")
_NODE = re.compile(r"<node-(\d{1,6})>")


_ASIDE = ("Thought:", "Question:")


def is_compiler_text(head: bytes) -> bool:
    """Whether a text is a plan of LLMCompiler: its first line of its own is a step."""
    lines = head.decode("utf-8", "replace").splitlines()[:20]
    kept = [line for line in lines if line.strip() and not line.strip().startswith(_ASIDE)]
    return bool(kept) and bool(_STEP.fullmatch(kept[0]))


def compiler(text: str) -> Iterator[Run]:
    """The plans of a text; each step numbered 1 begins another one."""
    run = Run(LLMCOMPILER, [Turn([])], planned=True)
    seen: set[str] = set()
    for line in text.splitlines():
        thought = line.strip().removeprefix("Thought:")
        query = line.strip().removeprefix("Question:")
        step = _STEP.fullmatch(line.rstrip().removesuffix("<END_OF_PLAN>"))
        if step and step[1] in seen:
            yield run
            run, seen = Run(LLMCOMPILER, [Turn([])], query=run.query, planned=True), set()
        if step and step[2] == "join":
            run.answer = ""
        elif step:
            run.turns[0].calls.append(_step(step, seen))
            seen.add(step[1])
        elif query != line.strip():
            if seen:
                yield run
                run, seen = Run(LLMCOMPILER, [Turn([])], planned=True), set()
            run.query = query.strip()
        elif thought != line.strip():
            turn = run.turns[0]
            turn.thought = "\n".join(filter(None, (turn.thought, thought.strip())))
    yield run


def _step(step: re.Match[str], seen: set[str]) -> Call:
    """A step; demonstrations leave brackets open, so the arguments may stay a text."""
    given = step[3].strip()
    given = given[:-1] if given.endswith(")") else given
    needs = dict.fromkeys(ref for ref in _REF.findall(given) if ref in seen)
    readable = python_calls(f"f({_REF.sub(_quoted, given)})")
    arguments: Any = readable[0].arguments if readable else [given] if given else {}
    return Call(step[2], arguments, step[1], needs=tuple(needs))


def _quoted(match: re.Match[str]) -> str:
    """A bare reference as a text; inside quotes it is one already."""
    before = match.string[: match.start()]
    inside = before.count('"') % 2 or before.count("'") % 2
    return match[0] if inside else f'"{match[0]}"'


def is_taskbench(value: Any) -> bool:
    """One task of TaskBench, or a model's answer to one."""
    return "nodes" in _taskbench_plan(value)


def _taskbench_plan(value: Any) -> dict[str, Any]:
    """Nodes, links and steps: named after tasks or tools, of an answer under ``result``."""
    for place in (obj(value), obj(obj(value).get("result"))):
        for word in ("task", "tool"):
            if f"{word}_nodes" in place and f"{word}_links" in place:
                return {part: place.get(f"{word}_{part}") for part in ("nodes", "links", "steps")}
    return {}


def taskbench(value: Mapping[str, Any]) -> Iterator[Run]:
    """The plan of a task: ``task_links`` are its edges.

    They name tools: where a tool occurs twice they are ambiguous, and ``<node-j>`` in the arguments
    decides where it fits; it counts from 0 in some rows and from 1 in others.
    """
    plan = _taskbench_plan(value)
    nodes = list(objects(plan["nodes"]))
    names = [txt(node.get("task")) for node in nodes]
    pairs = [(txt(x.get("source")), txt(x.get("target"))) for x in objects(plan["links"])]
    base = _base(nodes, names, set(pairs))
    calls = []
    for at, node in enumerate(nodes):
        given = _arguments(node.get("arguments"))
        quoted = [int(n) - base for n in _NODE.findall(as_text(given))]
        needs = _needs(at, names, pairs, quoted)
        ids = tuple(str(need) for need in dict.fromkeys(needs) if need != at)
        calls.append(Call(names[at], given, str(at), needs=ids))
    query = txt(value.get("instruction") or value.get("user_request"))
    steps = "\n".join(txt(step) for step in seq(plan["steps"]))
    kind = txt(value.get("type"))
    yield Run(
        TASKBENCH, [Turn(calls, steps)], query=query, id=text_of(value.get("id")),
        planned=True, extra={"type": kind},
    )  # fmt: skip


def _base(nodes: list[Any], names: list[str], pairs: set[tuple[str, str]]) -> int:
    """Whether ``<node-j>`` counts from 0 or from 1: what agrees with more links."""

    def fit(base: int) -> int:
        hits = 0
        for at, node in enumerate(nodes):
            for number in _NODE.findall(as_text(node.get("arguments"))):
                place = int(number) - base
                if 0 <= place < len(names) and place != at:
                    hits += (names[place], names[at]) in pairs
        return hits

    return 1 if fit(1) > fit(0) else 0


def _needs(
    at: int, names: list[str], pairs: list[tuple[str, str]], quoted: list[int]
) -> Iterator[int]:
    for source, target in pairs:
        if target != names[at]:
            continue
        places = [place for place, name in enumerate(names) if name == source and place != at]
        fitting = [place for place in places if place in quoted]
        before = [place for place in places if place < at]
        yield from fitting or before[-1:] or places[:1]


def _arguments(given: Any) -> Any:
    """``[{name, value}]`` as an object, everything else as it is."""
    items = seq(given)
    if items and all(isinstance(item, Mapping) and "name" in item for item in items):
        return {txt(item["name"]): item.get("value") for item in items}
    return given


def is_traject(value: Any) -> bool:
    """One query of TRAJECT-Bench; the names of its fields have spaces."""
    if not isinstance(value, Mapping) or "query" not in value:
        return False
    return isinstance(value.get("tool list", value.get("tool_list")), list) and (
        "trajectory_type" in value or "final_answer" in value
    )


def traject(value: Mapping[str, Any]) -> Iterator[Run]:
    """A parallel set is one round; a sequence is one call a round, each needing the one before."""
    steps = list(objects(value.get("tool list", value.get("tool_list"))))
    calls = [_traject_call(step, at) for at, step in enumerate(steps)]
    if value.get("trajectory_type") == "parallel":
        turns = [Turn(calls)]
    else:
        for at, call in enumerate(calls[1:], start=1):
            call.needs = (str(at - 1),)
        turns = [Turn([call]) for call in calls]
    answer = value.get("final_answer")
    text = txt(obj(answer).get("answer")) or as_text(answer)
    yield Run(TRAJECT, turns, text or None, query=txt(value["query"]))


def _traject_call(step: Mapping[str, Any], at: int) -> Call:
    values = {
        txt(one.get("name")): one.get("value")
        for field in ("required parameters", "optional parameters")
        for one in objects(step.get(field))
    }
    output = step.get("executed_output")
    failed = txt(step.get("execution_status")).lower() in ("failed", "error", "failure")
    result = None if output is None else result_text(output)
    return Call(txt(step.get("tool name")), values, str(at), result, failed, needs=())
