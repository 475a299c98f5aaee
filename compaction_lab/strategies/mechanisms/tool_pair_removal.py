"""Removing calls with their results (mechanism M10): what the agent did long ago leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.messages import Reasoning
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window
from compaction_lab.strategies.registry import at_least, register


@register("tool_pair_removal", semantics=1)
@dataclass(frozen=True, slots=True)
class ToolPairRemoval(Window):
    """Remove tool calls and their results, the newest ones apart.

    Parameters
    ----------
    keep_last
        What stays of the newest.
    unit
        What ``keep_last`` counts: ``calls``; ``batches``, the assistant messages that call; or ``messages`` at the end
        of the list, whose calls stay together with their other half.
    tools
        Names of the tools whose calls are removed; all when not given. ``keep_tools`` names those that stay.
    empty_messages
        Whether an assistant message that loses all its calls and says nothing goes as well.
    """

    keep_last: int = 0
    unit: Literal["calls", "batches", "messages"] = "calls"
    tools: tuple[str, ...] | None = None
    keep_tools: tuple[str, ...] = ()
    empty_messages: Literal["remove", "keep"] = "remove"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Remove what is neither new nor exempt."""
        messages = shown.messages
        doomed = self._doomed(shown)
        items: list[Item] = []
        changed = False
        open_calls: dict[str, tuple[int, int]] = {}
        for at, message in enumerate(messages):
            if message.role == "tool":
                call = open_calls.pop(message.call_id, None)
                if call in doomed:
                    changed = True
                    continue
                items.append(at)
                continue
            for position, made in enumerate(message.calls):
                open_calls[made.id] = (at, position)
            calls = tuple(c for position, c in enumerate(message.calls) if (at, position) not in doomed)
            if len(calls) == len(message.calls):
                items.append(at)
                continue
            changed = True
            left = replace(message, calls=calls)
            speaks = any(not isinstance(part, Reasoning) for part in left.parts)
            if speaks or calls or self.empty_messages == "keep":
                items.append(StandIn(at, left))
        return _without_lone_thoughts(shown, items) if changed else None

    def _doomed(self, shown: Shown) -> set[tuple[int, int]]:
        """Return the calls to remove, each by the position of its message and its own."""
        messages = shown.messages
        pinned = {message.call_id for message in messages if message.role == "tool" and message.pinned}
        calls = [
            (at, position)
            for at, message in enumerate(messages)
            for position, call in enumerate(message.calls)
            if (self.tools is None or call.name in self.tools) and call.name not in self.keep_tools
            if not message.pinned and call.id not in pinned
        ]
        if self.unit == "messages":
            edge = len(messages) - self.keep_last
            kept_ids = {message.call_id for message in messages[max(0, edge) :] if message.role == "tool"}
            return {
                (at, position)
                for at, position in calls
                if at < edge and messages[at].calls[position].id not in kept_ids
            }
        if self.unit == "batches":
            newest = sorted({at for at, _ in calls})
            kept = set(newest[len(newest) - self.keep_last :]) if self.keep_last else set()
            return {(at, position) for at, position in calls if at not in kept}
        return set(calls[: len(calls) - self.keep_last]) if self.keep_last else set(calls)


def _without_lone_thoughts(shown: Shown, items: list[Item]) -> list[Item]:
    """Return items without reasoning whose message has gone."""
    log = shown.context.log

    def group(item: Item) -> int:
        index, rank = shown.keys[item if isinstance(item, int) else item.position]  # type: ignore[union-attr]
        return -1 if rank else log.groups[index]

    def thinks_only(item: Item) -> bool:
        message = shown.messages[item] if isinstance(item, int) else item.message  # type: ignore[union-attr]
        parts = message.parts
        return bool(parts) and not message.calls and all(isinstance(part, Reasoning) for part in parts)

    had = {group(at) for at in range(len(shown.keys)) if not thinks_only(at)}
    lost = had - {group(item) for item in items if not thinks_only(item)}
    return [item for item in items if not thinks_only(item) or group(item) not in lost]
