"""The form that makes a batch: what it offers, and what a filled form means."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from annotations.batches import BatchPlan, Filter, Sampling
from annotations.blind import Reveal
from annotations.sampling import PAPER_SIZE, Allocation, Stratum
from pararecover_core.rubric import JUDGED

if TYPE_CHECKING:
    from annotations.store import Store


class Draw(StrEnum):
    """How replans are drawn."""

    RANDOM = "Random"
    STRATIFIED = "Stratified"
    PAPER = f"{PAPER_SIZE} per sub-dimension, as in the paper"


PRESETS: dict[Draw, dict[str, Any]] = {
    Draw.RANDOM: {"size": 100, "annotators": 1, "share": 100},
    Draw.STRATIFIED: {"size": 100, "annotators": 1, "share": 100},
    Draw.PAPER: {"size": PAPER_SIZE, "annotators": 2, "share": 20},
}
"""What choosing a way of drawing fills in."""

STRATA = {Stratum.LEVEL: "level", Stratum.ERROR_TYPE: "error type", Stratum.AGENT: "agent"}


class Offers(msgspec.Struct, frozen=True):
    """What the database has to choose from.

    Attributes:
        replans: Replans with their content.
        state: Changes with every import and every new batch, so that what was counted can be
            kept until then.
    """

    replans: int
    state: tuple[int, int]
    levels: tuple[int, ...]
    sources: tuple[str, ...]
    error_types: tuple[str, ...]
    agents: tuple[str, ...]


def offers(store: "Store") -> Offers:
    """What the filters of the form offer."""
    queries = {
        "levels": "SELECT DISTINCT level FROM instance WHERE stub = 0 ORDER BY level",
        "sources": "SELECT DISTINCT source FROM instance WHERE stub = 0 ORDER BY source",
        "error_types": "SELECT DISTINCT error_type FROM instance_error ORDER BY error_type",
        "agents": "SELECT DISTINCT agent FROM replan WHERE stub = 0 ORDER BY agent",
    }
    with store.read() as db:
        replans, newest, made = db.execute(
            "SELECT coalesce(sum(stub = 0), 0), coalesce(max(n), 0),"
            " (SELECT coalesce(max(id), 0) FROM batch) FROM replan"
        ).fetchone()
        lists = {
            name: tuple(row[0] for row in db.execute(query)) for name, query in queries.items()
        }
    return Offers(replans, (newest, made), **lists)


def plan_of(values: Mapping[str, Any], created_by: str = "") -> BatchPlan:
    """The plan that a filled form means.

    Args:
        values: What the fields hold; an absent one has its default.
        created_by: Who makes the batch.
    """
    way = values.get("draw") or Draw.RANDOM
    where = Filter(
        levels=tuple(values.get("levels", ())),
        sources=tuple(values.get("sources", ())),
        error_types=tuple(values.get("error_types", ())),
        agents=tuple(values.get("agents", ())),
        unbatched=bool(values.get("unbatched")),
    )
    preset = PRESETS[way]
    stratified = way is Draw.STRATIFIED
    sampling = Sampling(
        size=int(values.get("size", preset["size"])),
        seed=int(values.get("seed", 0)),
        stratify=tuple(values.get("stratify", ())) if stratified else (),
        allocation=Allocation.EQUAL if values.get("equal") else Allocation.PROPORTIONAL,
        per_dimension=way is Draw.PAPER,
        where=where,
    )
    return BatchPlan(
        name=str(values.get("name", "")).strip(),
        sampling=sampling,
        dimensions=tuple(values.get("dimensions", JUDGED)),
        annotators_per_item=int(values.get("annotators", preset["annotators"])),
        overlap=float(values.get("share", preset["share"])) / 100,
        reveal=values.get("reveal", Reveal.AFTER_SUBMIT),
        stale_minutes=float(values.get("stale", 60)),
        hide_outcome=bool(values.get("hide_outcome")),
        created_by=created_by,
    )


def is_free_name(name: str) -> bool:
    """Whether a name is empty or one that ``free_name`` gave."""
    return re.fullmatch(r"\s*|(Batch|Paper) \d+", name) is not None


def free_name(taken: set[str], way: Draw) -> str:
    """A name that no batch has yet."""
    stem = "Paper" if way is Draw.PAPER else "Batch"
    number = len(taken) + 1
    while f"{stem} {number}" in taken:
        number += 1
    return f"{stem} {number}"
