"""The head window (mechanism M3): the oldest messages stay as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_lab.strategies.mechanisms.spans import largest_fitting_prefix
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("head_window", semantics=1)
@dataclass(frozen=True, slots=True)
class HeadWindow(Window):
    """Keep the beginning of the list, and drop what is newer.

    Parameters
    ----------
    keep
        Messages kept, or a budget of tokens for them.
    unit
        What ``keep`` counts.
    end_on
        Role of the last message kept: what follows it is dropped as well; any role when not given.
    whole_groups
        Whether calls stay with their results and reasoning, and pinned groups stay wherever they stand.
    """

    keep: int
    unit: Literal["message", "tokens"] = "message"
    end_on: Literal["user", "assistant", "tool", "system"] | None = None
    whole_groups: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep", 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep what fits."""
        weights = shown.tokens if self.unit == "tokens" else [1] * len(shown.messages)
        end = largest_fitting_prefix(weights, self.keep)
        while self.end_on and end and shown.messages[end - 1].role != self.end_on:
            end -= 1
        return range(end)
