"""Kinds of values: what flows between tools, and what makes a value legal.

A kind is finer than a JSON type: a city and an e-mail address are both strings, but only a city
can follow where a city is asked for. Tasks are composed by joining an output of a kind to an
input of the same kind.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from pararecover_core.sandbox.draw_values import Draw, is_id


class Kind(NamedTuple):
    """A kind of value.

    Attributes:
        name: One word, unique.
        json_type: "string", "number", "boolean", "array" or "object".
        noun: How a query speaks of it: "the flight".
        check: Returns "" for a legal value, else what was expected.
        sample: Draws a literal value; None for values that only tools make.
        say: Writes a value into a query.
        names_a_thing: Whether a value is an identifier: a query speaks of the thing itself.
    """

    name: str
    json_type: str
    noun: str
    check: Callable[[Any], str]
    sample: Callable[[Draw], Any] | None = None
    say: Callable[[Any], str] = str
    names_a_thing: bool = False


def _legal(_: Any) -> str:
    return ""


def _one_of(values: tuple[str, ...]) -> Callable[[Any], str]:
    known = frozenset(values)
    shown = ", ".join(values[:6]) + (", ..." if len(values) > 6 else "")
    return lambda value: "" if value in known else f"one of {shown}"


def choice_kind(name: str, noun: str, values: tuple[str, ...]) -> Kind:
    """A kind whose legal values are listed."""
    return Kind(name, "string", noun, _one_of(values), lambda draw: draw.choice(values))


def id_kind(name: str, noun: str, prefix: str) -> Kind:
    """A kind whose values only tools make; a made-up one is not found."""

    def check(value: Any) -> str:
        return (
            "" if is_id(prefix, value) else f"an existing {name.replace('_', ' ')} ({prefix}-...)"
        )

    return Kind(name, "string", noun, check, names_a_thing=True)


def number_kind(
    name: str,
    noun: str,
    low: float,
    high: float,
    *,
    sample: tuple[float, float] | None = None,
    digits: int = 0,
    unit: str = "",
) -> Kind:
    """A number in [low, high].

    Args:
        name: One word, unique.
        noun: How a query speaks of it.
        low: Smallest legal value.
        high: Largest legal value.
        sample: The range that literals are drawn from; None for values that only tools make.
        digits: Decimals of a literal.
        unit: What a query writes behind the number.
    """

    def draw_value(draw: Draw) -> float:
        assert sample is not None
        if digits:
            return draw.amount(*sample, digits=digits)
        return draw.integer(int(sample[0]), int(sample[1]))

    def check(value: Any) -> str:
        return "" if low <= value <= high else f"a number from {low:g} to {high:g}"

    return Kind(
        name,
        "number",
        noun,
        check,
        draw_value if sample else None,
        lambda v: f"{v:g} {unit}".strip(),
    )


def text_kind(name: str, noun: str, samples: tuple[str, ...] = ()) -> Kind:
    """Free text; must not be empty."""

    def check(value: Any) -> str:
        return "" if value.strip() else "a text that is not empty"

    sample = (lambda draw: draw.choice(samples)) if samples else None
    return Kind(name, "string", noun, check, sample, lambda v: f'"{v}"')


def list_kind(name: str, noun: str, item: type) -> Kind:
    """A list that only tools make, of ``float`` (any number) or ``str``; must not be empty."""
    types, word = ((int, float), "numbers") if item is float else ((str,), "texts")

    def check(value: Any) -> str:
        legal = value and all(isinstance(v, types) and not isinstance(v, bool) for v in value)
        return "" if legal else f"a list of {word} that is not empty"

    return Kind(name, "array", noun, check)


def _check_date(value: Any) -> str:
    try:
        year = dt.date.fromisoformat(value).year
    except ValueError:
        return "a date as YYYY-MM-DD"
    return "" if 2020 <= year <= 2035 and len(value) == 10 else "a date from 2020 to 2035"


def _check_time(value: Any) -> str:
    return "" if re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value) else "a time as HH:MM"


def _check_email(value: Any) -> str:
    legal = re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", value)
    return "" if legal else "an e-mail address"


_NAMES = ("ana", "bram", "chidi", "dora", "emeka", "freya", "goran", "hana", "ivo", "jun", "karim",
          "lena", "mato", "noor", "oskar", "priya")  # fmt: skip
_HOSTS = ("example.com", "example.org", "example.net")

CITIES: dict[str, tuple[float, float]] = {
    "Lisbon": (38.72, -9.14), "Oslo": (59.91, 10.75), "Vienna": (48.21, 16.37),
    "Nairobi": (-1.29, 36.82), "Kyoto": (35.01, 135.77), "Montreal": (45.50, -73.57),
    "Lima": (-12.05, -77.04), "Hanoi": (21.03, 105.85), "Accra": (5.60, -0.19),
    "Turin": (45.07, 7.69), "Porto": (41.15, -8.61), "Tallinn": (59.44, 24.75),
    "Quito": (-0.18, -78.47), "Osaka": (34.69, 135.50), "Denver": (39.74, -104.99),
    "Perth": (-31.95, 115.86), "Bergen": (60.39, 5.32), "Ghent": (51.05, 3.73),
    "Izmir": (38.42, 27.14), "Tunis": (36.81, 10.18), "Riga": (56.95, 24.11),
    "Bogota": (4.71, -74.07), "Leeds": (53.80, -1.55), "Malaga": (36.72, -4.42),
}  # fmt: skip
"""City to latitude and longitude in degrees."""

CURRENCIES = ("EUR", "USD", "GBP", "JPY", "NOK", "CHF", "CAD", "KES")
LANGUAGES = ("French", "German", "Spanish", "Portuguese", "Japanese", "Norwegian", "Italian")

CITY = choice_kind("city", "the city", tuple(CITIES))
DATE = Kind("date", "string", "the date", _check_date, lambda d: d.date())
TIME = Kind("time", "string", "the time", _check_time, lambda d: d.time())
EMAIL = Kind(
    "email",
    "string",
    "the e-mail address",
    _check_email,
    lambda d: f"{d.choice(_NAMES)}.{d.choice(_NAMES)}@{d.choice(_HOSTS)}",
)
MONEY = number_kind("money", "the amount", 0.01, 10_000_000, sample=(20, 900), digits=2)
CURRENCY = choice_kind("currency", "the currency", CURRENCIES)
LANGUAGE = choice_kind("language", "the language", LANGUAGES)
COUNT = number_kind("count", "the number", 1, 10_000)
DAYS = number_kind("days", "the days", 1, 2_000, sample=(2, 12), unit="days")
NIGHTS = number_kind("nights", "the nights", 1, 2_000, sample=(2, 12), unit="nights")
YEARS = number_kind("years", "the years", 1, 40, sample=(2, 12), unit="years")
PEOPLE = number_kind("people", "the people", 1, 10_000, sample=(2, 12), unit="people")
WORDS = number_kind("words", "the words", 1, 100_000, sample=(120, 2_400), unit="words")
PERCENT = number_kind("percent", "the percentage", 0.1, 100)
RATE = number_kind("rate", "the rate", 0.1, 100, sample=(3, 40), unit="percent")
KILOMETRES = number_kind("kilometres", "the distance", 0.1, 25_000, sample=(5, 600), unit="km")
MINUTES = number_kind("minutes", "the duration", 1, 20_000, sample=(15, 240), unit="minutes")
KILOGRAMS = number_kind("kilograms", "the weight", 0.01, 40_000, sample=(1, 60), unit="kg")
CELSIUS = number_kind(
    "celsius", "the temperature", -60, 60, sample=(-5, 34), unit="degrees Celsius"
)
TEXT = text_kind("text", "the text")

City = Annotated[str, CITY]
Date = Annotated[str, DATE]
Time = Annotated[str, TIME]
Email = Annotated[str, EMAIL]
Money = Annotated[float, MONEY]
Currency = Annotated[str, CURRENCY]
Language = Annotated[str, LANGUAGE]
Count = Annotated[float, COUNT]
Days = Annotated[float, DAYS]
Nights = Annotated[float, NIGHTS]
Years = Annotated[float, YEARS]
People = Annotated[float, PEOPLE]
Words = Annotated[float, WORDS]
Percent = Annotated[float, PERCENT]
Rate = Annotated[float, RATE]
Kilometres = Annotated[float, KILOMETRES]
Minutes = Annotated[float, MINUTES]
Kilograms = Annotated[float, KILOGRAMS]
Celsius = Annotated[float, CELSIUS]
Text = Annotated[str, TEXT]
