"""Inspect AI logs: JSON, and ``.eval`` archives, which are ZIP with zstd or deflate inside.

Long texts stand in ``attachments``; newer logs keep the messages of a sample in a pool.
"""

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from pararecover_core.errors import InputError
from pararecover_core.formats.logs.conversation import run_of
from pararecover_core.formats.logs.run import Run, obj, objects, seq, txt
from pararecover_core.formats.text import MAX_RECORD
from pararecover_core.literals import loads

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

NAME = "inspect"
MOST_UNPACKED = 4 * 1024**3
"""Bytes of all samples of an archive together."""
_REF = "attachment://"
_CHUNK = 1 << 20
_CURE = "Write the log again with: inspect log convert --to json"


def is_log(value: Any) -> bool:
    """A whole log as JSON."""
    if not isinstance(value, Mapping) or not isinstance(value.get("eval"), Mapping):
        return False
    return "samples" in value or "status" in value


def is_sample(value: Any) -> bool:
    """One sample of a log."""
    return (
        isinstance(value, Mapping)
        and "epoch" in value
        and (isinstance(value.get("messages"), list) or "events" in value)
    )


def runs(value: Mapping[str, Any]) -> Iterator[Run]:
    """One run a sample of a log."""
    if "samples" not in value or not seq(value["samples"]):
        status = txt(value.get("status")) or "unknown"
        got = f"an Inspect log without samples (status {status})"
        raise InputError("", got, "samples", "Run the evaluation with its samples logged")
    for sample in objects(value["samples"]):
        yield sample_run(sample, obj(value["eval"]))


def samples(value: Mapping[str, Any]) -> Iterator[Run]:
    """The run of one sample that stands alone."""
    yield sample_run(value, {})


def sample_run(sample: Mapping[str, Any], header: Mapping[str, Any]) -> Run:
    """The run of a sample.

    Args:
        sample: As in the log.
        header: The log's ``eval``: model and task.
    """
    events = list(objects(sample.get("events")))
    models = [event for event in events if event.get("event") == "model"]
    given = _attached(_messages(sample, models), obj(sample.get("attachments")))
    epoch = txt(sample.get("epoch"))
    scores = {
        str(name): obj(score).get("value") for name, score in obj(sample.get("scores")).items()
    }
    model = header.get("model") or obj(sample.get("output")).get("model")
    return run_of(
        given,
        NAME,
        id=" ".join(filter(None, (txt(header.get("task")), txt(sample.get("id")))))
        + (f" epoch {epoch}" if epoch and epoch != "1" else ""),
        agent=txt(model) or next((txt(e["model"]) for e in models if txt(e.get("model"))), ""),
        tools=next((seq(event["tools"]) for event in models if seq(event.get("tools"))), None),
        success=_solved(scores),
        extra={"scores": scores, "error": _error(sample)},
    )


def _error(sample: Mapping[str, Any]) -> str:
    message = txt(obj(sample.get("error")).get("message"))
    return f"a sample that broke down ({message[:200]})" if message else ""


def _solved(scores: Mapping[str, Any]) -> bool | None:
    """Whether every score is the full one; None where a score is of another kind."""
    known = {"C": True, "I": False, "P": False, "N": False, 1: True, 0: False}
    found = [known.get(v) if isinstance(v, str | int | float) else None for v in scores.values()]
    if not found or any(value is None for value in found):
        return None
    return all(found)


def _messages(sample: Mapping[str, Any], models: list[Mapping[str, Any]]) -> list[Any]:
    """A sample's messages, else its pool of them with the model's last output."""
    given = seq(sample.get("messages"))
    if given:
        return given
    pool = seq(sample.get("message_pool")) or seq(obj(sample.get("events_data")).get("messages"))
    if not pool and models:
        pool = seq(models[-1].get("input"))
    last = objects(obj(models[-1].get("output")).get("choices")) if models else iter(())
    return [*pool, *[choice.get("message") for choice in last][:1]]


def _attached(messages: list[Any], attachments: Mapping[str, Any]) -> list[Any]:
    """Messages with texts in place of references to them; at most ``MAX_RECORD`` characters."""
    left = MAX_RECORD

    def put(value: Any) -> Any:
        nonlocal left
        if isinstance(value, str):
            found = attachments.get(value[len(_REF) :]) if value.startswith(_REF) else None
            if not isinstance(found, str) or len(found) > left:
                return value
            left -= len(found)
            return found
        if isinstance(value, list):
            return [put(item) for item in value]
        if isinstance(value, Mapping):
            return {name: put(item) for name, item in value.items()}
        return value

    return [put(message) for message in messages] if attachments else messages


def is_archive(stream: BinaryIO) -> bool:
    """Whether a ZIP file is an Inspect log; the stream is left at its start."""
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
        names = []
    finally:
        stream.seek(0)
    return any(name in ("header.json", "_journal/start.json") for name in names) or any(
        name.startswith("samples/") for name in names
    )


def archive(stream: BinaryIO) -> Iterator[tuple[str, Callable[[], Iterator[Run]]]]:
    """The samples of an archive, read one at a time.

    Yields:
        Name of the member, and what reads its run, which raises ``InputError`` where it is broken.
    """
    with zipfile.ZipFile(stream) as opened:
        names = set(opened.namelist())
        head = next((n for n in ("header.json", "_journal/start.json") if n in names), "")
        header = obj(obj(_json(opened, head)).get("eval")) if head else {}
        total = 0
        members = [one for one in opened.infolist() if _is_sample_name(one.filename)]
        if not members:
            raise InputError("", "an Inspect log without samples", "samples", _CURE)
        for member in members:
            total += max(member.file_size, member.compress_size)
            if total > MOST_UNPACKED:
                got = f"more than {MOST_UNPACKED >> 30} GB of samples"
                cure = "Split the log; what follows was not read"
                raise InputError(member.filename, got, "a smaller log", cure)

            def read(name: str = member.filename) -> Iterator[Run]:
                yield sample_run(obj(_json(opened, name)), header)

            yield member.filename, read


def _is_sample_name(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _json(opened: zipfile.ZipFile, name: str) -> Any:
    """What a member holds.

    Raises:
        InputError: It is broken, locked, too long or no JSON.
    """
    try:
        with opened.open(name) as member:
            data = bytearray()
            while chunk := member.read(_CHUNK):
                data += chunk
                if len(data) > MAX_RECORD:
                    got = f"a sample longer than {MAX_RECORD >> 20} MB"
                    raise InputError("", got, "shorter samples", "Take the sample out")
        return loads(bytes(data))
    except _BROKEN as error:
        raise InputError("", f"a broken member ({error})", "an Inspect sample", _CURE) from error


_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError,
    ValueError, KeyError, OverflowError,
)  # fmt: skip
