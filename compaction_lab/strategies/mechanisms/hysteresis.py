"""Dropping with hysteresis (mechanism M5): beyond a high-water mark, drop the oldest down to a low one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.spans import largest_fitting_prefix
from compaction_lab.strategies.mechanisms.tail_window import Boundary, Protected, bounded, protected
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("hysteresis", semantics=1)
@dataclass(frozen=True, slots=True)
class Hysteresis(Window):
    """Once what is left exceeds ``high``, drop the oldest until ``low`` is left; nothing more until ``high`` again.

    Parameters
    ----------
    high
        Messages or tokens beyond which it acts.
    low
        How much is left afterwards; half of ``high``, rounded down, when not given.
    unit
        What both count.
    keep_first
        Messages at the head that stay; they count.
    protect, boundary
        As in the tail window.
    whole_groups
        Whether calls stay with their results and reasoning, and pinned groups stay wherever they stand.
    """

    persists: ClassVar[bool] = True

    high: int
    low: int | None = None
    unit: Literal["message", "tokens"] = "message"
    keep_first: int = 0
    protect: tuple[Protected, ...] = ("system",)
    boundary: Boundary = "not_tool_first"
    whole_groups: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "high", 1)
        at_least(self, "keep_first", 0)
        if self.low is not None:
            at_least(self, "low", 0)
            if self.low > self.high:
                msg = f"Hysteresis: low={self.low}; expected at most high ({self.high}), since dropping stops there"
                raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop from behind the head."""
        messages = shown.messages
        weights = shown.tokens if self.unit == "tokens" else [1] * len(messages)
        if sum(weights) <= self.high:
            return None
        low = self.high // 2 if self.low is None else self.low
        spared = protected(messages, self.protect) | set(range(min(self.keep_first, len(messages))))
        room = low - sum(weights[at] for at in spared)
        free = [at for at in range(len(messages)) if at not in spared]
        kept = largest_fitting_prefix([weights[at] for at in reversed(free)], room)
        start = free[len(free) - kept] if kept else len(messages)
        start = bounded(messages, start, self.boundary)
        return [at for at in range(len(messages)) if at >= start or at in spared]
