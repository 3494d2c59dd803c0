"""What an edit of a text changed, line by line, changed words marked."""

import difflib
import re
from typing import NamedTuple


class Line(NamedTuple):
    """One line of a difference: kind "same", "added" or "removed", its number, and its parts.

    Attributes:
        parts: (text, whether it changed), so that changed words can be marked.
    """

    kind: str
    before: int
    after: int
    parts: tuple[tuple[str, bool], ...]


def difference(before: str, after: str) -> list[Line]:
    """What an edit changed, line by line, changed words marked."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Line] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            pairs = zip(range(a, b), range(c, d), strict=True)
            found += [Line("same", x + 1, y + 1, ((old[x], False),)) for x, y in pairs]
            continue
        gone, come = old[a:b], new[c:d]
        for place in range(max(len(gone), len(come))):
            left = gone[place] if place < len(gone) else None
            right = come[place] if place < len(come) else None
            marks = _marked(left, right)
            if left is not None:
                found.append(Line("removed", a + place + 1, 0, marks[0]))
            if right is not None:
                found.append(Line("added", 0, c + place + 1, marks[1]))
    return found


Parts = tuple[tuple[str, bool], ...]


def _marked(left: str | None, right: str | None) -> tuple[Parts, Parts]:
    if left is None or right is None:
        return ((left or "", True),), ((right or "", True),)
    one, other = re.findall(r"\s+|\S+", left), re.findall(r"\s+|\S+", right)
    old: list[tuple[str, bool]] = []
    new: list[tuple[str, bool]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, False).get_opcodes():
        if a < b:
            old.append(("".join(one[a:b]), tag != "equal"))
        if c < d:
            new.append(("".join(other[c:d]), tag != "equal"))
    return tuple(old), tuple(new)
