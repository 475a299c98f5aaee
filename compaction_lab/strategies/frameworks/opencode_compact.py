"""opencode's compaction: a summary with headings in front of the newest turns, then a word to go on."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import INSTRUCTION, when_due
from compaction_lab.strategies.triggers import WindowReserve

HEADINGS = " Use the headings Goal, Instructions, Discoveries, Accomplished, Relevant files."


@register("opencode/compact", semantics=1)
@dataclass(frozen=True, slots=True)
class Compact:
    """Summarise all but the newest turns when the reserve is touched (mechanism M18).

    Parameters
    ----------
    reserved
        Tokens of the window that are kept free.
    tail_turns
        Newest complete turns that stay (newer builds; 0: none).
    """

    reserved: int = 20_000
    tail_turns: int = 2

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "reserved", 0)
        at_least(self, "tail_turns", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(
            keep=self.tail_turns, unit="turn", prompt=INSTRUCTION + HEADINGS, max_summary_tokens=None, prefix=""
        )
        return when_due(WindowReserve(self.reserved, inclusive=True), summary, situation)
