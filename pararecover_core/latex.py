r"""Text for LaTeX: printed as it is, never a command; every engine compiles it.

pdfLaTeX knows Latin letters and some signs. Whatever else a text holds goes through ``\prwide``,
which XeLaTeX and LuaLaTeX print and pdfLaTeX replaces by dots, with a warning in its log.
"""

import itertools
import unicodedata

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "[": "{[}", "]": "{]}",
    "×": r"\ensuremath{\times}", "…": r"\ldots{}", "–": "--", "—": "---",
    "−": r"\ensuremath{-}", "≤": r"\ensuremath{\le}", "≥": r"\ensuremath{\ge}",
    "±": r"\ensuremath{\pm}", "°": r"\ensuremath{{}^\circ}", "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}", "↓": r"\ensuremath{\downarrow}", "↑": r"\ensuremath{\uparrow}",
}  # fmt: skip

_LATIN = (
    *((0x20, 0x7E), (0xA0, 0x125), (0x128, 0x137), (0x139, 0x13E), (0x141, 0x148)),
    *((0x14A, 0x165), (0x168, 0x17E), (0x218, 0x21B), (0x2018, 0x201A), (0x201C, 0x201E)),
    *((0x2020, 0x2022), (0x2030, 0x2030), (0x2039, 0x203A), (0x20AC, 0x20AC), (0x2122, 0x2122)),
)
"""What pdfLaTeX prints with the encodings T1 and TS1: first and last code point of each range."""

NEEDS = r"% Packages: \usepackage[T1]{fontenc} \usepackage{textcomp}"
"""A line for the head of a file: what ``tex`` needs of a document, to be completed."""

WIDE = (
    "% Other scripts: compile with XeLaTeX and \\usepackage{xeCJK}, or with LuaLaTeX.\n"
    r"\providecommand\prwide[1]{\ifdefined\pdfoutput\ldots\GenericWarning{}{LaTeX Warning: text of"
    r" another script left out; use XeLaTeX or LuaLaTeX}\else#1\fi}"
)
r"""Defines ``\prwide``; goes to the head of a file whose texts use it."""


def tex(text: str) -> str:
    """A text on one line that LaTeX prints as it is; control characters are left out.

    Args:
        text: Any text.

    Returns:
        Source for LaTeX. Other scripts stand in a command that ``WIDE`` defines.
    """
    flat = unicodedata.normalize("NFC", " ".join(text.split()))
    kept = (c for c in flat if unicodedata.category(c) not in ("Cc", "Cs") and c not in _TURNS)
    runs = itertools.groupby(kept, key=_plain)
    return "".join(
        "".join(_SPECIAL.get(c, c) for c in run) if plain else rf"\prwide{{{''.join(run)}}}"
        for plain, run in runs
    )


_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They turn the direction of what follows, beyond the text that they stand in."""


def _plain(character: str) -> bool:
    if character in _SPECIAL:
        return True
    point = ord(character)
    return any(first <= point <= last for first, last in _LATIN)


def definitions(source: str) -> list[str]:
    """Lines that a file with this source needs first."""
    return [WIDE] if r"\prwide{" in source else []
