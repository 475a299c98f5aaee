"""goose's context compaction: all but the newest user text becomes a summary, and the assistant is told to go on."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import AnyOf, Overflow, WindowFractionExceeds


@register("goose/context_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextCompaction:
    """Summarise the visible history at a share of the window or on overflow (mechanism M19, guards G4 and G7).

    Parameters
    ----------
    auto_compact_threshold
        Share of the window (``GOOSE_AUTO_COMPACT_THRESHOLD``).
    native
        Append the instruction to the unchanged conversation, so that the provider reads its cache (M27).
    """

    auto_compact_threshold: float = 0.8
    native: bool = False

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0 < self.auto_compact_threshold <= 1:
            raise ConfigurationError(
                f"goose: auto_compact_threshold={self.auto_compact_threshold!r}; expected a share above 0, at most 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(
            keep=0,
            unit="message",
            stays=("last_user",),
            asks="conversation" if self.native else "transcript",
            input_tokens=situation.window_tokens,
            fit="middle_out",
            max_summary_tokens=None,
            acknowledgement="The earlier conversation was summarised above; I carry on without mentioning it.",
            unfinished="reject",
            only_if_shorter=False,
        )
        return when_due(AnyOf((WindowFractionExceeds(self.auto_compact_threshold), Overflow())), summary, situation)
