"""What an invocation may spend on real model calls, over all of its processes: no call begins that could exceed it.

Before a call its highest cost is reserved (all input fresh, the longest answer allowed); afterwards the reservation is
replaced by what the provider's usage says it cost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import Usage
from compaction_lab.conversation.tokens import TokenCounter
from compaction_lab.errors import BudgetReached
from compaction_lab.models.base import Model, ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible

ENVIRONMENT = "COMPACTION_LAB_BUDGET"
"""``LIMIT_USD:FILE``, set by a run with ``--max-cost`` for itself and its workers."""

UNBOUNDED_ANSWER_TOKENS = 16_384
"""Taken for the longest answer of an endpoint without ``max_output_tokens``."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit in US dollars and the SQLite file that holds what was spent and reserved."""

    path: Path
    limit_usd: float

    @classmethod
    def start(cls, path: Path, limit_usd: float) -> Budget:
        """Make an empty budget at ``path``."""
        path.unlink(missing_ok=True)
        budget = cls(path, limit_usd)
        with budget._database() as database:
            database.execute("create table spent (call integer primary key, usd real)")
        return budget

    @classmethod
    def of_environment(cls) -> Budget | None:
        """Return the budget of the run this process works for, if it has one."""
        limit, _, path = os.environ.get(ENVIRONMENT, "").partition(":")
        return cls(Path(path), float(limit)) if path else None

    def announce(self) -> str:
        """Return the value of the environment variable that hands this budget to workers."""
        return f"{self.limit_usd}:{self.path}"

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            database.execute("begin immediate")
            yield database
            database.execute("commit")
        finally:
            database.close()

    def spent_usd(self) -> float:
        """Return what was spent so far, calls under way at their highest cost."""
        with self._database() as database:
            return float(database.execute("select coalesce(sum(usd), 0) from spent").fetchone()[0])

    def reserve(self, usd: float) -> int | None:
        """Reserve a call of at most ``usd`` and return its number, or ``None`` when it could exceed the limit."""
        with self._database() as database:
            spent = float(database.execute("select coalesce(sum(usd), 0) from spent").fetchone()[0])
            if spent + usd > self.limit_usd:
                return None
            return database.execute("insert into spent (usd) values (?)", (usd,)).lastrowid

    def settle(self, call: int, usd: float) -> None:
        """Replace a reservation by what the call cost."""
        with self._database() as database:
            database.execute("update spent set usd = ? where call = ?", (usd, call))


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model that is asked only while the budget lasts.

    Parameters
    ----------
    endpoint
        Says how long an answer may be.
    model
        Who is asked.
    budget, price
        The limit, and what this model's tokens cost.
    counter
        Counts a request before it is sent.
    """

    endpoint: OpenAICompatible
    model: Model
    budget: Budget
    price: Price
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
        """Reserve, ask, settle.

        Raises
        ------
        BudgetReached
            The call could exceed the limit, so it was not made.
        """
        most = Usage(
            self.counter.request(request.messages, request.tools),
            output_tokens=self.endpoint.output_limit(request) or UNBOUNDED_ANSWER_TOKENS,
        )
        usd = self.price.cost_uncached(most)
        call = self.budget.reserve(usd)
        if call is None:
            raise BudgetReached(
                f"{self.budget.spent_usd():.4f} of {self.budget.limit_usd:.4f} USD are spent, and a "
                f"{request.purpose} call to {self.name} could cost {usd:.4f} more (--max-cost)"
            )
        cost = 0.0  # a call that failed is not billed
        try:
            reply = self.model(request)
            cost = usd if reply.usage is None else self.price.cost(reply.usage)
        finally:
            self.budget.settle(call, cost)
        return reply
