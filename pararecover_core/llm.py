"""The one door to models: any OpenAI-compatible endpoint, asked many times, failing honestly.

Async inside, plain functions outside. Failure is a result with a status, never an exception that
loses the other answers and never a score. What makes every further call pointless (wrong key, no
such model, no credit, an endpoint that is down) stops a run; questions that were not answered for
that reason are reported as ``stopped``.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import msgspec
import openai
from aiolimiter import AsyncLimiter

from pararecover_core.completions import (
    Cache,
    Completion,
    Endpoint,
    Request,
    Status,
    Usage,
    cache_key,
)
from pararecover_core.errors import ConfigError
from pararecover_core.literals import dumps
from pararecover_core.llm_replies import Again, Fatal, Unfit, read_reply, status_failure, timed_out

L = TypeVar("L")

LADDER = ("json_schema", "json_object+schema", "json_object", "text")
"""Forms of structured output, the strictest first; an endpoint gets the first that it takes."""

MORE_TOKENS = 4
"""How much longer an answer may be that was cut: asked once more."""

_LONGEST_PAUSE = 60.0
_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.1
_PATIENT_TRIES = 12


class _Stopped(Exception):
    """The run was stopped or cancelled while this question waited."""


class _Form(msgspec.Struct):
    """The form in which the endpoint takes questions, learnt once a run.

    Attributes:
        rung: Where on the ladder.
        proven: Whether an answer came in that form.
        answered: Whether any answer came.
    """

    rung: int = 0
    proven: bool = False
    answered: bool = False
    token_name: str = "max_tokens"
    temperature: bool = True
    seed: bool = True


class Model:
    """An endpoint with its memory: which form it takes, when it wants a pause, why it stopped.

    Args:
        endpoint: Where to ask.
        cache: Where answers are kept; None keeps none.
        sleep: How to wait between tries; tests give one that does not.
        clock: Seconds, ever growing.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        cache: Cache | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.stopped = ""
        self.sleep, self.clock = sleep, clock
        self._cache = cache
        self.known = _Form()
        self.pause_until = 0.0
        self._strikes = self._busy = 0

    @property
    def form(self) -> str:
        """The form of structured output in use, as ``LADDER`` names it."""
        return LADDER[self.known.rung]

    def ask(self, request: Request) -> Completion:
        """One answer; see ``ask_many``."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Iterable[Request]) -> list[Completion]:
        """Answers in the order of the requests; see ``ask_many``."""
        found: dict[int, Completion] = {}
        self.ask_many(enumerate(requests), found.__setitem__)
        return [found[index] for index in sorted(found)]

    def ask_many(
        self,
        requests: Iterable[tuple[L, Request]],
        done: Callable[[L, Completion], object],
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Ask many questions, at most ``concurrency`` at once.

        The very first question goes alone: what is wrong for all is found by one call.

        Args:
            requests: (label, request) pairs, drawn as workers become free.
            done: Called in this thread with each label and its answer, as soon as it is there;
                quick, because the others wait. What it raises ends the run.
            cancelled: Looked at often; true ends the run. Calls under way get a few seconds;
                questions without an answer by then are not reported.

        Raises:
            ConfigError: The environment names a proxy that is none for HTTP.
        """
        run = _Run(self, iter(requests), done, cancelled)
        asyncio.run(run.all())

    def strike(self, why: str) -> None:
        """Count questions in a row that ran out of tries: an endpoint that is down stops us."""
        self._strikes += 1
        limit = max(10, 2 * self.endpoint.concurrency)
        if self._strikes >= limit and not self.stopped:
            self.stopped = f"{limit} questions in a row failed, the last one: {why}"

    def pause(self, wait: float | None) -> None:
        """Let everybody wait: as long as the endpoint asks, else longer each time."""
        if wait is None:
            self._busy += 1
            wait = _back_off(self._busy, _LONGEST_PAUSE)
        elif wait > self.endpoint.patience:
            self.stopped = (
                f"the endpoint asks to wait {wait:,.0f} s, more than {self.endpoint.patience:,.0f}"
                " s; go on later"
            )
        self.pause_until = max(self.pause_until, self.clock() + wait)

    def key(self, request: Request) -> str:
        """The key of a question in the cache, "" where there is no cache."""
        return cache_key(self.endpoint, request) if self._cache else ""

    def kept(self, key: str) -> Completion | None:
        """The answer in the cache, or None."""
        found = self._cache.get(key) if self._cache else None
        return None if found is None else msgspec.structs.replace(found, cached=True)

    def keep(self, key: str, completion: Completion) -> None:
        """Put an answer into the cache, where it is one."""
        if self._cache and completion.status in (Status.OK, Status.REFUSED, Status.TRUNCATED):
            self._cache.put(key, completion)

    def body(self, request: Request, rung: int, more_tokens: int = 1) -> dict[str, Any]:
        """A question as the endpoint gets it."""
        form = self.known
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            form.token_name: request.max_tokens * more_tokens,
        }
        if form.temperature:
            body["temperature"] = request.temperature
        if request.seed is not None and form.seed:
            body["seed"] = request.seed
        return body | _format(LADDER[rung], request.schema)

    def adapt(self, error: Unfit, rung: int, request: Request) -> int:
        """The rung to try next after an answer "not in this form".

        Raises:
            Again: There is no other form.
        """
        form = self.known
        if error.form == "tokens" and form.token_name == "max_tokens":
            form.token_name = "max_completion_tokens"
        elif error.form == "temperature" and form.temperature:
            form.temperature = False
        elif error.form == "seed" and form.seed:
            form.seed = False
        elif self._may_step_down(error, rung, request):
            return rung + 1
        else:
            raise Again(Status.ENDPOINT_ERROR, str(error), tries=0)
        return rung

    def _may_step_down(self, error: Unfit, rung: int, request: Request) -> bool:
        if request.schema is None or rung == len(LADDER) - 1:
            return False
        return error.form == "schema" or (error.form == "" and not self.known.proven)

    def learn(self, request: Request, rung: int) -> None:
        """An answer came in this form."""
        self._busy = self._strikes = 0
        self.known.answered = True
        if request.schema is not None:
            self.known.rung = max(self.known.rung, rung)
            self.known.proven = True


