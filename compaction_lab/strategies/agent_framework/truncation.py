"""Agent Framework's ``TruncationStrategy``: exclude the oldest groups once there is too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.strategies.agent_framework.acting import Acts
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.entries import Group
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.tokens import Tokenizer, resolve
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import register


@register("agent_framework/truncation", semantics=1)
@dataclass(frozen=True, slots=True)
class Truncation(Acts):
    """Above ``max_n``, exclude whole groups, oldest first, until no more than ``compact_to`` are left (mechanism M5).

    Parameters
    ----------
    max_n, compact_to
        When to start and where to stop: tokens when there is a tokenizer, messages otherwise.
    tokenizer
        ``None``, ``characters``, an encoding, or an object with ``count_tokens``.
    preserve_system, preserve_first_user_group
        Groups that stay, beside the newest one.
    """

    max_n: int
    compact_to: int
    tokenizer: object = None
    preserve_system: bool = True
    preserve_first_user_group: bool = False

    from_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        refuse(self.max_n <= 0, "max_n must be greater than 0.")
        refuse(self.compact_to <= 0, "compact_to must be greater than 0.")
        refuse(self.compact_to > self.max_n, "compact_to must be less than or equal to max_n.")
        resolve(self.tokenizer)

    def counting(self) -> Tokenizer | None:
        """Return the tokenizer given."""
        return resolve(self.tokenizer)

    def act(self, ledger: Ledger, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Exclude the oldest groups down to the target."""

        def size() -> int:
            return ledger.included if self.tokenizer is None else ledger.tokens

        found = size()
        if ledger.afresh:
            found = len(ledger.entries) if self.tokenizer is None else ledger.tokens + ledger.hidden_tokens
        if found <= self.max_n:
            return False
        changed = False
        kept = self._kept(ledger)
        for group in ledger.oldest():
            if size() <= self.compact_to:
                break
            if group in kept or (self.preserve_system and group.kind == "system"):
                continue
            changed = ledger.exclude(group) or changed
        ledger.reasons.append(f"{found} {'messages' if self.tokenizer is None else 'tokens'} > {self.max_n}")
        return changed

    def _kept(self, ledger: Ledger) -> tuple[Group | None, ...]:
        first_user = ledger.first_user if self.preserve_first_user_group else None
        return (first_user, ledger.minimum)
