"""A chat-completions server on loopback that counts what it is asked and fails as it is told to, over real HTTP."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def completion(text: str = "It has 32 GB.", *, usage: Body | None = USAGE, **message: object) -> Body:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    said = {"role": "assistant", "content": text, **message}
    answer: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_764_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
    }
    return answer if usage is None else answer | {"usage": usage}


def error(message: str, **fields: object) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


@dataclass(frozen=True)
class Fault:
    """What is sent instead of an answer."""

    status: int = 200
    body: Body | str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False
    hang_s: float = 0.0
    cut_after: int | None = None
    """Bytes of the body after which the connection is closed."""


@dataclass
class FaultyServer:
    """Answers with ``answer(body)``, after the faults in ``faults``, one a request, in order."""

    answer: Callable[[Body], Body] = lambda _: completion()
    faults: list[Fault] = field(default_factory=list)
    always: Fault | None = None
    delay_s: float = 0.0
    url: str = ""
    bodies: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def requests(self) -> int:
        return len(self.bodies)

    @property
    def repeated(self) -> list[str]:
        """Requests that came more than once."""
        counted = Counter(json.dumps(body, sort_keys=True) for body in self.bodies)
        return [body for body, times in counted.items() if times > 1]


@contextmanager
def running(server: FaultyServer | None = None) -> Iterator[FaultyServer]:
    """Run a server for the time of a ``with`` block."""
    faulty = server or FaultyServer()

    class Handler(_Handler):
        state = faulty

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    faulty.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield faulty
    finally:
        http.shutdown()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: FaultyServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.state.lock:
            self.state.bodies.append(body)
            self.state.keys.append(self.headers.get("Authorization", ""))
            fault = self.state.faults.pop(0) if self.state.faults else self.state.always
        if self.state.delay_s:
            time.sleep(self.state.delay_s)
        try:
            self._send(body, fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, body: Body, fault: Fault | None) -> None:
        if fault is not None and fault.reset:
            # Closing with unsent data and no lingering sends RST, as a crashing server does.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        if fault is not None and fault.hang_s:
            time.sleep(fault.hang_s)
            self.close_connection = True
            return
        said = self.state.answer(body) if fault is None or fault.body is None else fault.body
        streamed = bool(body.get("stream")) and isinstance(said, dict) and "choices" in said
        text = _as_stream(said) if streamed else said if isinstance(said, str) else json.dumps(said)
        data = text.encode()
        self.send_response(200 if fault is None else fault.status)
        self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in ({} if fault is None else fault.headers).items():
            self.send_header(name, value)
        self.end_headers()
        cut = None if fault is None else fault.cut_after
        self.wfile.write(data if cut is None else data[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _as_stream(answer: Body) -> str:
    """Write a completion as the events of a stream: words, arguments in pieces, the finish, usage."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = answer["choices"][0] if answer["choices"] else None
    message = choice["message"] if choice else {}
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word + " "} for word in (message.get("content") or "").split(" ") if word]
    for index, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        half = len(arguments) // 2
        deltas.append({"tool_calls": [{"index": index, "id": call["id"], "function": {"name": name, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            for part in (arguments[:half], arguments[half:])
        ]
    events = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if choice:
        events.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if "usage" in answer:
        events.append(head | {"choices": [], "usage": answer["usage"]})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
