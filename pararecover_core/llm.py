"""The one door to models: any OpenAI-compatible endpoint, asked many times, failing honestly.

Async inside, plain functions outside. Failure is a result with a status, never an exception that
loses the other answers and never a score. Only what makes every further call pointless (wrong
key, no such model, no credit) stops a run; the calls not made are then reported as ``stopped``.
"""

import asyncio
import email.utils
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import openai
from aiolimiter import AsyncLimiter
from openai.types.chat import ChatCompletion

from pararecover_core.errors import ConfigError
from pararecover_core.literals import dumps, loads

CACHE_VERSION = "1"
"""Part of every cache key: raised when answers are read in another way."""

_LADDER = ("json_schema", "json_object+schema", "json_object", "text")
_STOP_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_STOP_STATUSES = frozenset({401, 402, 403, 404})


class Status(StrEnum):
    """What became of a request."""

    OK = "ok"
    REFUSED = "refused"
    UNPARSABLE = "unparsable"
    TRUNCATED = "truncated"
    TIMED_OUT = "timed out"
    ENDPOINT_ERROR = "endpoint error"
    STOPPED = "stopped"

    @property
    def retryable(self) -> bool:
        """Whether asking again later can help (a refusal is an answer)."""
        return self not in (Status.OK, Status.REFUSED)


class Endpoint(msgspec.Struct, frozen=True):
    """Where and how to ask.

    Attributes:
        key: Never shown: ``repr`` leaves it out; "none" for local servers that want none.
        timeout: Seconds for one call in total, queueing at the endpoint included.
        retries: Further tries after a failure that may pass.
        concurrency: Calls under way at once.
        per_minute: Calls begun in a minute at most; 0 for no limit.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str = "none"
    timeout: float = 120.0
    retries: int = 4
    concurrency: int = 8
    per_minute: int = 0

    def __repr__(self) -> str:
        return f"Endpoint(model={self.model!r}, base_url={self.base_url!r})"


def endpoint_from_environment(model: str = "") -> Endpoint:
    """The endpoint that ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and ``OPENAI_MODEL`` name.

    Args:
        model: Overrides ``OPENAI_MODEL``.

    Raises:
        ConfigError: There is no model, or neither a key nor a base URL.
    """
    model = model or os.environ.get("OPENAI_MODEL", "")
    base_url = os.environ.get("OPENAI_BASE_URL", "")
    key = os.environ.get("OPENAI_API_KEY", "")
    if not model:
        raise ConfigError("model", "none", "the name of a model", "Give it, or set OPENAI_MODEL")
    if not key and not base_url:
        cure = "Set OPENAI_API_KEY, and OPENAI_BASE_URL for another endpoint than OpenAI's"
        raise ConfigError("OPENAI_API_KEY", "nothing", "an API key", cure)
    return Endpoint(model, base_url or "https://api.openai.com/v1", key or "none")


class Request(msgspec.Struct, frozen=True):
    """One question.

    Attributes:
        messages: Chat messages as (role, text).
        schema: JSON schema of the answer, None for free text.
        version: Version of whatever will parse the answer; part of the cache key.
        sample: Tells repeated questions apart (self-consistency), from 0.
    """

    messages: tuple[tuple[str, str], ...]
    schema: dict[str, Any] | None = None
    max_tokens: int = 2048
    temperature: float = 0.0
    seed: int | None = None
    version: str = ""
    sample: int = 0


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the endpoint counted them; zeros where it did not."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion)


class Completion(msgspec.Struct, frozen=True):
    """What came back.

    Attributes:
        text: The answer; "" unless ``ok``, ``unparsable`` or ``truncated``.
        reasoning: The endpoint's reasoning field, where it has one; never scored from.
        raw: The whole reply as JSON text, or the error's text.
        error: Why it is not ``ok``, in one sentence.
        seconds: From the first try to the end, waits included.
    """

    status: Status
    text: str = ""
    reasoning: str = ""
    usage: Usage = Usage()
    raw: str = ""
    error: str = ""
    seconds: float = 0.0
    cached: bool = False


class Cache(Protocol):
    """Answers by key."""

    def get(self, key: str) -> Completion | None:
        """The kept answer, or None."""

    def put(self, key: str, completion: Completion) -> None:
        """Keep an answer."""


class FileCache:
    """Answers as files in a folder, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Completion | None:
        """The kept answer, or None; a damaged file counts as none."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path(key).read_bytes(), type=Completion)
        return None

    def put(self, key: str, completion: Completion) -> None:
        """Keep an answer; a crash in the middle leaves no half file."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
        draft.write_bytes(msgspec.json.encode(completion))
        draft.replace(path)


