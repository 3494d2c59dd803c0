"""Questions to models and what came back: the words that ``llm`` and its users share."""

import hashlib
import ipaddress
import os
from contextlib import suppress
from enum import StrEnum
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

import msgspec

from pararecover_core.errors import ConfigError
from pararecover_core.literals import dumps

CACHE_VERSION = "1"
"""Part of every cache key: raised when replies are read in another way."""

OPENAI = "https://api.openai.com/v1"
LOCAL_HELP = (
    "For a model on this machine (vLLM, llama.cpp, Ollama) set "
    "OPENAI_BASE_URL=http://127.0.0.1:PORT/v1"
)


class Status(StrEnum):
    """What became of a question."""

    OK = "ok"
    REFUSED = "refused"
    UNPARSABLE = "unparsable"
    TRUNCATED = "truncated"
    TIMED_OUT = "timed out"
    ENDPOINT_ERROR = "endpoint error"
    STOPPED = "stopped"


class Secret:
    """A text that is never shown, written or sent by accident: ``reveal`` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that must have it."""
        return self._text

    def clean(self, text: str) -> str:
        """A text without the secret, should somebody have quoted it."""
        return text.replace(self._text, "[key]") if len(self._text) > 6 else text

    def __repr__(self) -> str:
        return "Secret()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written")


class Endpoint(msgspec.Struct, frozen=True):
    """Where and how to ask.

    Attributes:
        key: "none" for local servers that want none.
        timeout: Seconds for one call in total, queueing at the endpoint included.
        retries: Further tries after a failure that may pass.
        concurrency: Calls under way at once.
        per_minute: Calls begun in a minute at most; 0 for no limit.
        patience: Seconds that an endpoint may ask to wait; asked for more, the run stops.
    """

    model: str
    base_url: str = OPENAI
    key: Secret = Secret("none")
    timeout: float = 180.0
    retries: int = 4
    concurrency: int = 8
    per_minute: int = 0
    patience: float = 300.0

    @property
    def local(self) -> bool:
        """Whether it is on this machine, so that no proxy stands between."""
        host = urlsplit(self.base_url).hostname or ""
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_loopback
        return host == "localhost" or host.endswith(".localhost")


def endpoint_from_environment(model: str = "", **settings: Any) -> Endpoint:
    """The endpoint that ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and ``OPENAI_MODEL`` name.

    Args:
        model: Overrides ``OPENAI_MODEL``.
        settings: Further fields of ``Endpoint``.

    Raises:
        ConfigError: There is no model, neither a key nor a base URL, or the URL is none.
    """
    model = model or os.environ.get("OPENAI_MODEL", "").strip()
    base_url = os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not model:
        raise ConfigError("model", "none", "the name of a model", "Name it, or set OPENAI_MODEL")
    if not key and not base_url:
        raise ConfigError(
            "OPENAI_API_KEY", "nothing", "an API key", f"Set it, here or in .env. {LOCAL_HELP}"
        )
    if base_url and not _is_address(base_url):
        expected = "a URL such as http://127.0.0.1:8000/v1"
        raise ConfigError("OPENAI_BASE_URL", repr(base_url), expected, "Correct it")
    return Endpoint(model, base_url or OPENAI, Secret(key or "none"), **settings)


def _is_address(url: str) -> bool:
    """Whether a URL names a host by http or https."""
    with suppress(ValueError):  # of a host such as [bad
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    return False


class Request(msgspec.Struct, frozen=True):
    """One question.

    Attributes:
        messages: Chat messages as (role, text).
        schema: JSON schema of the answer, None for free text.
        version: Version of whatever will parse the answer; part of the cache key.
        sample: Tells repeated questions apart (self-consistency), from 0.
        attempt: Tells a question that failed before from its repetition, from 0.
    """

    messages: tuple[tuple[str, str], ...]
    schema: dict[str, Any] | None = None
    max_tokens: int = 4096
    temperature: float = 0.0
    seed: int | None = None
    version: str = ""
    sample: int = 0
    attempt: int = 0


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the endpoint counted them; zeros where it did not."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion)


class Completion(msgspec.Struct, frozen=True):
    """What came back.

    Attributes:
        text: The answer; "" unless ``ok`` or ``truncated``.
        reasoning: The endpoint's reasoning field, where it has one; never scored from.
        usage: Of all tries that were answered.
        raw: The whole reply as JSON text, or the error's text.
        error: Why it is not ``ok``, in one sentence.
        seconds: From the first try to the end, waits included.
        cached: Whether it was kept from before: nothing was asked, nothing is to pay.
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


def cache_key(endpoint: Endpoint, request: Request) -> str:
    """A key that depends on everything that shapes the answer, and on no secret."""
    parts = [CACHE_VERSION, endpoint.base_url, endpoint.model, msgspec.to_builtins(request)]
    text = dumps(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def fenced(label: str, text: str) -> str:
    """Text from a trajectory, fenced and named as data for a prompt.

    The fence holds a digest of the text, so that the text cannot close it.

    Args:
        label: What the text is: "thought", "observations", ...
        text: The text.
    """
    mark = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"<data-{mark} name={label!r}>\n{text}\n</data-{mark}>"
