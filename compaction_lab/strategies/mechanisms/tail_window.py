"""The tail window (mechanism M2): the newest messages stay, beside what is protected at the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.spans import largest_fitting_prefix
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register

TailUnit = Literal["message", "batch", "step", "turn", "tokens", "characters"]
Boundary = Literal["raw", "not_tool_first", "forward_to_user", "back_to_call", "whole_turn"]
Protected = Literal["system", "leading_system", "first_user", "last_user", "pinned"]


@register("tail_window", semantics=1)
@dataclass(frozen=True, slots=True)
class TailWindow(Window):
    """Keep the newest part of the list, and drop what is older.

    Parameters
    ----------
    keep
        Units kept: newest messages, batches (the results of one batch count as one), steps or turns, or a budget of
        tokens or characters for what is kept.
    fraction
        Share of the units that is kept, instead of ``keep``; messages are rounded up.
    unit
        What ``keep`` counts.
    keep_first
        Messages at the head that stay besides; ``counts_first`` says whether they use up ``keep``.
    protect
        What stays wherever it stands: ``system`` (developer messages too), ``leading_system`` (those before anything
        else), ``first_user``, ``last_user``, ``pinned``.
    boundary
        What becomes of a window that begins inside an exchange: ``raw`` leaves it; ``not_tool_first`` drops results at
        its front; ``forward_to_user`` drops all before its first user message; ``back_to_call`` grows it to the call of
        the results at its front; ``whole_turn`` grows it to the user message that opened the turn.
    note
        Text of a message in the place of what was dropped; ``{dropped}`` becomes the number of messages.
    note_role
        Its role.
    whole_groups
        Whether calls stay with their results and reasoning, and pinned groups stay wherever they stand.
    """

    keep: int | None = None
    fraction: float | None = None
    unit: TailUnit = "message"
    keep_first: int = 0
    counts_first: bool = False
    protect: tuple[Protected, ...] = ("system",)
    boundary: Boundary = "not_tool_first"
    note: str | None = None
    note_role: Literal["user", "assistant", "system"] = "user"
    whole_groups: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_first", 0)
        if (self.keep is None) == (self.fraction is None):
            msg = f"TailWindow: keep={self.keep}, fraction={self.fraction}; give exactly one of them"
            raise ConfigurationError(msg)
        if self.keep is not None:
            at_least(self, "keep", 0)
        if self.fraction is not None and not 0 <= self.fraction <= 1:
            msg = f"TailWindow: fraction={self.fraction}; expected a share from 0 to 1"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the head, what is protected, and the window."""
        messages = shown.messages
        start = bounded(messages, self._start(shown), self.boundary)
        spared = protected(messages, self.protect) | set(range(min(self.keep_first, len(messages))))
        head = [at for at in range(start) if at in spared]
        dropped = start - len(head)
        if not dropped:
            return None
        tail = range(start, len(messages))
        if self.note is None:
            return [*head, *tail]
        note = Message(self.note_role, (Text(self.note.replace("{dropped}", str(dropped))),), source="placeholder")
        return [*head, note, *tail]

    def _start(self, shown: Shown) -> int:
        """Return where the window begins before its boundary is looked at."""
        messages = shown.messages
        first = self.keep_first if self.counts_first else 0
        if self.unit in ("tokens", "characters"):
            weights = shown.tokens if self.unit == "tokens" else [len(message.text) for message in messages]
            budget = self.keep if self.keep is not None else int(sum(weights) * (self.fraction or 0))
            return len(messages) - largest_fitting_prefix(weights[::-1], budget - sum(weights[:first]))
        starts = unit_starts(shown, self.unit)
        keep = self.keep if self.keep is not None else ceil(len(starts) * (self.fraction or 0))
        keep = max(0, keep - first)
        if keep >= len(starts):
            return 0
        return starts[len(starts) - keep] if keep else len(messages)


def unit_starts(shown: Shown, unit: str) -> list[int]:
    """Return where messages, batches, steps or turns begin; what precedes the first step or turn belongs to it."""
    messages = shown.messages
    if unit == "batch":
        return [span.start for span in shown.batches]
    if unit == "turn":
        starts = [at for at, message in enumerate(messages) if message.role == "user" and message.source != "summary"]
    elif unit == "step":
        starts = [at for at, message in enumerate(messages) if message.role == "assistant"]
    else:
        return list(range(len(messages)))
    return [0, *starts[1:]] if starts else list(range(min(1, len(messages))))


def bounded(messages: Sequence[Message], start: int, rule: Boundary) -> int:
    """Return where a window begins once its boundary rule has been followed."""
    if rule == "not_tool_first":
        while start < len(messages) and messages[start].role == "tool":
            start += 1
    elif rule == "forward_to_user":
        while start < len(messages) and messages[start].role != "user":
            start += 1
    elif rule == "back_to_call":
        while 0 < start < len(messages) and messages[start].role == "tool":
            start -= 1
    elif rule == "whole_turn":
        while 0 < start < len(messages) and messages[start].role != "user":
            start -= 1
    return start


def protected(messages: Sequence[Message], what: Sequence[Protected]) -> set[int]:
    """Return the positions of messages that stay wherever they stand."""
    spared: set[int] = set()
    users = [at for at, message in enumerate(messages) if message.role == "user" and message.source != "summary"]
    if "system" in what:
        spared.update(at for at, message in enumerate(messages) if is_system(message))
    if "leading_system" in what:
        for at, message in enumerate(messages):
            if not is_system(message):
                break
            spared.add(at)
    if "pinned" in what:
        spared.update(at for at, message in enumerate(messages) if message.pinned)
    if "first_user" in what:
        spared.update(users[:1])
    if "last_user" in what:
        spared.update(users[-1:])
    return spared
