"""What an annotator may see of an item: the one place that decides it.

Blind means no judge's score, no agent's name, no error tag and no other annotator's score, until
the item is submitted and its annotator asks for the reveal. A calibration batch may be open.
"""

from enum import IntEnum

import msgspec


class Reveal(IntEnum):
    """When a batch shows what blind scoring hides."""

    NEVER = 0
    AFTER_SUBMIT = 1
    OPEN = 2

    @property
    def label(self) -> str:
        """The rule in words."""
        return _LABELS[self]


_LABELS = {
    Reveal.NEVER: "never",
    Reveal.AFTER_SUBMIT: "after submitting",
    Reveal.OPEN: "from the start (calibration)",
}


class Shown(msgspec.Struct, frozen=True):
    """What may be shown of one item to one annotator.

    Attributes:
        judge: Judges' scores and reasons.
        agent: Who answered.
        tags: Error tags and the file's error reason.
        others: Other annotators' scores and notes.
        can_reveal: Whether the annotator may ask for the reveal now.
        revealed_at: When it was revealed, "" where it was not.
        marks_revealed: Whether a score given now is recorded as made after a reveal.
    """

    judge: bool = False
    agent: bool = False
    tags: bool = False
    others: bool = False
    can_reveal: bool = False
    revealed_at: str = ""
    marks_revealed: bool = False

    @property
    def blind(self) -> bool:
        """Whether anything is hidden."""
        return not (self.judge and self.agent and self.tags and self.others)


def shown(
    reveal: Reveal, *, submitted_at: str = "", revealed_at: str = "", seen_elsewhere: bool = False
) -> Shown:
    """Decide what may be shown.

    Args:
        reveal: The batch's rule.
        submitted_at: When this annotator first or last submitted the item, "" for not yet.
        revealed_at: When this annotator asked for the reveal, "" for not yet.
        seen_elsewhere: Whether the same annotator has seen the same replan revealed in another
            batch: it is blind again, but scores are recorded as made after a reveal.

    Returns:
        Everything hidden, or everything shown.
    """
    is_open = reveal is Reveal.OPEN or (
        reveal is Reveal.AFTER_SUBMIT and bool(submitted_at) and bool(revealed_at)
    )
    return Shown(
        judge=is_open,
        agent=is_open,
        tags=is_open,
        others=is_open,
        can_reveal=reveal is Reveal.AFTER_SUBMIT and bool(submitted_at) and not revealed_at,
        revealed_at=revealed_at,
        marks_revealed=is_open or seen_elsewhere,
    )
