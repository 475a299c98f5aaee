"""Agent Framework's ``TokenBudgetComposedStrategy``: strategies in order until a budget is met, then the oldest go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compaction_lab.strategies.agent_framework.acting import Acting, Acts, acted_on
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.entries import Group
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.tokens import CHARACTERS, Tokenizer, resolve
from compaction_lab.strategies.base import Situation, Strategy
from compaction_lab.strategies.registry import register


@register("agent_framework/token_budget_composed", semantics=1)
@dataclass(frozen=True, slots=True)
class TokenBudgetComposed(Acts):
    """Over budget, run strategies in order; still over, exclude the oldest groups, in the end system ones (C2).

    Parameters
    ----------
    token_budget
        Most tokens of the messages that stay, by ``tokenizer``; the newest group stays even if it alone has more.
    tokenizer
        ``characters``, an encoding, or an object with ``count_tokens``.
    strategies
        The framework's own work on the same list; any other strategy of the lab is shown what is left and its edits
        are taken over.
    early_stop
        Stop as soon as the budget is met; otherwise all strategies run.
    """

    token_budget: int
    tokenizer: object
    strategies: tuple[Strategy, ...]
    early_stop: bool = True

    def __post_init__(self) -> None:
        """Check the tokenizer; the framework checks nothing here."""
        refuse(resolve(self.tokenizer) is None, "token_budget_composed needs a tokenizer: characters, or an encoding.")

    def counting(self) -> Tokenizer:
        """Return the tokenizer that the budget is counted with."""
        return resolve(self.tokenizer) or CHARACTERS

    def act(self, ledger: Ledger, situation: Situation) -> bool | Acting:
        """Bring the list within the budget."""
        ledger.count(self.counting())
        if ledger.tokens <= self.token_budget:
            return False
        ledger.reasons.append(f"{ledger.tokens} tokens > {self.token_budget}")
        return self._within(ledger, situation)

    def _within(self, ledger: Ledger, situation: Situation) -> Acting:
        changed = False
        for strategy in self.strategies:
            changed = (yield from acted_on(strategy, ledger, situation)) or changed
            ledger.count(self.counting())
            if self.early_stop and ledger.tokens <= self.token_budget:
                return changed
        if ledger.tokens <= self.token_budget:
            return changed
        kept = ledger.minimum
        changed = self._exclude(ledger, lambda group: group.kind != "system" and group is not kept) or changed
        if ledger.tokens > self.token_budget:
            changed = self._exclude(ledger, lambda group: group.kind == "system" and group is not kept) or changed
        return changed

    def _exclude(self, ledger: Ledger, may_go: Callable[[Group], bool]) -> bool:
        changed = False
        for group in ledger.oldest():
            if may_go(group):
                changed = ledger.exclude(group) or changed
                if ledger.tokens <= self.token_budget:
                    break
        return changed
