"""A store with scored answers, written for tests of training data."""

from annotations.store import Store
from pararecover_core.formats.items import InstanceRef
from pararecover_core.records import Round, Trajectory
from pararecover_core.rubric import DIMENSIONS
from tests.store_data import Clock, answer, entry, instance, items, plan_text

JUDGE = "judge:m@sde-1"
TOTALS = {"good": 14.5, "fair": 10.0, "poor": 4.0}
"""Total by agent; S5 is 1 for all."""


def scores_of(total):
    """Scores that add up to a total: S5 and whole points first, what is left is E5's."""
    scores = dict.fromkeys(DIMENSIONS, 0.0) | {"S5": 1.0}
    whole, left = divmod(total - 1, 1)
    for dimension in [d for d in DIMENSIONS if d not in ("S5", "E5")][: int(whole)]:
        scores[dimension] = 1.0
    return scores | {"E5": left}


def scored_store(path, tasks=4, scorer=JUDGE, **fields):
    """A store of ``tasks`` instances, three answers to each, all 15 scored.

    Judged sub-dimensions are the scorer's, E5 is the program's, S5 follows from the plan.
    ``fields`` are those of the instances.
    """
    store = Store(path, clock=Clock())
    for number in range(1, tasks + 1):
        one = instance(str(number), f"Bake {number} cakes", **{"round_gt": 6} | fields)
        store.ingest(items(one))
        for agent in TOTALS:
            ref = InstanceRef(key=one.key)
            plan = plan_text("mix", "bake", agent, done=1)
            store.ingest(items(answer(agent=agent, thought=f"I am {agent}", plan=plan, ref=ref)))
        for replan in store.replans_of(one.key):
            scores = scores_of(TOTALS[replan.agent])
            store.append(
                [
                    entry(replan.key, d, v, scorer="program" if d == "E5" else scorer)
                    for d, v in scores.items()
                    if d != "S5"
                ]
            )
    return store


def run_of(store, replan, e5, *, named=True):
    """A trajectory that a replan was put into; its rounds are as many as its E5 asks for."""
    before = store.instance(replan.instance)
    rounds = (Round(before.plan, before.observations), Round(replan.plan, (), replan.thought))
    taken = round(before.round_gt / e5) if e5 else 1
    measures = {"correct": e5 > 0, "rounds": taken, "round_limit": taken + 1}
    extra = {**measures, **({"replan": replan.key} if named else {})}
    return Trajectory(
        f"t{e5}{named}", replan.instance, replan.agent, rounds, True, "response", extra
    )


__all__ = ["JUDGE", "TOTALS", "run_of", "scored_store", "scores_of"]
