"""Money: exchange, tax, tips, splitting, interest."""

from typing import TypedDict

from pararecover_core.sandbox.kinds import Count, Currency, Money, Percent
from pararecover_core.sandbox.registry import NotFoundError, tool

_PER_EURO = {"EUR": 1.0, "USD": 1.09, "GBP": 0.85, "JPY": 163.2, "NOK": 11.6, "CHF": 0.96,
             "CAD": 1.48, "KES": 141.0}  # fmt: skip


class Converted(TypedDict):
    """An amount in another currency."""

    converted_amount: Money


class Taxed(TypedDict):
    """An amount with tax."""

    gross_amount: Money
    tax_amount: Money


class Share(TypedDict):
    """What each person pays."""

    share_amount: Money


class Total(TypedDict):
    """A sum."""

    total_amount: Money


@tool(
    "convert {amount} from {source} to {target}",
    "work out what {amount} in {source} is in {target}",
    makes="the conversion",
)
def convert_currency(amount: Money, source: Currency, target: Currency) -> Converted:
    """Convert an amount from one currency to another.

    Args:
        amount: Amount in the source currency.
        source: Currency code to convert from.
        target: Currency code to convert to.
    """
    if source == target:
        raise NotFoundError(f"no rate is kept from {source} to itself.")
    return {"converted_amount": max(0.01, round(amount / _PER_EURO[source] * _PER_EURO[target], 2))}


@tool("add a tax of {rate} to {amount}", makes="the taxed amount")
def add_tax(amount: Money, rate: Percent) -> Taxed:
    """Add a tax rate to a net amount.

    Args:
        amount: Net amount.
        rate: Tax rate in percent.
    """
    tax = max(0.01, round(amount * rate / 100, 2))
    return {"gross_amount": round(amount + tax, 2), "tax_amount": tax}


@tool("split {amount} evenly among a group of {people}", makes="the split")
def split_bill(amount: Money, people: Count) -> Share:
    """Split an amount evenly among people.

    Args:
        amount: Amount to split.
        people: Number of people.
    """
    return {"share_amount": max(0.01, round(amount / people, 2))}


@tool("add up {first} and {second}", makes="the sum")
def add_amounts(first: Money, second: Money) -> Total:
    """Add two amounts of the same currency.

    Args:
        first: First amount.
        second: Second amount.
    """
    return {"total_amount": round(first + second, 2)}
