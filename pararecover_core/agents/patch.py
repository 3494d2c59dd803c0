"""The agent that repairs from findings alone: it sees what every agent sees, never the truth."""

from functools import partial
from typing import Any

import msgspec
from rapidfuzz import fuzz

from pararecover_core.agents.advance import Draft, advanced, move_reference, rewrite
from pararecover_core.agents.patch_values import best_field, converted, in_words
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

MAX_FIXES = 2
"""Times that one call is tried again."""
_COVERED = 62.0
"""Likeness in percent from which a sentence of the query counts as done by a step."""
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
        layers = self.plan.layers
        for node in sorted(self.plan.by_id.values(), key=lambda n: layers.get(n.id, 0)):
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
        fresh = not node.done
        failed = executed and result_state(self.results[node.id]) is not ResultState.OK
        if executed and not failed and not (fresh and self._is_wrong(node)):
            return
        if executed and not self._is_wanted(node.id):
            return
        call = self._corrected(node)
        if not executed:
            self._set(node, call)
        elif failed or (call.name, call.para) != (node.name, dict(node.parameters.named)):
            self._again(node, call, failed)

    def _is_wrong(self, node: Node) -> bool:
        wrong = {_E.TOOL_SELECT_ERROR, _E.TOOL_NAME_ERROR}
        return any(f.error_type in wrong for f in self.findings.get(node.id, ()))

    def _is_wanted(self, node_id: str) -> bool:
        """Whether a pending node waits for it or uses its output."""
        return any(
            node_id in (task.get("dep") or []) or f'"${node_id}.' in dumps(task.get("para"))
            for task in self.draft.pending()
        )

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
        if tries >= MAX_FIXES or (same and not passing):
            self.said.append(
                f"Node {node.id} ({node.name}) failed: {_short(self.results[node.id])} I see no "
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
        what = _short(self.results[node.id]) if failed else "is of the wrong tool."
        why = "; ".join(call.said) or "the call itself looks right, so I call it once more"
        self.said.append(f"Node {node.id} ({node.name}) {_verb(state, failed)}{what} "
                         f"{_capital(why)}: {new_id} takes its place.")  # fmt: skip

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
                self._fill(node, call, name, schema, f"cannot be {_short(dumps(call.para[name]))}")

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
        near = {d: self.values[d] for d in call.dep if d in self.values}
        return best_field(near or self.values, name, schema, text) or None

    def _sentences_like(self, text: str) -> list[str]:
        """The sentence of the query that a step does, if one clearly is."""
        ranked = [(fuzz.token_set_ratio(text, s), s) for s in sentences(self.view.query)]
        return [max(ranked)[1]] if ranked and max(ranked)[0] >= _COVERED else []

    # --- dependencies -------------------------------------------------------------------------

    def _right_dependencies(self, node: Node, call: _Call) -> None:
        idle = {
            f.suggestion
            for f in self.findings.get(node.id, ())
            if f.error_type is _E.SERIAL_ERROR and f.suggestion
        }
        used = self._used(call)
        wrong = [dep for dep in used if dep not in call.dep]
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
                    self._add(lost, self._open_sentences() or [self.view.query])

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
            if all(fuzz.token_set_ratio(sentence, step) < _COVERED for step in steps)
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
            f"No step does '{_short(text)}' I add node {new_id}, which calls {tool.name} with "
            f"{dumps(call.para)}."
        )
        return True

    def _keep_ends_together(self) -> None:
        """The response waits for no node that is not there."""
        if RESPONSE in self.draft:
            response = self.draft[RESPONSE]
            dep = [d for d in dict.fromkeys(response.get("dep") or []) if d in self.draft]
            response["dep"] = dep or ([ROOT] if ROOT in self.draft else [])


def sentences(text: str) -> list[str]:
    """The sentences of a request."""
    parts = text.replace("! ", ". ").replace("? ", ". ").split(". ")
    return [part.strip() for part in parts if len(part.split()) > 2]


def _came_early(repair: _Repair, node: Node) -> bool:
    """Whether a call failed for want of a result that is there now, or will be."""
    used = [r.node for r in ReferenceReader(repair.plan).of_node(node.id)]
    return any(n in repair.moved or n not in node.dependencies for n in used)


def _verb(state: ResultState, failed: bool) -> str:
    if not failed:
        return ""
    return {ResultState.TIMEOUT: "ran into a time-out: ", ResultState.EMPTY: "gave nothing: "}.get(
        state, "failed: "
    )


def _short(text: str) -> str:
    flat = " ".join(text.split()) or "an empty result"
    flat = flat if len(flat) <= 140 else flat[:137] + "..."
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
