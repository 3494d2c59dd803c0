"""The ``pararecover`` command as its process runs it, without starting one."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from pararecover_cli.main import main


@dataclass(frozen=True)
class Done:
    """What a process would have left: its exit code, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def command(*arguments: object) -> Done:
    """Run ``pararecover ARGUMENTS``; an exception that ``main`` lets out fails the test."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    words = ["pararecover", *map(str, arguments)]
    code: int | str | None = 0
    with patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
