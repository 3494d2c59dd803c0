"""JSON lines, JSON arrays and single JSON documents, one record at a time."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.formats import text
from pararecover_core.formats.items import Item, Place, Reject
from pararecover_core.formats.logs import LogReader, large
from pararecover_core.formats.own import KINDS
from pararecover_core.formats.rows import KNOWN, RowReader
from pararecover_core.formats.values import shown
from pararecover_core.literals import loads

_WRAPPERS = ("data", "records", "instances", "rows", "items", "samples", "scores")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_POSITION = re.compile(r": line (\d+) column (\d+) \(char \d+\)")


def read_json(stream: BinaryIO, name: str, rows: RowReader) -> Iterator[Item]:
    """Everything in a JSON file.

    Args:
        stream: UTF-8 without byte order mark, seekable, at its start.
        name: Name of the file for messages.
        rows: Reads the records.
    """
    logs = LogReader(rows.options)
    found = large.opening(stream)
    if found is not None:
        yield from _read_large(stream, name, found, logs)
    elif is_lines(text.head_of(stream)) or _is_list_a_line(stream):
        yield from _read_lines(stream, name, rows, logs)
    else:
        yield from _read_documents(stream, name, rows, logs)
    yield from logs.finish()


def _read_documents(
    stream: BinaryIO, name: str, rows: RowReader, logs: LogReader
) -> Iterator[Item]:
    try:
        for line, document in text.documents(stream):
            whole = document[:1] not in b"[{" or document.endswith((b"}", b"]"))
            yield from _record(document, Place(name, line), rows, logs, whole=whole)
    except InputError as error:
        yield _whole_reject(name, error)


def _whole_reject(name: str, error: InputError) -> Item:
    place = Place(name)
    return Item(place, Reject(place, error.got, error.expected, error.cure))


def _read_large(
    stream: BinaryIO, name: str, found: large.Opening, logs: LogReader
) -> Iterator[Item]:
    try:
        for line, document in large.records(stream, found):
            place = Place(name, line)
            try:
                value = {**found.header, found.field: [loads(document)]}
            except ValueError as error:
                yield Item(place, _broken(place, error, True))
                continue
            yield from logs.take(value, place, len(document)) or ()
    except InputError as error:
        yield _whole_reject(name, error)


def is_lines(head: bytes) -> bool:
    """Whether a file is JSON lines rather than an array or an indented document.

    Args:
        head: The first 64 KB.
    """
    start = head.lstrip()
    first, newline, rest = start.partition(b"\n")
    if not newline:
        return not start.startswith(b"[")
    following = rest.lstrip()
    if not following:
        return not start.startswith(b"[")
    if first.rstrip().endswith((b"{", b"[", b":", b",")):  # goes on in the next line
        return False
    if start.startswith(b"["):
        return following.startswith(b"{") and _is_json(first)
    return following.startswith((b"{", b'"kind"')) or _is_json(first) or not start.startswith(b"{")


def _is_list_a_line(stream: BinaryIO) -> bool:
    """Whether every line is a list of its own, as in files with a conversation a line."""
    here = stream.tell()
    line = stream.readline(text.MAX_RECORD) if stream.read(1) == b"[" else b""
    following = stream.read(256).lstrip()
    stream.seek(here)
    return line.endswith(b"\n") and following.startswith(b"[") and _is_json(b"[" + line)


def _is_json(data: bytes) -> bool:
    try:
        loads(data.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True


def _read_lines(stream: BinaryIO, name: str, rows: RowReader, logs: LogReader) -> Iterator[Item]:
    for number, line in text.lines(stream):
        place = Place(name, number)
        if line is None:
            size = f"a line longer than {text.MAX_RECORD >> 20} MB"
            yield Item(place, Reject(place, size, "a shorter record", "Take the line out"))
        elif not line.isspace():
            yield from _record(line, place, rows, logs, whole=line.endswith(b"\n"))


def _record(
    data: bytes, place: Place, rows: RowReader, logs: LogReader, *, whole: bool
) -> Iterator[Item]:
    try:
        value = loads(data)
    except ValueError as error:
        yield Item(place, _broken(place, error, whole))
        return
    logged = logs.take(value, place, len(data))
    if logged is not None:
        yield from logged
    elif isinstance(value, Mapping):
        repeated = _repeated(data, value)
        if repeated:
            got = f"two fields named {repeated} with different values"
            cure = "Keep one of them"
            yield Item(place, Reject(place, got, "every field once", cure))
        else:
            yield from _mapping(value, place, rows)
    elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        for row in value:
            yield from _mapping(row, place, rows)
    else:
        kind = "a list" if isinstance(value, list) else f"the bare value {shown(value)}"
        yield Item(place, Reject(place, kind, f"an object: {KNOWN}", "Write each record as one"))


def _broken(place: Place, error: ValueError, whole: bool) -> Reject:
    reason = _POSITION.sub(lambda found: _position(place, *found.groups()), str(error))
    cure = "Correct the line, or write it again with a JSON writer"
    if "UTF-8" in reason:
        return Reject(place, reason, "text in one encoding", "Save the file as UTF-8")
    if not whole:
        cure = "The file seems to end in the middle of a record: fetch it again"
    return Reject(place, f"no JSON ({reason})", "one JSON record", cure)


def _position(place: Place, line: str, character: str) -> str:
    """Where in the file a document breaks; ``place`` says where it starts."""
    within = f"line {(place.line or 1) + int(line) - 1}, " if line != "1" else ""
    return f" at {within}character {character}"


def _repeated(data: bytes, value: Mapping[str, Any]) -> str:
    """A field that stands twice with different values, "" where none does.

    JSON readers keep the last one and say nothing.
    """
    if _is_accounted_for(data, len(value)):
        return ""
    try:
        pairs = json.loads(text.decode(data) or "", strict=False, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ""
    found: dict[str, Any] = {}
    for key, item in pairs.pairs if isinstance(pairs, _Pairs) else ():
        if key in found and found[key] != item:
            return str(key)
        found[key] = item
    return ""


def _is_accounted_for(data: bytes, count: int) -> bool:
    """A quick sieve: the fields that were kept make up the whole line, written as most are."""
    try:
        fields = _FIELDS.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    kept = sum([len(name) + len(memoryview(raw)) for name, raw in fields.items()])
    spaced = b'": ' in data[:200]
    return len(data.strip()) == kept + 4 * count + 1 + (2 * count - 1 if spaced else 0)


class _Pairs:
    """A JSON object as its pairs, repeated names included."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pairs) and self.pairs == other.pairs

    __hash__ = None  # type: ignore[assignment]


def _mapping(value: Mapping[str, Any], place: Place, rows: RowReader) -> Iterator[Item]:
    kind = value.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        yield from KINDS[kind](value, place)
        return
    header = rows.header(tuple(value))
    if not header.is_known:
        inner = next((value[k] for k in _WRAPPERS if isinstance(value.get(k), list)), None)
        if inner and all(isinstance(row, Mapping) for row in inner):
            for row in inner:
                yield from _mapping(row, place, rows)
            return
    if header.repeated:
        got = f"two fields named like {header.repeated[0]}"
        yield Item(place, Reject(place, got, "every field once", "Keep one of them"))
        return
    yield from rows.items(place, value, header)
