"""The Complexity Trap's LLM summary and hybrid (arXiv 2508.21433): every N steps, M of them staying."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Pipeline, Situation, Steps, Triggered
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.plain import ObservationMasking
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import EverySteps


@register("jetbrains/llm_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class LLMSummary:
    """Summarise N steps once N + M have gone by since the last summary, conditioned on it; the task stays.

    Parameters
    ----------
    n
        Steps that a summary covers.
    keep_last_m_turns
        Newest steps that stay (a turn of the paper is one step here).
    """

    n: int = 21
    keep_last_m_turns: int = 10

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "n", 1)
        at_least(self, "keep_last_m_turns", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when due."""
        return when_due(EverySteps(self.n + self.keep_last_m_turns), _summary(self.keep_last_m_turns), situation)


@register("jetbrains/hybrid", semantics=1)
@dataclass(frozen=True, slots=True)
class Hybrid:
    """Mask observations older than the window, and summarise every N + M steps from the unmasked ones.

    Parameters
    ----------
    n, keep_last_m_turns
        As in llm_summary; N is larger since masked contexts grow more slowly.
    window
        Newest steps whose observations stay.
    """

    n: int = 43
    keep_last_m_turns: int = 10
    window: int = 10

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "n", 1)
        at_least(self, "keep_last_m_turns", 0)
        at_least(self, "window", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Mask, and summarise when due."""
        summarize = Triggered(EverySteps(self.n + self.keep_last_m_turns), _summary(self.keep_last_m_turns))
        return Pipeline((ObservationMasking(self.window, "step"), summarize))(situation)


def _summary(keep: int) -> Summarize:
    return Summarize(
        keep=keep,
        unit="step",
        stays=("first_user",),
        previous="update",
        reads="original",
        max_summary_tokens=None,
        only_if_shorter=False,
    )