def cache_key(endpoint: Endpoint, request: Request) -> str:
    """A key that depends on everything that shapes the answer."""
    parts = [CACHE_VERSION, endpoint.base_url, endpoint.model, msgspec.to_builtins(request)]
    return hashlib.blake2b(dumps(parts).encode(), digest_size=16).hexdigest()


class Price(NamedTuple):
    """Money for a million tokens, in US dollars."""

    prompt: float
    completion: float


def cost(usage: Usage, price: Price | None) -> float | None:
    """US dollars for tokens; None (unknown) without a price."""
    if price is None:
        return None
    return (usage.prompt * price.prompt + usage.completion * price.completion) / 1e6


class _Fatal(Exception):
    """Every further call would fail alike."""


class _Again(Exception):
    """This call may succeed later.

    Args:
        status: What the request becomes when tries run out.
        text: Why.
        wait: Seconds that the endpoint asks to wait; None for our own backoff.
    """

    def __init__(self, status: Status, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.status, self.wait = status, wait


class Model:
    """An endpoint with its memory: what structured output it takes, when it wants a pause.

    Args:
        endpoint: Where to ask.
        cache: Where answers are kept; None keeps none.
        sleep: How to wait; tests give one that does not.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        cache: Cache | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.endpoint = endpoint
        self._cache = cache
        self._sleep = sleep
        self._rung = 0
        self._pause_until = 0.0
        self._stopped = ""

    def ask(self, request: Request) -> Completion:
        """One answer; see ``ask_many``."""
        return next(iter(self.ask_all([request])))

    def ask_all(self, requests: Iterable[Request]) -> list[Completion]:
        """Answers in the order of the requests; see ``ask_many``."""
        found: dict[int, Completion] = {}
        self.ask_many(enumerate(requests), found.__setitem__)
        return [found[index] for index in sorted(found)]

    def ask_many(
        self,
        requests: Iterable[tuple[Any, Request]],
        done: Callable[[Any, Completion], object],
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Ask many questions, at most ``concurrency`` at once.

        Args:
            requests: (label, request) pairs, drawn as workers become free.
            done: Called in this thread with each label and its answer, as soon as it is there.
            cancelled: Asked before every question; true ends the run after those under way.
        """
        asyncio.run(self._ask_many(iter(requests), done, cancelled))

    async def _ask_many(
        self,
        requests: Iterator[tuple[Any, Request]],
        done: Callable[[Any, Completion], object],
        cancelled: Callable[[], bool],
    ) -> None:
        limit = self.endpoint.per_minute
        limiter = AsyncLimiter(1, 60 / limit) if limit else None
        async with openai.AsyncOpenAI(
            api_key=self.endpoint.key, base_url=self.endpoint.base_url, max_retries=0,
            timeout=self.endpoint.timeout,
        ) as client:  # fmt: skip

            async def worker() -> None:
                for label, request in requests:
                    if cancelled():
                        return
                    done(label, await self._answer(client, request, limiter))

            async with asyncio.TaskGroup() as group:
                for _ in range(self.endpoint.concurrency):
                    group.create_task(worker())

    async def _answer(
        self, client: openai.AsyncOpenAI, request: Request, limiter: AsyncLimiter | None
    ) -> Completion:
        key = cache_key(self.endpoint, request)
        kept = self._cache.get(key) if self._cache else None
        if kept is not None:
            return msgspec.structs.replace(kept, cached=True)
        if self._stopped:
            return Completion(Status.STOPPED, error=self._stopped)
        start = time.monotonic()
        try:
            completion = await self._try(client, request, limiter)
        except _Fatal as error:
            self._stopped = f"the run was stopped: {error}"
            completion = Completion(Status.ENDPOINT_ERROR, error=str(error))
        completion = msgspec.structs.replace(completion, seconds=time.monotonic() - start)
        if self._cache and completion.status in (Status.OK, Status.REFUSED):
            self._cache.put(key, completion)
        return completion

    async def _try(
        self, client: openai.AsyncOpenAI, request: Request, limiter: AsyncLimiter | None
    ) -> Completion:
        failure = _Again(Status.ENDPOINT_ERROR, "not tried")
        more_tokens = 1
        attempt = 0
        while attempt <= self.endpoint.retries:
            await self._wait_for_pause()
            if limiter:
                await limiter.acquire()
            rung = self._rung if request.schema else len(_LADDER) - 1
            try:
                completion = await self._once(client, request, rung, more_tokens)
            except _Downgrade:
                self._rung = max(self._rung, rung + 1)
                continue
            except _Again as error:
                failure = error
                if isinstance(error, _Final):
                    break
                attempt += 1
                if attempt <= self.endpoint.retries:
                    await self._back_off(attempt, error.wait)
                continue
            if completion.status is Status.TRUNCATED and more_tokens == 1:
                more_tokens = 2
                continue
            return completion
        return Completion(failure.status, error=str(failure), raw=str(failure))

    async def _wait_for_pause(self) -> None:
        wait = self._pause_until - time.monotonic()
        if wait > 0:
            await self._sleep(wait)

    async def _back_off(self, attempt: int, wait: float | None) -> None:
        if wait is not None:
            self._pause_until = max(self._pause_until, time.monotonic() + wait)
            await self._sleep(wait)
        else:
            await self._sleep(min(8.0, 0.5 * 2 ** (attempt - 1)))

    async def _once(
        self, client: openai.AsyncOpenAI, request: Request, rung: int, more_tokens: int
    ) -> Completion:
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                reply = await client.chat.completions.create(
                    **_body(self.endpoint.model, request, rung, more_tokens)
                )
        except (TimeoutError, openai.APITimeoutError) as error:
            limit = f"no answer within {self.endpoint.timeout:g} s"
            raise _Again(Status.TIMED_OUT, limit) from error
        except openai.APIStatusError as error:
            raise _status_failure(error, rung) from error
        except openai.APIError as error:
            raise _Again(Status.ENDPOINT_ERROR, f"no connection: {error}") from error
        except ValueError as error:
            raise _Again(Status.ENDPOINT_ERROR, f"the reply is not JSON: {error}") from error
        return read_reply(reply)


class _Downgrade(Exception):
    """The endpoint does not take this form of structured output."""


def _body(model: str, request: Request, rung: int, more_tokens: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": text} for role, text in request.messages],
        "max_tokens": request.max_tokens * more_tokens,
        "temperature": request.temperature,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    form = _LADDER[rung]
    if form == "json_schema":
        named = {"name": "answer", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif form == "json_object+schema":
        body["response_format"] = {"type": "json_object", "schema": request.schema}
    elif form == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def _status_failure(error: openai.APIStatusError, rung: int) -> Exception:
    """What an HTTP status means for this request and for the run."""
    code, status = str(getattr(error, "code", "") or ""), error.status_code
    text = f"HTTP {status}: {str(error)[:300]}"
    if code in _STOP_CODES or status in _STOP_STATUSES:
        return _Fatal(text)
    structured = rung < len(_LADDER) - 1
    if structured and status in (400, 422, 500, 501) and _about_format(text):
        return _Downgrade(text)
    if status in (408, 409, 429) or status >= 500:
        return _Again(Status.ENDPOINT_ERROR, text, retry_after(error.response.headers))
    return _Final(text)


class _Final(_Again):
    """This request fails whenever it is asked."""

    def __init__(self, text: str) -> None:
        super().__init__(Status.ENDPOINT_ERROR, text)


def _about_format(text: str) -> bool:
    lowered = text.casefold()
    return any(word in lowered for word in ("response_format", "json_schema", "schema", "grammar"))


def retry_after(headers: Any, *, now: float | None = None) -> float | None:
    """Seconds that a reply asks to wait.

    Args:
        headers: The reply's headers.
        now: Seconds since the epoch, for tests.

    Returns:
        Seconds >= 0 from ``retry-after-ms`` or ``Retry-After`` (seconds or a date), else None.
    """
    with suppress(TypeError, ValueError):
        return max(0.0, float(headers.get("retry-after-ms")) / 1000)
    given = headers.get("retry-after")
    if given is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(given))
    date = email.utils.parsedate_tz(given)
    if date is None:
        return None
    return max(0.0, email.utils.mktime_tz(date) - (time.time() if now is None else now))


def read_reply(reply: Any) -> Completion:
    """Read a reply in the order that catches every seen failure.

    Args:
        reply: What the client returned: a ``ChatCompletion``, or text where the endpoint did
            not answer with JSON.

    Returns:
        ``ok``, ``refused`` or ``truncated``.

    Raises:
        Exception: A failure that may pass (no choices, no text, an unknown end).
    """
    if not isinstance(reply, ChatCompletion):
        raise _Fatal(
            "the endpoint answered with something else than a chat completion; check the base URL"
        )
    raw = reply.model_dump_json()
    usage = (
        Usage(reply.usage.prompt_tokens, reply.usage.completion_tokens) if reply.usage else Usage()
    )
    if not reply.choices:
        problem = getattr(reply, "error", None)
        raise _Again(Status.ENDPOINT_ERROR, f"no choices in the reply: {problem or raw[:200]}")
    choice = reply.choices[0]
    message, end = choice.message, choice.finish_reason
    extra = message.model_extra or {}
    reasoning = str(extra.get("reasoning_content") or extra.get("reasoning") or "")
    if end == "content_filter" or message.refusal:
        said = message.refusal or "the content filter stopped the answer"
        return Completion(Status.REFUSED, "", reasoning, usage, raw, said)
    text = _text_of(message.content)
    if end == "length":
        why = "the answer was cut at the token limit"
        return Completion(Status.TRUNCATED, text, reasoning, usage, raw, why)
    if end not in (None, "stop", "tool_calls", "function_call", "eos"):
        raise _Again(Status.ENDPOINT_ERROR, f"the answer ended with {end!r}")
    if not text.strip():
        raise _Again(Status.UNPARSABLE, "the answer is empty")
    return Completion(Status.OK, text, reasoning, usage, raw)


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text", "") if isinstance(part, dict) else str(part) for part in content)
        return "".join(parts)
    return content if isinstance(content, str) else ""


def fenced(label: str, text: str) -> str:
    """Text from a trajectory, fenced and named as data for a prompt.

    The fence holds a digest of the text, so that the text cannot close it.

    Args:
        label: What the text is: "thought", "observations", ...
        text: The text.
    """
    mark = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"<data-{mark} name={label!r}>\n{text}\n</data-{mark}>"


def prices(path: Path) -> dict[str, Price]:
    """The price table: model to US dollars for a million tokens.

    Raises:
        ConfigError: The file is no price table.
    """
    try:
        return msgspec.convert(loads(path.read_text(encoding="utf-8")), dict[str, Price])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        where, expected = str(path), '{"model": [prompt, completion], ...}'
        raise ConfigError(where, str(error), expected, "Correct the file") from error
