"""Money: exchange, tax, tips, splitting, interest."""

from typing import TypedDict

from pararecover_core.sandbox.kinds import Currency, Money, People, Percent, Rate, Years
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
def add_tax(amount: Money, rate: Rate) -> Taxed:
    """Add a tax rate to a net amount.

    Args:
        amount: Net amount.
        rate: Tax rate in percent.
    """
    tax = max(0.01, round(amount * rate / 100, 2))
    return {"gross_amount": round(amount + tax, 2), "tax_amount": tax}


@tool("split {amount} evenly among {people}", makes="the split")
def split_bill(amount: Money, people: People) -> Share:
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


class Interest(TypedDict):
    """What savings become."""

    final_amount: Money


class Difference(TypedDict):
    """A difference."""

    difference: Money


class Budgeted(TypedDict):
    """A part of a budget."""

    budget_share: Percent


class Larger(TypedDict):
    """The larger of two amounts."""

    larger_amount: Money


@tool("let {amount} grow for {years} at {rate} compound interest", makes="the savings")
def compound_interest(amount: Money, rate: Rate, years: Years) -> Interest:
    """Grow an amount by compound interest.

    Args:
        amount: Amount at the start.
        rate: Interest a year in percent.
        years: Number of years, at most 40.
    """
    return {"final_amount": round(min(1e7, amount * (1 + rate / 100) ** years), 2)}


@tool("add simple interest of {rate} for {years} to {amount}", makes="the savings")
def simple_interest(amount: Money, rate: Rate, years: Years) -> Interest:
    """Grow an amount by simple interest.

    Args:
        amount: Amount at the start.
        rate: Interest a year in percent.
        years: Number of years, at most 40.
    """
    return {"final_amount": round(min(1e7, amount * (1 + rate / 100 * years)), 2)}


@tool("work out the difference between {first} and {second}", makes="the difference")
def subtract_amounts(first: Money, second: Money) -> Difference:
    """Tell how far two amounts lie apart.

    Args:
        first: First amount.
        second: Second amount.
    """
    return {"difference": max(0.01, round(abs(first - second), 2))}


@tool("tell me which is more, {first} or {second}", makes="the larger amount")
def larger_amount(first: Money, second: Money) -> Larger:
    """Tell the larger of two amounts.

    Args:
        first: First amount.
        second: Second amount.
    """
    return {"larger_amount": max(first, second)}


@tool("work out how much of a budget of {budget} is used up by {amount}", makes="the share")
def budget_share(amount: Money, budget: Money) -> Budgeted:
    """Express an amount as percent of a budget, at most 100.

    Args:
        amount: Amount spent.
        budget: Whole budget.
    """
    return {"budget_share": min(100.0, max(0.1, round(amount / budget * 100, 1)))}
