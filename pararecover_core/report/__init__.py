"""The paper's tables from records: every figure with its n and the records behind it."""

from pararecover_core.report.distribution import distribution
from pararecover_core.report.judge_free import judge_free
from pararecover_core.report.table import FORMATS, Cell, Report, Row, render

__all__ = ["FORMATS", "Cell", "Report", "Row", "distribution", "judge_free", "render"]
