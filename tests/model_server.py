"""An OpenAI-compatible server without a model: a reply function scripts answers and failures."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What goes out: ``body`` as JSON, text or bytes; ``cut`` bytes are left off the end."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str = ""  # "reset" before headers, "reset body", "drip"
    cut: int = 0
    kind: str = "application/json"


@dataclass
class Call:
    """What came in."""

    at: float
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def text(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


Reply = Callable[[Call], Any]


def chat(content: Any = "hello", **fields: Any) -> dict[str, Any]:
    """A chat completion; fields of the message or the choice, ``usage`` and others by name."""
    message = {"role": "assistant", "content": content}
    message |= {n: fields.pop(n) for n in list(fields) if n in _OF_MESSAGE}
    choice = {"index": 0, "message": message, "finish_reason": fields.pop("finish_reason", "stop")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    made = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return made | {"choices": [choice], "usage": usage} | fields


_OF_MESSAGE = ("refusal", "reasoning_content", "reasoning")


def failure(status: int, message: str = "no", code: Any = None, **headers: str) -> Answer:
    """An error as OpenAI writes it; ``retry_after`` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer({"error": {"message": message, "code": code}}, status, named)


@dataclass
class ModelServer:
    """A running server: where it is and what it was asked."""

    url: str
    calls: list[Call] = field(default_factory=list)
    most_at_once: int = 0
    under_way: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        """The last message of each call."""
        return [call.text for call in self.calls]


@contextlib.contextmanager
def serving(reply: Reply, port: int = 0) -> Iterator[ModelServer]:
    """Serve until the block ends; ``reply`` gives an ``Answer``, or a body for status 200."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None: ...

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            as_json = "json" in self.headers.get("content-type", "")
            self._serve(json.loads(raw) if as_json else raw)

        def do_GET(self) -> None:
            self._serve(None)

        def _serve(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(time.monotonic(), self.path, headers, body)
            with server.lock:
                server.calls.append(call)
                server.under_way += 1
                server.most_at_once = max(server.most_at_once, server.under_way)
            try:
                found = reply(call)
                answer = found if isinstance(found, Answer) else Answer(found)
                time.sleep(answer.delay)
            finally:
                with server.lock:
                    server.under_way -= 1
            with contextlib.suppress(ConnectionError):
                self._send(answer)

        def _send(self, answer: Answer) -> None:
            if answer.fault == "reset":
                return self._reset()
            body = answer.body
            data = body if isinstance(body, bytes) else (
                body.encode() if isinstance(body, str) else json.dumps(body).encode()
            )  # fmt: skip
            self.send_response(answer.status)
            shown = {"content-type": answer.kind, "content-length": str(len(data))}
            for name, value in (shown | answer.headers).items():
                self.send_header(name, value)
            self.end_headers()
            if answer.fault == "drip":
                for at in range(0, len(data), 20):
                    self.wfile.write(data[at : at + 20])
                    self.wfile.flush()
                    time.sleep(0.1)
                return None
            self.wfile.write(data[: len(data) - answer.cut])
            if answer.fault == "reset body":
                return self._reset()
            if answer.cut:
                self.close_connection = True
            return None

        def _reset(self) -> None:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None: ...

    http = Quiet(("127.0.0.1", port), Handler)
    server = ModelServer(f"http://127.0.0.1:{http.server_address[1]}/v1")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)


def in_turn(*answers: Any) -> Reply:
    """Give these answers one after the other, the last one for ever."""
    left = list(answers)
    return lambda call: left.pop(0) if len(left) > 1 else left[0]
