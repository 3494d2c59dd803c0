"""Which scores of people count, in SQL: the one place that says so.

A score that was given in a batch counts once its annotator has submitted the item; one that came
from a file, or was given outside of a batch, counts at once. Of one annotator and sub-dimension
the newest score that counts stands: a re-score in another batch replaces it when that batch's item
is submitted, not before. What follows from the scores that count is ``pairing.gold_value``.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from pararecover_core.pairing import HUMAN


def counts(alias: str) -> str:
    """SQL that is true for a row of ``score_log`` whose score counts.

    Args:
        alias: How the query calls ``score_log``. Rows of judges and programs always count.
    """
    return (
        f"({alias}.batch IS NULL OR {alias}.scorer NOT GLOB 'human:*' OR EXISTS ("
        f"SELECT 1 FROM assignment AS held WHERE held.batch = {alias}.batch"
        f" AND held.replan = {alias}.replan AND held.annotator = substr({alias}.scorer, 7)"
        " AND held.submitted_at IS NOT NULL))"
    )


PEOPLE = f"""
FROM score_log AS s
WHERE s.scorer GLOB 'human:*' AND s.value IS NOT NULL AND {counts("s")}
  AND NOT EXISTS (SELECT 1 FROM score_log AS later
    WHERE later.replan = s.replan AND later.dimension = s.dimension AND later.scorer = s.scorer
      AND later.revision > s.revision AND {counts("later")})
"""
"""The score of each annotator and cell that stands, as ``s``; more conditions follow with AND."""


class Standing(NamedTuple):
    """A score of a person that stands."""

    replan: str
    dimension: str
    annotator: str
    value: float


def standing(db: sqlite3.Connection, replans: Iterable[str]) -> list[Standing]:
    """The scores of people that stand for these replans, withdrawn ones left out."""
    listed = orjson.dumps(list(replans)).decode()
    query = (
        f"SELECT s.replan, s.dimension, substr(s.scorer, {len(HUMAN) + 1}), s.value {PEOPLE}"
        " AND s.replan IN (SELECT value FROM json_each(?)) ORDER BY s.replan, s.dimension, s.scorer"
    )
    return [Standing(*row) for row in db.execute(query, (listed,))]


def held_out(db: sqlite3.Connection) -> frozenset[str]:
    """Keys of the replans that any calibration session holds out; see ``sealed``."""
    query = "SELECT DISTINCT replan FROM session_item WHERE side = 'held-out'"
    return frozenset(row[0] for row in db.execute(query))
