"""Versions of a judge in a session: figures on dev, what each changed, running the next one."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from annotations import sessions
from annotations.judges import Order, Prepared, prepare
from annotations.judging import Scope, read_items
from annotations.judging import Todo as Call
from annotations.prompts import Listed, list_prompts
from annotations.sessions import Side
from pararecover_core.agreement import Agreement, measure
from pararecover_core.compare import Comparison, compare, repeated_runs
from pararecover_core.judges.llm_judge import Item
from pararecover_core.judges.prompt import Prompt
from pararecover_core.literals import dumps
from pararecover_core.refine_models import texts_of

if TYPE_CHECKING:
    from annotations.store import Store

_SCORER = re.compile(r"judge:(?P<model>.+)@(?P<prompts>[^@#]+)(?:#\d+)?\Z")


PROPOSER = "proposer"
"""Author of versions that a model proposed."""


class Named(NamedTuple):
    """Model and prompts that a scorer name tells; prompts are empty for other names."""

    model: str
    prompts: tuple[str, ...]


def named(scorer: str) -> Named:
    """What ``judge:MODEL@PROMPT+PROMPT`` says."""
    found = _SCORER.match(scorer)
    if found is None:
        return Named(scorer, ())
    return Named(found["model"], tuple(found["prompts"].split("+")))


class Version(msgspec.Struct, frozen=True):
    """A judge with certain versions of its prompts, as it stands on dev.

    Attributes:
        edited: The prompt that tells it from its parent, None for a first version.
        parent: Scorer name of the version before, "" for none.
        found: Figures on dev.
        changed: Against the parent; None without one.
    """

    scorer: str
    prompts: tuple[Prompt, ...]
    author: str
    note: str
    edited: Prompt | None
    parent: str
    found: Agreement
    changed: Comparison | None

    @property
    def label(self) -> str:
        """Short name: the edited prompt, else all of them."""
        return self.edited.name if self.edited else "+".join(p.name for p in self.prompts)


def judges(store: "Store", session: int) -> list[str]:
    """Models that judged dev with prompts that are here, in order of their first score."""
    known = {one.prompt.name for one in list_prompts(store)}
    models = [named(scorer) for scorer in sessions.scorers(store, session)]
    return list(dict.fromkeys(m.model for m in models if m.prompts and known >= set(m.prompts)))


Kept = dict[tuple[object, ...], Version]
"""Versions that were measured before, by all that they depend on."""


def versions(
    store: "Store", session: int, model: str, *, resamples: int = 1000, kept: Kept | None = None
) -> list[Version]:
    """Every version of a judge that scored dev, newest first.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        resamples: Bootstrap resamples.
        kept: What was measured before, to be measured again only where something changed.
    """
    kept = {} if kept is None else kept
    known = {one.prompt.name: one for one in list_prompts(store)}
    mine = [s for s in sessions.scorers(store, session) if named(s).model == model]
    mine = [s for s in mine if named(s).prompts and all(p in known for p in named(s).prompts)]
    human = sessions.human(store, session, Side.DEV)
    newest, taken = _newest(store, mine), sessions.history(store, session, ("scores",))[-1].entry
    made = []
    for scorer in mine:
        edited, parent = _parent(scorer, mine, known)
        key = (session, taken, scorer, newest[scorer], parent, newest.get(parent), resamples)
        if key not in kept:
            listed = [known[name] for name in named(scorer).prompts]
            kept[key] = _version(store, session, scorer, listed, edited, parent, human, resamples)
        made.append(kept[key])
    return made[::-1]


def _newest(store: "Store", scorers: Sequence[str]) -> dict[str, int]:
    """The newest entry of each scorer in the log."""
    query = (
        "SELECT scorer, MAX(entry) FROM score_log WHERE scorer IN (SELECT value FROM json_each(?))"
        " GROUP BY scorer"
    )
    with store.read() as db:
        return dict(db.execute(query, (dumps(list(scorers)),)).fetchall())


def _version(
    store: "Store",
    session: int,
    scorer: str,
    listed: Sequence[Listed],
    edited: Listed | None,
    parent: str,
    human: Mapping[tuple[str, str], float],
    resamples: int,
) -> Version:
    changed = None
    if parent:
        before = sessions.judged(store, session, parent, Side.DEV)
        after = sessions.judged(store, session, scorer, Side.DEV)
        changed = compare(human, before, after, resamples=resamples)
    newest = edited or listed[0]
    return Version(
        scorer,
        tuple(one.prompt for one in listed),
        newest.author,
        newest.prompt.note,
        edited.prompt if edited else None,
        parent,
        measure(sessions.cells(store, session, scorer, Side.DEV), resamples=resamples),
        changed,
    )


def _parent(
    scorer: str, mine: Sequence[str], known: Mapping[str, Listed]
) -> tuple[Listed | None, str]:
    """The edited prompt and the version before, where that one judged dev as well."""
    model, names = named(scorer)
    for place, name in enumerate(names):
        one = known[name]
        while one.prompt.parent and (up := known.get(f"{one.prompt.id}-{one.prompt.parent}")):
            other = "+".join([*names[:place], up.prompt.name, *names[place + 1 :]])
            if f"judge:{model}@{other}" in mine:
                return known[name], f"judge:{model}@{other}"
            one = up
    return None, ""


class Unrun(NamedTuple):
    """A version that was saved and has no figures on dev yet: prompts as a run names them."""

    prompts: str
    label: str
    note: str
    author: str


def unrun(store: "Store", rows: Sequence[Version]) -> list[Unrun]:
    """Versions that people made from those of a judge and it has not scored dev with, newest first.

    Args:
        store: The database.
        rows: The judge's versions, as ``versions`` gives them.
    """
    have = {frozenset(p.name for p in row.prompts) for row in rows}
    found: dict[str, tuple[str, Unrun]] = {}
    for row in rows:
        names = [p.name for p in row.prompts]
        for one in list_prompts(store):
            if one.author == PROPOSER:
                continue  # the refinement that made it runs it
            parent = f"{one.prompt.id}-{one.prompt.parent}"
            swapped = [one.prompt.name if name == parent else name for name in names]
            if one.prompt.parent and parent in names and frozenset(swapped) not in have:
                made = "+".join(swapped)
                note = one.prompt.note
                found[made] = one.at, Unrun(made, one.prompt.name, note, one.author)
    return [one for _, one in sorted(found.values(), key=lambda pair: pair[0], reverse=True)]


# Dev


def dev_items(store: "Store", session: int) -> dict[str, Item]:
    """The dev items with their content, by replan key."""
    keys = dict.fromkeys(key for key, _ in sessions.wanted(store, session, Side.DEV))
    calls = [Call(key, 0, ()) for key in keys]
    return {one.replan: item for one, item in read_items(store, _stored(store, calls))}


def _stored(store: "Store", calls: Sequence[Call]) -> list[Call]:
    with store.read() as db:
        whole = {row[0] for row in db.execute("SELECT key FROM replan WHERE NOT stub")}
    return [call for call in calls if call.replan in whole]


def repeats(store: "Store", session: int, text: str) -> list[str]:
    """Runs of eight or more words that a prompt takes from dev samples."""
    return repeated_runs(text, texts_of(dev_items(store, session)))


# Running


def prepare_run(
    store: "Store",
    session: int,
    model: str,
    prompts: str,
    side: Side,
    *,
    by: str = "",
    retry_failed: bool = False,
) -> Prepared:
    """What a run of a judge on one side would do: exactly the cells that the session asks for.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        prompts: Names of prompts with ``+`` between.
        side: Dev or held-out.
        by: Who starts it.
        retry_failed: Only calls that failed before.

    Raises:
        InputError: A prompt is unknown.
        ConfigError: No endpoint is set.
    """
    cells: dict[str, tuple[str, ...]] = {}
    for replan, dimension in sessions.wanted(store, session, side):
        cells[replan] = (*cells.get(replan, ()), dimension)
    scope = Scope(replans=tuple(cells), cells=cells)
    order = Order(model, prompts, scope=scope, started_by=by, retry_failed=retry_failed)
    return prepare(store, order)
