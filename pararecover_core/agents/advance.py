"""A plan under revision: what every agent must do before it repairs anything."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pararecover_core.plan import RESPONSE, ROOT, Plan, text_of
from pararecover_core.records import ToolCall
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.environment import with_result


class Draft:
    """A plan as a list of node objects that may be edited.

    Args:
        plan: The previous plan; it is copied, its other fields kept.
    """

    def __init__(self, plan: Plan) -> None:
        self.tasks: list[dict[str, Any]] = [dict(node.given) for node in plan.nodes]

    def __contains__(self, node_id: str) -> bool:
        return any(text_of(task.get("id")) == node_id for task in self.tasks)

    def __getitem__(self, node_id: str) -> dict[str, Any]:
        return next(task for task in self.tasks if text_of(task.get("id")) == node_id)

    def pending(self) -> list[dict[str, Any]]:
        """Node objects that were not executed."""
        return [task for task in self.tasks if not task.get("status")]

    def insert(self, task: dict[str, Any]) -> None:
        """Add a node before the response."""
        ids = [text_of(each.get("id")) for each in self.tasks]
        self.tasks.insert(ids.index(RESPONSE) if RESPONSE in ids else len(ids), task)

    def remove(self, node_id: str) -> None:
        """Take a node out; dependencies on it stay as they are."""
        self.tasks = [task for task in self.tasks if text_of(task.get("id")) != node_id]

    def fresh_id(self, base: str, suffix: str) -> str:
        """An id that is not taken: ``base_suffix``, ``base_suffix_2``, ..."""
        stem = f"{base}_{suffix}"
        candidate, count = stem, 1
        while candidate in self:
            count += 1
            candidate = f"{stem}_{count}"
        return candidate

    def redirect(self, old: str, new: str, *, keep: Iterable[str] = ()) -> list[str]:
        """Let pending nodes use ``new`` where they used ``old``, in dependencies and values.

        Returns:
            The ids of the nodes that changed.
        """
        changed = []
        for task in self.pending():
            node_id = text_of(task.get("id"))
            if node_id in keep:
                continue
            dependencies = [new if dep == old else dep for dep in task.get("dep") or []]
            para = rewrite(task.get("para"), lambda text: move_reference(text, old, new))
            if dependencies != task.get("dep") or para != task.get("para"):
                task["dep"], task["para"] = list(dict.fromkeys(dependencies)), para
                changed.append(node_id)
        return changed

    def given(self) -> dict[str, Any]:
        """The plan as an object, the form that files use."""
        return {"tasks": self.tasks}


def advanced(plan: Plan, observations: Sequence[ToolCall]) -> Draft:
    """A draft in which every observed node is done, its result noted in its description."""
    draft = Draft(plan)
    for seen in observations:
        if seen.node and seen.node in draft:
            task = draft[seen.node]
            task["status"] = True
            task["desc"] = with_result(text_of(task.get("desc")), seen.result)
    if ROOT in draft:
        draft[ROOT]["status"] = True
    return draft


def failures(observations: Sequence[ToolCall]) -> list[ToolCall]:
    """Observations whose result is an error, a time-out or empty."""
    return [seen for seen in observations if result_state(seen.result) is not ResultState.OK]


def rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """A value with every text in it changed, at any depth."""
    if isinstance(value, dict):
        return {name: rewrite(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [rewrite(inner, change) for inner in value]
    return change(value) if isinstance(value, str) else value


def move_reference(text: str, old: str, new: str) -> str:
    """A reference ("$old", "$old.field") to ``new`` instead; any other text as it is."""
    if text == f"${old}":
        return f"${new}"
    return f"${new}.{text[len(old) + 2 :]}" if text.startswith(f"${old}.") else text
