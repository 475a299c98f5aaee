"""LangChain core's ``trim_messages`` and the way it estimates tokens, as langchain-core 1.8.3 behaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from compaction_lab.conversation.counting import register_counting
from compaction_lab.conversation.messages import Media, Message, Opaque, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window
from compaction_lab.strategies.registry import at_least, register

MessageType = Literal["human", "ai", "tool", "system"]
TYPES: dict[str, str] = {"user": "human", "assistant": "ai", "tool": "tool", "system": "system", "developer": "system"}
EXTRA_TOKENS, IMAGE_TOKENS = 3, 85
Weigh = Callable[[Message], int]


@register_counting("langchain_approximate")
def approximate_tokens(message: Message) -> int:
    """Return ``count_tokens_approximately`` of one message: a token for four characters, and 3 more.

    Role, call ids of results and the printed list of calls count, the latter only beside plain text content.
    """
    parts = [part for part in message.parts if isinstance(part, (Text, Media))]
    texts = [part.text for part in parts if isinstance(part, Text)]
    characters = sum(map(len, texts)) + len(message.role)
    if len(parts) == len(texts) <= 1 and message.calls:
        characters += len(repr([_printed(call.name, call.arguments, call.id) for call in message.calls]))
    if message.role == "tool":
        characters += len(message.call_id)
    if message.name:
        characters += len(message.name)
    images = sum(isinstance(part, Media) and part.kind == "image" for part in parts)
    return ceil(characters / 4) + EXTRA_TOKENS + IMAGE_TOKENS * images


def _printed(name: str, arguments: str, call_id: str) -> dict[str, object]:
    try:
        parsed = json.loads(arguments or "{}")
    except ValueError:
        parsed = {}
    return {"name": name, "args": parsed if isinstance(parsed, dict) else {}, "id": call_id, "type": "tool_call"}


@register("langchain_core/trim_messages", semantics=1)
@dataclass(frozen=True, slots=True)
class TrimMessages(Window):
    """Keep the newest (or oldest) messages that fit (mechanisms M2, M3).

    Parameters
    ----------
    max_tokens
        Budget for what is kept.
    strategy
        Which end is kept.
    token_counter
        ``approximate``: tokens by the strategy's counting rule, LangChain's estimate unless ``tokenizer`` says
        otherwise; ``len``: messages.
    allow_partial
        Whether a message that does not fit is kept in part: some of its content blocks, or some lines of its text.
    start_on, end_on
        Types of the first and last message kept: what precedes the one and follows the other is dropped.
    include_system
        Whether a system message in the first place stays, on the budget.
    repair
        Drop calls and results that lose their other half, which LangChain does not.
    """

    max_tokens: int
    strategy: Literal["last", "first"] = "last"
    token_counter: Literal["approximate", "len"] = "approximate"
    allow_partial: bool = False
    start_on: MessageType | tuple[MessageType, ...] | None = None
    end_on: MessageType | tuple[MessageType, ...] | None = None
    include_system: bool = False
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters as LangChain does."""
        at_least(self, "max_tokens", 0)
        for name in ("start_on", "end_on"):
            unknown = [value for value in _listed(getattr(self, name)) if value not in TYPES.values()]
            if unknown:
                known = ", ".join(dict.fromkeys(TYPES.values()))
                msg = f"trim_messages: {name}={unknown[0]!r}; expected one of {known}, or a list of them"
                raise ConfigurationError(msg)
        if self.strategy == "first" and (self.start_on or self.include_system):
            name = "start_on" if self.start_on else "include_system"
            msg = f"trim_messages: {name} is only valid with strategy='last'; leave it out, or keep the last messages"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep one end."""
        weigh: Weigh = shown.situation.counter.message if self.token_counter == "approximate" else lambda _: 1
        whole = [StandIn(at, message) for at, message in enumerate(shown.messages)]
        if self.strategy == "first":
            kept = self._first(whole, self.max_tokens, weigh, _listed(self.end_on), reverse=False)
            return _items(shown, kept)
        ends = _listed(self.end_on)
        while ends and whole and TYPES[whole[-1].message.role] not in ends:
            whole.pop()
        head: list[StandIn] = []
        budget = self.max_tokens
        if self.include_system and whole and TYPES[whole[0].message.role] == "system":
            head = [whole.pop(0)]
            budget = max(0, budget - weigh(head[0].message))
        kept = self._first(whole[::-1], budget, weigh, _listed(self.start_on), reverse=True)
        return _items(shown, [*head, *kept[::-1]])

    def _first(
        self, whole: list[StandIn], budget: int, weigh: Weigh, ends: tuple[str, ...], *, reverse: bool
    ) -> list[StandIn]:
        total = 0
        kept: list[StandIn] = []
        for item in whole:
            weight = weigh(item.message)
            if total + weight > budget:
                break
            total += weight
            kept.append(item)
        if self.allow_partial and len(kept) < len(whole):
            part = _partial(whole[len(kept)].message, budget - total, weigh, reverse=reverse)
            if part is not None:
                kept.append(StandIn(whole[len(kept)].position, part))
        while ends and kept and TYPES[kept[-1].message.role] not in ends:
            kept.pop()
        return kept


def _items(shown: Shown, kept: Sequence[StandIn]) -> list[Item]:
    return [item.position if item.message is shown.messages[item.position] else item for item in kept]


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _partial(message: Message, budget: int, weigh: Weigh, *, reverse: bool) -> Message | None:
    """Return as much of a message as fits: content blocks first, then lines of the block that is left."""
    blocks = [part for part in message.parts if isinstance(part, (Text, Media, Opaque))]
    if len(blocks) > 1:
        left = blocks[::-1] if reverse else blocks
        for size in range(len(left) - 1, 0, -1):
            shorter = replace(message, parts=tuple(left[:size][::-1] if reverse else left[:size]))
            if weigh(shorter) <= budget:
                return shorter
        blocks = left[:1]
    text = next((block.text for block in blocks if isinstance(block, Text)), "")
    if not text:
        return None
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + lines[-1:]
    if reverse:
        lines.reverse()
    best = 0
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        # Tried in this order even where the result is put the other way round, as LangChain does.
        if weigh(replace(message, parts=(Text("".join(lines[:middle])),))) <= budget:
            low = best = middle
        else:
            high = middle - 1
    if not best:
        return None
    chosen = lines[:best][::-1] if reverse else lines[:best]
    return replace(message, parts=(Text("".join(chosen)),))
