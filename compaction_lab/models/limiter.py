"""One rate limiter per provider, shared by all cells and processes of this machine through the cache's SQLite file."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.conversation.tokens import TokenCounter
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible

WINDOW_S = 60.0
_TABLE = "create table if not exists spent (provider text, at_s real, tokens integer)"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider allows a minute; ``None`` is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class RateLimiter:
    """Waits until a request fits what was spent in the last sixty seconds by everyone who uses the same file.

    Parameters
    ----------
    path
        SQLite file that all processes share.
    provider
        Requests to one provider count together.
    limits
        What it allows a minute.
    """

    def __init__(self, path: Path, provider: str, limits: Limits) -> None:
        self.path = path
        self.provider = provider
        self.limits = limits
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as database:
            database.execute(_TABLE)

    def wait(
        self, tokens: int, *, clock: Callable[[], float] = time.time, sleep: Callable[[float], object] = time.sleep
    ) -> float:
        """Reserve a request of ``tokens`` tokens, waiting as long as it takes; return the seconds waited.

        A request larger than a whole minute's tokens goes when nothing else was spent in that minute.
        """
        waited = 0.0
        while (pause := self._reserve(tokens, clock())) > 0:
            pause += random.uniform(0, 0.1 * pause)  # noqa: S311 - spreads the waiting, hides nothing
            sleep(pause)
            waited += pause
        return waited

    def _reserve(self, tokens: int, now_s: float) -> float:
        """Take a place now and return 0, or return the seconds until the next place may be free."""
        with self._transaction() as database:
            database.execute("delete from spent where at_s <= ?", (now_s - WINDOW_S,))
            spent = database.execute(
                "select at_s, tokens from spent where provider = ? order by at_s", (self.provider,)
            ).fetchall()
            requests, limit = self.limits.requests_per_minute, self.limits.tokens_per_minute
            full = requests is not None and len(spent) >= requests
            heavy = limit is not None and bool(spent) and sum(row[1] for row in spent) + tokens > limit
            if full or heavy:
                return max(0.01, float(spent[0][0]) + WINDOW_S - now_s)
            database.execute("insert into spent values (?, ?, ?)", (self.provider, now_s, tokens))
        return 0.0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            database.execute("begin immediate")
            yield database
            database.execute("commit")
        finally:
            database.close()


@dataclass(frozen=True, slots=True)
class LimitedModel:
    """A model that waits for its turn."""

    model: OpenAICompatible
    limiter: RateLimiter
    counter: TokenCounter

    @property
    def name(self) -> str:
        """What rows and manifests call it."""
        return self.model.name

    @property
    def simulated(self) -> bool:
        """Whether its answers are made by a stub."""
        return self.model.simulated

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Wait, then ask."""
        answer = self.model.output_limit(request) or 0
        tokens = self.counter.request(request.messages, request.tools) + answer
        self.limiter.wait(tokens)
        return self.model(request)


def limiter_path() -> Path:
    """Return the file that limiters share: one a user, on this machine."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "compaction_lab" / "limits.sqlite"
