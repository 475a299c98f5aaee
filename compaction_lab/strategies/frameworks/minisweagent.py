"""mini-swe-agent's limit on observations; it compacts nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clipping import ClipParts
from compaction_lab.strategies.registry import at_least, register


@register("minisweagent/observation_limit", semantics=1)
@dataclass(frozen=True, slots=True)
class MiniObservationLimit:
    """Cut the middle out of a long observation before it enters the history (mini-swe-agent 2.4.6, its templates).

    Parameters
    ----------
    max_characters
        Observations of this many characters or more are cut.
    head, tail
        Characters that stay at either end.
    """

    max_characters: int = 10_000
    head: int = 5_000
    tail: int = 5_000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_characters", 2)

    def __call__(self, situation: Situation) -> Compaction:
        """Cut."""
        marker = "\n<elided_chars>\n{removed} characters elided\n</elided_chars>\n"
        return ClipParts(self.max_characters - 1, None, self.head, self.tail, marker, roles=("tool",))(situation)
