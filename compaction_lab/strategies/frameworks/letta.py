"""Letta's summarisers: a sliding share of the messages, all of them, or the agent's own prompt asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import AnyOf, Overflow, WindowFractionExceeds


@register("letta/compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class Compaction:
    """Summarise the older share of the messages recursively (letta 0.16.8).

    Parameters
    ----------
    mode
        ``sliding_window`` and ``all`` write from a transcript; ``self_compact_sliding_window`` and ``self_compact_all``
        ask on the unchanged prefix of the agent's own prompt (mechanism M27).
    sliding_window_percentage
        Share of the messages that is summarised; what is left of 1 stays.
    clip_chars
        Longest summary, in characters, as far as asked of the summariser (four characters a token).
    threshold
        Share of the window at which it acts; overflow acts too.
    """

    mode: Literal["sliding_window", "all", "self_compact_sliding_window", "self_compact_all"] = "sliding_window"
    sliding_window_percentage: float = 0.3
    clip_chars: int = 50_000
    threshold: float = 0.9

    def __post_init__(self) -> None:
        """Check the parameters; a share read the wrong way round would wipe everything."""
        at_least(self, "clip_chars", 1)
        if not 0 < self.sliding_window_percentage < 1:
            raise ConfigurationError(
                f"letta: sliding_window_percentage={self.sliding_window_percentage!r}; expected a share below 1, "
                "what is summarised, not what stays"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when due."""
        sliding = self.mode.endswith("sliding_window")
        summary = Summarize(
            keep=1 - self.sliding_window_percentage if sliding else 0,
            unit="message_fraction" if sliding else "message",
            asks="conversation" if self.mode.startswith("self_compact") else "transcript",
            max_summary_tokens=self.clip_chars // 4,
        )
        return when_due(AnyOf((WindowFractionExceeds(self.threshold), Overflow())), summary, situation)
