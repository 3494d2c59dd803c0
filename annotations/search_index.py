"""The word index of queries, thoughts and tool names, and the search tables of an old database.

FTS5 splits at white space and punctuation; Chinese text goes in as overlapping pairs of
characters, so that any part of a sentence is found.
"""

import re
import sqlite3
from collections.abc import Iterable

from annotations.database import run_script
from annotations.score_log import storable
from annotations.search_schema import DROP, FILL, SEARCH
from pararecover_core.literals import loads
from pararecover_core.records import Instance, Replan, from_data

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN_OF_CJK = re.compile(f"[{_CJK}]+")
_LONGEST = 100_000
"""Characters of one text that are indexed: enough for any thought, and bounds a hostile one."""


def indexed(text: str) -> str:
    """A text as it goes into the word index: Chinese as overlapping pairs.

    Args:
        text: Any text.

    Returns:
        The text with every run of Chinese, Japanese or Korean characters replaced by its pairs
        and its last character: "abc 计划书" gives "abc  计划 划书 书 ".
    """
    if text.isascii():
        return text[:_LONGEST]
    return _RUN_OF_CJK.sub(lambda found: f" {' '.join(_pairs(found[0], 1))} ", text[:_LONGEST])


def _pairs(run: str, least: int) -> list[str]:
    return [run[at : at + 2] for at in range(len(run)) if at + least <= len(run)]


def match_text(term: str) -> str:
    """A search term as an FTS5 query: its words in a row, the last one may go on.

    Args:
        term: What a person typed: words, part of a name, Chinese characters.

    Returns:
        The query, "" where the term holds no letter and no digit.
    """
    spaced = _RUN_OF_CJK.sub(lambda found: f" {' '.join(_query_pairs(found[0]))} ", term)
    words = re.findall(r"[^\W_]+", spaced)
    return f'"{" ".join(words)}" *' if words else ""


def _query_pairs(run: str) -> list[str]:
    return _pairs(run, 2) if len(run) > 1 else [run]


def index_instances(connection: sqlite3.Connection, rows: Iterable[tuple[int, Instance]]) -> None:
    """Put instances into the word index; each number once."""
    connection.executemany(
        "INSERT INTO instance_text (rowid, query, tools, ids) VALUES (?, ?, ?, ?)",
        [_words(n, one) for n, one in rows],
    )


def reindex_instance(connection: sqlite3.Connection, n: int, old: Instance, new: Instance) -> None:
    """Put an instance that has changed into the word index in place of what it was."""
    connection.execute(
        "INSERT INTO instance_text (instance_text, rowid, query, tools, ids)"
        " VALUES ('delete', ?, ?, ?, ?)",
        _words(n, old),
    )
    index_instances(connection, [(n, new)])


def _words(n: int, one: Instance) -> tuple[int, str, str, str]:
    return (
        n,
        indexed(storable(one.query)),
        indexed(storable(" ".join(tool.name for tool in one.tools))),
        storable(f"{one.id} {one.query_id} {one.key}"),
    )


def index_replan(connection: sqlite3.Connection, n: int, replan: Replan) -> None:
    """Put a replan into the word index; each number once."""
    names = " ".join(dict.fromkeys(node.name for node in replan.plan.nodes))
    connection.execute(
        "INSERT INTO replan_text (rowid, thought, tools) VALUES (?, ?, ?)",
        (n, indexed(storable(replan.thought)), indexed(storable(names))),
    )


def rebuild_search(connection: sqlite3.Connection) -> None:
    """Make the search tables anew from all records: a migration step, and safe to repeat."""
    run_script(connection, DROP + SEARCH + FILL)
    for n, body in connection.execute("SELECT n, body FROM instance_body").fetchall():
        record = from_data(loads(body))
        if isinstance(record, Instance):
            index_instances(connection, [(n, record)])
    for n, body in connection.execute("SELECT n, body FROM replan_body").fetchall():
        record = from_data(loads(body))
        if isinstance(record, Replan):
            index_replan(connection, n, record)
