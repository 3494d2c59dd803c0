"""Results files that are one JSON object around a long list of runs, read one run at a time."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from pararecover_core.formats import text
from pararecover_core.literals import loads

LARGE = 32 * 1024 * 1024
"""Size from which a file is read this way, in bytes."""
_LIST = re.compile(rb'(?<!\\)"(simulations|samples)"\s*:\s*(?=\[\s*\{)')
_OVERLAP = 256
_CHUNK = 1 << 20


class Opening:
    """Where the list of runs begins in a file.

    Attributes:
        header: The fields before the list.
        field: The name of the list.
        at: Offset of its bracket; ``line`` is the line that it stands on.
    """

    def __init__(self, header: dict[str, Any], field: str, at: int, line: int) -> None:
        self.header, self.field, self.at, self.line = header, field, at, line


def opening(stream: BinaryIO) -> Opening | None:
    """The opening of a large results file; None for any other file.

    Args:
        stream: Seekable; it stays where it is.
    """
    here = stream.tell()
    size = stream.seek(0, 2) - here
    stream.seek(here)
    whole = size > LARGE and text.head_of(stream, 1) == b"{" and not _has_lines(stream)
    stream.seek(here)
    found = _find(stream) if whole else None
    stream.seek(here)
    return found


def _has_lines(stream: BinaryIO) -> bool:
    """Whether a second record follows on a line of its own."""
    line = stream.readline(text.MAX_RECORD)
    return line.rstrip().endswith(b"}") and stream.read(_OVERLAP).lstrip().startswith(b"{")


def _find(stream: BinaryIO) -> Opening | None:
    here = stream.tell()
    data = bytearray()
    while len(data) <= text.MAX_RECORD and (chunk := stream.read(_CHUNK)):
        start = max(0, len(data) - _OVERLAP)
        data += chunk
        match = _LIST.search(data, start)
        if match:
            head = bytes(data[: match.start()]).rstrip().rstrip(b",")
            try:
                header = loads(head + b"}")
            except ValueError:
                return None
            line = data.count(b"\n", 0, match.end()) + 1
            name = match[1].decode()
            return Opening(header, name, here + match.end(), line)
    return None


def records(stream: BinaryIO, found: Opening) -> Iterator[tuple[int, bytes]]:
    """The elements of the list as JSON, with their lines; what follows the list is not read.

    Raises:
        InputError: An element is longer than ``text.MAX_RECORD``.
    """
    stream.seek(found.at)
    for line, document in text.documents(stream):
        if not document.startswith(b"{"):
            return
        yield found.line + line - 1, document
