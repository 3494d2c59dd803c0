"""Whether a fault that was read off a run costs anything: the rest of the run with and without it.

Source: our definition, the same that injected errors are held to.
"""

from functools import partial

from pararecover_core.agents.advance import Draft, move_reference, rewrite
from pararecover_core.inject import State, course, observe
from pararecover_core.plan import ROOT, Node, Plan, text_of
from pararecover_core.sandbox.compose import Task
from pararecover_core.taxonomy import ErrorType
from pararecover_core.truth import Fault, home_of, used_nodes

_E = ErrorType
_EDGES = frozenset({_E.DEPENDENCE_ERROR, _E.DEPENDENCE_NULL, _E.PARALLELISM_ERROR, _E.SERIAL_ERROR})
_RETURNS = frozenset({_E.NULL_ERROR, _E.TIMEOUT_ERROR})


def is_real(task: Task, state: State, fault: Fault) -> bool:
    """Whether a workflow that nobody repairs further ends worse than one without this fault."""
    return course(state).is_worse_than(course(without(task, state, fault)))


def without(task: Task, state: State, fault: Fault) -> State:
    """The same round with one fault mended as the ground truth says, all others kept.

    Args:
        task: The task behind it.
        state: A round whose frontier was run.
        fault: One of its faults.
    """
    draft = Draft(state.plan)
    if fault.error_type is _E.TOOLCALL_REDUNDANCY:
        _take_out(draft, fault.node)
    elif fault.error_type is _E.TOOLCALL_MISSING:
        _put_back(draft, task, fault.node)
    elif fault.error_type not in _RETURNS:
        _mend(draft, task, state.plan.by_id[fault.node], fault)
    plan = Plan.parse(draft.given())
    seen = {call.node: call.result for call in state.observations if call.node != fault.node}
    return State(plan, observe(plan, seen), state.round)


def _take_out(draft: Draft, node_id: str) -> None:
    draft.remove(node_id)
    for task in draft.pending():
        kept = [dep for dep in task.get("dep") or [] if dep != node_id]
        if kept != (task.get("dep") or []):
            task["dep"] = kept or [ROOT]


def _put_back(draft: Draft, task: Task, node_id: str) -> None:
    right = task.plan()
    mine = dict(right.by_id[node_id].given)
    mine["dep"] = [dep for dep in mine["dep"] if dep in draft]
    mine["dep"] = mine["dep"] or [ROOT]
    draft.insert(mine)
    for each in draft.pending():
        user = right.by_id.get(text_of(each.get("id")))
        if user is not None and node_id in user.dependencies:
            stood_in = set(mine["dep"]) - set(user.dependencies)
            kept = [dep for dep in each.get("dep") or [] if dep not in stood_in]
            each["dep"] = list(dict.fromkeys([*kept, node_id]))


def _mend(draft: Draft, task: Task, node: Node, fault: Fault) -> None:
    """Give a node its right edges, or its right tool and values."""
    mine, home = draft[node.id], home_of(node.id)
    right = task.plan().by_id[home]
    if fault.error_type in _EDGES:
        # what it tries again, or needs though its value was lost
        kept = [d for d in node.dependencies if home_of(d) in {home, *right.dependencies}]
        used = sorted(used_nodes(node) & {text_of(each.get("id")) for each in draft.tasks})
        mine["dep"] = list(dict.fromkeys([*kept, *used])) or [ROOT]
        return
    mine["name"], mine["para"] = right.name, right.parameters.named
    for wanted in right.dependencies:
        same = [text_of(each.get("id")) for each in draft.tasks]
        same = [each for each in same if home_of(each) == wanted]
        used = [each for each in same if each in node.dependencies] or same[-1:]
        if used:
            mine["para"] = rewrite(mine["para"], partial(move_reference, old=wanted, new=used[0]))
