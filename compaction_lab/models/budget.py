"""What an invocation may spend on real model calls, over all of its processes: no call begins that could exceed it.

Before a call its highest cost is reserved (all input fresh, the longest answer allowed); afterwards the reservation is
replaced by what the provider's usage says it cost.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import Usage
from compaction_lab.errors import BudgetReached
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.shared_file import transaction
from compaction_lab.models.wrapping import Wrapper

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
        with transaction(path) as database:
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

    def spent_usd(self) -> float:
        """Return what was spent so far, calls under way at their highest cost."""
        with transaction(self.path) as database:
            return float(database.execute("select coalesce(sum(usd), 0) from spent").fetchone()[0])

    def reserve(self, usd: float) -> int | None:
        """Reserve a call of at most ``usd`` and return its number, or ``None`` when it could exceed the limit."""
        with transaction(self.path) as database:
            spent = float(database.execute("select coalesce(sum(usd), 0) from spent").fetchone()[0])
            if spent + usd > self.limit_usd:
                return None
            return database.execute("insert into spent (usd) values (?)", (usd,)).lastrowid

    def settle(self, call: int, usd: float) -> None:
        """Replace a reservation by what the call cost."""
        with transaction(self.path) as database:
            database.execute("update spent set usd = ? where call = ?", (usd, call))


@dataclass(frozen=True, slots=True)
class BudgetedModel(Wrapper):
    """A model that is asked only while the budget lasts.

    Parameters
    ----------
    endpoint, model
        As of every wrapper.
    budget, price
        The limit, and what this model's tokens cost.
    """

    budget: Budget
    price: Price

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Reserve, ask, settle.

        Raises
        ------
        BudgetReached
            The call could exceed the limit, so it was not made.
        """
        usd = highest_cost_usd(self.endpoint, request, self.price)
        call = self.budget.reserve(usd)
        if call is None:
            raise beyond(self.budget, usd, f"a {request.purpose} call to {self.name}")
        cost = 0.0  # a call that failed is not billed
        try:
            reply = self.model(request)
            cost = usd if reply.usage is None else self.price.cost(reply.usage)
        finally:
            self.budget.settle(call, cost)
        return reply


def highest_cost_usd(endpoint: OpenAICompatible, request: ModelRequest, price: Price) -> float:
    """Return what a call costs at most: all input fresh, the longest answer allowed."""
    answer = endpoint.output_limit(request) or UNBOUNDED_ANSWER_TOKENS
    return price.cost_uncached(Usage(endpoint.input_tokens(request), output_tokens=answer))


def beyond(budget: Budget, usd: float, what: str) -> BudgetReached:
    """Return the error of a call, or several, that could cost ``usd`` and so exceed the budget."""
    if not budget.limit_usd:
        return BudgetReached(f"--max-cost 0 allows no call that costs anything, and {what} could cost {usd:.4f} USD")
    return BudgetReached(
        f"{budget.spent_usd():.4f} of {budget.limit_usd:.4f} USD are spent, and {what} could cost {usd:.4f} more "
        "(--max-cost)"
    )
