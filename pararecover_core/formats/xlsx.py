"""Opening workbooks that may be broken, locked or made to do harm.

The reader behind this module keeps a sheet as a full rectangle, so that two cells far apart make
it ask for more memory than there is and end the whole process. Sizes are therefore measured here
before it sees the file.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from pararecover_core.errors import InputError

MAX_UNPACKED = 512 * 1024 * 1024
"""Largest workbook that is opened, in bytes after unpacking."""

MAX_CELLS = 10_000_000
"""Most cells in the rectangle around everything in one sheet."""

ZIP_MARK, OLE_MARK = b"PK", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PLACE = re.compile(rb"""\sr\s*=\s*["']\s*\$?([A-Za-z]{0,9})\$?(\d{1,12})\s*["']""")
_TAG = re.compile(rb"<(?:\w+:)?(?:(row)|c)[\s/>]")
_OVERLAP = 256
_CHUNK = 1 << 20
_EXPORT = "Save it again as XLSX, or export it as CSV in UTF-8"


class Sheets:
    """The sheets of an opened workbook."""

    def __init__(self, workbook: CalamineWorkbook) -> None:
        self._workbook = workbook
        self.count = len(workbook.sheet_names)

    def each(self) -> Iterator[tuple[str, Iterator[tuple[int, list[Any]]]]]:
        """Name of each sheet, and its non-empty rows with their numbers from 1.

        Raises:
            InputError: A sheet cannot be read.
        """
        for title in self._workbook.sheet_names:
            try:
                sheet = self._workbook.get_sheet_by_name(title)
                first = sheet.start[0] + 1 if sheet.start else 1
                rows = sheet.iter_rows()
            except BaseException as error:
                raise _unreadable(error) from error
            yield title, enumerate(rows, start=first)


def open_sheets(stream: BinaryIO) -> Sheets:
    """Open a workbook.

    Args:
        stream: Seekable; read from its start.

    Raises:
        InputError: It is locked, broken, too large, or of another kind.
    """
    stream.seek(0)
    mark = stream.read(8)
    stream.seek(0)
    if mark.startswith(OLE_MARK):
        raise _old_or_locked(stream.read(1 << 20))
    _measure(stream)
    stream.seek(0)
    try:
        return Sheets(CalamineWorkbook.from_filelike(stream))
    except BaseException as error:
        raise _unreadable(error) from error


def _old_or_locked(data: bytes) -> InputError:
    if "EncryptedPackage".encode("utf-16-le") in data:
        cure = "Open it, take the password off and save it again"
        return InputError("workbook", "an encrypted workbook", "one without a password", cure)
    return InputError("workbook", "an old Excel file (.xls)", "an XLSX workbook", _EXPORT)


def _unreadable(error: BaseException) -> InputError:
    """Turn whatever the reader threw into a reject; it may also throw a panic of its own."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
    if isinstance(error, PasswordError):
        cure = "Open it, take the password off and save it again"
        return InputError("workbook", "an encrypted workbook", "one without a password", cure)
    known = isinstance(error, CalamineError)
    reason = str(error) if known and str(error) else "it cannot be read"
    return InputError("workbook", f"a broken workbook ({reason})", "an XLSX workbook", _EXPORT)


def _measure(stream: BinaryIO) -> None:
    """Refuse what is no workbook, unpacks to too much, or spans too many cells."""
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if not any(name.casefold().endswith("workbook.xml") for name in names):
                got = f"a ZIP archive with {names[0] if names else 'nothing'} and no workbook"
                raise InputError("workbook", got[:200], "an XLSX workbook", _EXPORT)
            total = 0
            for member in archive.infolist():
                total += _measure_member(stream, archive, member, MAX_UNPACKED - total)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise _broken_zip(error) from error
    except (RuntimeError, ValueError, OverflowError) as error:
        raise _broken_zip(error) from error


def _broken_zip(error: Exception) -> InputError:
    got = f"a broken workbook ({error})"
    return InputError("workbook", got, "an XLSX workbook", _EXPORT)


def _measure_member(
    stream: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo, left: int
) -> int:
    """Unpacked size of one member, measured, not believed.

    Raises:
        InputError: It unpacks to more than ``left`` bytes, or its cells lie too far apart.
    """
    size, tail = 0, b""
    span = _Span()
    for chunk in _unpacked(stream, archive, member):
        size += len(chunk)
        if size > left:
            raise InputError(
                "workbook",
                f"more than {MAX_UNPACKED >> 20} MB after unpacking",
                "a smaller workbook",
                "Split it, or export it as CSV",
            )
        span.see(tail + chunk)
        tail = chunk[-_OVERLAP:]
    return size


def _unpacked(
    stream: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> Iterator[bytes]:
    """A member's bytes; its header may lie about how many there are."""
    if member.flag_bits & 1:
        raise InputError(
            "workbook", "an encrypted workbook", "one without a password", "Take the password off"
        )
    with archive.open(member) as opened:  # reads and checks the local header
        opened.read(0)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError("workbook", "an unusual ZIP method", "an XLSX workbook", _EXPORT)
    stream.seek(member.header_offset + 26)
    lengths = stream.read(4)
    skip = int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    stream.seek(member.header_offset + 30 + skip)
    unpack = zlib.decompressobj(-15) if member.compress_type == zipfile.ZIP_DEFLATED else None
    left = member.compress_size
    while left > 0 and (packed := stream.read(min(_CHUNK, left))):
        left -= len(packed)
        if unpack is None:
            yield packed
            continue
        while packed:
            yield unpack.decompress(packed, _CHUNK)
            packed = unpack.unconsumed_tail
            if unpack.eof:
                return


class _Span:
    """The rectangle around all cells that XML names or lists without naming them.

    Any member may be a sheet; what looks like a cell elsewhere is counted too, which is harmless.
    """

    def __init__(self) -> None:
        self.columns = self.rows = self.listed_rows = self.in_row = 0

    def see(self, xml: bytes) -> None:
        """Take in the next part of a member.

        Raises:
            InputError: The rectangle is too large.
        """
        places = _PLACE.findall(xml)
        self.columns = max(self.columns, *(map(_column, {p[0] for p in places})), 0)
        self.rows = max(self.rows, *(int(p[1]) for p in places), 0)
        first, *others = b"".join(t or b"c" for t in _TAG.findall(xml)).split(b"row")
        self.in_row += len(first)
        self.columns = max(self.columns, self.in_row, *map(len, others), 0)
        self.listed_rows += len(others)
        self.in_row = len(others[-1]) if others else self.in_row
        rows = max(self.rows, self.listed_rows)
        if self.columns * rows > MAX_CELLS:
            raise InputError(
                "workbook",
                f"cells as far out as row {rows}, column {self.columns}",
                f"a sheet of at most {MAX_CELLS // 1_000_000} million cells",
                "Delete stray cells far right and below, or export the sheet as CSV",
            )


def _column(letters: bytes) -> int:
    """Number of a column from its letters: A is 1, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number
