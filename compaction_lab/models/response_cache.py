"""Replies of real models kept in one SQLite file, so that an equal request is paid once, also by concurrent processes.

The key is the request with its model, endpoint, role and trial. A reply that is being fetched is waited for, not
fetched twice (single flight). Latency and usage of the original call are kept, and the reply says that it is cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from compaction_lab.conversation.json_values import canonical_json
from compaction_lab.conversation.messages import JSON, ToolCall, Usage
from compaction_lab.errors import ConfigurationError, NotCached
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.shared_file import cache_folder, transaction
from compaction_lab.models.wrapping import Wrapper

ENVIRONMENT = "COMPACTION_LAB_CACHE"
POLL_S = 0.05
STALE_FLIGHT_S = 1_800.0
"""A flight is taken for dead after this, and at once when its process was one of this host and is gone."""

USE_NOTED_S = 3_600.0
"""The time of last use is written down again after this, so that reading seldom writes."""

_TABLES = (
    """create table if not exists replies (key text primary key, model text, endpoint text, role text,
    trial integer, created_s real, used_s real, reply text)""",
    "create table if not exists flights (key text primary key, host text, process integer, started_s real)",
)


def default_path() -> Path:
    """Return where the cache lies: ``$COMPACTION_LAB_CACHE``, else the user's cache folder."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named)
    return cache_folder() / "replies.sqlite"


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a kept reply answers, for statistics and pruning."""

    model: str
    endpoint: str
    role: str
    trial: int


class ResponseCache:
    """A cache file; safe under threads and processes.

    Parameters
    ----------
    path
        The SQLite file, made with its folder when it is missing.

    Raises
    ------
    ConfigurationError
        The file cannot be made or is no SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with transaction(path) as database:
                for table in _TABLES:
                    database.execute(table)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"{path}: {error}; the response cache needs a file it may write (set {ENVIRONMENT} to another)"
            ) from error

    def get(self, key: str) -> ModelReply | None:
        """Return the reply kept under a key."""
        now_s = time.time()
        with transaction(self.path, write=False) as database:
            found = database.execute("select reply, used_s from replies where key = ?", (key,)).fetchone()
            if found is not None and now_s - found[1] > USE_NOTED_S:
                database.execute("update replies set used_s = ? where key = ?", (now_s, key))
        return None if found is None else _decoded(found[0])

    def fetch(self, key: str, about: Fetched, ask: Callable[[], ModelReply]) -> ModelReply:
        """Return the reply kept under ``key``, or ask for it once, whoever else wants it at the same time.

        A failed call is kept by nobody: the next who waits asks again.
        """
        while True:
            found = self.get(key)
            if found is not None:
                return found
            if self._take_off(key):
                try:
                    reply = ask()
                    with transaction(self.path) as database:
                        self.keep(database, key, about, reply)
                finally:
                    self._land(key)
                return reply
            time.sleep(POLL_S)

    def _take_off(self, key: str) -> bool:
        with transaction(self.path) as database:
            if database.execute("select 1 from replies where key = ?", (key,)).fetchone():
                return False
            select = "select host, process, started_s from flights where key = ?"
            flight = database.execute(select, (key,)).fetchone()
            if flight is not None and is_alive(*flight):
                return False
            values = (key, socket.gethostname(), os.getpid(), time.time())
            database.execute("insert or replace into flights values (?, ?, ?, ?)", values)
        return True

    def _land(self, key: str) -> None:
        with transaction(self.path) as database:
            database.execute("delete from flights where key = ?", (key,))

    @staticmethod
    def keep(database: sqlite3.Connection, key: str, about: Fetched, reply: ModelReply) -> None:
        """Keep a reply, as part of somebody's transaction on this file."""
        now_s = time.time()
        values = (key, about.model, about.endpoint, about.role, about.trial, now_s, now_s, _encoded(reply))
        database.execute("insert or replace into replies values (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def stats(self) -> list[dict[str, JSON]]:
        """Return a row for each model, endpoint and role: replies, bytes, first and last use (seconds of the epoch)."""
        with transaction(self.path, write=False) as database:
            rows = database.execute(
                "select model, endpoint, role, count(*), sum(length(reply)), min(created_s), max(used_s) "
                "from replies group by model, endpoint, role order by model, endpoint, role"
            ).fetchall()
        names = ("model", "endpoint", "role", "replies", "bytes", "oldest_s", "last_used_s")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def prune(self, *, unused_for_s: float = 0.0, model: str | None = None) -> int:
        """Forget replies not used for so long, of one model or of all, and free their space; return how many."""
        with transaction(self.path, write=False) as database:  # space is freed outside of a transaction
            gone = database.execute(
                "delete from replies where used_s <= ? and (? is null or model = ?)",
                (time.time() - unused_for_s, model, model),
            ).rowcount
            database.execute("vacuum")
        return int(gone)


@dataclass(frozen=True, slots=True)
class CachedModel(Wrapper):
    """A model that asks its cache first.

    Parameters
    ----------
    endpoint
        Whose replies these are; its requests are the keys.
    model
        Who is asked when the cache has no reply: the endpoint, or the endpoint behind a budget.
    cache
        Where replies are kept.
    only_cache
        Never ask the model: a request that is not kept is an error, so its unit stays owed.
    """

    cache: ResponseCache
    only_cache: bool = False

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Return the kept reply, or the model's.

        Raises
        ------
        NotCached
            No reply is kept and none may be asked for.
        """
        key = request_key(self.endpoint, request)
        if self.only_cache:
            found = self.cache.get(key)
            if found is None:
                raise NotCached(
                    f"model {self.name}: the reply to a {request.purpose} call is not in the cache {self.cache.path}; "
                    "run without --existing only-cache to ask for it"
                )
            return found
        about = Fetched(self.endpoint.name, self.endpoint.endpoint, request.purpose, request.trial)
        return self.cache.fetch(key, about, lambda: self.model(request))


def request_key(model: OpenAICompatible, request: ModelRequest) -> str:
    """Return the sha256 of all that can change a reply: the request's body, the endpoint, the role and the trial."""
    parts: list[JSON] = [model.endpoint, model.body(request), request.purpose, request.trial]
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


def is_alive(host: str, process: int, started_s: float) -> bool:
    """Whether a process that began something then may still be at it; of another host only time can tell."""
    if time.time() - started_s > STALE_FLIGHT_S:
        return False
    if host != socket.gethostname():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _encoded(reply: ModelReply) -> str:
    usage = reply.usage
    value: dict[str, JSON] = {
        "text": reply.text,
        "calls": [[call.id, call.name, call.arguments] for call in reply.calls],
        "finish": reply.finish,
        "usage": None
        if usage is None
        else [
            usage.fresh_input_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
            dict(usage.raw),
        ],
        "latency_s": reply.latency_s,
        "first_token_s": reply.first_token_s,
        "cost_usd": reply.cost_usd,
    }
    return json.dumps(value)


def _decoded(text: str) -> ModelReply:
    value = json.loads(text)
    calls = tuple(ToolCall(*call) for call in value.pop("calls"))
    usage = value.pop("usage")
    reply = ModelReply(calls=calls, usage=None if usage is None else Usage(*usage), **value)
    return replace(reply, cached=True)
