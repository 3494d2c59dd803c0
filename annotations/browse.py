"""What the Trajectories page shows, as plain JSON data: the list, the choices, one item's rounds.

The page asks with a *view* (filter, order, page, item, round); the answer holds what that view
needs. Only what changed is sent again.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from annotations import rounds
from annotations.run_figures import answer_is_right, rounds_taken, trajectory_efficacy
from annotations.search import (
    HIDDEN_REPLANS,
    PAGE_SIZE,
    Facets,
    Filter,
    Row,
    Sort,
    facets,
    find,
    search,
)
from annotations.search_links import from_query, to_query
from pararecover_core.errors import StoreError
from pararecover_core.records import Instance, Replan, Trajectory
from pararecover_core.rubric import DIMENSIONS
from pararecover_core.scores import BROKEN_OFF

if TYPE_CHECKING:
    from annotations.store import Store

__all__ = ["Opened", "View", "respond", "view_from", "view_query"]

Data = dict[str, Any]
_QUERY = 4_000
NO_ANSWER = (
    "No agent has answered this instance yet. Import a results spreadsheet of an agent (columns "
    "id, thought, replan) on the Dataset page, or with: pararecover import results.xlsx"
)
BLIND = (
    "This item is blind for you: agent, error tags, scores and what happened later stay hidden "
    "until you have submitted and revealed it on Annotate."
)


class View(msgspec.Struct, frozen=True):
    """What a reader looks at; a link holds all of it.

    Attributes:
        item: Key of a replan or of an instance, "" for none.
        round: Number of the round that is shown, None for that of the item.
    """

    wanted: Filter = Filter()
    sort: Sort = Sort()
    page: int = 1
    item: str = ""
    round: int | None = None


class Opened(msgspec.Struct, frozen=True):
    """The item that is open: its row, its rounds, and the names of its tools."""

    row: Row
    instance: Instance
    replan: Replan | None
    run: Trajectory | None
    story: rounds.Story
    others: tuple[tuple[str, str], ...] = ()


def view_from(params: Mapping[str, Sequence[str]]) -> View:
    """The view that a link names; what cannot be understood asks for nothing."""
    wanted, sort = from_query(params)

    def last(name: str) -> str:
        values = params.get(name) or [""]
        return str(values[-1])[:200]

    page, shown = last("page"), last("round")
    return View(
        wanted,
        sort,
        max(1, int(page)) if page.isdecimal() and len(page) < 8 else 1,
        last("item"),
        int(shown) if shown.isdecimal() and len(shown) < 8 else None,
    )


def view_query(view: View) -> dict[str, list[str]]:
    """A view as query parameters; what is at its default is left out."""
    found = to_query(view.wanted, view.sort)
    if view.page > 1:
        found["page"] = [str(view.page)]
    if view.item:
        found["item"] = [view.item]
    if view.item and view.round is not None:
        found["round"] = [str(view.round)]
    return found


def respond(
    store: "Store",
    view: View,
    *,
    reader: str = "",
    before: View | None = None,
    opened: Opened | None = None,
) -> tuple[View, Opened | None, Data]:
    """Answer a view.

    Args:
        store: The database.
        view: What the page asks for.
        reader: The annotator who reads: what they still score blind stays hidden.
        before: The view that the page shows now, None where it shows nothing yet.
        opened: The item that is open now.

    Returns:
        The view as it is shown (page and round within bounds), the open item, and the data:
        ``list`` and ``facets`` where filter, order or page changed, ``item`` where another one was
        opened, ``rounds`` by place around the shown one, and ``query`` for links.
    """
    data: Data = {}
    listed = before is None or (before.wanted, before.sort, before.page) != (
        *(view.wanted, view.sort),
        view.page,
    )
    if listed:
        data["list"], view = _list(store, view, reader)
        if before is None and not view.item and data["list"]["rows"]:
            view = msgspec.structs.replace(view, item=data["list"]["rows"][0]["key"])
    if before is None or before.wanted != view.wanted:
        data["facets"] = _facets(facets(store, view.wanted))
        data["filter"] = msgspec.to_builtins(view.wanted) | {"active": view.wanted.active()}
    data["sort"] = {"by": view.sort.by, "down": view.sort.descending}
    if view.item and (opened is None or view.item != opened.row.key):
        opened = _open(store, view.item, reader)
        if opened:  # a link may name the instance; its first answer is what is shown
            view = msgspec.structs.replace(view, item=opened.row.key)
        data["item"] = _item(opened) if opened else {"missing": view.item}
    elif before is None and opened is not None and view.item:
        data["item"] = _item(opened)
    elif not view.item:
        opened, data["item"] = None, None
    if opened is not None:
        view, data["rounds"] = _rounds(opened, view)
    data["query"] = view_query(view)
    return view, opened, data


def _list(store: "Store", view: View, reader: str) -> tuple[Data, View]:
    start = time.perf_counter()
    found = search(store, view.wanted, view.sort, page=view.page, size=PAGE_SIZE, reader=reader)
    with store.read() as db:
        everything = db.execute("SELECT COUNT(*) FROM search_item").fetchone()[0]
    view = msgspec.structs.replace(view, page=found.number)
    return {
        "rows": [_row(row) for row in found.rows],
        "total": found.total,
        "all": everything,
        "page": found.number,
        "pages": found.pages,
        "size": PAGE_SIZE,
        "left_out": found.left_out,
        "ms": round(1000 * (time.perf_counter() - start)),
    }, view


def _row(row: Row) -> Data:
    people = {name: row.figures[name] for name in ("si", "dr", "es") if name in row.figures}
    judges = {
        name: row.figures[f"judge_{name}"]
        for name in ("si", "dr", "es")
        if f"judge_{name}" in row.figures and name not in people
    }
    return {
        "key": row.key,
        "replan": row.replan,
        "id": row.file_id or row.instance[:6],
        "query": row.query,
        "level": row.level,
        "source": row.source,
        "agent": row.agent,
        "errors": list(row.errors),
        "rounds": row.rounds,
        "run": row.run,
        "round_gt": row.round_gt,
        "people": people,
        "judges": judges,
        "marks": [row.marks.get(dimension) for dimension in DIMENSIONS],
        "gap": row.figures.get("gap"),
        "hidden": row.hidden,
        "tags_hidden": row.tags_hidden,
    }


def _facets(found: Facets) -> Data:
    return {
        "levels": {str(level): count for level, count in sorted(found.levels.items())},
        "errors": dict(sorted(found.errors.items(), key=lambda pair: -pair[1])),
        "sources": dict(sorted(found.sources.items())),
        "agents": dict(sorted(found.agents.items())),
        "s5": {str(value): count for value, count in found.s5.items()},
        "answer": found.answer,
    }


def _open(store: "Store", key: str, reader: str) -> Opened | None:
    row, run = find(store, key, reader=reader), None
    if row is None:
        row, run = _of_run(store, key, reader)
    if row is None:
        return None
    instance = store.instance(row.instance)
    replan = store.replan(row.replan) if row.replan else None
    if row.hidden:
        run = None
    elif run is None and row.agent:
        run = rounds.run_of(store, row.instance, row.agent)
    return Opened(
        row,
        instance,
        replan,
        run,
        rounds.rounds_of(store, instance, replan, run=run),
        () if row.hidden else _others(store, row.instance, reader),
    )


def _of_run(store: "Store", key: str, reader: str) -> tuple[Row | None, Trajectory | None]:
    """The row of the answer that a run began with, else of its instance, and the run."""
    try:
        run = store.trajectory(key)
    except StoreError:
        return None, None
    query = (
        "SELECT key FROM replan WHERE instance = :instance AND agent = :agent "
        "ORDER BY key = :first DESC, n LIMIT 1"
    )
    names = {"instance": run.instance, "agent": run.agent, "first": run.extra.get("replan")}
    with store.read() as db:
        found = db.execute(query, names).fetchone()
    return find(store, found["key"] if found else run.instance, reader=reader), run


def _others(store: "Store", instance: str, reader: str) -> tuple[tuple[str, str], ...]:
    """Key and agent of every answer to an instance, but those that the reader still scores."""
    query = (
        "SELECT key, agent FROM replan WHERE instance = :instance "
        f"AND key NOT IN ({HIDDEN_REPLANS}) ORDER BY agent, n LIMIT 200"
    )
    with store.read() as db:
        found = db.execute(query, {"instance": instance, "who": reader}).fetchall()
    return tuple((row["key"], row["agent"]) for row in found)


def _item(opened: Opened) -> Data:
    row, instance, story = opened.row, opened.instance, opened.story
    return {
        **_row(row),
        "instance": row.instance,
        "query_id": row.query_id,
        "text": instance.query[:_QUERY],
        "kind": story.kind,
        "strip": rounds.strip(story),
        "at": story.at,
        "answered": story.answered,
        "success": story.success,
        "outcome": story.outcome,
        "e5": _e5(opened),
        "reason": "" if row.tags_hidden else instance.error_reason[:_QUERY],
        "stub": not instance.plan.nodes and instance.plan.given is None,
        "others": [{"key": key, "agent": agent} for key, agent in opened.others],
        "note": BLIND if row.hidden else "" if story.answered else NO_ANSWER,
    }


def _e5(opened: Opened) -> str:
    """E5 of the run with its reason, "" where there is no run."""
    run, optimal = opened.run, opened.instance.round_gt
    if run is None:
        return ""
    count = rounds_taken(run) or opened.story.numbers[-1]
    value = trajectory_efficacy(run, optimal, count)
    if run.outcome in BROKEN_OFF:
        return f"E5 unknown: the run was broken off ({run.outcome})"
    if math.isnan(value):
        return "E5 unknown: the optimum is not given"
    if not run.success:
        return f"E5 = 0: {run.outcome or 'the run failed'}"
    if answer_is_right(run) is False:
        return "E5 = 0: the response was reached, but its answer is not right"
    if value == 0:
        return f"E5 = 0: {count} rounds reach the limit, which counts as a failure"
    return f"E5 = min(1, {optimal} / {count}) = {value:.2f}"


def _rounds(opened: Opened, view: View) -> tuple[View, Data]:
    """The shown round and its neighbours, by place; ``shown`` is the place that is shown."""
    story = opened.story
    numbers = list(story.numbers)
    shown = numbers.index(view.round) if view.round in numbers else story.at
    tools = [tool.name for tool in opened.instance.tools if tool.name]
    near = range(max(0, shown - 1), min(len(numbers), shown + 2))
    contents = {str(place): rounds.content(story, place, tools) for place in near}
    kept = None if shown == story.at else numbers[shown]
    return msgspec.structs.replace(view, round=kept), {
        "item": opened.row.key,
        "shown": shown,
        "contents": contents,
    }
