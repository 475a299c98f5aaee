"""pi's compaction: recent tokens stay, a turn cut in two gets a summary of its early part, summaries are updated."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import WindowReserve


@register("pi/compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class Compaction:
    """Compact when the reserve is touched (mechanisms M18, M22, M25).

    Parameters
    ----------
    reserve_tokens
        Act when fewer tokens of the window are left.
    keep_recent_tokens
        Tokens of the newest messages that stay.
    """

    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "reserve_tokens", 0)
        at_least(self, "keep_recent_tokens", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(
            keep=self.keep_recent_tokens,
            unit="token",
            previous="update",
            split_turn=True,
            max_summary_tokens=int(self.reserve_tokens * 0.8) or None,
        )
        return when_due(WindowReserve(self.reserve_tokens), summary, situation)
