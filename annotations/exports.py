"""Taking scores out: long and wide tables, whole records, the log; streaming, by pseudonym on wish.

Long form has one row per replan, sub-dimension and scorer. Wide form has the columns of the
reference pipeline's spreadsheets: one row per replan, with scores as ``D1_human`` and
``D1_model``; a second person or judge gets a row of their own. Whole records are JSON lines that
hold instance, replan and all current scores of one replan. The log has every entry ever made.
"""

import csv
import io
import itertools
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from annotations.batches import get_batch
from annotations.score_log import exact_note, log_entry
from annotations.store import Store
from pararecover_core.errors import InputError
from pararecover_core.formats.columns import WIDE_FORM
from pararecover_core.formats.guard import guard
from pararecover_core.formats.items import ScoreRow
from pararecover_core.formats.writers import FORMS, target, write_csv, write_scores, write_xlsx
from pararecover_core.literals import dumps, loads
from pararecover_core.pairing import HUMAN
from pararecover_core.records import as_text, content_key
from pararecover_core.rubric import DIMENSIONS

WIDE_FORMS = ("csv", "xlsx")
SHAPES = {"long": FORMS, "wide": WIDE_FORMS, "records": ("jsonl",), "log": ("jsonl",)}
"""Forms of each shape."""

Names = Mapping[str, str]
"""Pseudonym by scorer name; empty where names are given as they are."""

_ENTRY_BYTES = {"long": 220, "log": 420}
"""About how long a row of these is, its note left out."""


class Filter(msgspec.Struct, frozen=True):
    """Which scores.

    Attributes:
        scorer: Only of this scorer, or of a kind such as ``human:``; "" for all.
        batch: Only replans of this batch; None for all.
    """

    scorer: str = ""
    batch: int | None = None


class Taken(NamedTuple):
    """What was written.

    Attributes:
        rows: How many rows or lines.
        broken: Rows (from 1) of a table whose texts hold lone surrogates.
    """

    rows: int
    broken: tuple[int, ...] = ()


def take(
    store: Store, path: Path | BinaryIO, shape: str, form: str, which: Filter, names: Names
) -> Taken:
    """Write scores in one of the ``SHAPES``; the log is always whole.

    Args:
        store: The database.
        path: A file, written beside and moved into place, or an open binary stream.
        shape: Name of a shape.
        form: One of its forms.
        which: Which scores.
        names: What ``pseudonyms`` gave, or nothing.

    Raises:
        InputError: There is no such shape, or not in this form.
    """
    if shape not in SHAPES:
        raise InputError("shape", repr(shape), f"one of {', '.join(SHAPES)}", "Choose one")
    if form not in SHAPES[shape]:
        expected = f"{' or '.join(SHAPES[shape])} for the shape {shape}"
        raise InputError("form", repr(form), expected, "Choose another form or shape")
    if shape == "records":
        return Taken(write_records(store, path, which, names))
    if shape == "log":
        return Taken(write_log(store, path, names))
    broken: list[int] = []
    if shape == "wide":
        rows = write_wide(store, path, which, names, form, broken)
    else:
        rows = write_scores(with_surrogates(long_rows(store, which, names), broken), path, form)
    return Taken(rows, tuple(broken))


def about_bytes(store: Store, shape: str, batch: int | None = None) -> int:
    """About how large a file would be, without writing it.

    Args:
        store: The database.
        shape: Name of a shape.
        batch: Only of this batch; whose scores are taken is not looked at.
    """
    with store.read() as db:
        entries, notes = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(note AS BLOB))), 0) FROM score_log"
        ).fetchone()
        items, replans = db.execute(
            "SELECT (SELECT COUNT(*) FROM batch_item WHERE batch = ?), COUNT(*) FROM replan",
            (batch,),
        ).fetchone()
        bodies = 0 if shape in _ENTRY_BYTES else db.execute(_BODIES).fetchone()[0]
    share = 1.0 if batch is None else items / max(replans, 1)
    each = _ENTRY_BYTES.get(shape, 200 if shape == "records" else 10)
    return int(share * (bodies + notes + entries * each))


_BODIES = """
SELECT (SELECT COALESCE(SUM(LENGTH(body)), 0) FROM replan_body) +
  (SELECT COALESCE(SUM(LENGTH(b.body)), 0) FROM replan r
   JOIN instance i ON i.key = r.instance JOIN instance_body b ON b.n = i.n)
"""


