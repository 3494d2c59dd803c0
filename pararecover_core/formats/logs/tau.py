"""tau-bench and tau2-bench results: one run a trial, with the reward."""

from collections.abc import Iterator, Mapping
from typing import Any

from pararecover_core.formats.logs.conversation import run_of
from pararecover_core.formats.logs.run import Run, obj, objects, seq, txt

TAU, TAU2 = "tau-bench", "tau2-bench"


def is_tau(value: Any) -> bool:
    """One trial of tau-bench."""
    return isinstance(value, Mapping) and isinstance(value.get("traj"), list)


def tau(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of a trial; one that broke down has its error and no messages."""
    info = obj(value.get("info"))
    extra = {"reward": value.get("reward"), "trial": value.get("trial")}
    if not value["traj"] and info.get("error"):
        extra["error"] = f"a run that broke down ({txt(info['error'])[:200]})"
    yield run_of(
        value["traj"],
        TAU,
        id=_id(value.get("task_id"), value.get("trial")),
        agent=txt(value.get("model")),
        success=_solved(value.get("reward")),
        extra=extra,
    )


def _id(task: Any, trial: Any) -> str:
    return txt(task) + (f" trial {txt(trial)}" if txt(trial) else "")


def _solved(reward: Any) -> bool | None:
    """Whether a reward is the full one; None where there is none."""
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        return None
    return reward >= 1 - 1e-6


def is_tau2(value: Any) -> bool:
    """The results of one tau2-bench run, or one simulation of it."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("simulations"), list):
        return True
    return isinstance(value.get("messages"), list) and "reward_info" in value


def tau2(value: Mapping[str, Any]) -> Iterator[Run]:
    """One run a simulation; calls of the simulated user go into ``user_calls``."""
    if "simulations" not in value:
        yield _simulation(value, "", None)
        return
    info = obj(value.get("info"))
    agent = txt(obj(info.get("agent_info")).get("llm"))
    tools = obj(info.get("environment_info")).get("tools")
    for simulation in objects(value["simulations"]):
        yield _simulation(simulation, agent, tools)


def _simulation(value: Mapping[str, Any], agent: str, tools: Any) -> Run:
    reward = obj(value.get("reward_info"))
    ordered = sorted(enumerate(objects(value.get("messages"))), key=_turn)
    extra = {
        "reward": reward.get("reward"),
        "reward_breakdown": reward.get("reward_breakdown"),
        "trial": value.get("trial"),
        "termination_reason": value.get("termination_reason"),
    }
    return run_of(
        [message for _, message in ordered],
        TAU2,
        id=_id(value.get("task_id"), value.get("trial")),
        agent=txt(obj(value.get("agent_info")).get("llm")) or agent,
        tools=tools if seq(tools) else None,
        success=_solved(reward.get("reward")),
        extra=extra,
    )


def _turn(pair: tuple[int, Mapping[str, Any]]) -> tuple[int, int]:
    """Order of the file where the messages have no numbers."""
    number = pair[1].get("turn_idx")
    return (number if isinstance(number, int) else pair[0]), pair[0]
