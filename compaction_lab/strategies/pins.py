"""A pinned message stays, and with it the group that it is in: a result needs its call, a call its results."""

from __future__ import annotations

from collections.abc import Iterable

from compaction_lab.conversation.context import Context, Key, Placed


def held(context: Context, key: Key) -> bool:
    """Whether what stands at ``key`` is pinned or in one group with a pinned message."""
    index, rank = key
    if rank or index < 0:
        message = context.get(key)
        return message is not None and message.pinned
    return context.log.is_pinned(context.log.groups[index])


def unpinned(context: Context, entries: Iterable[Placed]) -> tuple[Placed, ...]:
    """Return the entries that pins leave free to go."""
    return tuple(entry for entry in entries if not held(context, entry.key))


def outside(context: Context, before: Key | None) -> Key | None:
    """Return the key before which something new may stand: never inside a group that a pin holds together."""
    if before is None or before[1] or not held(context, before):
        return before
    members = context.log.members(context.log.groups[before[0]], context.stop)
    return next(((at, 0) for at in members if context.get((at, 0)) is not None), before)
