"""Semantic Kernel's own truncation reducer, as semantic-kernel 1.45.0 behaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("semantic_kernel/chat_history_truncation", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatHistoryTruncation(Window):
    """Keep the newest messages and the first system message; the cut walks back over calls and results (M2, M5).

    Parameters
    ----------
    target_count
        Messages left, the system message that would be cut counted.
    threshold_count
        Messages beyond the target before anything happens; a user message among them is cut at in preference.
    """

    persists: ClassVar[bool] = True

    target_count: int
    threshold_count: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "target_count", 1)
        at_least(self, "threshold_count", 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Cut once the list is too long."""
        messages = shown.messages
        if len(messages) <= self.target_count + self.threshold_count:
            return None
        system = next((at for at, m in enumerate(messages) if m.role in ("system", "developer")), -1)
        target = self.target_count - (0 <= system < len(messages) - self.target_count)
        cut = len(messages) if target <= 0 else reduction_index(messages, target, self.threshold_count)
        if cut is None:
            return None
        return [*([system] if 0 <= system < cut else []), *range(cut, len(messages))]


def reduction_index(messages: Sequence[Message], target: int, threshold: int, offset: int = 0) -> int | None:
    """Return where a reduced history begins without parting a result from its call; ``None`` when nothing is reduced.

    Parameters
    ----------
    target, threshold
        Messages to be left, and beyond these tolerated.
    offset
        Messages at the front that are not looked at, such as earlier summaries.
    """
    earliest = len(messages) - threshold - target
    if earliest <= offset:
        return None
    at = len(messages) - target
    while at >= offset:
        message = messages[at]
        if message.role in ("developer", "system") or not _is_exchange(message):
            break
        if at - 1 < offset or not _is_exchange(messages[at - 1]):
            break
        at -= 1
    return next((i for i in range(at, earliest - 1, -1) if messages[i].role == "user"), at)


def _is_exchange(message: Message) -> bool:
    return message.role == "tool" or bool(message.calls)
