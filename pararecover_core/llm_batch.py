"""Large runs handed in at ``/v1/batches``: answered within a day, at some endpoints for less.

Questions go up as files of JSON lines and come back as such, each under the name it was given.
"""

import io
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, NoReturn

import openai

from pararecover_core.completions import Completion, Endpoint, Request, Status
from pararecover_core.errors import ConfigError
from pararecover_core.literals import dumps, loads
from pararecover_core.llm import Model, http_client
from pararecover_core.llm_replies import Again, Fatal, read_reply

MOST_LINES, MOST_BYTES = 50_000, 190_000_000
"""What one batch may hold; more questions become several batches."""

_PATH: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class Submitted(NamedTuple):
    """A batch that was handed in, and the names of its questions."""

    id: str
    names: list[str]


class BatchState(NamedTuple):
    """How far a batch is.

    Attributes:
        status: The endpoint's word: "in_progress", "completed", "expired", ...
        done: Questions that were answered or failed.
    """

    id: str
    status: str
    total: int
    done: int
    output: str
    errors: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in _ENDED


class BatchEndpoint:
    """The batches of an endpoint.

    Args:
        endpoint: Where to ask; its model is asked.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = Model(endpoint)
        self._client = openai.OpenAI(
            api_key=endpoint.key.reveal(),
            base_url=endpoint.base_url,
            timeout=endpoint.timeout,
            max_retries=endpoint.retries,
            http_client=http_client(endpoint),
        )

    def submit(self, requests: Iterable[tuple[str, Request]]) -> Iterator[Submitted]:
        """Hand questions in.

        Args:
            requests: Names, each used once, and questions.

        Yields:
            Each batch as soon as the endpoint has it: note it down before going on.

        Raises:
            ConfigError: The endpoint takes no batches, or refuses this one.
        """
        for names, data in _files(self._lines(requests)):
            try:
                file = self._client.files.create(
                    file=("questions.jsonl", io.BytesIO(data)), purpose="batch"
                )
                batch = self._client.batches.create(
                    input_file_id=file.id, endpoint=_PATH, completion_window="24h"
                )
            except openai.APIError as error:
                self._refused(error)
            yield Submitted(batch.id, names)

    def _lines(self, requests: Iterable[tuple[str, Request]]) -> Iterator[tuple[str, bytes]]:
        for name, request in requests:
            body = self._model.body(request, 0 if request.schema else -1)
            line = {"custom_id": name, "method": "POST", "url": _PATH, "body": body}
            yield name, dumps(line).encode("utf-8", "replace") + b"\n"

    def state(self, id: str) -> BatchState:
        """How far a batch is.

        Raises:
            ConfigError: The endpoint does not know it, or cannot be asked.
        """
        try:
            found = self._client.batches.retrieve(id)
        except openai.APIError as error:
            self._refused(error)
        counts = found.request_counts
        done = counts.completed + counts.failed if counts else 0
        total = counts.total if counts else 0
        output, errors = found.output_file_id or "", found.error_file_id or ""
        return BatchState(id, found.status, total, done, output, errors)

    def cancel(self, id: str) -> None:
        """Ask the endpoint to stop a batch.

        Raises:
            ConfigError: It does not know it, or cannot be asked.
        """
        try:
            self._client.batches.cancel(id)
        except openai.APIError as error:
            self._refused(error)

    def collect(self, state: BatchState) -> Iterator[tuple[str, Completion]]:
        """The answers of a batch that has ended, by name; those never given are left out.

        Raises:
            ConfigError: The endpoint does not give the file.
        """
        for file in filter(None, (state.output, state.errors)):
            try:
                content = self._client.files.content(file).content
            except openai.APIError as error:
                self._refused(error)
            for line in content.splitlines():
                if line.strip():
                    yield self._answer(line)

    def _answer(self, line: bytes) -> tuple[str, Completion]:
        try:
            made = loads(line)
        except ValueError:
            made = None
        made = made if isinstance(made, dict) else {}
        response = made.get("response") or {}
        code, body = response.get("status_code"), response.get("body")
        if code != 200:
            problem = made.get("error") or body or "no response"
            completion = _failed(f"HTTP {code}: {str(problem)[:300]}" if code else str(problem))
        else:
            try:
                completion = read_reply(dumps(body).encode("utf-8", "replace"))
            except Again as error:
                completion = _failed(str(error), error.status)
            except Fatal as error:
                completion = _failed(str(error))
        return str(made.get("custom_id", "")), completion

    def _refused(self, error: openai.APIError) -> NoReturn:
        url = self._endpoint.base_url
        said = self._endpoint.key.clean(" ".join(str(error).split())[:300])
        if isinstance(error, openai.NotFoundError | openai.APIStatusError) and (
            error.status_code in (404, 405, 501)
        ):
            got = f"no batches there, or not this one ({said})"
            cure = "Leave --offline out: the calls are then made one by one"
            raise ConfigError(f"{url}/batches", got, "an endpoint with batches", cure) from error
        cure = "Check the key and the address, or try again later"
        raise ConfigError(f"{url}/batches", said, "a batch", cure) from error


def _failed(text: str, status: Status = Status.ENDPOINT_ERROR) -> Completion:
    return Completion(status, raw=text, error=text)


def _files(lines: Iterable[tuple[str, bytes]]) -> Iterator[tuple[list[str], bytes]]:
    """Lines in files that an endpoint takes."""
    names: list[str] = []
    parts: list[Any] = []
    size = 0
    for name, line in lines:
        if names and (len(names) >= MOST_LINES or size + len(line) > MOST_BYTES):
            yield names, b"".join(parts)
            names, parts, size = [], [], 0
        names.append(name)
        parts.append(line)
        size += len(line)
    if names:
        yield names, b"".join(parts)
