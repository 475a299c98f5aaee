"""Gemini CLI's chat compression: old tool output is cut, the first 70 % summarised, the summary verified."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Pipeline, Situation, Steps
from compaction_lab.strategies.guards import Guarded
from compaction_lab.strategies.mechanisms.clearing import ClearBeyondTokens
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summaries import INSTRUCTION, when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds

SECTIONS = (
    " Write it as XML, <state_snapshot>, with <overall_goal>, <active_constraints>, <key_knowledge>, <file_state>, "
    "<recent_actions> and <task_state> in it."
)


@register("gemini_cli/chat_compression", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatCompression:
    """Compress from half of the window on; after a summary that did not shrink, only tool output is cut.

    Parameters
    ----------
    compression_threshold
        Share of the window at which it acts.
    compression_preserve_threshold
        Share of the history's tokens that stays (the original counts characters).
    function_response_token_budget
        Tokens of the newest tool output that stay; older output is cleared first.
    """

    compression_threshold: float = 0.5
    compression_preserve_threshold: float = 0.3
    function_response_token_budget: int = 50_000

    def __post_init__(self) -> None:
        """Check the shares."""
        for field in ("compression_threshold", "compression_preserve_threshold"):
            value = getattr(self, field)
            if not 0 < value <= 1:
                raise ConfigurationError(f"gemini_cli: {field}={value!r}; expected a share above 0 and at most 1")

    def __call__(self, situation: Situation) -> Steps:
        """Compress when the threshold is passed."""
        cut = ClearBeyondTokens(protect_tokens=self.function_response_token_budget)
        summary = Summarize(
            keep=self.compression_preserve_threshold,
            unit="token_fraction",
            prompt=INSTRUCTION + SECTIONS,
            max_summary_tokens=None,
            prefix="",
            verify=True,
            acknowledgement="Understood; I go on from there.",
        )
        whole = Guarded(Pipeline((cut, summary)), only_if_shorter=True, breaker_after=1, latch_to=cut)
        return when_due(WindowFractionExceeds(self.compression_threshold, inclusive=True), whole, situation)
