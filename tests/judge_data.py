"""A store with replans to judge, and replies of a scripted judge."""

import hashlib
import re
from pathlib import Path
from typing import Any

from annotations.store import Store
from pararecover_core.literals import dumps
from tests.model_server import Call, chat
from tests.store_data import answer, instance, items


def filled(path: Path, count: int = 3) -> Store:
    """A store with ``count`` instances and a replan of each, thought "thought N"."""
    store = Store(path)
    contents: list[Any] = []
    for number in range(count):
        one = instance(str(number), query=f"Bake cake {number}")
        contents += [one, answer(str(number), thought=f"thought {number}.")]
    store.ingest(items(*contents))
    return store


def asked(call: Call) -> list[str]:
    """The sub-dimensions that a call asks for."""
    return re.findall(r'"([SDE]\d)": \{"reason"', call.body["messages"][0]["content"])


def number(call: Call) -> int:
    """Which replan a call is about."""
    return int(re.search(r"thought (\d+)\.", call.text)[1])  # type: ignore[index]


def score_of(replan: int, dimension: str) -> float:
    """The score that the scripted judge gives."""
    digest = hashlib.blake2b(f"{replan}{dimension}".encode(), digest_size=1).digest()[0]
    return (0.0, 0.5, 1.0)[digest % 3]


def verdict(call: Call) -> dict[str, Any]:
    """What the scripted judge answers."""
    replan = number(call)
    scores = {d: {"reason": f"why {d}", "score": score_of(replan, d)} for d in asked(call)}
    return chat(dumps(scores))
