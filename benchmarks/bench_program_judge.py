"""The program judge: S2, S3 and S4 against the truth of the sandbox, and EMA with a person.

    python benchmarks/bench_program_judge.py [INSTANCES]

Sandbox: the agent that knows the truth answers each instance (S2 = S3 = S4 = 1), then one fault is
put into the pending part of that answer, or one status is turned. A fault is found where the score
is below 1. Sample: the scores of one person on the data that ships with the package. The judge is
a baseline; the figures say how far it gets without reading.
"""

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from annotations.pairs import Selection, load
from annotations.sample import ensure_sample
from annotations.store import Store
from pararecover_core.agents.advance import Draft
from pararecover_core.agents.choose import task_of
from pararecover_core.agents.oracle import Oracle
from pararecover_core.agreement import measure
from pararecover_core.execute import replan
from pararecover_core.generate import generate
from pararecover_core.inject import INJECTORS, Scene
from pararecover_core.judges import Item, ProgramJudge
from pararecover_core.plan import RESPONSE, ROOT, Plan
from pararecover_core.records import Instance, Replan
from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.taxonomy import ErrorType

PERSON = "human:ann"
S2 = (
    ErrorType.DEPENDENCE_ERROR,
    ErrorType.DEPENDENCE_NULL,
    ErrorType.SERIAL_ERROR,
    ErrorType.PARALLELISM_ERROR,
)
S3 = (
    ErrorType.PARAMETER_ERROR,
    ErrorType.PARAMETER_INVALID,
    ErrorType.PARAMETER_MISSING,
    ErrorType.TYPE_ERROR,
    ErrorType.TOOL_NAME_ERROR,
)


class Case(NamedTuple):
    """A replan whose truth is known: which sub-dimension is below 1, "" for none."""

    item: Item
    dimension: str
    kind: str


def cases(instances: Iterator[Instance]) -> Iterator[Case]:
    """Right answers, and the same with one fault."""
    for instance in instances:
        task = task_of(instance)
        right = replan(instance, Oracle(task))
        yield Case(Item(instance, right), "", "right")
        for dimension, types in (("S2", S2), ("S3", S3)):
            for kind in types:
                changed = INJECTORS[kind](Scene(right.plan, task), Draw("bench", instance.key))
                if changed is not None and not changed.plan.fault:
                    yield Case(Item(instance, _with(right, changed.plan)), dimension, kind.value)
        for kind, plan in status_faults(instance, right.plan):
            yield Case(Item(instance, _with(right, plan)), "S4", kind)


def status_faults(instance: Instance, plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan with one status turned."""
    ran = [n.id for n in plan.nodes if n.done and n.id != ROOT]
    waits = [n.id for n in plan.nodes if not n.done and n.id != RESPONSE]
    for kind, ids, status in (
        ("executed node open", ran, False),
        ("pending node done", waits, True),
        ("response done early", [RESPONSE], True),
    ):
        if ids:
            draft = Draft(plan)
            draft[ids[-1]]["status"] = status
            yield kind, Plan.parse(draft.given())


def _with(right: Replan, plan: Plan) -> Replan:
    return msgspec.structs.replace(right, plan=plan)


def sandbox(count: int) -> None:
    """Print how often each fault is found, and how often one is seen where there is none."""
    judge = ProgramJudge()
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    alarms: dict[str, Counter[bool]] = defaultdict(Counter)
    examples: dict[str, str] = {}
    halves = (generate(level=n, count=count // 2, seed="judge") for n in (1, 2))
    for case in cases(one for half in halves for one in half):
        scores = judge.judge(case.item).scores
        for dimension in ("S2", "S3", "S4"):
            low = scores[dimension].score < 1
            if dimension == case.dimension:
                found[f"{dimension} {case.kind}"][low] += 1
            elif not case.dimension:
                alarms[dimension][low] += 1
                if low:
                    examples[dimension] = scores[dimension].reason
    print(f"{count} sandbox instances")
    for name, counts in sorted(found.items()):
        print(f"  {name:<24} found {counts[True]:>5,} of {counts.total():>5,}"
              f"  {counts[True] / counts.total():.3f}")  # fmt: skip
    for name, counts in sorted(alarms.items()):
        print(f"  {name} false alarms      {counts[True]:>5,} of {counts.total():>5,}"
              f"  {counts[True] / counts.total():.3f}  {examples.get(name, '')}")  # fmt: skip


def sample() -> None:
    """Print EMA with one person on the sample data, sub-dimension by sub-dimension."""
    from annotations.judge_job import JudgeJob
    from annotations.judges import PROGRAM, Order, prepare

    with tempfile.TemporaryDirectory() as folder:
        store = Store(ensure_sample(Path(folder) / "sample.db"))
        job = JudgeJob(store, prepare(store, Order(PROGRAM)).parts).start()
        job.wait()
        cells = load(store, Selection(human=PERSON, judge=ProgramJudge.scorer))
    figures = measure(cells, resamples=0)
    print(f"sample data against {PERSON}")
    for one in (*figures.dimensions, figures.overall):
        print(f"  {one.name:<8} n {one.n:>4}  EMA {one.ema.value:.3f}  MAE {one.mae.value:.3f}  "
              f"people {one.human_mean.value:.3f}  program {one.judge_mean.value:.3f}")  # fmt: skip


if __name__ == "__main__":
    sandbox(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    sample()
