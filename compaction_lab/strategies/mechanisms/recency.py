"""Where the recent part of a conversation begins, counted as frameworks count: over what is visible, raw.

The plain strategies count complete units beside what is still being worked on (``strategies.ageing``); frameworks count
whatever lies in their list. Every function returns an edge: the key from which messages are recent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.strategies.mechanisms.rewriting import START

RecentUnit = Literal["result", "step", "turn", "assistant", "message", "content", "event"]
"""What a window counts.

``result``: tool messages. ``step``: assistant messages directly followed by a tool result. ``turn``: user messages,
summaries included. ``assistant``: assistant messages. ``message``: every message. ``content``: every message,
neighbouring tool messages counting as one, as in formats that put a batch of results into one message. ``event``: every
message, an assistant message once for each of its calls, as event logs have one action a call.
"""


def end_of(context: Context) -> Key:
    """Return the key behind the last message."""
    return (context.stop, 0)


def newest(context: Context, keep: int, weigh: Callable[[Placed], int]) -> Key:
    """Return the edge at which the newest messages weigh at least ``keep``; the start when all together weigh less."""
    if keep <= 0:
        return end_of(context)
    left = keep
    for entry in context.before(end_of(context)):
        left -= weigh(entry)
        if left <= 0:
            return entry.key
    return START


def newest_within(context: Context, most: int, weigh: Callable[[Placed], int], *, before: Key) -> Key:
    """Return the edge behind which the newest messages before ``before`` weigh no more than ``most``.

    The message with which they would weigh more lies behind the edge.
    """
    total = 0
    for entry in context.before(before):
        total += weigh(entry)
        if total > most:
            return (entry.key[0], entry.key[1] + 1)
    return START


def recent_edge(context: Context, unit: RecentUnit, keep: int) -> Key:
    """Return the edge of the newest ``keep`` units."""
    return newest(context, keep, _weights(context)[unit])


def _weights(context: Context) -> dict[RecentUnit, Callable[[Placed], int]]:
    return {
        "result": lambda entry: entry.message.role == "tool",
        "step": lambda entry: _starts_step(context, entry),
        "turn": lambda entry: entry.message.role == "user",
        "assistant": lambda entry: entry.message.role == "assistant",
        "message": lambda _: 1,
        "content": lambda entry: not _follows_result(context, entry),
        "event": lambda entry: max(1, len(entry.message.calls)),
    }


def _starts_step(context: Context, entry: Placed) -> bool:
    if entry.message.role != "assistant":
        return False
    follower = next(context.entries((entry.key[0], entry.key[1] + 1)), None)
    return follower is not None and follower.message.role == "tool"


def _follows_result(context: Context, entry: Placed) -> bool:
    if entry.message.role != "tool":
        return False
    earlier = next(context.before(entry.key), None)
    return earlier is not None and earlier.message.role == "tool"
