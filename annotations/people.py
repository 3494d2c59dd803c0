"""Who has scored in a database."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotations.store import Store


def annotators(store: "Store") -> list[str]:
    """Names of the people who scored or were given work, in alphabetical order.

    Names that only say where scores came from (``imported``) are left out.
    """
    with store.read() as db:
        rows = db.execute(
            "SELECT DISTINCT substr(scorer, 7) FROM score_log WHERE scorer LIKE 'human:%'"
            " UNION SELECT DISTINCT annotator FROM assignment"
        ).fetchall()
    names = {str(row[0]) for row in rows if row[0]}
    return sorted(names - {"imported"}, key=str.casefold)
