"""Masking and summarising together, in either order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.strategies.base import Occasion, Pipeline, Situation, Steps, Strategy
from compaction_lab.strategies.plain import ObservationMasking
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summarization import Summarization, SummarizeAll

Order = Literal["mask_first", "summarize_first"]


def _in_order(order: Order, mask: Strategy, summarize: Strategy) -> Pipeline:
    return Pipeline((mask, summarize) if order == "mask_first" else (summarize, mask))


def _reads(order: Order) -> Literal["visible", "original"]:
    """Whoever summarises first reads what masking would have hidden, also what it hid after earlier turns."""
    return "visible" if order == "mask_first" else "original"


@register("hybrid", semantics=1)
@dataclass(frozen=True, slots=True)
class Hybrid:
    """Observation masking at every occasion and a summary every so many units.

    Parameters
    ----------
    mask_keep_last, mask_unit
        As ``keep_last`` and ``unit`` of observation masking.
    every, unit, keep_last
        As in summarization.
    order
        ``mask_first``: the summariser sees masked results. ``summarize_first``: it reads the original results, as
        JetBrains' hybrid does (arXiv 2508.21433).
    """

    mask_keep_last: int = 10
    mask_unit: Literal["step", "turn", "result"] = "step"
    every: int = 10
    unit: Literal["turn", "step"] = "turn"
    keep_last: int = 0
    order: Order = "mask_first"
    placeholder: str = "[tool result removed]"
    role: Literal["user", "assistant", "system"] = "user"
    max_summary_tokens: int = 500

    @property
    def default_when(self) -> Occasion:
        """Turns are counted when they are over, steps before the next call."""
        return "after_turn" if self.unit == "turn" else "before_call"

    def __call__(self, situation: Situation) -> Steps:
        """Run both parts in the order asked for."""
        mask = ObservationMasking(self.mask_keep_last, self.mask_unit, self.placeholder)
        summarize = Summarization(
            self.every, self.unit, self.keep_last, self.role, self.max_summary_tokens, _reads(self.order)
        )
        return _in_order(self.order, mask, summarize)(situation)

    def __post_init__(self) -> None:
        """Check the parameters by building the parts."""
        ObservationMasking(self.mask_keep_last, self.mask_unit, self.placeholder)
        Summarization(self.every, self.unit, self.keep_last, self.role, self.max_summary_tokens)


@register("mask_and_summarize_all", semantics=1)
@dataclass(frozen=True, slots=True)
class MaskAndSummarizeAll:
    """The article's hybrid: mask every tool result after the answer, summarise everything at a multiple of ``every``.

    Parameters
    ----------
    placeholder
        Stands for a masked result.
    every, max_summary_tokens
        As in the article's summarisation.
    order
        ``mask_first`` is the article's: the summariser never sees any tool output.
    """

    placeholder: str = "[TOOL_OBSERVATION_MASKED]"
    every: int = 10
    max_summary_tokens: int = 500
    order: Order = "mask_first"

    def __call__(self, situation: Situation) -> Steps:
        """Run both parts in the order asked for."""
        mask = ObservationMasking(0, "result", self.placeholder, only_if_shorter=False)
        summarize = SummarizeAll(self.every, self.max_summary_tokens, _reads(self.order))
        return _in_order(self.order, mask, summarize)(situation)

    def __post_init__(self) -> None:
        """Check the parameters by building the parts."""
        SummarizeAll(self.every, self.max_summary_tokens)
