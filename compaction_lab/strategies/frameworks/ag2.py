"""AG2's history limits (import name ``ag2``), as ag2 1.2.1 behaves; a batch of results is one event there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.conversation.counting import register_counting
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Media, Message, Text
from compaction_lab.strategies.mechanisms.spans import answered, flat
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register

MEDIA_TOKENS = {"image": 1000, "audio": 1000, "file": 2000}


@register_counting("ag2_estimate")
def default_tokens(message: Message) -> int:
    """Return AG2's estimate at four characters a token."""
    return estimated_tokens(message, 4)


def estimated_tokens(message: Message, chars_per_token: int) -> int:
    """Return AG2's estimate: each text and each printed call divided by the ratio, rounded down; media flat."""
    tokens = sum(len(part.text) // chars_per_token for part in message.parts if isinstance(part, Text))
    tokens += sum((len(call.name) + len(call.arguments) + 2) // chars_per_token for call in message.calls)
    return tokens + sum(MEDIA_TOKENS[part.kind] for part in message.parts if isinstance(part, Media))


@register("ag2/history_limiter", semantics=1)
@dataclass(frozen=True, slots=True)
class HistoryLimiter(Window):
    """Send the first request and the newest events; results that lost their call are left out (mechanism M2).

    Parameters
    ----------
    max_events
        Events sent. A window of nothing but such results grows until something is left.
    """

    max_events: int

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_events", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep head and tail."""
        head, events = _events(shown)
        if len(events) <= self.max_events:
            return None
        first = events[:1] if _is_request(shown.messages, events[0]) else []
        tail = events[len(first) :]
        room = self.max_events - len(first)
        kept = _replayable(shown.messages, tail, len(tail) - room) if room or not first else []
        return sorted([*head, *flat(first), *flat(kept)])


@register("ag2/token_limiter", semantics=1)
@dataclass(frozen=True, slots=True)
class TokenLimiter(Window):
    """Send the first request and the newest events that fit; results that lost their call are left out (mechanism M2).

    Parameters
    ----------
    max_tokens
        Tokens sent; the newest event is sent in any case.
    chars_per_token
        Characters of text taken for a token.
    """

    max_tokens: int
    chars_per_token: int = 4

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_tokens", 1)
        at_least(self, "chars_per_token", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep head and tail."""
        head, events = _events(shown)
        weights = [sum(estimated_tokens(shown.messages[at], self.chars_per_token) for at in event) for event in events]
        if not events or sum(weights) <= self.max_tokens:
            return None
        first = 1 if _is_request(shown.messages, events[0]) else 0
        used, start = sum(weights[:first]), len(events)
        for at in range(len(events) - 1, first - 1, -1):
            if start < len(events) and used + weights[at] > self.max_tokens:
                break
            start = at
            used += weights[at]
        kept = _replayable(shown.messages, events[first:], start - first)
        return sorted([*head, *flat(events[:first]), *flat(kept)])


@register("ag2/tail_window_compact", semantics=1)
@dataclass(frozen=True, slots=True)
class TailWindowCompact(Window):
    """Keep the newest events, from the next place on at which no result has lost its call, for good (mechanism M2).

    Parameters
    ----------
    target
        Events kept at most.
    max_events
        Events beyond which it acts (``CompactTrigger``); whenever there are more than ``target`` when 0.
    """

    persists: ClassVar[bool] = True

    target: int
    max_events: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "target", 1)
        at_least(self, "max_events", 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail."""
        messages = shown.messages
        head, events = _events(shown)
        cut = len(events) - self.target
        if cut <= 0 or (self.max_events and len(events) <= self.max_events):
            return None
        while cut < len(events) and len(_pruned(messages, events[cut:])) < len(events) - cut:
            cut += 1
        if cut == len(events):
            return None
        return sorted([*head, *flat(events[cut:])])


def _events(shown: Shown) -> tuple[list[int], list[range]]:
    """Return the positions of system messages, which are no events, and the events."""
    messages = shown.messages
    head = [at for at, message in enumerate(messages) if is_system(message)]
    return head, [span for span in shown.batches if not is_system(messages[span.start])]


def _is_request(messages: Sequence[Message], event: range) -> bool:
    return messages[event.start].role == "user"


def _pruned(messages: Sequence[Message], events: Sequence[range]) -> list[range]:
    """Return events without the batches that hold a result whose call is not among them."""
    calls = {call.id for event in events for at in event for call in messages[at].calls}
    return [event for event in events if answered([messages[at] for at in event]) <= calls]


def _replayable(messages: Sequence[Message], events: Sequence[range], cut: int) -> list[range]:
    kept = _pruned(messages, events[cut:])
    while not kept and cut > 0:
        cut -= 1
        kept = _pruned(messages, events[cut:])
    return kept
