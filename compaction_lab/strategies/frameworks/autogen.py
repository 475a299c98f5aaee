"""The message transforms of AG2's classic package (import name ``autogen``), as ag2 0.11.5 behaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction_lab.conversation.encodings import load_encoding
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window, in_order
from compaction_lab.strategies.registry import at_least, register

UNLIMITED = sys.maxsize
"""What the package takes for a limit that is not given, and subtracts like any other."""


@register("autogen/message_history_limiter", semantics=1)
@dataclass(frozen=True, slots=True)
class MessageHistoryLimiter(Window):
    """Keep the last messages (mechanism M2).

    The oldest of them is dropped when it is a result; otherwise it ends up behind the second oldest, unless the first
    message is kept: the package inserts it at index 1.

    Parameters
    ----------
    max_messages
        Messages kept; all when not given.
    keep_first_message
        Whether the first message of the list is one of them.
    exclude_names
        Authors whose messages are dropped beforehand.
    repair
        Keep the order, and drop calls and results that lose their other half.
    """

    max_messages: int | None = None
    keep_first_message: bool = False
    exclude_names: tuple[str, ...] = ()
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.max_messages is not None:
            at_least(self, "max_messages", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail."""
        messages = shown.messages
        left = [at for at, message in enumerate(messages) if not (message.name and message.name in self.exclude_names)]
        if self.max_messages is None or len(left) <= self.max_messages:
            return left
        kept = [left[0]] if self.keep_first_message else []
        room = self.max_messages - len(kept)
        for at in reversed(left[1:]):
            if room > 1:
                kept.insert(1 if self.keep_first_message else 0, at)
            elif room == 1 and messages[at].role != "tool":
                kept.insert(1, at)
            room -= 1
            if room == 0:
                break
        return in_order(messages, sorted(kept) if self.repair else kept)


@register("autogen/message_token_limiter", semantics=1)
@dataclass(frozen=True, slots=True)
class MessageTokenLimiter(Window):
    """Cut each message to a length, and keep the newest that fit, the last of them in part (mechanisms M2, M15).

    A message is taken to fit when ``max_tokens_per_message`` still fits, whatever its length. Without that parameter
    only the newest stays, cut to ``max_tokens``; without either, the newest with text and the one before it.

    Parameters
    ----------
    max_tokens_per_message, max_tokens
        Tokens of each message and of all; unlimited when not given.
    min_tokens
        Nothing happens below this many.
    encoding
        How texts are counted and cut (the package derives it from ``model``).
    repair
        Drop calls and results that lose their other half.
    """

    max_tokens_per_message: int | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    encoding: str = "cl100k_base"
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("max_tokens_per_message", "max_tokens", "min_tokens"):
            if getattr(self, name) is not None:
                at_least(self, name, 0)
        if self.max_tokens is not None and (self.min_tokens or 0) > self.max_tokens:
            msg = f"MessageTokenLimiter: min_tokens={self.min_tokens}; expected at most max_tokens ({self.max_tokens})"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Cut and keep, newest first."""
        texts = _Texts(self.encoding)
        messages = shown.messages
        if self.min_tokens and sum(map(texts.tokens, messages)) < self.min_tokens:
            return None
        items: list[Item] = []
        used = 0
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if not message.parts:
                items.append(at)
                continue
            room = (UNLIMITED if self.max_tokens is None else self.max_tokens) - used
            most = UNLIMITED if self.max_tokens_per_message is None else self.max_tokens_per_message
            if room < most:
                items.append(texts.cut(at, message, room))
                break
            item = texts.cut(at, message, most)
            used += texts.tokens(item.message if isinstance(item, StandIn) else message)
            items.append(item)
        return items[::-1]


class _Texts:
    """Counts and cuts texts by one encoding."""

    def __init__(self, encoding: str) -> None:
        self._encoding = load_encoding(encoding)
        self._key = ("autogen", encoding)

    def tokens(self, message: Message) -> int:
        """Return the tokens of a message's text parts."""
        found = message.memo.get(self._key)
        if not isinstance(found, int):
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            found = message.memo[self._key] = sum(len(self._encoding.encode_ordinary(text)) for text in texts)
        return found

    def cut(self, at: int, message: Message, tokens: int) -> int | StandIn:
        """Return a message each of whose texts has at most so many tokens; negative numbers cut from the end."""
        if tokens >= 0 and self.tokens(message) <= tokens:
            return at
        parts = tuple(replace(p, text=self._cut(p.text, tokens)) if isinstance(p, Text) else p for p in message.parts)
        return at if parts == message.parts else StandIn(at, replace(message, parts=parts))

    def _cut(self, text: str, tokens: int) -> str:
        return self._encoding.decode(self._encoding.encode_ordinary(text)[:tokens])
