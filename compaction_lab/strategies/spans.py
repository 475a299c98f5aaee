"""Frameworks index their message lists; these functions turn such indices into what a summary takes the place of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.summaries import Span

Entries = Sequence[Placed]


def leading_system(entries: Entries) -> int:
    """Return how many system messages the list begins with."""
    return next((at for at, entry in enumerate(entries) if not is_system(entry.message)), len(entries))


def first_where(entries: Entries, holds: Callable[[Message], bool], default: int = -1) -> int:
    """Return the index of the first message for which ``holds``."""
    return next((at for at, entry in enumerate(entries) if holds(entry.message)), default)


def last_where(entries: Entries, holds: Callable[[Message], bool], default: int = -1) -> int:
    """Return the index of the newest message for which ``holds``."""
    return next((at for at in range(len(entries) - 1, -1, -1) if holds(entries[at].message)), default)


def is_summary(message: Message) -> bool:
    """Whether a summariser wrote this message."""
    return message.source == "summary"


def span(entries: Entries, start: int, stop: int, *, before: int | None = None) -> Span:
    """Return the span of ``entries[start:stop]``, pinned messages left out, its summary before ``entries[before]``.

    ``before`` defaults to ``stop``: the summary stands where what it replaces ended.
    """
    hidden = tuple(entry for entry in entries[start:stop] if not entry.message.pinned)
    at = stop if before is None else before
    return Span(hidden, entries[at].key if at < len(entries) else None)


def reading_only(of: Span, read: Sequence[Placed]) -> Span:
    """Return a span whose summariser is shown ``read`` instead of what goes."""
    return replace(of, read=tuple(read))


def without_calls(message: Message) -> bool:
    """Whether a message neither calls a tool nor is a tool's result."""
    return not message.calls and message.role != "tool"


def result_units(entries: Entries) -> list[tuple[int, int]]:
    """Return index ranges that take consecutive tool results as one message, as formats with content blocks do."""
    units: list[tuple[int, int]] = []
    for at, entry in enumerate(entries):
        if entry.message.role == "tool" and units and entries[at - 1].message.role == "tool":
            units[-1] = (units[-1][0], at + 1)
        else:
            units.append((at, at + 1))
    return units
