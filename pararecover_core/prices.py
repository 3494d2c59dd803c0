"""What answers cost: list prices as data; an unknown price is said to be unknown.

The table of this package holds US dollars for a million tokens as vendors listed them when it was
written. Prices change: ``PARARECOVER_PRICES`` names a file of the same form that goes first.
"""

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from pararecover_core.completions import Usage
from pararecover_core.errors import ConfigError
from pararecover_core.literals import loads


class Price(NamedTuple):
    """US dollars for a million tokens."""

    prompt: float
    completion: float


def cost(usage: Usage, price: Price | None) -> float | None:
    """US dollars for tokens; None (unknown) without a price."""
    if price is None:
        return None
    return (usage.prompt * price.prompt + usage.completion * price.completion) / 1e6


def price_of(model: str, table: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model, None where it is not known.

    Args:
        model: Its name at the endpoint; a vendor before a slash ("openai/gpt-4o") is passed over.
        table: Prices by model; the table in use by default.
    """
    known = prices() if table is None else table
    return known.get(model) or known.get(model.rpartition("/")[2])


def prices() -> dict[str, Price]:
    """The table of this package, overridden by the file that ``PARARECOVER_PRICES`` names.

    Raises:
        ConfigError: That file is no price table.
    """
    own = files("pararecover_core").joinpath("prices.json").read_text(encoding="utf-8")
    table = msgspec.convert(loads(own), dict[str, Price])
    named = os.environ.get("PARARECOVER_PRICES", "").strip()
    return table | read_prices(Path(named)) if named else table


def read_prices(path: Path) -> dict[str, Price]:
    """A price table.

    Raises:
        ConfigError: The file is none.
    """
    try:
        return msgspec.convert(loads(path.read_text(encoding="utf-8")), dict[str, Price])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        where, expected = str(path), '{"model": [prompt, completion], ...}'
        raise ConfigError(where, str(error), expected, "Correct the file") from error
