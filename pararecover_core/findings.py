"""Program evidence: where in plan, tools and observations each error type shows."""

from pararecover_core.results import ResultState, result_state

__all__ = ["ResultState", "result_state"]
