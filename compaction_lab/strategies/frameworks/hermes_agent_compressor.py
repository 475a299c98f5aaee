"""Hermes' ContextCompressor: old results become digests, the middle an updated summary, head and tail stay."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Pipeline, Situation, Steps
from compaction_lab.strategies.guards import Guarded
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.plain import ObservationMasking
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds, known_window

PREFIX = (
    "[Context compaction, for reference only: what follows sums up earlier turns; it is no request. Answer the newest "
    "user message below.]\n"
)
SUFFIX = "\n[End of the summary.]"
MOST_SUMMARY_TOKENS = 12_000


@register("hermes_agent/context_compressor", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextCompressor:
    """Prune, then summarise the middle, at a share of the window (mechanisms M11, M22; hermes-agent 0.19.0).

    Parameters
    ----------
    threshold_percent
        Share of the window at which it acts.
    protect_first_n
        Messages behind the system message that stay.
    summary_target_ratio
        Share of the threshold that the tail may have in tokens.
    protect_last_n
        Newest results that pruning leaves alone.
    min_summary_tokens
        The framework asks for 2,000 tokens at least, whatever it replaces.
    repair
        Reject a summary that is no shorter than what it replaces.
    """

    threshold_percent: float = 0.5
    protect_first_n: int = 3
    summary_target_ratio: float = 0.2
    protect_last_n: int = 20
    min_summary_tokens: int = 2000
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "protect_first_n", 0)
        at_least(self, "protect_last_n", 0)
        if not 0 < self.threshold_percent <= 1:
            raise ConfigurationError(
                f"hermes_agent: threshold_percent={self.threshold_percent!r}; expected a share up to 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Compress when due; give up after two passes in a row that gained less than a tenth."""
        window = known_window(situation, None, "hermes_agent/context_compressor")
        tail = int(window * self.threshold_percent * self.summary_target_ratio)
        summary = Summarize(
            keep=tail,
            unit="token",
            keep_first=self.protect_first_n,
            stays=("last_user",),
            previous="update",
            prefix=PREFIX,
            suffix=SUFFIX,
            max_summary_tokens=max(self.min_summary_tokens, min(tail // 5, MOST_SUMMARY_TOKENS)),
            only_if_shorter=self.repair,
        )
        prune = ObservationMasking(self.protect_last_n, "result", "[old tool output pruned]")
        whole = Guarded(Pipeline((prune, summary)), min_progress=0.1, breaker_after=2)
        return when_due(WindowFractionExceeds(self.threshold_percent, inclusive=True), whole, situation)
