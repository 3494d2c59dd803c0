"""Files: search, size, conversion, sharing, backup."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Count,
    Date,
    Email,
    Minutes,
    Text,
    choice_kind,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

FileName = Annotated[
    str,
    choice_kind(
        "file_name",
        "the file name",
        ("budget.xlsx", "minutes.docx", "floorplan.pdf", "survey.csv", "poster.png", "notes.txt"),
    ),
]
FileFormat = Annotated[str, choice_kind("file_format", "the format", ("pdf", "html", "txt", "csv"))]
FileId = Annotated[str, id_kind("file_id", "the file", "FI")]
ShareLink = Annotated[str, id_kind("share_link", "the share link", "SL")]
Megabytes = Annotated[float, number_kind("megabytes", "the size", 0.01, 100_000, unit="MB")]


class File(TypedDict):
    """A file."""

    file_id: FileId
    last_change: Date


class Size(TypedDict):
    """How large a file is."""

    file_size: Megabytes
    page_count: Count


class Contents(TypedDict):
    """What a file says."""

    file_text: Text


class Link(TypedDict):
    """A link to a file."""

    share_link: ShareLink


class Upload(TypedDict):
    """Time to upload."""

    upload_time: Minutes


class Access(TypedDict):
    """Who opened a link."""

    view_count: Count
    last_viewer: Email


class Converted(TypedDict):
    """A file in another format."""

    file_id: FileId


@tool("find the file {file_name}", "look for {file_name} on my drive", makes="the file")
def find_file(file_name: FileName) -> File:
    """Find a file on the drive.

    Args:
        file_name: Name with its ending.
    """
    draw = Draw("file", file_name)
    return {"file_id": draw.id("FI"), "last_change": draw.date()}


@tool("find the backup of {file_name}", makes="the file")
def find_backup(file_name: FileName) -> File:
    """Find the latest backup of a file.

    Args:
        file_name: Name with its ending.
    """
    draw = Draw("backup", file_name)
    return {"file_id": draw.id("FI"), "last_change": draw.date()}


@tool("check how large {file_id} is", makes="the file facts")
def get_file_size(file_id: FileId) -> Size:
    """Tell size and pages of a file.

    Args:
        file_id: Identifier of the file.
    """
    draw = Draw("size", file_id)
    return {"file_size": draw.amount(0.2, 480, digits=1), "page_count": draw.integer(1, 90)}


@tool("read {file_id}", makes="the contents")
def read_file(file_id: FileId) -> Contents:
    """Read the text of a file.

    Args:
        file_id: Identifier of the file.
    """
    draw = Draw("contents", file_id)
    what = draw.choice(("The roof needs repair", "Sales rose in spring", "Bring two copies"))
    return {"file_text": f"{what}; see section {draw.integer(1, 9)}."}


@tool("convert {file_id} to {file_format}", makes="the converted file")
def convert_file(file_id: FileId, file_format: FileFormat) -> Converted:
    """Convert a file to another format.

    Args:
        file_id: Identifier of the file.
        file_format: Format to convert to.
    """
    return {"file_id": Draw("convert", file_id, file_format).id("FI")}


@tool("share {file_id} with {reader}", makes="the share link")
def share_file(file_id: FileId, reader: Email) -> Link:
    """Make a link to a file for one reader.

    Args:
        file_id: Identifier of the file.
        reader: E-mail address of the reader.
    """
    return {"share_link": Draw("share", file_id, reader).id("SL")}


@tool("see who opened {share_link}", makes="the access log")
def get_link_views(share_link: ShareLink) -> Access:
    """Tell how often a link was opened, and by whom last.

    Args:
        share_link: Identifier of the link.
    """
    draw = Draw("views", share_link)
    names = ("ana", "bram", "chidi", "dora", "hana")
    return {"view_count": draw.integer(1, 80), "last_viewer": f"{draw.choice(names)}@example.org"}


@tool("work out the upload time for {file_size}", makes="the upload")
def upload_time(file_size: Megabytes) -> Upload:
    """Work out the upload time at 12 Mbit/s.

    Args:
        file_size: Megabytes.
    """
    return {"upload_time": max(1, round(file_size * 8 / 12 / 60))}
