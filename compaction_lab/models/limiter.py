"""One rate limiter per provider, shared by all cells and processes of this machine through an SQLite file."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.models.patience import LONGEST_ASKED_S
from compaction_lab.models.shared_file import cache_folder, transaction

WINDOW_S = 60.0
AHEAD_S = 1.0
"""What is noted for later than this lies in the future because the clock was set back: it counts for nothing."""

_TABLES = (
    "create table if not exists spent (provider text, at_s real, tokens integer)",
    "create table if not exists held (provider text primary key, until_s real)",
)


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
        Requests to one provider count together, and wait together when it asks for a pause.
    limits
        What it allows a minute.
    clock, sleep
        Time, for tests.
    """

    def __init__(
        self,
        path: Path,
        provider: str,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.path = path
        self.provider = provider
        self.limits = limits
        self._clock = clock
        self._sleep = sleep
        path.parent.mkdir(parents=True, exist_ok=True)
        with transaction(path) as database:
            for table in _TABLES:
                database.execute(table)

    def wait(self, tokens: int) -> float:
        """Reserve a request of ``tokens`` tokens, waiting as long as it takes; return the seconds waited.

        A request larger than a whole minute's tokens goes when nothing else was spent in that minute.
        """
        waited = 0.0
        while (pause := self._reserve(tokens, self._clock())) > 0:
            pause += random.uniform(0, 0.1 * pause)  # noqa: S311 - spreads the waiting, hides nothing
            self._sleep(pause)
            waited += pause
        return waited

    def hold(self, seconds: float) -> None:
        """Let nobody ask this provider for a while, as it asked."""
        with transaction(self.path) as database:
            database.execute(
                "insert into held values (?, ?) on conflict (provider) do update set until_s = max(until_s, "
                "excluded.until_s)",
                (self.provider, self._clock() + seconds),
            )

    def _reserve(self, tokens: int, now_s: float) -> float:
        """Take a place now and return 0, or return the seconds until the next place may be free."""
        free = self.limits == Limits()
        with transaction(self.path, write=not free) as database:
            held = database.execute("select until_s from held where provider = ?", (self.provider,)).fetchone()
            if held is not None and now_s < held[0] <= now_s + LONGEST_ASKED_S:
                return float(held[0]) - now_s
            if free:
                return 0.0
            database.execute("delete from spent where at_s <= ? or at_s > ?", (now_s - WINDOW_S, now_s + AHEAD_S))
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


def limiter_path() -> Path:
    """Return the file that limiters share: one a user, on this machine."""
    return cache_folder() / "limits.sqlite"
