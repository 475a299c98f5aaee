"""Roo Code's condensing: a fresh start in which everything becomes one user-role summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds

LOWEST, HIGHEST = 5, 100


@register("roo_code/condense", semantics=1)
@dataclass(frozen=True, slots=True)
class Condense:
    """Summarise everything at a share of the window (mechanism M19; April 2026).

    Parameters
    ----------
    auto_condense_context_percent
        Percent of the window, 5 to 100; above 90 percent it always acts.
    custom_condensing_prompt
        ``None``: the lab's own.
    """

    auto_condense_context_percent: int = 100
    custom_condensing_prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the percentage."""
        if not LOWEST <= self.auto_condense_context_percent <= HIGHEST:
            raise ConfigurationError(
                f"roo_code: auto_condense_context_percent={self.auto_condense_context_percent!r}; expected 5 to 100"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Condense when due."""
        share = min(self.auto_condense_context_percent, 90) / 100
        summary = Summarize(
            keep=0, unit="message", prompt=self.custom_condensing_prompt, max_summary_tokens=None, prefix=""
        )
        return when_due(WindowFractionExceeds(share, inclusive=True), summary, situation)
