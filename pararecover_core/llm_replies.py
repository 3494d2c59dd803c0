"""Reading what an endpoint says: an answer, a refusal, or a failure and what it calls for.

Order matters: type of the reply, choices, end, text. A cut answer is never taken for a whole one.

Source: measured behaviour of OpenAI-compatible endpoints.
"""

import email.utils
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from pararecover_core.completions import Completion, Status, Usage

_STOP_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_AGAIN = frozenset({408, 409, 429})
_ONCE = 1
"""Further tries after a failure that repeats as a rule: a time-out, an empty answer."""


class Fatal(Exception):
    """Every further call would fail alike.

    Args:
        text: Why.
        always: Whether that is so even after calls that went well (no credit); else it is so
            only where no call has gone well yet (a wrong model name).
        passing: Whether trying again may help where calls have gone well before.
    """

    def __init__(self, text: str, *, always: bool = False, passing: bool = False) -> None:
        super().__init__(text)
        self.always, self.passing = always, passing


class Again(Exception):
    """This call may succeed later.

    Args:
        status: What the question becomes when tries run out.
        text: Why.
        wait: Seconds that the endpoint asks to wait; None for our own pause.
        busy: Whether the endpoint has too much to do: everybody pauses.
        tries: Further tries at most; None for as many as the endpoint's setting.
        form: Whether it may be the form of the question that the endpoint does not take.
        usage: What was paid for nothing.
    """

    def __init__(
        self,
        status: Status,
        text: str,
        *,
        wait: float | None = None,
        busy: bool = False,
        tries: int | None = None,
        form: bool = False,
        usage: Usage = Usage(),  # noqa: B008 (immutable)
    ) -> None:
        super().__init__(text)
        self.status, self.wait, self.busy = status, wait, busy
        self.tries, self.form, self.usage = tries, form, usage


class Unfit(Exception):
    """The endpoint does not take the question in this form: another form may do.

    Args:
        text: What it said.
        form: "schema" (structured output), "tokens" (name of the limit), "temperature", "seed"
            or "" where it does not say.
    """

    def __init__(self, text: str, form: str = "") -> None:
        super().__init__(text)
        self.form = form


def timed_out(seconds: float) -> Again:
    """No answer in time: tried once more, for a slow server works on all it was ever asked."""
    return Again(Status.TIMED_OUT, f"no answer within {seconds:g} s", tries=_ONCE)


def status_failure(status: int, body: bytes, headers: Mapping[str, str]) -> Exception:
    """What an HTTP status from 400 calls for.

    Args:
        status: The status.
        body: What came with it: an error as OpenAI writes it, or anything.
        headers: The reply's headers, names in any case.

    Returns:
        ``Fatal``, ``Again`` or ``Unfit``.
    """
    said, code = _error_in(body)
    text = f"HTTP {status}: {' '.join(said.split())[:300]}"
    if status in (401, 402) or code in _STOP_CODES:
        return Fatal(text, always=True)
    if status in (403, 404):
        return Fatal(text)
    form = _form_named(text)
    if status in (400, 422) or (status in (500, 501) and form == "schema"):
        return Unfit(text, "context" if _too_long(text, code) else form)
    if status in _AGAIN or status >= 500:
        wait = retry_after(headers)
        busy = status in (429, 503, 529)
        doubt = status in (500, 501)
        return Again(Status.ENDPOINT_ERROR, text, wait=wait, busy=busy, form=doubt)
    return Again(Status.ENDPOINT_ERROR, text, tries=0)


def _error_in(body: bytes) -> tuple[str, str]:
    """Message and code of an error; the text itself where it is none that we know."""
    text = body.decode("utf-8", "replace")
    try:
        data = orjson.loads(body)
    except ValueError:
        return text, ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error), ""
    codes = (str(error.get("code") or ""), str(error.get("type") or ""))
    code = next((c for c in codes if c in _STOP_CODES), codes[0])
    return str(error.get("message") or error.get("detail") or text), code


