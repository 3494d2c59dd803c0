"""The paper's tables from records: every figure with its n and the records behind it."""

from pararecover_core.report.distribution import distribution
from pararecover_core.report.judge_free import judge_free
from pararecover_core.report.scored import Scored, group_means, paired_test
from pararecover_core.report.table import FORMATS, Cell, Report, Row, render
from pararecover_core.report.tables import (
    comparison,
    cross_judge,
    e5_pass1,
    error_types,
    leaderboard,
)

__all__ = [
    "FORMATS",
    "Cell",
    "Report",
    "Row",
    "Scored",
    "comparison",
    "cross_judge",
    "distribution",
    "e5_pass1",
    "error_types",
    "group_means",
    "judge_free",
    "leaderboard",
    "paired_test",
    "render",
]
