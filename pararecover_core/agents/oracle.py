"""The agent that knows the ground truth and repairs minimally: the upper bound."""

from collections.abc import Mapping
from typing import Any

from pararecover_core.agents.advance import Draft, advanced
from pararecover_core.execute import Reply, View
from pararecover_core.literals import loads
from pararecover_core.plan import RESPONSE, ROOT, Plan, text_of
from pararecover_core.sandbox.compose import Task, node
from pararecover_core.sandbox.environment import noted_result
from pararecover_core.sandbox.steps import Link, step_id


class Oracle:
    """Repairs each plan to the nearest one that reaches the truth.

    Args:
        task: The task behind the instance.
    """

    name = "oracle"

    def __init__(self, task: Task) -> None:
        self.task = task

    def replan(self, view: View) -> Reply:
        """Keep what is right, correct pending nodes in place, add nodes for what failed."""
        draft = advanced(view.plan, view.observations)
        providers: dict[int, str] = {}
        said: list[str] = []
        for index in range(len(self.task.steps)):
            providers[index] = self._provide(index, draft, providers, said)
        self._drop_needless(draft, set(providers.values()), said)
        if RESPONSE in draft:
            self._set(draft[RESPONSE], "dep", [providers[goal] for goal in self.task.goals])
        if not said:
            said.append("Nothing went wrong; I mark what ran as done and go on.")
        return Reply(" ".join(said), draft.given())

    def _provide(
        self, index: int, draft: Draft, providers: Mapping[int, str], said: list[str]
    ) -> str:
        """The id of the node that gives step ``index`` its right result."""
        step, wanted = self.task.steps[index], self.task.results[index]
        done = next((n for n in _succeeded(draft) if n[1] == step.tool and n[2] == wanted), None)
        if done:
            return done[0]
        para = {
            name: f"${providers[value.step]}.{value.field}" if isinstance(value, Link) else value
            for name, value in step.arguments.items()
        }
        needed = [providers[i] for i in step.needs] or [ROOT]
        home = step_id(index)
        pending = next((t for t in draft.pending() if text_of(t.get("id")) == home), None)
        if pending is None:
            pending = next(
                (t for t in draft.pending() if text_of(t.get("id")).startswith(f"{home}_fix")), None
            )
        if pending is not None:
            self._correct(pending, step.tool, para, needed, said)
            return text_of(pending.get("id"))
        return self._add(index, draft, para, needed, said)

    def _correct(
        self,
        task: dict[str, Any],
        tool: str,
        para: dict[str, Any],
        needed: list[str],
        said: list[str],
    ) -> None:
        changes = [
            (field, value)
            for field, value in (("name", tool), ("para", para), ("dep", needed))
            if (
                set(task.get("dep") or []) != set(needed)
                if field == "dep"
                else task.get(field) != value
            )
        ]
        for field, value in changes:
            was = task.get(field)
            said.append(
                f"Node {task['id']} is wrong in {_WORDS[field]}: it has {was!r}, "
                f"it needs {value!r}; I correct it."
            )
            task[field] = value

    def _add(
        self, index: int, draft: Draft, para: dict[str, Any], needed: list[str], said: list[str]
    ) -> str:
        home, step = step_id(index), self.task.steps[index]
        new_id = draft.fresh_id(home, "fix") if home in draft else home
        if home in draft:
            result = noted_result(text_of(draft[home].get("desc")))
            said.append(
                f"Node {home} ({draft[home].get('name')}) did not give what is needed: "
                f"{result[:160] or 'an empty result'}. I add {new_id} to call {step.tool} with "
                f"{para!r}; what waits for node {home} waits for {new_id} now."
            )
        else:
            said.append(f"The plan lacks a call of {step.tool}; I add it as node {new_id}.")
        draft.insert(node(new_id, step.tool, para, f"Call {step.tool}.", needed))
        return new_id

    def _drop_needless(self, draft: Draft, kept: set[str], said: list[str]) -> None:
        for task in list(draft.pending()):
            node_id = text_of(task.get("id"))
            if node_id not in kept and node_id not in (ROOT, RESPONSE):
                said.append(f"Node {node_id} ({task.get('name')}) is not needed; I take it out.")
                draft.remove(node_id)

    def _set(self, task: dict[str, Any], field: str, value: Any) -> None:
        if set(task.get(field) or []) != set(value):
            task[field] = value


_WORDS = {"name": "its tool", "para": "its parameters", "dep": "its dependencies"}


def _succeeded(draft: Draft) -> list[tuple[str, str, dict[str, Any]]]:
    """Id, tool and result of every executed node that has one."""
    found = []
    for each in Plan.parse(draft.given()).nodes:
        text = noted_result(each.description) if each.done else ""
        try:
            value = loads(text) if text else None
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append((each.id, each.name, value))
    return found
