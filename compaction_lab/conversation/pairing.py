"""Which tool result answers which call; ids may be reused, so a result belongs to the nearest call still open.

Nothing is refused here: orphans, duplicates and unanswered calls are listed, and the reader decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compaction_lab.conversation.messages import Message


class CallPlace(NamedTuple):
    """Where a tool call stands: the index of its message and its position among that message's calls."""

    message: int
    position: int


class Pairing:
    """Pairs results with calls while messages are appended, in constant time a call or result.

    A result answers the latest message that has an open call with its id and, within that message, the first such
    call. A result whose call was already answered is a duplicate and belongs to the call answered last under its id.

    Parameters
    ----------
    messages
        Appended in order.

    Attributes
    ----------
    answers
        For each message the call it answers; ``None`` for what is not a result, and for orphans.
    orphans
        Indices of results with no earlier call.
    duplicates
        Indices of results whose call was already answered.
    reused_ids
        Number of calls whose id an earlier call already had.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import ToolCall, assistant, tool, user
    >>> pairing = Pairing([user("hi"), assistant("", ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"))])
    >>> pairing.append(tool("b", "seen"))
    1
    >>> pairing.answers[-1], pairing.unanswered
    (CallPlace(message=1, position=1), (CallPlace(message=1, position=0),))
    """

    __slots__ = ("_answered", "_open", "answers", "duplicates", "orphans", "reused_ids")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.answers: list[CallPlace | None] = []
        self.orphans: list[int] = []
        self.duplicates: list[int] = []
        self.reused_ids = 0
        self._open: dict[str, list[CallPlace]] = {}
        self._answered: dict[str, CallPlace] = {}
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> int | None:
        """Add the next message; return the index of the message whose call it answers, if it is a result with one."""
        index = len(self.answers)
        if message.role == "tool":
            place = self._answer(index, message.call_id)
            self.answers.append(place)
            return None if place is None else place.message
        self.answers.append(None)
        # The stack of an id ends with the latest message's first call, which is the next to be answered.
        for position in range(len(message.calls) - 1, -1, -1):
            call_id = message.calls[position].id
            stack = self._open.get(call_id)
            if stack or call_id in self._answered:
                self.reused_ids += 1
            if stack is None:
                stack = self._open[call_id] = []
            stack.append(CallPlace(index, position))
        return None

    def _answer(self, index: int, call_id: str) -> CallPlace | None:
        stack = self._open.get(call_id)
        if stack:
            place = self._answered[call_id] = stack.pop()
            if not stack:
                del self._open[call_id]
            return place
        answered = self._answered.get(call_id)
        (self.orphans if answered is None else self.duplicates).append(index)
        return answered

    def is_open(self, call_id: str) -> bool:
        """Whether a call with this id has no result so far."""
        return call_id in self._open

    @property
    def unanswered(self) -> tuple[CallPlace, ...]:
        """Calls without a result so far, in order."""
        return tuple(sorted(place for stack in self._open.values() for place in stack))


def pair_results(messages: Sequence[Message]) -> list[int | None]:
    """Return for each message the index of the message whose call it answers, ``None`` where there is none."""
    return [None if place is None else place.message for place in Pairing(messages).answers]
