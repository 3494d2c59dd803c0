"""Who has scored in a database."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotations.store import Store


_NAMES = """
WITH RECURSIVE named(scorer) AS (  -- steps from name to name in the index: quick in a long log
  SELECT min(scorer) FROM score_log WHERE scorer >= 'human:' AND scorer < 'human;'
  UNION ALL
  SELECT (SELECT min(scorer) FROM score_log WHERE scorer > n.scorer AND scorer < 'human;')
  FROM named AS n WHERE n.scorer IS NOT NULL
)
SELECT substr(scorer, 7) FROM named WHERE scorer IS NOT NULL
UNION SELECT DISTINCT annotator FROM assignment
"""


def annotators(store: "Store") -> list[str]:
    """Names of the people who scored or were given work, in alphabetical order.

    Names that only say where scores came from (``imported``) are left out.
    """
    with store.read() as db:
        rows = db.execute(_NAMES).fetchall()
    names = {str(row[0]) for row in rows if row[0]}
    return sorted(names - {"imported"}, key=str.casefold)
