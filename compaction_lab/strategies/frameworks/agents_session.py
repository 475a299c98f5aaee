"""The OpenAI Agents SDK's session limit, as openai-agents 0.24.0 behaves; instructions are not in a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message, Reasoning
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window
from compaction_lab.strategies.registry import at_least, register


@register("agents/session_settings", semantics=1)
@dataclass(frozen=True, slots=True)
class SessionSettings(Window):
    """Read only the newest items of a session at the start of a run (mechanism M2).

    Reasoning, text and each call of an assistant message are items of their own, so that a message may be cut in two.

    Parameters
    ----------
    limit
        Items read; all when not given, none when 0.
    counts_input
        Whether the user message that starts the run is one of them; in a run it is added to what is read.
    repair
        Drop calls and results that lose their other half.
    """

    limit: int | None = None
    counts_input: bool = False
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.limit is not None:
            at_least(self, "limit", 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail."""
        if self.limit is None:
            return None
        messages = shown.messages
        last = len(messages) - 1
        new = {last} if messages and not self.counts_input and messages[last].role == "user" else set()
        left = self.limit
        items: list[Item] = []
        for at in range(last, -1, -1):
            message = messages[at]
            if at in new or is_system(message):
                items.append(at)
            elif left > 0:
                size = _items(message)
                items.append(at if size <= left else StandIn(at, _newest_items(message, left)))
                left -= size
        return items[::-1]


def _items(message: Message) -> int:
    if message.role != "assistant":
        return 1
    thoughts = sum(isinstance(part, Reasoning) for part in message.parts)
    return thoughts + (len(message.parts) > thoughts) + len(message.calls)


def _newest_items(message: Message, count: int) -> Message:
    """Return an assistant message reduced to its last items: calls, before them its text, before that its reasoning."""
    calls = message.calls[max(0, len(message.calls) - count) :]
    left = count - len(calls)
    said = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    if not left:
        return replace(message, parts=(), calls=calls)
    left -= bool(said)
    return replace(message, parts=(*thoughts[len(thoughts) - left :], *said) if left else said, calls=calls)
