"""Middle-out (mechanism M6): over a budget, the message in the middle goes, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_lab.strategies.mechanisms.spans import flat
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("middle_out", semantics=1)
@dataclass(frozen=True, slots=True)
class MiddleOut(Window):
    """Drop the unit in the middle of what is left until a token budget is met.

    Parameters
    ----------
    budget_tokens
        Tokens that may be left; ``None``: the model's window, where known.
    unit
        Messages, or batches, in which the results of one batch are one.
    not_tool_first
        Whether results that come to stand at the front are dropped too (one unit).
    count_overhead
        Whether tools and request overhead count.
    whole_groups
        Whether calls stay with their results and reasoning, and pinned groups stay wherever they stand.
    """

    budget_tokens: int | None = None
    unit: Literal["message", "batch"] = "message"
    not_tool_first: bool = True
    count_overhead: bool = True
    whole_groups: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.budget_tokens is not None:
            at_least(self, "budget_tokens", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop from the middle."""
        situation = shown.situation
        budget = situation.window_tokens if self.budget_tokens is None else self.budget_tokens
        if budget is None:
            return None
        messages = shown.messages
        units = shown.batches if self.unit == "batch" else [range(at, at + 1) for at in range(len(messages))]
        weights = [sum(shown.tokens[at] for at in unit) for unit in units]
        total = sum(weights) + (situation.overhead_tokens if self.count_overhead else 0)
        kept = len(units)
        low = high = kept // 2  # units[low:high] are gone
        while total > budget and kept:
            middle = kept // 2
            if middle < low:
                low -= 1
                total -= weights[low]
            else:
                total -= weights[high]
                high += 1
            kept -= 1
        left = [*units[:low], *units[high:]]
        if self.not_tool_first and left and messages[left[0][0]].role == "tool":
            left = left[1:]
        return flat(left)
