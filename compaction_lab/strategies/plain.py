"""Plain strategies that look at age alone: nothing, a sliding window, observation masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.strategies.ageing import boundary, newly_aged
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.registry import at_least, register


@register("none", semantics=1)
@dataclass(frozen=True, slots=True)
class NoCompaction:
    """Send everything: the baseline (mechanism M1)."""

    def __call__(self, situation: Situation) -> Compaction:  # noqa: ARG002 - the protocol's shape
        """Change nothing."""
        return Compaction()


@register("observation_masking", semantics=1)
@dataclass(frozen=True, slots=True)
class ObservationMasking:
    """Replace the text of tool results that are no longer recent by a placeholder (mechanism M7).

    Parameters
    ----------
    keep_last
        Newest complete units whose results stay; 0 masks every result that a call has read.
    unit
        What ``keep_last`` counts: steps, turns or single results.
    placeholder
        The text that stands for a masked result.
    only_if_shorter
        Leave a result alone when the placeholder would not be shorter.
    """

    keep_last: int = 10
    unit: Literal["step", "turn", "result"] = "step"
    placeholder: str = "[tool result removed]"
    only_if_shorter: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Mask the results that fell behind the window."""
        index = boundary(situation, self.unit, self.keep_last)
        newly = newly_aged(situation, index)
        edits = []
        for entry in newly.entries:
            message = entry.message
            if message.role != "tool" or message.source == "placeholder":
                continue
            stand_in = message.replaced(self.placeholder, "placeholder")
            if self.only_if_shorter and situation.counter.message(stand_in) >= situation.counter.message(message):
                continue
            edits.append(Edit("masked", (entry.key,), Placed(entry.key, stand_in)))
        reason = f"older than the last {self.keep_last} {self.unit}s" if edits else ""
        return Compaction(tuple(edits), newly.memory, newly.base, reason)


@register("sliding_window", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keep the newest complete units and drop what is older, in whole groups (mechanism M2).

    Parameters
    ----------
    keep_last
        Complete units to keep beside what is still being worked on.
    unit
        What ``keep_last`` counts.
    """

    keep_last: int = 4
    unit: Literal["turn", "step", "group", "message"] = "turn"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Drop what fell behind the window."""
        newly = newly_aged(situation, boundary(situation, self.unit, self.keep_last), whole_groups=True)
        if not newly.entries:
            return Compaction((), newly.memory, newly.base)
        dropped = Edit("dropped", tuple(entry.key for entry in newly.entries))
        return Compaction((dropped,), newly.memory, newly.base, f"older than the last {self.keep_last} {self.unit}s")