def command(store: Store, shape: str, form: str, which: Filter, *, anonymise: bool) -> str:
    """The command that writes the same, for a terminal."""
    words = ["pararecover", "export", "annotations" if shape == "log" else "scores"]
    words += ["--db", str(store.path)]
    if shape not in ("log", "long"):
        words += ["--shape", shape]
    if which.scorer:
        words += ["--scorer", which.scorer]
    if which.batch is not None and shape != "log":
        words += ["--batch", get_batch(store, which.batch).name]
    words += ["--anonymise"] if anonymise else []
    return shlex.join([*words, "--out", f"{'log' if shape == 'log' else 'scores'}.{form}"])


# Pseudonyms


def pseudonyms(store: Store) -> dict[str, str]:
    """``human:annotator-N`` for every person who scored, N in order of their first score.

    The log is append-only, so that the same person has the same pseudonym in every later export.
    """
    query = "SELECT scorer FROM score_log WHERE scorer GLOB 'human:*' GROUP BY scorer"
    with store.read() as db:
        names = [row[0] for row in db.execute(f"{query} ORDER BY MIN(entry)")]
    return {name: f"{HUMAN}annotator-{n}" for n, name in enumerate(names, start=1)}


def key_file(names: Names) -> bytes:
    """Who is behind each pseudonym, as CSV: to be kept apart from the export."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("pseudonym", "name"))
    for name, pseudonym in names.items():
        writer.writerow((pseudonym.removeprefix(HUMAN), guard(name.removeprefix(HUMAN))))
    return text.getvalue().encode("utf-8-sig", "replace")


# Long form


def long_rows(store: Store, which: Filter, names: Names) -> Iterator[ScoreRow]:
    """Current scores in long form, people by their pseudonyms where there are any."""
    for row in store.score_rows(scorer=which.scorer, batch=which.batch):
        new = names.get(row.scorer)
        yield row if new is None else msgspec.structs.replace(row, scorer=new)


# Whole records


class _Scored(NamedTuple):
    """A replan with everything that is known of it."""

    row: sqlite3.Row
    scores: list[dict[str, Any]]


def write_records(store: Store, path: Path | BinaryIO, which: Filter, names: Names) -> int:
    """Write one JSON object a replan, with the fields ``kind``, instance, replan and scores.

    A record whose content was never imported stands as ``{"stub": true}`` with the names that are
    known. Reading the file into an empty database gives the same records and scores.

    Returns:
        The number of lines.
    """
    count = 0
    with target(path) as stream:
        for one in _scored(store, which, names):
            instance = one.row["instance_body"] or dumps(_stub_instance(one.row))
            replan = one.row["replan_body"] or dumps(_stub_replan(one.row))
            scores = ",".join(map(dumps, one.scores))
            line = (
                f'{{"kind":"scored_replan","instance":{instance},"replan":{replan},'
                f'"scores":[{scores}]}}\n'
            )
            stream.write(line.encode("utf-8", "surrogatepass"))
            count += 1
    return count


def _stub_instance(row: sqlite3.Row) -> dict[str, Any]:
    named = {name: row[name] for name in ("query_id", "level", "source")}
    return {"stub": True, "key": row["instance"], "id": row["file_id"], **named}


def _stub_replan(row: sqlite3.Row) -> dict[str, Any]:
    named = {name: row[name] for name in ("instance", "agent")}
    return {"stub": True, "key": row["key"], **named}


_RECORDS = """
SELECT r.n, r.key, r.instance, r.agent, i.file_id, i.query_id, i.level, i.source,
  ib.body AS instance_body, rb.body AS replan_body
