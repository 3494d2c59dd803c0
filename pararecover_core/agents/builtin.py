"""Agents that react without understanding: go on, repeat the call, start again."""

from collections.abc import Sequence
from functools import partial

from pararecover_core.agents.advance import Draft, advanced, failures, move_reference, rewrite
from pararecover_core.execute import Reply, View
from pararecover_core.plan import RESPONSE, ROOT, text_of
from pararecover_core.records import ToolCall
from pararecover_core.sandbox.environment import RESULT_MARK

MAX_REPEATS = 3
"""Times that an agent repeats one call before it goes on without it."""


def _report(observations: Sequence[ToolCall]) -> str:
    if not observations:
        return "No tool ran in this round."
    return " ".join(
        f"Node {seen.node} ({seen.name}) returned {seen.result[:160] or 'nothing'}."
        for seen in observations
    )


def base_of(node_id: str) -> str:
    """The original that a copy was made of: "3" for "3_again_2"."""
    return node_id.partition("_again")[0]


class Ignore:
    """Marks what ran as done and goes on."""

    name = "ignore"

    def replan(self, view: View) -> Reply:
        """The plan with statuses moved on and nothing else changed."""
        draft = advanced(view.plan, view.observations)
        thought = f"{_report(view.observations)} I mark what ran as done and go on as planned."
        return Reply(thought, draft.given())


class Retry:
    """Repeats every failed call as it was, at most ``MAX_REPEATS`` times."""

    name = "retry"

    def replan(self, view: View) -> Reply:
        """The plan with a copy of each failed call, which the later nodes use instead."""
        draft = advanced(view.plan, view.observations)
        said = []
        for seen in failures(view.observations):
            base, _, _ = seen.node.partition("_retry")
            if sum(node.id.startswith(f"{base}_retry") for node in view.plan.nodes) >= MAX_REPEATS:
                said.append(f"Node {seen.node} failed again; I go on without it.")
                continue
            copy = self._repeat(draft, seen.node, base)
            said.append(f"Node {seen.node} ({seen.name}) failed, so I call it again as {copy}.")
        thought = " ".join([_report(view.observations), *said])
        return Reply(thought, draft.given())

    def _repeat(self, draft: Draft, node_id: str, base: str) -> str:
        failed = draft[node_id]
        copy = draft.fresh_id(base, "retry")
        again = {**failed, "id": copy, "status": False}
        again["desc"] = text_of(failed.get("desc")).partition(RESULT_MARK)[0]
        again["dep"] = [node_id]
        draft.insert(again)
        draft.redirect(node_id, copy, keep=[copy])
        return copy


class Rebuild:
    """Starts the whole workflow again after a failure: appendix B's failure."""

    name = "rebuild"

    def replan(self, view: View) -> Reply:
        """The plan with every call of the workflow added once more; at most three times."""
        draft = advanced(view.plan, view.observations)
        failed = failures(view.observations)
        copies = sum(node.id.startswith("1_again") for node in view.plan.nodes)
        if not failed or copies >= MAX_REPEATS:
            return Reply(f"{_report(view.observations)} I go on.", draft.given())
        where = ", ".join(seen.node for seen in failed)
        thought = (
            f"{_report(view.observations)} Node {where} failed; something upstream must have gone "
            "wrong, so I start the whole workflow again from the first step."
        )
        self._start_again(draft, view)
        return Reply(thought, draft.given())

    def _start_again(self, draft: Draft, view: View) -> None:
        """Drop what is pending and add a copy of every original call behind this round."""
        originals = [n for n in view.plan.nodes if n.calls_tool and "_again" not in n.id]
        last = view.observations[0].node
        for task in draft.pending():
            if text_of(task.get("id")) not in (RESPONSE, ROOT):
                draft.remove(text_of(task.get("id")))
        renamed = {node.id: draft.fresh_id(node.id, "again") for node in originals}
        for node in originals:
            dependencies = [renamed.get(dep, last) for dep in node.dependencies if dep != node.id]
            copy = {**node.given, "id": renamed[node.id], "status": False}
            copy["desc"] = node.description.partition(RESULT_MARK)[0]
            copy["dep"] = list(dict.fromkeys(dependencies)) or [last]
            for old, new in renamed.items():
                copy["para"] = rewrite(copy["para"], partial(move_reference, old=old, new=new))
            draft.insert(copy)
        if RESPONSE in draft:
            wanted = (base_of(dep) for dep in draft[RESPONSE].get("dep") or [])
            draft[RESPONSE]["dep"] = [renamed[i] for i in dict.fromkeys(wanted) if i in renamed]
