"""Head and tail (mechanism M4): the oldest and the newest messages stay, with a note in the gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.mechanisms.spans import flat
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("head_and_tail", semantics=1)
@dataclass(frozen=True, slots=True)
class HeadAndTail(Window):
    """Keep the first and the last units and say how many lay between.

    Parameters
    ----------
    head, tail
        Units kept at either end.
    unit
        What they count: messages, or batches, in which the results of one batch count as one.
    note
        Text of the message in the gap, ``{dropped}`` being the number of units; none when not given.
    note_role
        Its role.
    trim_ends
        Whether a head that ends in nothing but calls, or a tail that begins with results, loses that one unit.
    whole_groups
        Whether calls stay with their results and reasoning, and pinned groups stay wherever they stand.
    """

    head: int
    tail: int
    unit: Literal["message", "batch"] = "message"
    note: str | None = "Skipped {dropped} messages."
    note_role: Literal["user", "assistant", "system"] = "user"
    trim_ends: bool = True
    whole_groups: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "head", 1)
        at_least(self, "tail", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep both ends."""
        messages = shown.messages
        units = shown.batches if self.unit == "batch" else [range(at, at + 1) for at in range(len(messages))]
        dropped = len(units) - self.head - self.tail
        if dropped <= 0:
            return None
        head, tail = units[: self.head], units[-self.tail :]
        if self.trim_ends:
            if _is_only_calls(messages[head[-1][-1]]):
                head = head[:-1]
            if messages[tail[0][0]].role == "tool":
                tail = tail[1:]
        if self.note is None:
            return [*flat(head), *flat(tail)]
        note = Message(self.note_role, (Text(self.note.replace("{dropped}", str(dropped))),), source="placeholder")
        return [*flat(head), note, *flat(tail)]


def _is_only_calls(message: Message) -> bool:
    return message.role == "assistant" and bool(message.calls)
