"""Mistral Vibe's automatic compaction: beyond a number of tokens everything becomes a summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import TokensExceed


@register("vibe/auto_compact", semantics=1)
@dataclass(frozen=True, slots=True)
class AutoCompact:
    """Summarise everything but the system message (mechanism M19; mistral-vibe 3.0.2).

    Parameters
    ----------
    auto_compact_threshold
        Act when the request has at least this many tokens.
    """

    auto_compact_threshold: int = 200_000

    def __post_init__(self) -> None:
        """Check the parameter."""
        at_least(self, "auto_compact_threshold", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(keep=0, unit="message", max_summary_tokens=None, prefix="", only_if_shorter=False)
        return when_due(TokensExceed(self.auto_compact_threshold - 1), summary, situation)
