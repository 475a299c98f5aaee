"""Cline's agentic compaction: an incremental summary beside 20,000 recent tokens."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds


@register("cline/agentic_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class AgenticCompaction:
    """Update a running summary at a share of the window (mechanism M22; August 2026).

    Parameters
    ----------
    threshold_ratio
        Share of the window at which it acts.
    preserve_recent_tokens
        Tokens of the newest messages that stay.
    """

    threshold_ratio: float = 0.9
    preserve_recent_tokens: int = 20_000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "preserve_recent_tokens", 0)
        if not 0 < self.threshold_ratio <= 1:
            raise ConfigurationError(f"cline: threshold_ratio={self.threshold_ratio!r}; expected a share up to 1")

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(
            keep=self.preserve_recent_tokens, unit="token", previous="update", max_summary_tokens=None, prefix=""
        )
        return when_due(WindowFractionExceeds(self.threshold_ratio, inclusive=True), summary, situation)
