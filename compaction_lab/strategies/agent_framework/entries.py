"""What Agent Framework's list is made of: messages with the framework's notes, and the groups they form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from operator import attrgetter
from typing import Any, TypeAlias

from compaction_lab.conversation.context import Key
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.wire import canonical_json
from compaction_lab.importers.lab import message_from_lab, message_to_lab
from compaction_lab.strategies.agent_framework.contents import Facets, facets
from compaction_lab.strategies.agent_framework.grouping import Kind

Rows: TypeAlias = "tuple[Any, ...]"
"""A head (log messages, failed summaries, turn, anchor) and one row an entry; what a memory is written as."""

Label: TypeAlias = "tuple[int, int | Fraction]"
"""Place in the list: log message ``i`` has ``(i, 0)``, what was inserted before it ``(i, -1)`` and other negatives."""

START: Label = (-1, 0)
FAR = -(10**9)
by_label = attrgetter("label")


def by_first(group: Group) -> Label:
    """Return the place of a group's first member."""
    return group.members[0].label


class Group:
    """Messages that stay or go together.

    Attributes
    ----------
    id, kind
        The framework's group id, and the kind of its first member.
    members, included
        Its messages in list order, and how many of them are not excluded.
    """

    __slots__ = ("id", "included", "kind", "listed", "members")

    def __init__(self, group_id: str, kind: Kind) -> None:
        self.id = group_id
        self.kind = kind
        self.members: list[Entry] = []
        self.included = 0
        self.listed = False

    @property
    def pinned(self) -> bool:
        """Whether a member must not be touched (the lab's own rule: the framework knows no pins)."""
        return any(entry.message.pinned for entry in self.members)


class Entry:
    """One message of the list.

    Attributes
    ----------
    key
        Where it stands in the lab's context.
    id, group_id, kind, excluded, tokens
        The framework's notes; ``tokens`` is ``None`` until counted.
    group
        The group that ``group_id`` names.
    pull
        The earliest declaration that one of its results might answer.
    """

    __slots__ = ("excluded", "facets", "group", "group_id", "id", "key", "kind", "label", "message", "pull", "tokens")

    def __init__(self, message: Message, label: Label, key: Key, message_id: str = "") -> None:
        self.message = message
        self.facets: Facets = facets(message)
        self.label = label
        self.key = key
        self.id = message_id or message.id
        self.group_id: str | None = None
        self.kind: Kind = "assistant_text"
        self.group: Group | None = None
        self.excluded = False
        self.tokens: int | None = None
        self.pull: Entry | None = None

    @property
    def inserted(self) -> bool:
        """Whether it is no message of the log."""
        return self.label[1] != 0

    def become(self, message: Message) -> None:
        """Hold another message, as yet neither grouped nor counted."""
        self.message, self.facets = message, facets(message)
        self.group_id, self.tokens = None, None


def label_of(key: Key) -> Label:
    """Return the label of what a context shows at a key: an inserted message comes before the log's next one."""
    index, rank = key
    return (index, 0) if rank == 0 else (index + 1, Fraction(-1, rank + 1) - 1)


def between(previous: Entry | None, entry: Entry) -> Label:
    """Return a label right before ``entry``."""
    index, offset = entry.label
    if previous is None or previous.label[0] < index:
        return (index, offset - 1)
    return (index, Fraction(previous.label[1] + offset) / 2)


def row_of(entry: Entry) -> tuple[object, ...]:
    """Return an entry as plain values; a message of the log is named by its index."""
    written = canonical_json(message_to_lab(entry.message)) if entry.inserted else ""
    notes = (entry.id, entry.group_id, entry.kind, entry.excluded, entry.tokens)
    return (*entry.key, entry.label[0], *notes, written)


def entries_of(rows: Iterable[tuple[Any, ...]], log: Log) -> Iterator[Entry]:
    """Yield the entries of rows."""
    label: Label = START
    for index, rank, before, message_id, group_id, kind, excluded, tokens, written in rows:
        if written:
            follows = label[0] == before and label[1] != 0
            label = (before, label[1] + 1 if follows else FAR)
            message = message_from_lab(json.loads(written))
        else:
            label = (before, 0)
            message = log.messages[before]
        entry = Entry(message, label, (index, rank), message_id)
        entry.group_id, entry.kind, entry.excluded, entry.tokens = group_id, kind, excluded, tokens
        yield entry
