"""Bytes of a file as UTF-8 lines or JSON documents, whatever its encoding, one at a time.

A file that is not UTF-8 is written anew as UTF-8 into a temporary file first, so that everything
behind this module knows one encoding. Lone surrogates pass through (``surrogatepass``).
"""

import codecs
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from pararecover_core.errors import InputError

MAX_RECORD = 64 * 1024 * 1024
"""Longest line or JSON document that is taken, in bytes."""

_CHUNK = 1 << 20
_IN_MEMORY = 32 << 20
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|"|[\[\]{}]', re.S)


def seekable(stream: BinaryIO) -> BinaryIO:
    """The stream itself where it can be read twice, else a temporary copy; at its start."""
    if stream.seekable():
        stream.seek(0)
        return stream
    copy = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def encoding_of(stream: BinaryIO) -> tuple[str, int]:
    """How the bytes of a stream are encoded.

    Args:
        stream: Seekable; left at its start.

    Returns:
        Name of the encoding, and the length of the byte order mark. A file that is neither UTF-8
        nor GB18030 throughout counts as UTF-8: its bad lines are found when they are decoded.
    """
    stream.seek(0)
    head = stream.read(1 << 16)
    stream.seek(0)
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name, len(mark)
    wide = _utf16_without_mark(head)
    if wide:
        return wide, 0
    return ("utf-8" if _is_utf8(stream) or not _is_gb18030(stream) else "gb18030"), 0


def _utf16_without_mark(head: bytes) -> str:
    """UTF-16 shows as a NUL in every other byte of the ASCII names that our files start with."""
    even, odd = head[0:512:2], head[1:512:2]
    if len(head) < 4 or not (even[0] or odd[0]):
        return ""
    zeros_even, zeros_odd = even.count(0) / len(even), odd.count(0) / len(odd)
    if not odd[0] and zeros_odd > 0.2 and zeros_even < 0.01:
        return "utf-16-le"
    if not even[0] and zeros_even > 0.2 and zeros_odd < 0.01:
        return "utf-16-be"
    return ""


def _is_utf8(stream: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    stream.seek(0)
    try:
        while chunk := stream.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    finally:
        stream.seek(0)
    return True


def _is_gb18030(stream: BinaryIO) -> bool:
    """Whether GB18030 explains the file, and better than UTF-8 with a few broken lines does."""
    as_utf8 = broken = 0
    stream.seek(0)
    while line := stream.readline(_CHUNK):
        if line.isascii():
            continue
        if decode(line) is not None:
            as_utf8 += 1
            continue
        broken += 1
        try:
            line.decode("gb18030")
        except UnicodeDecodeError:
            stream.seek(0)
            return False
    stream.seek(0)
    return broken >= as_utf8


def decode(data: bytes) -> str | None:
    """UTF-8 as text, lone surrogates included; None where the bytes are no UTF-8."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def as_utf8(stream: BinaryIO) -> BinaryIO:
    """The text of a stream as UTF-8 without a byte order mark, at its start.

    Args:
        stream: Seekable, in any encoding that ``encoding_of`` knows.

    Returns:
        The stream itself, or a temporary file.
    """
    name, mark = encoding_of(stream)
    stream.seek(mark)
    if name == "utf-8":
        return stream
    target = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
    decoder = codecs.getincrementaldecoder(name)("surrogatepass" if "utf" in name else "strict")
    try:
        while chunk := stream.read(_CHUNK):
            target.write(decoder.decode(chunk).encode("utf-8", "surrogatepass"))
        target.write(decoder.decode(b"", final=True).encode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:  # the file was cut off inside a character
        target.write("\ufffd".encode())
    target.seek(0)
    return target


def head_of(stream: BinaryIO, size: int = 1 << 16) -> bytes:
    """The next bytes of a stream, which stays where it is."""
    here = stream.tell()
    head = stream.read(size)
    stream.seek(here)
    return head


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a stream from where it stands, with their numbers from 1.

    Yields:
        Number and line with its end; None for a line longer than ``MAX_RECORD``.
    """
    number = 0
    while line := stream.readline(MAX_RECORD + 1):
        number += 1
        if len(line) <= MAX_RECORD:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_CHUNK)
        yield number, None


def documents(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The JSON documents of a stream, an array's elements one by one.

    Brackets are counted outside of strings only; what lies between documents and is no comma or
    white space comes out as a document of its own, for its reader to reject.

    Yields:
        The line on which the document starts (from 1), and its bytes.

    Raises:
        InputError: A document is longer than ``MAX_RECORD``.
    """
    return _Scanner(stream).run()


class _Scanner:
    """Finds where documents begin and end; holds one document and one chunk at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.size = stream, _CHUNK
        self.data = b""
        self.start = self.at = 0  # start of the document or gap, and of what is not yet scanned
        self.depth = 0  # open brackets, the array around the documents left out
        self.in_array = False
        self.line = 1  # of ``start``

    def run(self) -> Iterator[tuple[int, bytes]]:
        while self._fill():
            for match in _TOKEN.finditer(self.data, self.at):
                token = match[0]
                if token == b'"':  # the string goes on in the next chunk
                    self.at = match.start()
                    break
                self.at = match.end()
                if token in b"[{":
                    yield from self._open(match.start(), token)
                elif token in b"]}":
                    yield from self._close(match.end(), token)
            else:
                self.at = len(self.data)
        yield from self._take(len(self.data))

    def _fill(self) -> bool:
        """Drop what is done with and read on; bigger bites while one document goes on."""
        rest = self.data[self.start :]
        if len(rest) > MAX_RECORD:
            raise InputError(
                f"line {self.line}",
                f"a record longer than {MAX_RECORD >> 20} MB",
                "shorter records",
                "Take the record out of the file; what follows it was not read",
            )
        self.size = max(_CHUNK, len(rest))
        chunk = self.stream.read(self.size)
        self.at -= self.start
        self.data, self.start = rest + chunk, 0
        return bool(chunk)

    def _open(self, at: int, token: bytes) -> Iterator[tuple[int, bytes]]:
        if self.depth == 0:
            yield from self._take(at)
            if token == b"[" and not self.in_array:
                self.in_array = True
                self.start = at + 1
                return
        self.depth += 1

    def _close(self, end: int, token: bytes) -> Iterator[tuple[int, bytes]]:
        if self.depth:
            self.depth -= 1
            if self.depth == 0:
                yield from self._take(end)
        elif self.in_array and token == b"]":
            yield from self._take(end - 1)
            self.in_array = False
            self.start = end

    def _take(self, end: int) -> Iterator[tuple[int, bytes]]:
        """What lies between ``start`` and ``end``, if it is more than commas and white space."""
        piece = self.data[self.start : end]
        kept = piece.lstrip(b" \t\r\n,")
        line = self.line + piece.count(b"\n", 0, len(piece) - len(kept))
        self.line += piece.count(b"\n")
        self.start = end
        kept = kept.rstrip(b" \t\r\n,")
        if kept:
            yield line, kept


def text_lines(stream: BinaryIO, broken: set[int]) -> Iterator[str]:
    """Decoded lines with their ends, for the ``csv`` module.

    Args:
        stream: UTF-8 bytes.
        broken: Gets the numbers of lines that are no UTF-8 or too long; these come out escaped.
    """
    for number, line in lines(stream):
        text = decode(line) if line is not None else ""
        if text is None or line is None:
            broken.add(number)
            text = (line or b"\n").decode("utf-8", "backslashreplace")
        yield text
