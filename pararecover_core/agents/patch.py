"""The agent that repairs from findings alone: it sees what every agent sees, never the truth."""

from functools import cached_property, partial
from typing import Any

import msgspec
from rapidfuzz import fuzz

from pararecover_core.agents.advance import Draft, advanced, move_reference, rewrite
from pararecover_core.agents.patch_values import best_field, converted, in_words
from pararecover_core.agents.patch_words import (
    COVERED,
    FIELD,
    capital,
    does,
    needs_of,
    sentences,
    short,
    verb,
)
from pararecover_core.execute import Reply, View
from pararecover_core.findings import Certainty, Finding, every_finding
from pararecover_core.findings.calls import nearest
from pararecover_core.findings.purpose import words_of
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Node, Plan, text_of
from pararecover_core.records import Tool
from pararecover_core.references import ReferenceReader
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.environment import RESULT_MARK, noted_result, result_value
from pararecover_core.taxonomy import ErrorType

MAX_FIXES = 3
"""Times that one call is tried again."""
_E = ErrorType


class Patch:
    """Corrects pending calls in place and adds a corrected copy of executed ones."""

    name = "patch"

    def replan(self, view: View) -> Reply:
        """The plan with every fault repaired that the findings name and values allow."""
        return _Repair(view).reply()


class _Call(msgspec.Struct):
    """A call on the way to being right, and what was said about it."""

    name: str
    para: dict[str, Any]
    dep: list[str]
    said: list[str]


