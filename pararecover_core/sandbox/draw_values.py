"""Values that are drawn from a seed: the same parts give the same values on every machine."""

import datetime as dt
import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_DIGITS = 5


class Draw:
    """A stream of values that depends on its parts alone.

    Args:
        parts: Anything with a stable text: a tool's name, its arguments, a seed.
    """

    def __init__(self, *parts: object) -> None:
        text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
        self.random = random.Random(hashlib.blake2b(text, digest_size=8).digest())

    def choice(self, values: Sequence[T]) -> T:
        """One of N values, N >= 1."""
        return values[self.random.randrange(len(values))]

    def sample(self, values: Sequence[T], count: int) -> list[T]:
        """``count`` different values."""
        return self.random.sample(list(values), count)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self.random.randint(low, high)

    def amount(self, low: float, high: float, *, digits: int = 2) -> float:
        """A number in [low, high], rounded to ``digits`` decimals."""
        return round(self.random.uniform(low, high), digits)

    def chance(self, share: float) -> bool:
        """True with probability ``share`` in [0, 1]."""
        return self.random.random() < share

    def date(self, *, start: dt.date = dt.date(2026, 1, 5), days: int = 700) -> str:
        """A date as YYYY-MM-DD."""
        return (start + dt.timedelta(days=self.integer(0, days))).isoformat()

    def time(self) -> str:
        """A time of day as HH:MM, on five minutes, from 07:00 to 21:55."""
        return f"{self.integer(7, 21):02d}:{self.integer(0, 11) * 5:02d}"

    def id(self, prefix: str) -> str:
        """An identifier such as FL-48213K whose last letter checks the digits."""
        body = "".join(str(self.random.randrange(10)) for _ in range(_DIGITS))
        return f"{prefix}-{body}{_check_letter(prefix, body)}"


def _check_letter(prefix: str, body: str) -> str:
    return _LETTERS[sum((i + 3) * ord(c) for i, c in enumerate(prefix + body)) % len(_LETTERS)]


def is_id(prefix: str, value: str) -> bool:
    """Whether ``value`` is an identifier that ``Draw.id`` can have made for this prefix."""
    head, _, tail = value.partition("-")
    body, letter = tail[:-1], tail[-1:]
    return (
        head == prefix
        and len(body) == _DIGITS
        and body.isdecimal()
        and letter == _check_letter(prefix, body)
    )
