"""The append-only log of a conversation, numbered: turn, step and group of every message.

The rules are the lab's (design glossary). A *turn* is a user message and everything up to the next one; turn 0
precedes the first, and a summary in the user's role opens none. A *step* is one model call and the tool results that
follow it; what precedes a call (a user message, say) belongs to its step. A *group* is what must stay or go together:
an assistant message with its calls, their results and the reasoning bound to it. Frameworks that group otherwise bring
their own rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal

from compaction_lab.conversation.messages import Message, Reasoning
from compaction_lab.conversation.pairing import CallPlace, Pairing

GroupKind = Literal["system", "user", "assistant_text", "tool_call", "summary"]
Unit = Literal["turn", "step", "group", "message", "result"]


def is_system(message: Message) -> bool:
    """Whether a message instructs the model (``system``, or ``developer`` as newer providers call it).

    A summary in the system's role does not: the next summary may take its place.
    """
    return message.role in ("system", "developer") and message.source != "summary"


class Log:
    """Messages in the order they came, never changed, only appended.

    Attributes
    ----------
    messages
        The messages; index ``i`` is message ``i``'s place in every key and row.
    turns, steps, groups
        Number of the turn and step of each message; index of the first message of its group.
    turn_starts, step_starts, group_starts
        Index of the first message of each turn (``turn_starts[0] == 0``), step (step ``s`` at position ``s - 1``)
        and group, ascending.
    calls
        Index of the assistant message that opens each model call; messages sharing a response id are one call.
    results
        Indices of the tool messages.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = []
        self.turns: list[int] = []
        self.steps: list[int] = []
        self.groups: list[int] = []
        self.turn_starts: list[int] = [0]
        self.step_starts: list[int] = [0]
        self.group_starts: list[int] = []
        self.calls: list[int] = []
        self.results: list[int] = []
        self._untouchable: list[int] = []
        self._pinned_groups: set[int] = set()
        self._members: dict[int, list[int]] = {}
        self._kinds: dict[int, GroupKind] = {}
        self._step_has_call = False
        self._pairing = Pairing()
        self._speaker = -1  # the newest message that is no tool result
        for message in messages:
            self.append(message)

    def __len__(self) -> int:
        return len(self.messages)

    def prefix(self, stop: int) -> Log:
        """Return a log of its own that begins with the first ``stop`` messages."""
        return Log(self.messages[:stop])

    def append(self, message: Message) -> int:
        """Add one message, number it, and return its index."""
        index = len(self.messages)
        answers = self._pairing.append(message)
        continued = self._continued_by(message)
        if message.role == "user" and message.source != "summary":
            self.turn_starts.append(index)
        if message.role != "tool" and continued < 0:
            if self._step_has_call:
                self.step_starts.append(index)
            self._step_has_call = message.role == "assistant"
            if self._step_has_call:
                self.calls.append(index)
        if message.role == "tool":
            self.results.append(index)
        else:
            self._speaker = index
        if message.pinned or is_system(message):
            self._untouchable.append(index)
        self.messages.append(message)
        self.turns.append(len(self.turn_starts) - 1)
        self.steps.append(len(self.step_starts))
        self._join_group(index, message, continued if answers is None else answers)
        return index

    def _continued_by(self, message: Message) -> int:
        """Return the message of the same model call that ``message`` continues, results apart, or -1."""
        if message.role != "assistant" or not message.response_id or self._speaker < 0:
            return -1
        speaker = self.messages[self._speaker]
        return self._speaker if speaker.role == "assistant" and speaker.response_id == message.response_id else -1

    def _join_group(self, index: int, message: Message, joins: int) -> None:
        if joins < 0 and message.role == "assistant" and index and _only_reasoning(self.messages[index - 1]):
            joins = index - 1
        first = index if joins < 0 else self.groups[joins]
        self.groups.append(first)
        if message.pinned:
            self._pinned_groups.add(first)
        if first == index:
            self.group_starts.append(index)
            self._members[index] = [index]
            self._kinds[index] = _kind(message)
        else:
            self._members[first].append(index)
            if message.calls:
                self._kinds[first] = "tool_call"

    def members(self, first: int, stop: int | None = None) -> list[int]:
        """Return the indices of the group that starts at ``first``, as far as they precede ``stop``."""
        found = self._members[first]
        if stop is None or found[-1] < stop:
            return found
        return found[: bisect_left(found, stop)]

    def kind(self, first: int) -> GroupKind:
        """Return the kind of the group that starts at ``first``."""
        return self._kinds[first]

    def call_of(self, result: int) -> CallPlace | None:
        """Return where the call stands that the tool message ``result`` answers; ``None`` for an orphan."""
        return self._pairing.answers[result]

    @property
    def reuses_ids(self) -> bool:
        """Whether a call has an id that an earlier call had."""
        return self._pairing.reused_ids > 0

    def is_pinned(self, first: int) -> bool:
        """Whether a message of the group that starts at ``first`` is pinned."""
        return first in self._pinned_groups

    def untouchable_before(self, stop: int) -> int:
        """Return the index of the newest system or pinned message before ``stop``, or -1."""
        at = bisect_left(self._untouchable, stop)
        return self._untouchable[at - 1] if at else -1

    def last_call(self, stop: int) -> int:
        """Return the index of the assistant message that opens the last call before ``stop``, or -1."""
        at = bisect_left(self.calls, stop)
        return self.calls[at - 1] if at else -1

    def turn_at(self, stop: int) -> int:
        """Return the number of the turn that the first ``stop`` messages end in."""
        return self.turns[stop - 1] if stop else 0

    def unread_from(self, stop: int) -> int:
        """Return where the messages begin that no call has read completely: open calls and unread results.

        That is the first message of the last call's group when the call was for tools, else the first result after
        the call (a late or orphaned one), else ``stop``.
        """
        call = self.last_call(stop)
        if call >= 0:
            members = self.members(self.groups[call], stop)
            if any(self.messages[index].calls for index in members):
                return members[0]
        at = bisect_left(self.results, call + 1)
        return min(self.results[at], stop) if at < len(self.results) else stop


def _only_reasoning(message: Message) -> bool:
    return (
        message.role == "assistant"
        and bool(message.parts)
        and not message.calls
        and all(isinstance(part, Reasoning) for part in message.parts)
    )


def _kind(message: Message) -> GroupKind:
    if message.source == "summary":
        return "summary"
    if is_system(message):
        return "system"
    if message.role == "user":
        return "user"
    if message.calls or message.role == "tool":
        return "tool_call"
    return "assistant_text"
