"""AgentScope's context compression: a structured summary before a reserve, truncation when that fails."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps, Strategy
from compaction_lab.strategies.composition import Fallback
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summaries import HEADINGS, INSTRUCTION, when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds, known_window
from compaction_lab.strategies.truncation import Truncation

FIELDS = "task overview, current state, important discoveries, next steps, context to preserve."


@register("agentscope/context_compression", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextCompression:
    """Summarise into fixed fields at a share of the window (mechanism M21; agentscope 2.0.11).

    Parameters
    ----------
    trigger_ratio
        Share of the window at which it acts.
    reserve_ratio
        Share of the window that the newest messages keep.
    fallback_to_truncation
        Whether the oldest groups are dropped down to ``trigger_ratio`` when the summary fails.
    """

    trigger_ratio: float = 0.8
    reserve_ratio: float = 0.1
    fallback_to_truncation: bool = True

    def __post_init__(self) -> None:
        """Check the shares."""
        if not 0 < self.reserve_ratio < self.trigger_ratio <= 1:
            raise ConfigurationError(
                f"agentscope: reserve_ratio={self.reserve_ratio} and trigger_ratio={self.trigger_ratio}; expected "
                "0 < reserve_ratio < trigger_ratio <= 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Compress when due."""
        summary: Strategy = Summarize(
            keep=self.reserve_ratio,
            unit="window_fraction",
            prompt=INSTRUCTION + HEADINGS + FIELDS,
            max_summary_tokens=None,
        )
        if self.fallback_to_truncation:
            window = known_window(situation, None, "agentscope/context_compression")
            summary = Fallback((summary, Truncation(max(1, int(window * self.trigger_ratio)))))
        return when_due(WindowFractionExceeds(self.trigger_ratio, inclusive=True), summary, situation)
