"""What commands are given: files, databases, and places to write."""

from pathlib import Path

from annotations.store import Store, default_path
from pararecover_core.errors import InputError


def check_input(path: Path, expected: str = "a file to read", option: str = "") -> None:
    """Refuse what is no file.

    Args:
        path: What the command was given.
        expected: What it takes, for the message.
        option: Its flag, "" for an argument.

    Raises:
        InputError: It is a folder, or not there.
    """
    if not path.is_file():
        got = "a folder" if path.is_dir() else "no file"
        raise InputError(f"{option} {path}".lstrip(), got, expected, "Check the path")


def check_output(path: Path, option: str = "--out") -> None:
    """Refuse a place where no file can be.

    Raises:
        InputError: It is a folder, or its folder is not there.
    """
    if path.is_dir() or not path.parent.is_dir():
        got = "a folder" if path.is_dir() else f"no folder {path.parent}"
        raise InputError(f"{option} {path}", got, "a file in a folder that exists", "Name another")


def open_store(
    db: Path | None,
    cure: str = "Check --db and PARARECOVER_DB",
    *,
    reading: bool = False,
) -> Store:
    """The database that a command was given, else the one that ``default_path`` names.

    Args:
        db: What --db said.
        cure: What to do where there is none, for the message.
        reading: Whether the command only reads: then a file that cannot be written will do.

    Raises:
        InputError: There is no such file.
        StoreError: The file cannot be used.
    """
    path = db or default_path()
    if not path.is_file():
        got = "a folder" if path.is_dir() else "no file"
        raise InputError(str(path), got, "a database", cure)
    return Store(path, reading=reading)


def new_store(db: Path | None) -> Store:
    """A database that may still have to be made; only the folder of the usual one is made, too.

    Raises:
        InputError: The folder that --db names is not there.
        StoreError: The file cannot be used.
    """
    if db is not None and not db.expanduser().parent.is_dir():
        got = f"no folder {db.expanduser().parent}"
        cure = "Correct the path, or make the folder first"
        raise InputError(f"--db {db}", got, "a database in a folder that exists", cure)
    return Store(db or default_path())
