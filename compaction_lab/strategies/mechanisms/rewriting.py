"""Changing what messages say while keeping them: edits under way, how far a strategy has come, when to act and stop.

Every mechanism that clears, clips or offloads content is a rule for one message and an edge up to which it applies.
The walk over what lies behind the edge, oldest first, is the same for all and lives here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compaction_lab.conversation.context import Context, Counter, Edit, EditKind, Key, Placed
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.memory import remembered

START: Key = (0, 0)
"""Where every conversation begins."""


class Draft:
    """A context being edited: what stands at each key by now, at most one edit a key.

    Parameters
    ----------
    context
        What the edits start from.
    counter
        Counts what they save.

    Attributes
    ----------
    saved_tokens
        Tokens that the edits save.
    """

    __slots__ = ("_edits", "context", "counter", "saved_tokens")

    def __init__(self, context: Context, counter: Counter) -> None:
        self.context = context
        self.counter = counter
        self.saved_tokens = 0
        self._edits: dict[Key, Edit] = {}

    def get(self, key: Key) -> Message | None:
        """Return what stands at ``key`` by now; ``None`` when nothing visible does."""
        edit = self._edits.get(key)
        if edit is None:
            return self.context.get(key)
        return None if edit.new is None else edit.new.message

    def put(self, kind: EditKind, key: Key, message: Message) -> None:
        """Let ``message`` stand at ``key`` in the place of what stands there."""
        self._change(key, Edit(kind, (key,), Placed(key, message)))
        self.saved_tokens -= self.counter.message(message)

    def drop(self, key: Key) -> None:
        """Hide what stands at ``key``."""
        self._change(key, Edit("dropped", (key,)))

    def _change(self, key: Key, edit: Edit) -> None:
        old = self.get(key)
        if old is not None:
            self.saved_tokens += self.counter.message(old)
        self._edits[key] = edit

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far, in the order their keys were first touched."""
        return tuple(self._edits.values())


Rewrite = Callable[[Draft, Placed], bool]
"""Changes, in the draft, what one message says; says whether the message was one of those it is meant for."""


@dataclass(frozen=True, slots=True)
class Reclaim:
    """When clearing is worth it, and when it has cleared enough; all of it is optional.

    Parameters
    ----------
    at_least_tokens
        Floor: change nothing unless this much is freed (Anthropic, pydantic-ai-harness, opencode, Gemini CLI).
    since
        What the floor is held against: all that is cleared of the ``history``, so that it binds once, or what is newly
        cleared since the ``last`` time, so that it binds every time.
    stop_after_tokens
        Ceiling: clear the oldest first and stop once this much is freed (LangChain).
    down_to_tokens
        Clear the oldest first and stop once the request has no more tokens than this (Haystack).
    measure
        ``net``: what is saved, stand-ins counted; ``gross``: the messages that are cleared.
    """

    at_least_tokens: int = 0
    since: Literal["history", "last"] = "history"
    stop_after_tokens: int | None = None
    down_to_tokens: int | None = None
    measure: Literal["net", "gross"] = "net"


ALWAYS = Reclaim()


@remembered
class Progress(NamedTuple):
    """Memory of a mechanism that works through the history: all before ``edge`` is dealt with, and what that freed."""

    edge: Key
    freed_tokens: int = 0


def rewrite_before(
    situation: Situation, edge: Key, rewrite: Rewrite, reclaim: Reclaim = ALWAYS, *, reason: str = ""
) -> Compaction:
    """Apply a rule to everything visible before ``edge``, oldest first; pinned messages stay as they are.

    Goes on from the strategy's previous result, so that a call costs what newly fell behind the edge. An edge that
    moved back is answered from the history.

    Parameters
    ----------
    situation
        What the strategy was given.
    edge
        Key before which messages may be changed.
    rewrite
        The rule for one message.
    reclaim
        When it is worth it, and when it is enough.
    reason
        Why the strategy acted, for the record.
    """
    context, base, continues = start(situation)
    progress = situation.memory if continues and isinstance(situation.memory, Progress) else Progress(START)
    if edge < progress.edge:
        context, base, progress = situation.context, "history", Progress(START)
    total = situation.tokens(context) if reclaim.down_to_tokens is not None else 0
    draft = Draft(context, situation.counter)
    gross = 0
    reached = edge
    for entry in context.entries(progress.edge, edge):
        freed = progress.freed_tokens + (draft.saved_tokens if reclaim.measure == "net" else gross)
        if _is_enough(reclaim, freed, total - draft.saved_tokens):
            reached = entry.key
            break
        if not entry.message.pinned and rewrite(draft, entry):
            gross += situation.counter.message(entry.message)
    newly = draft.saved_tokens if reclaim.measure == "net" else gross
    freed = progress.freed_tokens + newly
    if reclaim.at_least_tokens and (freed if reclaim.since == "history" else newly) < reclaim.at_least_tokens:
        return Compaction((), progress, base)
    edits = draft.edits
    return Compaction(edits, Progress(max(reached, progress.edge), freed), base, reason if edits else "")


def _is_enough(reclaim: Reclaim, freed_tokens: int, request_tokens: int) -> bool:
    if reclaim.stop_after_tokens is not None and freed_tokens >= reclaim.stop_after_tokens:
        return True
    return reclaim.down_to_tokens is not None and request_tokens <= reclaim.down_to_tokens
