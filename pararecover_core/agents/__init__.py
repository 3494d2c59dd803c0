"""Built-in agents, each with an honest thought; they need no network and no key."""

from pararecover_core.agents.advance import Draft, advanced
from pararecover_core.agents.builtin import Ignore, Rebuild, Retry
from pararecover_core.agents.oracle import Oracle
from pararecover_core.agents.patch import Patch

__all__ = ["Draft", "Ignore", "Oracle", "Patch", "Rebuild", "Retry", "advanced"]
