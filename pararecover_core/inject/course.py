"""What an error costs when nobody repairs it: the proof that it is real.

Source: our definition; the paper does not say how its injected errors were checked.
"""

from typing import Any, NamedTuple

from pararecover_core.inject.model import State
from pararecover_core.literals import dumps
from pararecover_core.plan import RESPONSE, ROOT, Plan
from pararecover_core.records import ToolCall
from pararecover_core.results import ResultState, result_state
from pararecover_core.sandbox.environment import SandboxEnvironment


class Course(NamedTuple):
    """How a workflow ends when nobody repairs it.

    Attributes:
        failed: Nodes whose calls failed, those just observed among them.
        rounds: Rounds still to run.
        calls: Calls of the plan.
        answer: What the response is given: tool and result of each call that it waits for directly.
        reached: Whether the response is reached.
    """

    failed: tuple[str, ...]
    rounds: int
    calls: int
    answer: frozenset[str]
    reached: bool

    def is_worse_than(self, other: "Course") -> bool:
        """Whether it fails a call more, costs a round or a call more, or gives another answer."""
        return (
            len(self.failed) > len(other.failed)
            or self.rounds > other.rounds
            or self.calls > other.calls
            or self.answer != other.answer
            or (other.reached and not self.reached)
        )


def course(state: State) -> Course:
    """Run the rest of a workflow as its plan says, whatever comes back.

    Args:
        state: A workflow whose plan parses.

    Returns:
        The same as a run by the agent that only goes on, without building plans on the way.
    """
    plan = state.plan
    environment = SandboxEnvironment(plan)
    environment.learn(state.observations)
    failed = [seen.node for seen in state.observations if _failed(seen)]
    done = {node.id for node in plan.nodes if node.done} | {ROOT}
    done |= {seen.node for seen in state.observations if seen.node}
    waiting = [node for node in plan.nodes if node.id not in done]
    rounds = 0
    while waiting and RESPONSE not in done:
        ready = [node for node in waiting if done.issuperset(node.dependencies)]
        if not ready:
            break
        seen = environment.observe(plan, [node.id for node in ready])
        failed += [call.node for call in seen if call.node not in environment.values]
        done |= {node.id for node in ready}
        waiting = [node for node in waiting if node.id not in done]
        rounds += 1
    calls = sum(node.calls_tool for node in plan.nodes if node.id in done)
    return Course(tuple(failed), rounds, calls, _answer(plan, environment), RESPONSE in done)


def _failed(seen: ToolCall) -> bool:
    return result_state(seen.result) is not ResultState.OK


def _answer(plan: Plan, environment: SandboxEnvironment) -> frozenset[str]:
    """Tool and result of each call right before the response that succeeded.

    Calls further back show in these or not at all: a wrong one whose result changes none of them
    leaves the answer right.
    """
    response = plan.by_id.get(RESPONSE)
    found = [plan.by_id[dep] for dep in response.dependencies] if response else []
    made: list[list[Any]] = [
        [node.name, environment.values[node.id]]
        for node in found
        if node.calls_tool and node.id in environment.values
    ]
    return frozenset(map(dumps, made))
