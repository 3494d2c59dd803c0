"""Texts in sheets: never read as a formula, and read back exactly as they were.

In CSV and XLSX a text that a spreadsheet program might run as a formula gets an apostrophe in
front. XLSX also cannot hold some characters, UTF-8 no lone surrogates; they are masked as
``_xHHHH_``, XLSX's own convention.
"""

import re

_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NOT_IN_XML = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)"
)
_NOT_ENCODED = re.compile(r"[\ud800-\udfff]|_(?=x[0-9A-Fa-f]{4}_)")


def guard(text: str) -> str:
    """A text that no spreadsheet program reads as a formula; ``unguard`` undoes it."""
    return f"'{text}" if text.lstrip(" ").startswith(_RISKY) else text


def unguard(text: str) -> str:
    """What ``guard`` was given."""
    return text[1:] if text.startswith("'") else text


def mask_surrogates(text: str) -> str:
    """A text that every encoding can hold: lone surrogates masked; ``unmask`` undoes it."""
    return text if text.isascii() and "_x" not in text else _NOT_ENCODED.sub(_escaped, text)


def mask(text: str) -> str:
    """A text as XML can hold it; ``unmask`` undoes it.

    The writer of XLSX puts a layer of the same escape over it, which every reader undoes.
    """
    return _NOT_IN_XML.sub(_escaped, text)


def unmask(text: str) -> str:
    """What ``mask`` and ``mask_surrogates`` were given."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _escaped(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):04X}_"
