"""LlamaIndex's ``ChatMemoryBuffer`` and ``Memory`` without blocks, as llama-index-core 0.14.25 behaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from compaction_lab.conversation.messages import Media, Message, Text
from compaction_lab.conversation.tokens import Estimate, TokenCounter, Tokenizer
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window, settled
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import at_least, register

MEDIA_TOKENS = 256


@register("llama_index/chat_memory_buffer", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatMemoryBuffer(Window):
    """Keep the newest messages that fit, from a message that is neither the assistant's nor a result (mechanism M2).

    Only texts count: tool calls weigh nothing. What is left may be a single message of any kind.

    Parameters
    ----------
    token_limit
        Tokens that are kept. An exact tokenizer counts each text with the blank before it rather than the joined text.
    repair
        Drop calls and results that lose their other half.
    """

    token_limit: int = 3000
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "token_limit", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop the oldest until the rest fits."""
        messages = shown.messages
        size = len(messages)
        texts = _Joined(messages, _tokenizer(shown.situation))
        if not size or texts.tokens(0) <= self.token_limit:
            return None
        starts = [at for at in range(1, size) if messages[at].role not in ("tool", "assistant") or at == size - 1]
        low, high = 0, len(starts)
        while low < high:
            middle = (low + high) // 2
            if texts.tokens(starts[middle]) <= self.token_limit:
                high = middle
            else:
                low = middle + 1
        return range(starts[low] if low < len(starts) else size - 1, size)


class _Joined:
    """Tokens of the texts from any message to the end, joined by blanks; a message without text is ``None``."""

    def __init__(self, messages: Sequence[Message], tokenizer: Tokenizer) -> None:
        self._texts = [_content(message) for message in messages]
        self._tokenizer = tokenizer
        self._from_here: list[int] | None = None
        if not isinstance(tokenizer, Estimate):
            weights = [tokenizer.count(" " + text) for text in self._texts]
            self._from_here = [*accumulate(reversed(weights))][::-1]

    def tokens(self, start: int) -> int:
        if self._from_here is not None:
            return self._from_here[start]
        return self._tokenizer.count(" ".join(self._texts[start:]))


def _content(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "\n".join(texts) if texts else "None"


def _tokenizer(situation: Situation) -> Tokenizer:
    if isinstance(situation.counter, TokenCounter):
        return situation.counter.tokenizer
    name = type(situation.counter).__name__
    msg = f"llama_index strategies count texts; the counting rule {name} counts messages. Give tokenizer= an encoding"
    raise ConfigurationError(msg)


@remembered
class Queue(NamedTuple):
    """Memory of a first-in-first-out memory: the oldest active message, and how many messages it has been given."""

    start: int
    given: int


@register("llama_index/memory", semantics=1)
@dataclass(frozen=True, slots=True)
class Memory:
    """Keep a queue of messages within a share of a limit; whole turns leave it, as messages arrive (mechanism M2).

    Parameters
    ----------
    token_limit, chat_history_token_ratio
        Tokens of the memory, and the share of them that the queue may fill.
    token_flush_size
        Tokens that leave at once, at least.
    """

    token_limit: int = 30000
    chat_history_token_ratio: float = 0.7
    token_flush_size: int = 3000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "token_limit", 1)
        at_least(self, "token_flush_size", 1)
        if not 0 < self.chat_history_token_ratio <= 1:
            msg = f"Memory: chat_history_token_ratio={self.chat_history_token_ratio}; expected above 0 and at most 1"
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> Compaction:
        """Put the new messages into the queue, one by one, and show what is in it."""
        context = situation.context
        queue = situation.memory if isinstance(situation.memory, Queue) else Queue(0, 0)
        if queue.given > len(context):
            queue = Queue(0, 0)
        messages = context.messages
        tokenizer = _tokenizer(situation)
        start = queue.start
        total = sum(_tokens(message, tokenizer) for message in messages[start : queue.given])
        for end in range(queue.given + 1, len(messages) + 1):
            total += _tokens(messages[end - 1], tokenizer)
            moved = self._flushed(messages, start, end, total, tokenizer)
            total -= sum(_tokens(message, tokenizer) for message in messages[start:moved])
            start = moved
        done = settled(situation, Shown(situation, context), range(start, len(messages)))
        return Compaction(done.edits, Queue(start, len(messages)), done.base, done.reason)

    def _flushed(self, messages: Sequence[Message], start: int, end: int, total: int, tokenizer: Tokenizer) -> int:
        """Return where the queue ``messages[start:end]`` begins once it has been brought within its limit."""
        limit = self.token_limit * self.chat_history_token_ratio
        while total > limit and end - start > 1:
            cut, flushed = start, 0
            while flushed < self.token_flush_size and end - cut > 1:
                flushed += _tokens(messages[cut], tokenizer)
                cut += 1
            while messages[cut].role != "user" and end - cut > 1:
                cut += 1
            if end - cut == 1 and messages[cut].role != "user":
                # Nothing but the end of a turn would be left: the whole turn comes back, or all goes.
                cut = next((at for at in range(end - 1, start - 1, -1) if messages[at].role == "user"), end)
            if cut == start:
                break
            total -= sum(_tokens(message, tokenizer) for message in messages[start:cut])
            start = cut
        return start


def _tokens(message: Message, tokenizer: Tokenizer) -> int:
    key = ("llama_index/memory", tokenizer.name)
    found = message.memo.get(key)
    if isinstance(found, int):
        return found
    tokens = sum(tokenizer.count(part.text) for part in message.parts if isinstance(part, Text))
    tokens += MEDIA_TOKENS * sum(isinstance(part, Media) for part in message.parts)
    if message.role == "tool":
        tokens += tokenizer.count(str({"tool_call_id": message.call_id}))
    message.memo[key] = tokens
    return tokens
