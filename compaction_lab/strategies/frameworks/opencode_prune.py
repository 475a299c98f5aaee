"""opencode's pruning of old tool output, which needs no model."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearBeyondTokens
from compaction_lab.strategies.registry import at_least, register


@register("opencode/prune", semantics=1)
@dataclass(frozen=True, slots=True)
class OpencodePrune:
    """Clear tool output beyond the newest tokens of it, when that is worth it (opencode, ``session/compaction.ts``).

    Parameters
    ----------
    prune_protect
        Tokens of the newest tool output that stay, that of the newest turns not counted.
    prune_minimum
        Clear only when more tokens than this would go.
    prune_protected_tools
        Tools whose output stays and is not counted.
    protect_turns
        Newest user turns that stay whole; with a single user turn nothing is ever cleared (bug list B50).
    """

    prune_protect: int = 40_000
    prune_minimum: int = 20_000
    prune_protected_tools: tuple[str, ...] = ("skill",)
    protect_turns: int = 2

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in ("prune_protect", "prune_minimum", "protect_turns"):
            at_least(self, field, 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Prune."""
        return ClearBeyondTokens(
            protect_tokens=self.prune_protect,
            protect_turns=self.protect_turns,
            at_least_tokens=self.prune_minimum + 1,
            exclude_tools=self.prune_protected_tools,
            placeholder="[Old tool result content cleared]",
            only_if_shorter=False,
            spare_unread=False,
        )(situation)
