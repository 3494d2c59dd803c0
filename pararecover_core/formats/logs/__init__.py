"""Logs of agents in the formats of others: told by content, read as runs, made into records."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from pararecover_core.errors import InputError
from pararecover_core.formats.items import Item, Place, Reject
from pararecover_core.formats.logs import (
    anthropic,
    atif,
    bfcl,
    button,
    inspect,
    langsmith,
    openai,
    plans,
    spans,
    tau,
    toolhub,
)
from pararecover_core.formats.logs.build import items_of
from pararecover_core.formats.logs.messages import is_conversation
from pararecover_core.formats.logs.run import Run
from pararecover_core.formats.rows import ReadOptions

__all__ = ["LogReader"]

MOST_GATHERED = 256 * 1024 * 1024
"""Bytes of records that only make runs together, such as spans, that are held at once."""


class Form(NamedTuple):
    """A format: whether a JSON value is one of its records, and the runs that it tells.

    A format whose runs are spread over many records is gathered: its ``runs`` get the list of all.
    """

    name: str
    recognise: Callable[[Any], bool]
    runs: Callable[[Any], Iterator[Run]]
    gathered: bool = False


def _has_messages(value: Any) -> bool:
    names = ("messages", "conversations", "conversation")
    return isinstance(value, Mapping) and any(is_conversation(value.get(name)) for name in names)


def _conversation(values: Any) -> Iterator[Run]:
    """The run of messages or items that stood one by one in a file, whatever their dialect."""
    yield from _of_list(values).runs(values)


def _of_list(values: Any) -> Form:
    fitting = (form for form in FORMS if not form.gathered and form.recognise(values))
    return next(fitting, _CHAT)


_CHAT = Form("chat messages", is_conversation, openai.chat)
FORMS: tuple[Form, ...] = (
    Form("Inspect logs", inspect.is_log, inspect.runs),
    Form("Inspect samples", inspect.is_sample, inspect.samples),
    Form("OTLP spans", spans.is_otlp, spans.otlp),
    Form("spans", spans.is_span, spans.runs, gathered=True),
    Form("LangSmith runs", langsmith.is_run, langsmith.langsmith, gathered=True),
    Form("Langfuse traces", langsmith.is_export, langsmith.langfuse_export),
    Form("Langfuse observations", langsmith.is_observation, langsmith.langfuse, gathered=True),
    Form("tau-bench results", tau.is_tau, tau.tau),
    Form("tau2-bench results", tau.is_tau2, tau.tau2),
    Form("ATIF", atif.recognise, atif.runs),
    Form("TaskBench", plans.is_taskbench, plans.taskbench),
    Form("TRAJECT-Bench", plans.is_traject, plans.traject),
    Form("BFCL results", bfcl.is_result, bfcl.results),
    Form("BFCL scores", bfcl.is_score, bfcl.scores),
    Form("UnifiedToolHub", toolhub.recognise, toolhub.runs),
    Form("BUTTON", button.recognise, button.runs),
    Form("Anthropic messages", anthropic.recognise, anthropic.runs),
    Form("Anthropic session", anthropic.is_line, anthropic.sessions, gathered=True),
    Form("OpenAI Responses", openai.is_responses, openai.responses),
    Form("chat messages", _has_messages, openai.chat),
    _CHAT,
    Form("chat messages", openai.is_part, _conversation, gathered=True),
)
"""The formats, the more particular first."""

_OURS = frozenset(
    {"kind", "plan", "prev_plan", "plan_dag", "thought", "replan", "replan_dag", "fun_call"}
)
"""Fields of the paper's own records and of answers: such a record is no log."""


class LogReader:
    """Reads the logs in one file; holds what only makes runs together until the file ends."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._gathered: dict[int, list[Any]] = {}
        self._places: dict[int, Place] = {}
        self._size = 0

    def take(self, value: Any, place: Place, size: int = 0) -> Iterator[Item] | None:
        """What a JSON value holds, None where it is no log.

        Args:
            value: One line, or one document.
            place: Where it stands.
            size: Its length in bytes.
        """
        if isinstance(value, Mapping) and not _OURS.isdisjoint(value) and "eval" not in value:
            return None
        for number, form in enumerate(FORMS):
            if form.recognise(value):
                if form.gathered:
                    return self._gather(number, value, place, size)
                return self._items(form, value, place)
        return None

    def finish(self) -> Iterator[Item]:
        """What the gathered records make, at the end of the file."""
        gathered, self._gathered, self._size = self._gathered, {}, 0
        for number, values in gathered.items():
            yield from self._items(FORMS[number], values, self._places[number])

    def _gather(self, number: int, value: Any, place: Place, size: int) -> Iterator[Item]:
        if self._size > MOST_GATHERED:
            return
        self._size += size
        if self._size > MOST_GATHERED:
            got = f"more than {MOST_GATHERED >> 20} MB of {FORMS[number].name} in one file"
            cure = "Export fewer runs a file; what follows was not read"
            yield Item(place, Reject(place, got, "a smaller file", cure))
            return
        self._places.setdefault(number, place)
        self._gathered.setdefault(number, []).append(value)

    def text(self, text: str, place: Place) -> Iterator[Item]:
        """The plans of a text for which ``plans.is_compiler_text`` holds."""
        yield from self._of(lambda: plans.compiler(text), place)

    def archive(self, stream: BinaryIO, name: str) -> Iterator[Item]:
        """The samples of an archive for which ``inspect.is_archive`` holds, one at a time."""
        try:
            for member, read in inspect.archive(stream):
                yield from self._of(read, Place(f"{name}/{member}"))
        except InputError as error:
            got = f"{error.where} {error.got}".strip()
            yield Item(Place(name), Reject(Place(name), got, error.expected, error.cure))

    def _items(self, form: Form, value: Any, place: Place) -> Iterator[Item]:
        yield from self._of(lambda: form.runs(value), place)

    def _of(self, runs: Callable[[], Iterator[Run]], place: Place) -> Iterator[Item]:
        try:
            for run in runs():
                yield from items_of(run, place, self._options)
        except InputError as error:
            got = f"{error.where} {error.got}".strip()
            yield Item(place, Reject(place, got, error.expected, error.cure))
