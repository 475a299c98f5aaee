"""CAMEL's ChatAgent: a progressive summary as an assistant message, one full summary when summaries fill the window."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import is_summary
from compaction_lab.strategies.summaries import continuing
from compaction_lab.strategies.triggers import known_window


@register("camel/chat_agent_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatAgentSummary:
    """Summarise what came since the last summary; once summaries fill a share of the limit, all anew (camel-ai 0.2.90).

    Parameters
    ----------
    token_limit
        ``None``: the run's window.
    summarize_threshold
        Percent of what the summaries leave of the limit, at which it acts.
    summary_window_ratio
        Share of the limit that summaries may fill before they are summarised themselves.
    repair
        Beyond the limit the framework knows no threshold and does nothing at all; repaired, it acts there too.
    """

    token_limit: int | None = None
    summarize_threshold: int = 50
    summary_window_ratio: float = 0.6
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "summarize_threshold", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when due."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Compaction | Steps:
        limit = self.token_limit or known_window(situation, None, "camel/chat_agent_summary")
        count = situation.counter.message
        found = situation.tokens(situation.context)
        if found > limit and not self.repair:
            return Compaction()
        summaries = sum(count(message) for message in situation.context.messages if is_summary(message))
        if summaries > limit * self.summary_window_ratio:
            return Summarize(keep=0, unit="message", role="assistant", max_summary_tokens=None, only_if_shorter=False)(
                situation
            )
        threshold = int((limit - summaries) * self.summarize_threshold / 100) + summaries
        if found <= threshold:
            return Compaction()
        progressive = Summarize(
            keep=0, unit="message", role="assistant", previous="keep", max_summary_tokens=None, only_if_shorter=False
        )
        return progressive(situation)
