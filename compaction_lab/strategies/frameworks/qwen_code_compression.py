"""qwen-code's chat compression: near the window everything becomes a summary, three failures in a row end it."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.guards import Guarded
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import AnyOf, ImagesExceed, Overflow, known_window

SUMMARY_TOKENS = 20_000
BUFFER_TOKENS = 13_000
FAILURES = 3


@register("qwen_code/chat_compression", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatCompression:
    """Summarise everything before the summary itself would no longer fit (mechanism M19, guards G3 and G5).

    Parameters
    ----------
    auto_compact_threshold
        Share of the window at which it acts; in smaller windows it acts earlier, 33,000 tokens before the end.
    screenshot_trigger_threshold
        Visible images from which on it acts too; ``None``: never.
    """

    auto_compact_threshold: float = 0.85
    screenshot_trigger_threshold: int | None = 20

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 < self.auto_compact_threshold <= 1:
            raise ConfigurationError(
                f"qwen_code: auto_compact_threshold={self.auto_compact_threshold!r}; expected a share up to 1"
            )
        if self.screenshot_trigger_threshold is not None:
            at_least(self, "screenshot_trigger_threshold", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Compress when due."""
        summary = Summarize(
            keep=0,
            unit="message",
            max_summary_tokens=SUMMARY_TOKENS,
            prefix="",
            acknowledgement="Understood; I go on from there.",
            unfinished="reject",
        )
        images = self.screenshot_trigger_threshold
        due = (self._is_near_the_window, Overflow(), *(() if images is None else (ImagesExceed(images - 1),)))
        return when_due(AnyOf(due), Guarded(summary, only_if_shorter=True, breaker_after=FAILURES), situation)

    def _is_near_the_window(self, situation: Situation) -> bool:
        window = known_window(situation, None, "qwen_code/chat_compression")
        share, room = self.auto_compact_threshold * window, window - SUMMARY_TOKENS - BUFFER_TOKENS
        return situation.tokens(situation.context) >= (min(share, room) if room > 0 else share)