FROM replan r JOIN instance i ON i.key = r.instance
LEFT JOIN instance_body ib ON ib.n = i.n LEFT JOIN replan_body rb ON rb.n = r.n
"""


def _scored(store: Store, which: Filter, names: Names) -> Iterator[_Scored]:
    """Replans in order of import, each with its current scores; those without any are left out."""
    where, values = "", list[Any]()
    if which.batch is not None:
        where = " WHERE r.key IN (SELECT replan FROM batch_item WHERE batch = ?)"
        values.append(which.batch)
    with store.read() as db:
        for row in db.execute(f"{_RECORDS}{where} ORDER BY r.n", values):
            scores = [_score(one, names) for one in db.execute(_CURRENT, (row["key"],))]
            mine = [one for one in scores if one and _wanted(one["_scorer"], which.scorer)]
            for one in mine:
                del one["_scorer"]
            if mine:
                yield _Scored(row, mine)


_CURRENT = (
    "SELECT * FROM score_current WHERE replan = ? AND (value IS NOT NULL OR note <> '') "
    "ORDER BY scorer, dimension"
)


def _wanted(scorer: str, wanted: str) -> bool:
    return scorer.startswith(wanted) if wanted.endswith(":") else wanted in ("", scorer)


def _score(row: sqlite3.Row, names: Names) -> dict[str, Any]:
    """A score as ``records.to_data`` writes it, its empty fields left out."""
    extra = loads(row["extra"]) if row["extra"] else {}
    if row["revealed"]:
        extra["revealed"] = True
    scorer = row["scorer"]
    data = {
        "kind": "score", "replan": row["replan"], "dimension": row["dimension"],
        "scorer": names.get(scorer, scorer), "value": row["value"], "note": exact_note(row),
        "at": row["at"], "rubric": row["rubric"], "extra": extra,
    }  # fmt: skip
    kept = {
        name: value for name, value in data.items() if value is not None and value not in ("", {})
    }
    return {"_scorer": scorer, **kept}


# Wide form


def write_wide(
    store: Store,
    path: Path | BinaryIO,
    which: Filter,
    names: Names,
    form: str = "csv",
    broken: list[int] | None = None,
) -> int:
    """Write the wide form; reading it gives the same texts, values and notes.

    Args:
        store: The database.
        path: A file or an open binary stream.
        which: Which scores.
        names: Pseudonyms.
        form: One of ``WIDE_FORMS``.
        broken: Gets the numbers of rows that hold lone surrogates.

    Returns:
        The number of rows.
    """
    columns = _wide_columns(store)
    rows = with_surrogates(
        _wide_rows(store, which, names, columns), broken if broken is not None else []
    )
    with target(path) as stream:
        if form == "xlsx":
            return write_xlsx(rows, columns, stream, "scores")
        return write_csv(rows, columns, stream)


def _wide_columns(store: Store) -> tuple[str, ...]:
    """The columns: labels for as many rounds as there are, then scores and notes."""
    with store.read() as db:
        rounds = db.execute("SELECT COALESCE(MAX(round), 1) FROM instance_error").fetchone()[0]
        computed = {
            row[0]
            for row in db.execute(
                "SELECT DISTINCT dimension FROM score_log WHERE scorer NOT GLOB 'human:*' "
                "AND scorer NOT GLOB 'judge:*'"
            )
        }
    tags = ["tag", *(f"tag_{n}" for n in range(1, rounds + 1) if rounds > 1)]
    scored = [f"{d}_{side}" for d in DIMENSIONS for side in ("human", "model")]
    notes = [f"{d}_{word}" for d in DIMENSIONS for word in ("human_note", "model_reason")]
    sims = [f"{d}_sim" for d in DIMENSIONS if d in computed]
    return (*WIDE_FORM, *tags, *scored, *sims, *notes)


def _wide_rows(
    store: Store, which: Filter, names: Names, columns: Sequence[str]
) -> Iterator[list[Any]]:
    for one in _scored(store, which, names):
        cells = _content(one.row, columns)
        by_side: dict[str, dict[str, list[dict[str, Any]]]] = {"human": {}, "judge": {}, "": {}}
        for score in one.scores:
            kind = score["scorer"].partition(":")[0]
            side = by_side[kind if kind in by_side else ""]
            side.setdefault(score["scorer"], []).append(score)
        for program in by_side[""].values():
            cells |= {f"{score['dimension']}_sim": score.get("value") for score in program}
        pairs = itertools.zip_longest(by_side["human"].items(), by_side["judge"].items())
        for human, judge in list(pairs) or [(None, None)]:
            row = cells | _side(human, "annotator", "human", "human_note")
            row |= _side(judge, "judge", "model", "model_reason")
            yield [row.get(name) for name in columns]
            cells = {name: value for name, value in cells.items() if not name.endswith("_sim")}


def _side(
    scores: tuple[str, list[dict[str, Any]]] | None, column: str, suffix: str, note: str
) -> dict[str, Any]:
    if scores is None:
        return {}
    row: dict[str, Any] = {column: scores[0].partition(":")[2]}
    for score in scores[1]:
        row[f"{score['dimension']}_{suffix}"] = score.get("value")
        row[f"{score['dimension']}_{note}"] = score.get("note")
    return row


def _content(row: sqlite3.Row, columns: Sequence[str]) -> dict[str, Any]:
    """What the row says of instance and replan."""
    given = loads(row["instance_body"]) if row["instance_body"] else {}
    answer = loads(row["replan_body"]) if row["replan_body"] else {}
    calls = [_call(call) for call in given.get("observations") or ()]
    tags = given.get("tags") or ()
    cells = {
        "instance": row["instance"], "id": row["file_id"], "query_id": row["query_id"],
        "level": row["level"] or None, "source": row["source"], "query": given.get("query"),
        "tool_list": dumps(given.get("tools", [])) if given else None,
        "plan": as_text(given.get("plan")), "fun_call": dumps(calls) if given else None,
        "error_reason": given.get("error_reason"), "round_gt": given.get("round_gt"),
        "funcall_times_gt": given.get("funcall_times_gt"), "agent": row["agent"],
        "thought": answer.get("thought"), "replan": as_text(answer.get("plan")),
        "raw": answer.get("raw"),
    }  # fmt: skip
    several = "tag_1" in columns and (len(tags) > 1 or row["level"] == 2)
    labels = {f"tag_{n}": tag for n, tag in enumerate(tags, 1)} if several else {}
    if tags and not several:
        labels = {"tag": tags[0]}
    return cells | labels


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """An observation in the dialect of the published files, with the node it was matched to."""
    said = {name: call.get(name) for name in ("name", "arguments")}
    node = {"node": call["node"]} if call.get("node") else {}
    return {**said, "results": call.get("result", ""), **node}


# The log


def write_log(store: Store, path: Path | BinaryIO, names: Names) -> int:
    """Write every entry of the score log, one JSON object a line, oldest first.

    ``score_log.replay`` of the entries gives the current scores. With pseudonyms, event ids are
    replaced too: some hold names, so that even a digest of them would confirm a guess.

    Returns:
        The number of entries.
    """
    count = 0
    with target(path) as stream, store.read() as db:
        for row in db.execute(_LOG):
            entry = log_entry(row)
            data = {"kind": "log_entry", **msgspec.structs.asdict(entry)}
            data |= {"batch": row["batch_name"], "submitted": bool(row["submitted"])}
            data |= {"instance": row["instance"], "agent": row["agent"]}
            if names:
                data["scorer"] = names.get(entry.scorer, entry.scorer)
                place = (entry.replan, entry.dimension, data["scorer"], str(entry.revision))
                data["event"] = content_key("log", *place)
            stream.write(dumps(data).encode("utf-8", "surrogatepass") + b"\n")
            count += 1
    return count


_LOG = """
SELECT s.*, b.name AS batch_name, r.instance, r.agent, (
  s.batch IS NULL OR s.scorer NOT GLOB 'human:*' OR EXISTS (
    SELECT 1 FROM assignment a WHERE a.batch = s.batch AND a.replan = s.replan
      AND a.annotator = substr(s.scorer, 7) AND a.submitted_at IS NOT NULL)) AS submitted
FROM score_log s JOIN replan r ON r.key = s.replan LEFT JOIN batch b ON b.id = s.batch
ORDER BY s.entry
"""


R = TypeVar("R", ScoreRow, list[Any])


def with_surrogates(rows: Iterable[R], found: list[int]) -> Iterator[R]:
    """The same rows; the numbers (from 1) of those that hold lone surrogates go into a list."""
    for number, row in enumerate(rows, start=1):
        texts = (
            (row.note, row.agent, row.scorer, row.id, row.query_id)
            if isinstance(row, ScoreRow)
            else [cell for cell in row if isinstance(cell, str)]
        )
        if not all(text.isascii() for text in texts) and _is_broken("".join(texts)):
            found.append(number)
        yield row


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
