"""What calibration sessions hold out: sealed everywhere until a look is counted.

Sealed are scores of models (``judge:...``) on held-out items: no page and no report compares them
with people's. People's own scores, the program's (it is not refined) and exports are not sealed.
"""

from typing import TYPE_CHECKING

from annotations import sessions
from annotations.sessions import Session
from pararecover_core.pairing import JUDGE

if TYPE_CHECKING:
    from annotations.store import Store


def opens(store: "Store", scorer: str) -> list[Session]:
    """Sessions whose held-out side a judge has scored, oldest first: one look is due at each."""
    if not scorer.startswith(JUDGE):
        return []
    query = (
        "SELECT DISTINCT i.session FROM session_item i JOIN score_current s ON s.replan = i.replan "
        "WHERE i.side = 'held-out' AND s.scorer = ? AND s.value IS NOT NULL ORDER BY i.session"
    )
    with store.read() as db:
        found = [row[0] for row in db.execute(query, (scorer,))]
    return [sessions.get_session(store, number) for number in found]


def count_looks(store: "Store", scorer: str, *, author: str) -> list[Session]:
    """Count a look at each held-out side that figures of a judge would show.

    Raises:
        InputError: As ``sessions.look``: there is nothing to see yet.
    """
    due = opens(store, scorer)
    for session in due:
        sessions.look(store, session.id, scorer, author=author)
    return due


def words(cells: int, due: list[Session]) -> str:
    """What is sealed, in a sentence."""
    names = ", ".join(session.name for session in due)
    return (
        f"{cells:,} {'cell is' if cells == 1 else 'cells are'} held out by {names} and sealed: "
        "figures here leave them out, and so do Trajectories and Results."
    )
