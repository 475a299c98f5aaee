"""Pydantic AI harness's ``SlidingWindowCompaction``, as pydantic-ai-harness 0.36.0 behaves, and its token estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.conversation.counting import MessageRule, register_counting
from compaction_lab.conversation.messages import Message, Reasoning, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.mechanisms.spans import flat, neighbours
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register

RULE = "pydantic_ai_harness_approximate"
CHARACTERS_PER_TOKEN = 4
SEARCHED_MESSAGES = 5
"""How far around a cut the harness looks for calls whose result lies on the other side."""
DEFAULT_WINDOW_TOKENS = 200_000


def characters(message: Message) -> int:
    """Return the characters that the harness counts: texts, reasoning, names and arguments of calls, results."""
    found = message.memo.get(RULE)
    if not isinstance(found, int):
        texts = [part.text for part in message.parts if isinstance(part, (Text, Reasoning))]
        found = sum(map(len, texts)) + sum(len(call.name) + len(call.arguments) for call in message.calls)
        message.memo[RULE] = found
    return found


@register_counting(RULE)
def approximate_tokens(message: Message) -> int:
    """Return the harness's estimate for one message alone: a token for four characters, rounded down."""
    return characters(message) // CHARACTERS_PER_TOKEN


@register("pydantic_ai_harness/sliding_window_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindowCompaction(Window):
    """Beyond a size, keep the newest messages and the first request (mechanism M2); the cut moves back over pairs.

    Neighbouring messages that are not the assistant's are one request, as in Pydantic AI.

    Parameters
    ----------
    max_messages, max_tokens, max_fraction
        Requests and responses, tokens, or share of the window beyond which it acts; at least one is needed.
    context_window, fallback_context_window
        Window that ``max_fraction`` is taken of: given, or assumed when the run's is unknown.
    keep_messages, keep_tokens
        What is left: messages, or tokens when given.
    preserve_first_user_message
        Whether the first request with a user message stays.
    """

    persists: ClassVar[bool] = True

    max_messages: int | None = None
    max_tokens: int | None = None
    max_fraction: float | None = None
    context_window: int | None = None
    fallback_context_window: int = DEFAULT_WINDOW_TOKENS
    keep_messages: int = 40
    keep_tokens: int | None = None
    preserve_first_user_message: bool = True

    def __post_init__(self) -> None:
        """Check the parameters as the harness does."""
        if self.max_messages is None and self.max_tokens is None and self.max_fraction is None:
            msg = "SlidingWindowCompaction: at least one of max_messages, max_tokens, max_fraction must be set; none is"
            raise ConfigurationError(msg)
        if self.max_tokens is not None and self.max_fraction is not None:
            msg = "SlidingWindowCompaction: both max_tokens and max_fraction are set; set at most one"
            raise ConfigurationError(msg)
        for name in ("max_messages", "max_tokens", "context_window"):
            if getattr(self, name) is not None:
                at_least(self, name, 1)
        at_least(self, "keep_messages", 0)
        if self.keep_tokens is not None:
            at_least(self, "keep_tokens", 0)
        if self.max_fraction is not None and not 0 < self.max_fraction <= 1:
            msg = f"SlidingWindowCompaction: max_fraction={self.max_fraction}; expected above 0 and at most 1"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Trim a list that is too large."""
        units = requests_and_responses(shown)
        limit = token_limit(
            shown.situation, self.max_tokens, self.max_fraction, self.context_window, self.fallback_context_window
        )
        too_long = self.max_messages is not None and len(units) > self.max_messages
        if not too_long and (limit is None or tokens_of(shown, units) <= limit):
            return None
        cut = self._cut(shown, units)
        if cut <= 0:
            return None
        kept = list(units[cut:])
        if self.preserve_first_user_message:
            first = next((u for u in units if any(shown.messages[at].role == "user" for at in u)), None)
            if first is not None and (not kept or first.start < kept[0].start):
                kept.insert(0, first)
        return flat(kept)

    def _cut(self, shown: Shown, units: Sequence[range]) -> int:
        if self.keep_tokens is not None:
            if tokens_of(shown, units) <= self.keep_tokens:
                return 0
            target = next((n for n in range(len(units)) if tokens_of(shown, units[n:]) <= self.keep_tokens), len(units))
            target = min(target, max(0, len(units) - 1))
        elif self.keep_messages == 0:
            return len(units)
        else:
            target = len(units) - self.keep_messages
        return next((n for n in range(target, -1, -1) if _is_safe(shown.messages, units, n)), 0)


def token_limit(
    situation: Situation, tokens: int | None, fraction: float | None, window: int | None, fallback_window: int
) -> int | None:
    """Return the tokens beyond which the harness acts: given, or a share of a window given, known or assumed."""
    if fraction is None:
        return tokens
    known = situation.window_tokens if window is None else window
    return int((known or fallback_window) * fraction)


def requests_and_responses(shown: Shown) -> list[range]:
    """Return the positions of each request (a run of other messages) and each response (an assistant message)."""
    messages = shown.messages
    units: list[range] = []
    for at, message in enumerate(messages):
        if message.role != "assistant" and neighbours(shown.keys, at) and messages[at - 1].role != "assistant":
            units[-1] = range(units[-1].start, at + 1)
        else:
            units.append(range(at, at + 1))
    return units


def tokens_of(shown: Shown, units: Sequence[range]) -> int:
    """Return the tokens of some units; the harness's own estimate divides their characters together."""
    counter = shown.situation.counter
    messages = [shown.messages[at] for unit in units for at in unit]
    if isinstance(counter, MessageRule) and counter.name == RULE:
        return sum(map(characters, messages)) // CHARACTERS_PER_TOKEN
    return sum(map(counter.message, messages))


def _is_safe(messages: Sequence[Message], units: Sequence[range], cut: int) -> bool:
    """Whether no call near the cut has a result, anywhere later, on its other side."""
    if cut >= len(units):
        return True
    for number in range(max(0, cut - SEARCHED_MESSAGES), min(len(units), cut + SEARCHED_MESSAGES)):
        ids = {call.id for at in units[number] for call in messages[at].calls if call.id}
        for later in range(number + 1, len(units)) if ids else ():
            returns = any(messages[at].role == "tool" and messages[at].call_id in ids for at in units[later])
            if returns and (number < cut) != (later < cut):
                return False
    return True
