"""Strands' sliding window, as strands-agents 1.62.0 behaves; the system prompt is not in its list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Media, Message, Part, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Occasion, Situation
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window
from compaction_lab.strategies.registry import at_least, register

PRESERVED_CHARACTERS = 200
TRUNCATED = "... [truncated:"


@register("strands/sliding_window_conversation_manager", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindow(Window):
    """Keep the last messages from a user message on; on overflow, clip the oldest large result first (M2, M15).

    Parameters
    ----------
    window_size
        Messages beyond which the oldest go; the results of one batch are one message. 0 clears all that is not pinned.
    should_truncate_results
        Whether an overflow first clips the results of the oldest message that has any.
    per_turn
        Whether it acts before every model call rather than at the end of each turn.
    pin_first
        Messages at the head that are never removed, nor their other halves.
    proactive_compression
        Share of the window from which it also acts before a call; off when not given.
    """

    persists: ClassVar[bool] = True

    window_size: int = 40
    should_truncate_results: bool = True
    per_turn: bool = False
    pin_first: int | None = None
    proactive_compression: float | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "window_size", 0)
        if self.proactive_compression is not None and not 0 < self.proactive_compression <= 1:
            msg = f"SlidingWindow: proactive_compression={self.proactive_compression}; expected above 0, at most 1"
            raise ConfigurationError(msg)

    @property
    def default_when(self) -> Occasion:
        """At the end of a turn, unless every call is asked for."""
        return "before_call" if self.per_turn or self.proactive_compression is not None else "after_turn"

    def __call__(self, situation: Situation) -> Compaction:
        """Reduce when due; the first time, remember how many messages that pins."""
        done = Window.__call__(self, situation)
        if not self.pin_first or situation.memory is not None:
            return done
        shown = Shown(situation, situation.context if situation.last is None else situation.last)
        units = _units(shown)
        return replace(done, memory=min(self.pin_first, len(units))) if self._is_due(shown, units) else done

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Reduce the list when it is too long, or the model refused it."""
        messages = shown.messages
        units = _units(shown)
        if not self._is_due(shown, units):
            return None
        overflow = shown.situation.occasion == "overflow"
        first = shown.situation.memory
        pinned = _pinned(messages, units, first if isinstance(first, int) else self.pin_first or 0)
        if self.window_size == 0:
            gone = [unit for number, unit in enumerate(units) if number not in pinned]
            return _without(messages, gone)
        if overflow and self.should_truncate_results:
            oldest = next(
                (u for n, u in enumerate(units) if messages[u.start].role == "tool" and n not in pinned), None
            )
            clipped = {} if oldest is None else {at: c for at in oldest if (c := _clipped(messages[at])) is not None}
            if clipped:
                return [StandIn(at, clipped[at]) if at in clipped else at for at in range(len(messages))]
        start = 2 if len(units) <= self.window_size else len(units) - self.window_size
        cut = next((n for n in range(start, len(units)) if messages[units[n].start].role == "user"), None)
        if cut is None:
            cut = next((n for n in range(start, len(units) - 1) if _is_exchange(messages, units, n)), None)
        if cut is None:
            return None
        return _without(messages, [units[number] for number in range(cut) if number not in pinned])

    def _is_due(self, shown: Shown, units: Sequence[range]) -> bool:
        if shown.situation.occasion == "overflow" or len(units) > self.window_size:
            return True
        window = shown.situation.window_tokens
        if self.proactive_compression is None or window is None:
            return False
        return shown.situation.tokens(shown.context) >= self.proactive_compression * window


def _units(shown: Shown) -> list[range]:
    """Return what is a message to Strands: not the system prompt, and the results of a batch together."""
    return [unit for unit in shown.batches if not is_system(shown.messages[unit.start])]


def _pinned(messages: Sequence[Message], units: Sequence[range], first: int) -> set[int]:
    """Return the numbers of pinned units: those flagged, and neighbours that share a call with one."""
    flagged = {n for n, unit in enumerate(units) if n < first or any(messages[at].pinned for at in unit)}
    near = {
        n
        for n in range(len(units))
        for other in (n - 1, n + 1)
        if other in flagged and _call_ids(messages, units[n]) & _call_ids(messages, units[other])
    }
    return flagged | near


def _call_ids(messages: Sequence[Message], unit: range) -> set[str]:
    ids = {call.id for at in unit for call in messages[at].calls}
    return ids | {messages[at].call_id for at in unit if messages[at].role == "tool"}


def _is_exchange(messages: Sequence[Message], units: Sequence[range], number: int) -> bool:
    return bool(messages[units[number].start].calls) and messages[units[number + 1].start].role == "tool"


def _without(messages: Sequence[Message], gone: Sequence[range]) -> list[Item] | None:
    dropped = {at for unit in gone for at in unit}
    return [at for at in range(len(messages)) if at not in dropped] if dropped else None


def _clipped(message: Message) -> Message | None:
    """Return a result with long texts clipped to both ends and images named, or ``None`` when nothing changes."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Media) and part.kind == "image":
            parts.append(Text(f"[image: {part.mime.rsplit('/', 1)[-1] or 'unknown'}, {part.byte_size} bytes]"))
        elif isinstance(part, Text) and TRUNCATED not in part.text and len(part.text) > 2 * PRESERVED_CHARACTERS:
            text, kept = part.text, PRESERVED_CHARACTERS
            removed = len(text) - 2 * kept
            gap = f"...\n\n{TRUNCATED} {removed} chars removed] ...\n\n..."
            parts.append(Text(text[:kept] + gap + text[-kept:]))
        else:
            parts.append(part)
    return None if tuple(parts) == message.parts else replace(message, parts=tuple(parts))
