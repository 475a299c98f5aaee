"""OpenHands' masking condensers of its first architecture (the last package with them is openhands-ai 0.59.0)."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.registry import at_least, register


@register("openhands/observation_masking", semantics=1)
@dataclass(frozen=True, slots=True)
class ObservationMaskingCondenser:
    """Mask observations that are older than the newest events, whatever these are.

    Parameters
    ----------
    attention_window
        Newest events that stay; events are messages, an assistant message counting once for each of its calls.
    """

    attention_window: int = 100

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "attention_window", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Mask."""
        return ClearResults(
            keep_last=self.attention_window,
            unit="event",
            placeholder="<MASKED>",
            only_if_shorter=False,
            spare_unread=False,
        )(situation)


@register("openhands/browser_output", semantics=1)
@dataclass(frozen=True, slots=True)
class BrowserOutputCondenser:
    """Reduce browser observations to the address visited, all but the newest.

    Parameters
    ----------
    attention_window
        Newest browser observations that stay.
    browser_tools
        Names of the tools whose results are browser observations.
    """

    attention_window: int = 1
    browser_tools: tuple[str, ...] = ("browser", "browse", "browse_interactive", "browser_navigate")

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "attention_window", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Reduce."""
        return ClearResults(
            keep_last=self.attention_window,
            only_tools=self.browser_tools,
            excluded="not_counted",
            placeholder="Visited URL {url}\nContent omitted",
            only_if_shorter=False,
            spare_unread=False,
        )(situation)