class _Run:
    """One ``ask_many``."""

    def __init__(
        self,
        model: Model,
        requests: Iterator[tuple[L, Request]],
        done: Callable[[L, Completion], object],
        cancelled: Callable[[], bool],
    ) -> None:
        self._model, self._endpoint = model, model.endpoint
        self._requests: Iterator[tuple[Any, Request]] = requests
        self._done: Callable[[Any, Completion], object] = done
        self._cancelled = cancelled
        self._proven = model.known.answered
        self._first = asyncio.Lock()
        self._calls = asyncio.Semaphore(self._endpoint.concurrency)
        limit = self._endpoint.per_minute
        self._limiter = AsyncLimiter(1, 60 / limit) if limit else None
        self._end = asyncio.Event()
        self._url = f"{self._endpoint.base_url}/chat/completions"
        self._proxy = _proxy(self._endpoint)

    async def all(self) -> None:
        """Ask everything."""
        async with AsyncExitStack() as stack:
            self._session = await stack.enter_async_context(_session(self._endpoint))
            most = self._endpoint.concurrency
            # the next questions are ready when a call ends: what a worker does before and after
            # its call costs no place
            workers = [asyncio.create_task(self._work()) for _ in range(most + most // 4)]
            watch = asyncio.create_task(self._watch(workers))
            try:
                await asyncio.gather(*workers)
            except asyncio.CancelledError:
                if not self._end.is_set():
                    raise
            finally:
                for task in (*workers, watch):
                    task.cancel()
                await asyncio.gather(*workers, watch, return_exceptions=True)

    async def _watch(self, workers: list[asyncio.Task[None]]) -> None:
        while not self._cancelled():
            await asyncio.sleep(_LOOK_SECONDS)
        self._end.set()
        await asyncio.sleep(_GRACE_SECONDS)
        for worker in workers:
            worker.cancel()

    async def _work(self) -> None:
        for label, request in self._requests:
            if self._end.is_set() or self._cancelled():
                return
            try:
                completion = await self._answer(request)
            except _Stopped:
                if not self._model.stopped:
                    return
                completion = Completion(Status.STOPPED, error=self._model.stopped)
            self._done(label, completion)
            if completion.cached:
                await asyncio.sleep(0)

    async def _answer(self, request: Request) -> Completion:
        key = self._model.key(request)
        kept = self._model.kept(key)
        if kept is not None:
            return kept
        start = time.monotonic()
        completion = None
        if not self._proven:
            async with self._first:
                if not self._proven:
                    completion = await self._try(request)
                    self._proven = True
        if completion is None:
            completion = await self._try(request)
        completion = msgspec.structs.replace(completion, seconds=time.monotonic() - start)
        self._model.keep(key, completion)
        return completion

    async def _try(self, request: Request) -> Completion:
        """Ask until there is an answer, tries run out or the run ends."""
        rung = self._model.known.rung if request.schema else len(LADDER) - 1
        failed, more_tokens = 0, 1
        cut: Completion | None = None
        spent = Usage()
        while True:
            try:
                completion = await self._once(request, rung, more_tokens)
            except Fatal as error:
                failure = self._weigh(error)
            except Unfit as error:
                if cut is not None:
                    return cut
                try:
                    rung = self._model.adapt(error, rung, request)
                    continue
                except Again as final:
                    failure = final
            except Again as error:
                failure = error
                if request.schema and failed and error.form and not self._model.known.proven:
                    rung = min(rung + 1, len(LADDER) - 1)  # some refuse a schema with 500
            else:
                spent += completion.usage
                completion = msgspec.structs.replace(completion, usage=spent)
                self._model.learn(request, rung)
                if completion.status is not Status.TRUNCATED or cut or not self._endpoint.retries:
                    return completion
                cut, more_tokens = completion, MORE_TOKENS
                continue
            failed += 1
            spent += failure.usage
            if failed > self._tries(failure):
                why = self._clean(str(failure))
                if failure.tries != 0:
                    self._model.strike(why)
                return cut or Completion(failure.status, usage=spent, raw=why, error=why)
            await self._wait_after(failure, failed)

    def _tries(self, failure: Again) -> int:
        if failure.tries is not None:
            return min(failure.tries, self._endpoint.retries)
        return max(self._endpoint.retries, _PATIENT_TRIES if failure.busy else 0)

    def _weigh(self, error: Fatal) -> Again:
        """What is fatal before any answer came may concern one question alone afterwards.

        Raises:
            _Stopped: It is fatal.
        """
        if error.always or not self._model.known.answered:
            self._model.stopped = self._model.stopped or self._clean(str(error))
            raise _Stopped from error
        return Again(Status.ENDPOINT_ERROR, str(error), tries=None if error.passing else 0)

    def _clean(self, text: str) -> str:
        return self._endpoint.key.clean(text)

    async def _turn(self) -> None:
        """Wait until a call may begin.

        Raises:
            _Stopped: The run ended meanwhile.
        """
        while True:
            if self._end.is_set() or self._model.stopped:
                raise _Stopped
            wait = self._model.pause_until - self._model.clock()
            if wait <= 0:
                break
            await self._rest(wait)
        if self._limiter:
            await self._limiter.acquire()
            if self._end.is_set() or self._model.stopped:
                raise _Stopped

    async def _rest(self, seconds: float) -> None:
        """Wait, but not beyond the end of the run."""
        sleeping = asyncio.ensure_future(self._model.sleep(seconds))
        ending = asyncio.ensure_future(self._end.wait())
        await asyncio.wait((sleeping, ending), return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()
        ending.cancel()

    async def _wait_after(self, failure: Again, failed: int) -> None:
        if failure.busy or failure.wait is not None:
            self._model.pause(failure.wait)
        else:
            await self._rest(_back_off(failed, 8.0))

    async def _once(self, request: Request, rung: int, more_tokens: int) -> Completion:
        """One call. While it is under way it has a place; what needs none is done outside."""
        body = dumps(self._model.body(request, rung, more_tokens)).encode("utf-8", "replace")
        async with self._calls:
            await self._turn()
            status, headers, content = await self._send(body)
        await asyncio.sleep(0)  # whoever waits for the place goes before the reading
        if status >= 400:
            raise status_failure(status, content, headers)
        found = read_reply(content, headers.get("content-type", ""))
        raw, said = self._clean(found.raw), self._clean(found.error)
        return msgspec.structs.replace(found, raw=raw, error=said)

    async def _send(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and content of the reply."""
        try:
            async with (
                asyncio.timeout(self._endpoint.timeout),
                self._session.post(self._url, data=body, proxy=self._proxy) as reply,
            ):
                return reply.status, reply.headers, await reply.read()
        except TimeoutError as error:
            raise timed_out(self._endpoint.timeout) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:  # a URL or proxy of no use, too
            raise _no_connection(self._endpoint, error) from error


def _no_connection(endpoint: Endpoint, error: BaseException) -> Again:
    said = str(error.__cause__ or error).strip() or type(error).__name__
    return Again(Status.ENDPOINT_ERROR, f"no connection to {endpoint.base_url}: {said}")


def _session(endpoint: Endpoint) -> aiohttp.ClientSession:
    """Connections to an endpoint, with the headers that the ``openai`` client would send.

    Questions go past that client: retries, deadlines and failures are ours, and its own way takes
    more processor time than everything else together.
    """
    idle = httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(503)))
    client = openai.OpenAI(
        api_key=endpoint.key.reveal(), base_url=endpoint.base_url, http_client=idle
    )
    given = {**client.default_headers, **client.auth_headers}
    secure = endpoint.base_url.startswith("https")
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=endpoint.concurrency + 1, ssl=httpx2.create_ssl_context() if secure else True
        ),
        headers={name: value for name, value in given.items() if isinstance(value, str)},
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
    )


def http_client(endpoint: Endpoint) -> httpx2.Client:
    """The transport of a client that does not run async; to this machine past any proxy.

    Raises:
        ConfigError: The environment names a proxy that is none for HTTP.
    """
    context = httpx2.create_ssl_context()
    return openai.DefaultHttpxClient(proxy=_proxy(endpoint), verify=context, trust_env=False)


def _proxy(endpoint: Endpoint) -> str | None:
    """The proxy that the environment names for an endpoint, none to this machine.

    Raises:
        ConfigError: It is none for HTTP.
    """
    url = urlsplit(endpoint.base_url)
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or endpoint.local or proxy_bypass(url.netloc):
        return None
    scheme = urlsplit(proxy).scheme if "://" in proxy else ""
    if scheme not in ("", "http", "https"):
        cure = f"Set {url.scheme.upper()}_PROXY to one, or NO_PROXY={url.hostname} to use none"
        raise ConfigError("proxy", f"one for {scheme.upper()}", "an HTTP proxy", cure)
    return proxy if scheme else f"http://{proxy}"


def _format(form: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    if schema is None or form == "text":
        return {}
    if form == "json_schema":
        named = {"name": "answer", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if form == "json_object+schema":
        return {"response_format": {"type": "json_object", "schema": schema}}
    return {"response_format": {"type": "json_object"}}


def _back_off(count: int, longest: float) -> float:
    """Seconds before the next try: doubling, with chance so that callers do not meet again."""
    return min(longest, 0.5 * 2.0 ** (count - 1)) * random.uniform(0.75, 1.0)
