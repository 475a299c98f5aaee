"""The files and batches of an OpenAI-style API on loopback, over real HTTP: batches advance by being looked at."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.models.faulty_server import Body, completion, error

Outcome = Body | int
"""A completion, or the HTTP status of a refused line."""


@dataclass
class BatchServer:
    """Answers lines with ``answer(body)`` once a batch has been looked at ``looks`` times."""

    answer: Callable[[Body], Outcome] = lambda _: completion()
    looks: int = 2
    ends: str = "completed"
    """The status that batches end with; of one that expires every second line is answered."""
    slow_create_s: float = 0.0
    refuse: list[tuple[str, int]] = field(default_factory=list)
    """Path and status of refusals to come, each used once."""
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: list[Body] = field(default_factory=list)
    chats: int = 0
    keys: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def lines(self, number: int = -1) -> list[Body]:
        """The request bodies of a batch."""
        content = self.files[self.batches[number]["input_file_id"]]
        return [json.loads(line)["body"] for line in content.splitlines()]

    def store(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def create(self, asked: Body) -> Body:
        lines = self.files[asked["input_file_id"]].splitlines()
        batch = {
            "id": f"batch_{len(self.batches)}",
            "object": "batch",
            "created_at": int(time.time()),
            "status": "validating",
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            **asked,
        }
        self.batches.append(batch)
        return batch

    def look(self, batch: Body) -> Body:
        seen = batch["metadata"].setdefault("looks", "0")
        batch["metadata"]["looks"] = str(int(seen) + 1)
        if int(seen) + 1 < self.looks:
            batch["status"] = "in_progress"
        elif batch["status"] in ("validating", "in_progress"):
            batch["status"] = self.ends
            if self.ends == "failed":
                batch["errors"] = {"object": "list", "data": [{"message": "the file is no JSONL", "code": "invalid"}]}
            else:
                self._work_off(batch)
        return batch

    def _work_off(self, batch: Body) -> None:
        good, bad = [], []
        for number, line in enumerate(self.files[batch["input_file_id"]].splitlines()):
            asked = json.loads(line)
            row = {"id": f"r{number}", "custom_id": asked["custom_id"], "response": None, "error": None}
            if self.ends == "expired" and number % 2:
                bad.append(row | {"error": {"code": "batch_expired", "message": "could not be executed in time"}})
                continue
            said = self.answer(asked["body"])
            if isinstance(said, int):
                bad.append(row | {"response": {"status_code": said, "body": error("the line was refused")}})
            else:
                good.append(row | {"response": {"status_code": 200, "request_id": "q", "body": said}})
        good.reverse()  # answers come in any order
        batch["output_file_id"], batch["error_file_id"] = (
            self.store("".join(json.dumps(row) + "\n" for row in rows).encode()) if rows else None
            for rows in (good, bad)
        )
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}


@contextmanager
def serving(server: BatchServer | None = None) -> Iterator[BatchServer]:
    """Run a server for the time of a ``with`` block."""
    api = server or BatchServer()

    class Handler(_Handler):
        state = api

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    api.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield api
    finally:
        http.shutdown()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: BatchServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        api, path, query = self.state, self._path(), parse_qs(urlsplit(self.path).query)
        with api.lock:
            if self._refused(path):
                return
            if path == "/batches":
                found = sorted(api.batches, key=lambda batch: -int(batch["id"].partition("_")[2]))
                after = query.get("after", [""])[0]
                start = next((at + 1 for at, batch in enumerate(found) if batch["id"] == after), 0)
                page = found[start : start + 1]  # one a page, so that clients have to turn them
                self._send({"object": "list", "data": page, "has_more": start + 1 < len(found)})
            elif path.startswith("/batches/"):
                self._send(api.look(next(batch for batch in api.batches if batch["id"] == path.split("/")[2])))
            else:
                self._send(api.files[path.split("/")[2]])

    def do_POST(self) -> None:
        api, path = self.state, self._path()
        content = self.rfile.read(int(self.headers["Content-Length"]))
        with api.lock:
            if self._refused(path):
                return
            api.keys.append(self.headers.get("Authorization", ""))
            if path == "/files":
                form = message_from_bytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\n\n" + content)
                parts: dict[str, Any] = {
                    part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                    for part in form.get_payload()
                }
                assert parts["purpose"] == b"batch"
                name = api.store(parts["file"])
                self._send({"id": name, "object": "file", "bytes": len(content), "created_at": 1, "filename": "x"})
            elif path == "/batches":
                made = api.create(json.loads(content))
                if api.slow_create_s:
                    api.lock.release()
                    time.sleep(api.slow_create_s)
                    api.lock.acquire()
                self._send(made)
            else:
                api.chats += 1
                self._send(completion("{}"))

    def _path(self) -> str:
        return urlsplit(self.path).path.removeprefix("/v1")

    def _refused(self, path: str) -> bool:
        for number, (where, status) in enumerate(self.state.refuse):
            if path.startswith(where):
                del self.state.refuse[number]
                self._send(error("not now"), status)
                return True
        return False

    def _send(self, said: Body | bytes, status: int = 200) -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""
