"""browser-use's ``max_history_items``: the first item, a note, and the last ones, as browser-use 0.13.14 behaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.tail_window import unit_starts
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import register

LOWEST = 6


@register("browser_use/max_history_items", semantics=1)
@dataclass(frozen=True, slots=True)
class MaxHistoryItems(Window):
    """Keep the first step and the last ones, with a note of how many lay between (mechanism M4).

    Parameters
    ----------
    max_history_items
        Steps kept, the first among them; all when not given, and more than 5 otherwise.
    note
        Text of the note, ``{dropped}`` being the number of steps.
    """

    max_history_items: int | None = None
    note: str = "<sys>[... {dropped} previous steps omitted...]</sys>"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.max_history_items is not None and self.max_history_items < LOWEST:
            msg = f"max_history_items={self.max_history_items}; expected at least {LOWEST}, or null for all"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep both ends."""
        messages = shown.messages
        starts = unit_starts(shown, "step")
        if self.max_history_items is None or len(starts) <= self.max_history_items:
            return None
        dropped = len(starts) - self.max_history_items
        low, high = starts[1], starts[1 + dropped]
        spared = [at for at in range(low, high) if is_system(messages[at]) or messages[at].role == "user"]
        note = Message("user", (Text(self.note.replace("{dropped}", str(dropped))),), source="placeholder")
        return [*range(low), note, *spared, *range(high, len(messages))]