def _form_named(text: str) -> str:
    lowered = text.casefold()
    words = {
        "tokens": ("max_completion_tokens",),
        "temperature": ("temperature",),
        "seed": ("'seed'", '"seed"', " seed "),
        "schema": ("response_format", "json_schema", "json_object", "schema", "grammar"),
    }
    return next((form for form, known in words.items() if any(w in lowered for w in known)), "")


def _too_long(text: str, code: str) -> bool:
    lowered = text.casefold()
    return code == "context_length_exceeded" or any(
        words in lowered for words in ("context length", "context size", "too long", "context_len")
    )


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that a reply asks to wait.

    Args:
        headers: The reply's headers.
        now: Seconds since the epoch, for tests.

    Returns:
        Seconds >= 0 from ``retry-after-ms`` or ``Retry-After`` (seconds or a date), else None.
    """
    with suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    given = headers.get("retry-after")
    if given is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(given))
    date = email.utils.parsedate_tz(given)
    if date is None:
        return None
    return max(0.0, email.utils.mktime_tz(date) - (time.time() if now is None else now))


def read_reply(body: bytes, kind: str = "application/json") -> Completion:
    """Read the body of a reply with status 200.

    Args:
        body: As it came.
        kind: Its content type.

    Returns:
        ``ok``, ``refused`` or ``truncated``.

    Raises:
        Fatal: It is no chat completion at all.
        Again: A failure that may pass (no JSON, no choices, no text, an unknown end).
    """
    raw = body.decode("utf-8", "replace").strip()
    reply = _decoded(raw, kind)
    usage = _usage(reply.get("usage"))
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _no_choices(reply, raw, usage)
    end, refusal = choice.get("finish_reason"), message.get("refusal")
    reasoning = _text_of(message.get("reasoning_content") or message.get("reasoning"))
    if end == "content_filter" or refusal:
        said = _text_of(refusal) or "the content filter stopped the answer"
        return Completion(Status.REFUSED, "", reasoning, usage, raw, said)
    text = _text_of(message.get("content"))
    if end == "length":
        why = "the answer was cut at the token limit"
        return Completion(Status.TRUNCATED, text, reasoning, usage, raw, why)
    if end not in (None, "stop", "eos"):
        raise Again(Status.ENDPOINT_ERROR, f"the answer ended with {end!r}", usage=usage)
    if not text.strip():
        why = "the answer is empty" + (", there is only reasoning" if reasoning else "")
        raise Again(Status.UNPARSABLE, why, tries=_ONCE, usage=usage)
    return Completion(Status.OK, text, reasoning, usage, raw)


def _decoded(raw: str, kind: str) -> dict[str, Any]:
    try:
        reply = orjson.loads(raw)
    except ValueError as error:
        if "html" in kind or raw.startswith("<"):
            raise _no_completion("a web page") from error
        raise Again(Status.ENDPOINT_ERROR, f"the reply is not JSON: {error}") from error
    if not isinstance(reply, dict):
        raise _no_completion(f"a JSON {type(reply).__name__}")
    return reply


def _no_completion(what: str) -> Fatal:
    text = f"the endpoint answered with {what}, no chat completion; check the base URL"
    return Fatal(text, passing=True)


def _no_choices(reply: Mapping[str, Any], raw: str, usage: Usage) -> Exception:
    problem = reply.get("error")
    code = str(problem.get("code") or problem.get("type")) if isinstance(problem, dict) else ""
    text = f"no choices in the reply: {str(problem or raw)[:300]}"
    if code in _STOP_CODES:
        return Fatal(text, always=True)
    return Again(Status.ENDPOINT_ERROR, text, usage=usage)


def _usage(given: Any) -> Usage:
    def count(name: str) -> int:
        value = given.get(name) if isinstance(given, dict) else None
        return value if type(value) is int and value > 0 else 0

    return Usage(count("prompt_tokens"), count("completion_tokens"))


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text", "") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
