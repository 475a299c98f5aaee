"""Which requests are in which provider batch, kept in the response cache's file, so that none is ever submitted twice.

A request is claimed for a batch before the batch is made, and let go when its answer, or the reason why there is none,
is written down. Whoever needs a request that somebody else has claimed waits for that batch.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.models.base import ModelReply
from compaction_lab.models.response_cache import Fetched, ResponseCache, is_alive
from compaction_lab.models.shared_file import transaction

_TABLES = (
    """create table if not exists batches (token text primary key, endpoint text, remote text, host text,
    process integer, started_s real)""",
    "create table if not exists batch_lines (key text primary key, token text, role text, trial integer)",
    "create table if not exists batch_failures (key text primary key, status integer, message text)",
)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch under way: the token it carries as metadata, and the provider's id, empty until it was made.

    ``orphaned`` tells that it has no id and who was about to make it is gone.
    """

    token: str
    remote: str
    started_s: float
    orphaned: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request got no answer: what the server said, with its HTTP status when there was one."""

    message: str
    status: int | None = None


class BatchQueue:
    """The batches of one cache file.

    Parameters
    ----------
    cache
        Where answers are kept.
    """

    def __init__(self, cache: ResponseCache) -> None:
        self.path: Path = cache.path
        self._cache = cache
        with transaction(self.path) as database:
            for table in _TABLES:
                database.execute(table)

    def claim(self, endpoint: str, wanted: Mapping[str, tuple[str, int]]) -> tuple[str, list[str]]:
        """Take requests that have no answer and are in no batch.

        Parameters
        ----------
        endpoint
            Where they are to be asked.
        wanted
            Role and trial by key.

        Returns
        -------
        tuple[str, list[str]]
            The new batch's token, and the keys taken; with none there is no batch.
        """
        token = secrets.token_hex(16)
        with transaction(self.path) as database:
            taken = [key for key in wanted if not _is_known(database, key)]
            if taken:
                values = (token, endpoint, "", socket.gethostname(), os.getpid(), time.time())
                database.execute("insert into batches values (?, ?, ?, ?, ?, ?)", values)
            database.executemany(
                "insert into batch_lines values (?, ?, ?, ?)", ((key, token, *wanted[key]) for key in taken)
            )
            database.executemany("delete from batch_failures where key = ?", ((key,) for key in taken))
        return token, taken

    def made(self, token: str, remote: str) -> None:
        """Write down the id that the provider gave a batch."""
        with transaction(self.path) as database:
            database.execute("update batches set remote = ? where token = ?", (remote, token))

    def abandon(self, token: str) -> None:
        """Leave a batch of which it is not known whether it was made to who comes next."""
        with transaction(self.path) as database:
            database.execute("update batches set host = '', process = 0, started_s = 0 where token = ?", (token,))

    def release(self, token: str) -> None:
        """Let the requests of a batch go that was never made."""
        with transaction(self.path) as database:
            _forget(database, token)

    def under_way(self, endpoint: str, keys: Iterable[str]) -> dict[str, Batch]:
        """Return the batches at an endpoint that hold any of these requests, by token."""
        wanted = set(keys)
        with transaction(self.path, write=False) as database:
            lines = database.execute("select key, token from batch_lines").fetchall()
            rows = database.execute(
                "select token, remote, host, process, started_s from batches where endpoint = ?", (endpoint,)
            ).fetchall()
        holding = {token for key, token in lines if key in wanted}
        return {
            token: Batch(token, remote, started_s, not remote and not is_alive(host, process, started_s))
            for token, remote, host, process, started_s in rows
            if token in holding
        }

    def orphans(self, endpoint: str) -> list[Batch]:
        """Return the batches at an endpoint whose maker died before it knew their id."""
        with transaction(self.path, write=False) as database:
            keys = [key for (key,) in database.execute("select key from batch_lines").fetchall()]
        return [batch for batch in self.under_way(endpoint, keys).values() if batch.orphaned]

    def keys(self, token: str) -> list[str]:
        """Return the requests of a batch; none when somebody else has collected it."""
        with transaction(self.path, write=False) as database:
            rows = database.execute("select key from batch_lines where token = ?", (token,)).fetchall()
        return [key for (key,) in rows]

    def finish(
        self, token: str, model: str, replies: Mapping[str, ModelReply], failures: Mapping[str, Failure]
    ) -> None:
        """Keep the answers of a batch and the reasons of those that have none, and forget it, all at once."""
        with transaction(self.path) as database:
            endpoint = database.execute("select endpoint from batches where token = ?", (token,)).fetchone()
            lines = database.execute("select key, role, trial from batch_lines where token = ?", (token,)).fetchall()
            if endpoint is None:
                return
            for key, role, trial in lines:
                if key in replies:
                    self._cache.keep(database, key, Fetched(model, endpoint[0], role, trial), replies[key])
                elif key in failures:
                    values = (key, failures[key].status, failures[key].message)
                    database.execute("insert or replace into batch_failures values (?, ?, ?)", values)
            _forget(database, token)

    def failure(self, key: str) -> Failure | None:
        """Return why a request got no answer in its last batch."""
        with transaction(self.path, write=False) as database:
            found = database.execute("select message, status from batch_failures where key = ?", (key,)).fetchone()
        return None if found is None else Failure(*found)


def _is_known(database: sqlite3.Connection, key: str) -> bool:
    return any(
        database.execute(f"select 1 from {table} where key = ?", (key,)).fetchone()  # noqa: S608 - two fixed names
        for table in ("replies", "batch_lines")
    )


def _forget(database: sqlite3.Connection, token: str) -> None:
    database.execute("delete from batch_lines where token = ?", (token,))
    database.execute("delete from batches where token = ?", (token,))