class _Repair:
    def __init__(self, view: View) -> None:
        self.view, self.plan = view, view.plan
        self.draft: Draft = advanced(view.plan, view.observations)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in view.tools}
        self.results: dict[str, str] = {
            n.id: noted_result(n.description) for n in view.plan.nodes if n.done and n.calls_tool
        }
        self.results |= {seen.node: seen.result for seen in view.observations if seen.node}
        self.values = {n: v for n, text in self.results.items() if (v := result_value(text))}
        self.moved: dict[str, str] = {}
        self.said: list[str] = []
        found = every_finding(view.plan, view.tools, view.observations, query=view.query)
        self.findings: dict[str, list[Finding]] = {}
        for finding in found:
            if finding.certainty is not Certainty.POSSIBLE:
                self.findings.setdefault(finding.node, []).append(finding)

    def reply(self) -> Reply:
        """The thought and the repaired plan."""
        self._drop_repeats()
        self._add_referenced()
        self.wanted = self._wanted()
        for node in self._in_order():
            if node.calls_tool and node.id in self.draft and node.id not in (ROOT, RESPONSE):
                self._mend(node)
        self._add_uncovered()
        self._keep_ends_together()
        if not self.said:
            self.said.append(self._all_well())
        return Reply(" ".join(self.said), self.draft.given())

    def _all_well(self) -> str:
        ran = [f"{seen.node} ({seen.name})" for seen in self.view.observations]
        came = f"Node {', '.join(ran)} gave usable results." if ran else "No call ran."
        return f"{came} I see nothing to repair, so I go on as planned."

    # --- one call ---------------------------------------------------------------------------

    def _mend(self, node: Node) -> None:
        """Correct a pending call in place, or add a corrected copy of an executed one."""
        executed = node.id in self.results
        failed = self._failed(node.id)
        if executed and not failed and not self._is_wrong(node):
            return
        if executed and node.id not in self.wanted:
            return
        call = self._corrected(node)
        if not executed:
            self._set(node, call)
        elif failed or (call.name, call.para) != (node.name, dict(node.parameters.named)):
            self._again(node, call, failed)

    def _is_wrong(self, node: Node) -> bool:
        """Whether a call that worked is of another tool than its step needs."""
        wrong = {_E.TOOL_SELECT_ERROR, _E.TOOL_NAME_ERROR}
        faults = self.findings.get(node.id, ()) if not node.done else ()
        return node.id in self.fieldless or any(f.error_type in wrong for f in faults)

    def _failed(self, node_id: str) -> bool:
        text = self.results.get(node_id)
        return text is not None and result_state(text) is not ResultState.OK

    def _wanted(self) -> set[str]:
        """Nodes that pending ones need, directly or through failed calls that must be repeated."""
        found: set[str] = set()
        tasks = self.draft.pending()
        waiting = [n for task in tasks for n in needs_of(task.get("dep"), task.get("para"))]
        while waiting:
            node = self.plan.by_id.get(waiting.pop())
            if node is None or node.id in found:
                continue
            found.add(node.id)
            if self._failed(node.id):
                waiting += needs_of(node.dependencies, node.parameters.named)
        return found

    def _in_order(self) -> list[Node]:
        """Nodes, each behind those that it waits for or whose output it uses."""
        placed: dict[str, Node] = {}
        begun: set[str] = set()
        waiting = [node.id for node in reversed(self.plan.nodes)]
        while waiting:
            node = self.plan.by_id.get(waiting[-1])
            if node is None or node.id in placed:
                waiting.pop()
                continue
            needs = needs_of(node.dependencies, node.parameters.named)
            open_ = [n for n in needs if n in self.plan.by_id and n not in begun]
            begun.add(node.id)
            if open_:
                waiting += open_
            else:
                placed[node.id] = node
        return list(placed.values())

    @cached_property
    def fieldless(self) -> dict[str, str]:
        """Executed nodes that gave a result without the field that another node asks of them."""
        found = {}
        for node in self.plan.nodes:
            for used, field in FIELD.findall(dumps(node.parameters.named)):
                if used in self.values and field not in self.values[used]:
                    found[used] = field
        return found

    def _set(self, node: Node, call: _Call) -> None:
        task = self.draft[node.id]
        was = task.get("name"), task.get("para"), list(task.get("dep") or [])
        task["name"], task["para"], task["dep"] = call.name, call.para, call.dep
        if was != (call.name, call.para, call.dep) and call.said:
            self.said.append(f"Node {node.id} ({node.name}): {'; '.join(call.said)}.")

    def _again(self, node: Node, call: _Call, failed: bool) -> None:
        base = node.id.partition("_fix")[0]
        tries = sum(text_of(t.get("id")).startswith(f"{base}_fix") for t in self.draft.tasks)
        state = result_state(self.results[node.id])
        same = (call.name, call.para) == (node.name, dict(node.parameters.named))
        passing = state in (ResultState.TIMEOUT, ResultState.EMPTY) or _came_early(self, node)
        if not failed and (same or tries >= MAX_FIXES):
            return
        if tries >= MAX_FIXES or (same and not passing):
            self.said.append(
                f"Node {node.id} ({node.name}) failed: {short(self.results[node.id])} I see no "
                "other value to try, so I leave it."
            )
            return
        new_id = self.draft.fresh_id(base, "fix")
        words = node.description.partition(RESULT_MARK)[0]
        ready = [dep for dep in call.dep if dep != node.id] or [ROOT]
        self.draft.insert(
            {**node.given, "id": new_id, "name": call.name, "para": call.para, "desc": words,
             "dep": ready, "status": False}
        )  # fmt: skip
        self.draft.redirect(node.id, new_id, keep=[new_id])
        self.moved[node.id] = new_id
        what = short(self.results[node.id]) if failed else "is of the wrong tool."
        why = "; ".join(call.said) or "the call itself looks right, so I call it once more"
        self.said.append(f"Node {node.id} ({node.name}) {verb(state, failed)}{what} "
                         f"{capital(why)}: {new_id} takes its place.")  # fmt: skip

    def _corrected(self, node: Node) -> _Call:
        call = _Call(node.name, dict(node.parameters.named), list(node.dependencies), [])
        for old, new in self.moved.items():
            call.para = rewrite(call.para, partial(move_reference, old=old, new=new))
            call.dep = [new if dep == old else dep for dep in call.dep]
        self._right_tool(node, call)
        tool = self.tools.get(call.name)
        if tool is not None:
            self._right_names(call, tool)
            self._right_values(node, call, tool)
        self._right_dependencies(node, call)
        return call

    # --- tool, names, values ------------------------------------------------------------------

    def _right_tool(self, node: Node, call: _Call) -> None:
        for finding in self.findings.get(node.id, ()):
            if finding.suggestion not in self.tools or finding.suggestion == call.name:
                continue
            if finding.error_type is _E.TOOL_NAME_ERROR:
                call.said.append(f"there is no tool '{call.name}', I use '{finding.suggestion}'")
            elif finding.error_type is _E.TOOL_SELECT_ERROR:
                call.said.append(f"'{finding.suggestion}' fits this step, '{call.name}' does not")
            else:
                continue
            call.name = finding.suggestion
            return
        if node.id in self.fieldless and node.id in self.values:
            self._other_tool(node, call)

    def _other_tool(self, node: Node, call: _Call) -> None:
        """The listed tool that a step's words fit best, where the called one gave other things."""
        words = words_of(node.description.partition(RESULT_MARK)[0])
        words -= words_of(" ".join(field for _, field in FIELD.findall(dumps(call.para))))
        home = node.id.partition("_fix")[0]
        tried = {n.name for n in self.plan.nodes if n.id.partition("_fix")[0] == home}
        ranked = [
            (len(words_of(f"{tool.name} {tool.description}") & words), name)
            for name, tool in self.tools.items()
            if name not in tried and len(tool.required) == len(call.para)
        ]
        if not ranked:
            return
        call.said.append(
            f"its result has no '{self.fieldless[node.id]}', so '{call.name}' is the wrong tool "
            f"and I use '{max(ranked)[1]}'"
        )
        call.name = max(ranked)[1]

    def _right_names(self, call: _Call, tool: Tool) -> None:
        unknown = [name for name in call.para if name not in tool.parameters]
        for name in unknown:
            missing = [p for p in tool.required if p not in call.para]
            free = missing or [p for p in tool.parameters if p not in call.para]
            meant = nearest(name, free) or (missing[0] if len(missing) == 1 else "")
            call.para = {meant if k == name and meant else k: v for k, v in call.para.items()}
            if meant:
                call.said.append(f"'{name}' must be called '{meant}'")
            else:
                call.para.pop(name)
                call.said.append(f"'{name}' is no parameter of {call.name}, I leave it out")

    def _right_values(self, node: Node, call: _Call, tool: Tool) -> None:
        faults = self.findings.get(node.id, ())
        for name, schema in tool.parameters.items():
            if not isinstance(schema, dict):
                continue
            if name not in call.para:
                if name in tool.required:
                    self._fill(node, call, name, schema, "was missing")
                continue
            mine = [f for f in faults if f.parameter.partition(".")[0].partition("[")[0] == name]
            kinds = {f.error_type for f in mine}
            if _E.TYPE_ERROR in kinds:
                self._convert(node, call, name, schema)
            elif kinds & {_E.PARAMETER_INVALID, _E.PARAMETER_MISSING}:
                self._fill(node, call, name, schema, f"cannot be {short(dumps(call.para[name]))}")

    def _convert(self, node: Node, call: _Call, name: str, schema: dict[str, Any]) -> None:
        value = converted(call.para[name], str(schema.get("type", "")))
        if value is None or value == call.para[name]:
            self._fill(node, call, name, schema, "had the wrong type")
            return
        call.said.append(f"'{name}' must be {schema.get('type')}, so I give {dumps(value)}")
        call.para[name] = value

    def _fill(self, node: Node, call: _Call, name: str, schema: dict[str, Any], fault: str) -> None:
        value = self._value_for(node.description.partition(RESULT_MARK)[0], call, name, schema)
        if value is None:
            return
        call.said.append(f"'{name}' {fault}, I give {dumps(value)}")
        call.para[name] = value

    def _value_for(self, text: str, call: _Call, name: str, schema: dict[str, Any]) -> Any:
        """The one value that can be meant, None where there is none or a choice."""
        unused = [d for d in call.dep if d not in self._used(call) and d in self.draft]
        unused = [d for d in unused if self.draft[d].get("name")]
        if unused:  # what it waits for without using it: the value must come from there
            return best_field(self._known(unused), name, schema, text) or None
        tool = self.tools.get(call.name)
        known = f"{call.name} {tool.description if tool else ''}"
        used = {dumps(v) for k, v in call.para.items() if k != name}
        wrong = dumps(call.para.get(name))
        for source in (text, *self._sentences_like(text)):
            found = [
                value
                for value in in_words(source, name, schema, known)
                if dumps(value) not in used and dumps(value) != wrong
            ]
            if len(found) == 1:
                return found[0]
        return best_field(self._known(call.dep) or self.values, name, schema, text) or None

    def _known(self, nodes: list[str]) -> dict[str, dict[str, Any]]:
        return {node: self.values[node] for node in nodes if node in self.values}

    def _sentences_like(self, text: str) -> list[str]:
        """The sentence of the query that a step does, if one clearly is."""
        ranked = [(fuzz.token_set_ratio(text, s), s) for s in sentences(self.view.query)]
        return [max(ranked)[1]] if ranked and max(ranked)[0] >= COVERED else []

    # --- dependencies -------------------------------------------------------------------------

    def _right_dependencies(self, node: Node, call: _Call) -> None:
        idle = {
            f.suggestion
            for f in self.findings.get(node.id, ())
            if f.error_type is _E.SERIAL_ERROR and f.suggestion
        }
        used = self._used(call)
        wrong = [dep for dep in used if dep not in call.dep]
        if self._has_strange_text(call):
            idle = set()  # the value that it waited for may be the one that is wrong
        kept = [dep for dep in call.dep if dep in self.draft and dep not in idle]
        if wrong and self._misplaced(node):
            kept = [dep for dep in kept if dep in used]
        ready = [*kept, *wrong]
        if len(ready) > 1:
            ready = [dep for dep in ready if dep != ROOT]
        ready = ready or ([ROOT] if ROOT in self.draft else [])
        if set(ready) != set(call.dep):
            gone = [dep for dep in call.dep if dep not in ready]
            new = [dep for dep in ready if dep not in call.dep]
            words = [f"it uses the output of {', '.join(wrong)} and must wait for it"] * bool(wrong)
            words += [f"it needs nothing of {', '.join(gone)}"] * bool(gone and not wrong)
            words += [f"it must wait for {', '.join(new)}"] * bool(new and not wrong)
            call.said += words
        call.dep = ready

    def _has_strange_text(self, call: _Call) -> bool:
        """Whether a text value is neither in the query nor a reference."""
        asked = self.view.query.casefold()
        texts = [v for v in call.para.values() if isinstance(v, str) and not v.startswith("$")]
        return any(text.casefold() not in asked for text in texts)

    def _misplaced(self, node: Node) -> bool:
        kinds = {f.error_type for f in self.findings.get(node.id, ())}
        return bool(kinds & {_E.DEPENDENCE_ERROR, _E.PARALLELISM_ERROR})

    def _used(self, call: _Call) -> list[str]:
        """Nodes whose output a call refers to."""
        probe = {"id": "probe", "name": call.name, "para": call.para, "dep": []}
        tasks = [*self.draft.tasks, probe]
        reader = ReferenceReader(Plan.parse({"tasks": tasks}))
        found = [r.node for r in reader.of_node("probe") if r.sure and r.node != ROOT]
        return [node for node in dict.fromkeys(found) if node in self.draft]

    # --- calls too many or too few --------------------------------------------------------------

    def _drop_repeats(self) -> None:
        for node in self.plan.nodes:
            for finding in self.findings.get(node.id, ()):
                again = finding.rule == "repeated call" and node.id in self.draft
                if again and node.id not in self.results and finding.suggestion in self.draft:
                    self._drop(node, finding.suggestion)
                    break

    def _drop(self, node: Node, earlier: str) -> None:
        for task in self.draft.pending():
            dep = list(task.get("dep") or [])
            if node.id not in dep:
                continue
            uses = f'"${node.id}' in dumps(task.get("para"))
            answer = text_of(task.get("id")) == RESPONSE
            behind = earlier in self.plan.ancestors(RESPONSE)
            instead = [earlier] if uses or (answer and not behind) else []
            task["dep"] = list(
                dict.fromkeys(d for x in dep for d in (instead if x == node.id else [x]))
            )
            task["para"] = rewrite(
                task.get("para"), lambda text: move_reference(text, node.id, earlier)
            )
        self.draft.remove(node.id)
        self.said.append(f"Node {node.id} ({node.name}) only repeats node {earlier}; I drop it.")

    def _add_referenced(self) -> None:
        """Add a call for each node that values refer to and that the plan does not hold."""
        for findings in list(self.findings.values()):
            for finding in findings:
                lost = finding.suggestion
                if finding.rule == "reference to a missing node" and lost not in self.draft:
                    self._add(lost, self._open_sentences())

    def _add_uncovered(self) -> None:
        """Add a call for a sentence of the query that no step does."""
        for sentence in self._open_sentences():
            taken = [int(t["id"]) for t in self.draft.tasks if str(t.get("id")).isdecimal()]
            new_id = str(max(taken, default=0) + 1)
            if self._add(new_id, [sentence]) and RESPONSE in self.draft:
                response = self.draft[RESPONSE]
                response["dep"] = [*(response.get("dep") or []), new_id]

    def _open_sentences(self) -> list[str]:
        steps = [
            text_of(t.get("desc")).partition(RESULT_MARK)[0]
            for t in self.draft.tasks
            if text_of(t.get("id")) not in (ROOT, RESPONSE)
        ]
        return [
            sentence
            for sentence in sentences(self.view.query)[:-1]
            if not any(does(step, sentence) for step in steps)
        ]

    def _add(self, new_id: str, texts: list[str]) -> bool:
        """Add the unused tool that fits a sentence best, if all its parameters can be filled."""
        called = {text_of(task.get("name")) for task in self.draft.tasks}
        ranked = [
            (len(words_of(tool.name) & words_of(text)) / max(1, len(words_of(tool.name))), i, text)
            for i, tool in enumerate(self.view.tools)
            if tool.name not in called
            for text in texts
        ]
        if not ranked or max(ranked)[0] < 0.5:
            return False
        _, index, text = max(ranked)
        tool = self.view.tools[index]
        call = _Call(tool.name, {}, [], [])
        for name in tool.required:
            value = self._value_for(text, call, name, tool.parameters.get(name) or {})
            if value is None:
                return False
            call.para[name] = value
        dep = self._used(call) or [ROOT]
        self.draft.insert(
            {"id": new_id, "name": tool.name, "para": call.para, "desc": text, "dep": dep,
             "status": False}
        )  # fmt: skip
        self.said.append(
            f"No step does '{short(text)}' I add node {new_id}, which calls {tool.name} with "
            f"{dumps(call.para)}."
        )
        return True

    def _keep_ends_together(self) -> None:
        """The response waits for no node that is not there."""
        if RESPONSE in self.draft:
            response = self.draft[RESPONSE]
            dep = [d for d in dict.fromkeys(response.get("dep") or []) if d in self.draft]
            response["dep"] = dep or ([ROOT] if ROOT in self.draft else [])


def _came_early(repair: _Repair, node: Node) -> bool:
    """Whether a call failed for want of a result that is there now, or will be."""
    used = [r.node for r in ReferenceReader(repair.plan).of_node(node.id)]
    there = [n for n in used if n in repair.draft]
    return any(n in repair.moved or n not in node.dependencies for n in there)
