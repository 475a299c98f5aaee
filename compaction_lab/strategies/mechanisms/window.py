"""Windows: strategies that say, of the messages they are shown, which stay, in which order, and what is put between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeAlias

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.spans import batches


class StandIn(NamedTuple):
    """A message that stands in the place of another."""

    position: int
    message: Message


Item: TypeAlias = int | StandIn | Message
"""What a window shows: a message by its position, a stand-in for one, or a new message."""


@dataclass(frozen=True)
class Shown:
    """The list of messages that a framework would be given, and the situation it is given in."""

    situation: Situation
    context: Context

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages in order."""
        return self.context.messages

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Where they stand."""
        return self.context.keys

    @cached_property
    def batches(self) -> list[range]:
        """The positions of what is one message where the results of a batch share one."""
        return batches(self.messages, self.keys)

    @cached_property
    def tokens(self) -> list[int]:
        """Tokens of each message by the strategy's counting rule."""
        return list(map(self.situation.counter.message, self.messages))


class Window:
    """A strategy that is a choice of what stays, made from the whole list it is shown.

    A call costs what it is shown: the whole history where that is looked at anew each time, what is left of it where an
    earlier choice persists. With a true ``repair`` field the choice is made sendable (:func:`repaired`), with a true
    ``whole_groups`` field it is one of groups, of which pinned ones stay (:func:`by_groups`).
    """

    persists: ClassVar[bool] = False
    """Whether the framework goes on from what it last chose, rather than from the whole history."""

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Return what stays, in order; ``None`` when the list is left as it is."""
        raise NotImplementedError

    def __call__(self, situation: Situation) -> Compaction:
        """Choose, and say what that changes."""
        last = situation.last
        shown = Shown(situation, last if self.persists and last is not None else situation.context)
        chosen = self.choose(shown)
        if chosen is not None and getattr(self, "repair", False):
            chosen = repaired(shown.messages, chosen)
        if chosen is not None and getattr(self, "whole_groups", False):
            chosen = by_groups(shown, chosen)
        return settled(situation, shown, chosen)


def settled(situation: Situation, shown: Shown, chosen: Sequence[Item] | None) -> Compaction:
    """Return the compaction that leaves exactly what was chosen, as the difference to the previous result."""
    last = situation.last
    if chosen is None or (len(chosen) == len(shown.keys) and all(at == item for at, item in enumerate(chosen))):
        return Compaction(base="last" if last is not None and shown.context is last else "history")
    entries = _placed(shown, chosen)
    before = situation.context if last is None else last
    edits = before.difference(Context.of(before.log, before.stop, entries))
    reason = f"{len(entries)} of {len(shown.keys)} messages" if edits else ""
    return Compaction(edits, base="history" if last is None else "last", reason=reason)


def in_order(messages: Sequence[Message], positions: Sequence[int]) -> list[Item]:
    """Return positions as items; one that repeats or goes back is shown as a copy of its message."""
    items: list[Item] = []
    highest = -1
    for at in positions:
        items.append(at if at > highest else messages[at])
        highest = max(highest, at)
    return items


def repaired(messages: Sequence[Message], chosen: Sequence[Item]) -> list[Item]:
    """Return a choice without copies, and without calls and results that have lost their other half.

    A batch that has lost one of its results goes as a whole; what had no other half before stays.
    """
    owner, halves = _exchanges(messages)
    there = {_position(item) for item in chosen if not isinstance(item, Message)}
    broken = {call for call, results in halves.items() if not {call, *results} <= there}
    copied = {id(message) for message in messages}
    return [
        item
        for item in chosen
        if (isinstance(item, Message) and id(item) not in copied)
        or (not isinstance(item, Message) and owner.get(_position(item), _position(item)) not in broken)
    ]


def by_groups(shown: Shown, chosen: Sequence[Item]) -> list[Item]:
    """Return a choice in which every group of the log stays or goes as a whole; one with a pinned message stays."""
    log = shown.context.log
    members: dict[int, set[int]] = {}
    for at, (index, rank) in enumerate(shown.keys):
        members.setdefault(-1 - at if rank else log.groups[index], set()).add(at)
    there = {_position(item) for item in chosen if not isinstance(item, Message)}
    kept = {
        at
        for group in members.values()
        if group <= there or any(shown.messages[at].pinned for at in group)
        for at in group
    }
    items: list[Item] = []
    notes = [(before, item) for before, item in _notes(chosen) if _is_gap(shown, kept, before)]
    changed = {item.position: item for item in chosen if isinstance(item, StandIn)}
    for at in range(-1, len(shown.keys)):
        if at in kept:
            items.append(changed.get(at, at))
        items.extend(note for before, note in notes if before == at)
    return items


def _notes(chosen: Sequence[Item]) -> list[tuple[int, Message]]:
    """Return the new messages of a choice, each with the position it follows."""
    found: list[tuple[int, Message]] = []
    last = -1
    for item in chosen:
        if isinstance(item, Message):
            found.append((last, item))
        else:
            last = _position(item)
    return found


def _is_gap(shown: Shown, kept: set[int], before: int) -> bool:
    """Whether something is missing behind a position, and no group goes on across the place."""
    after = min((at for at in kept if at > before), default=len(shown.keys))
    if after - before <= 1:
        return False
    if before < 0 or after == len(shown.keys) or before not in kept:
        return True
    groups = shown.context.log.groups
    return groups[shown.keys[before][0]] != groups[shown.keys[after][0]]


def _exchanges(messages: Sequence[Message]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Return the calling message of each result, and the results of each calling message that has any."""
    owner: dict[int, int] = {}
    halves: dict[int, list[int]] = {}
    open_calls: dict[str, int] = {}
    for at, message in enumerate(messages):
        open_calls.update((call.id, at) for call in message.calls)
        if message.role == "tool" and message.call_id in open_calls:
            owner[at] = open_calls.pop(message.call_id)
            halves.setdefault(owner[at], []).append(at)
    return owner, halves


def _placed(shown: Shown, chosen: Sequence[Item]) -> list[Placed]:
    """Give every chosen message its key; new ones stand in a gap, directly behind what they follow."""
    taken = {shown.keys[_position(item)] for item in chosen if not isinstance(item, Message)}
    placed: list[Placed] = []
    last: Key = (-1, 0)
    at = 0
    for item in chosen:
        if isinstance(item, Message):
            last = _free(shown, at, last, taken)
            placed.append(Placed(last, item))
            continue
        position = _position(item)
        at = position + 1
        last = shown.keys[position]
        placed.append(Placed(last, item.message if isinstance(item, StandIn) else shown.messages[position]))
    return placed


def _position(item: int | StandIn) -> int:
    return item if isinstance(item, int) else item.position


def _free(shown: Shown, at: int, last: Key, taken: set[Key]) -> Key:
    """Return a key after ``last`` for a new message: behind the first dropped one from ``at`` on, if there is any."""
    if at < len(shown.keys) and shown.keys[at] not in taken and last < shown.keys[at]:
        last = shown.keys[at]
    index, rank = last
    key = (index, rank + 1)
    while key in taken:
        key = (index, key[1] + 1)
    return key
