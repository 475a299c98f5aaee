"""Counting rules by name: the lab's own with any tokenizer, and the rules that frameworks count messages by themselves.

A framework's rule says how many tokens a whole message is taken to have, and nothing of tools and requests unless the
framework counts these too. Its module registers it; :mod:`compaction_lab.strategies.kinds` knows these modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Protocol

from compaction_lab.conversation.encodings import ENCODINGS
from compaction_lab.conversation.messages import Message, ToolDefinition
from compaction_lab.conversation.tokens import ESTIMATES, TokenCounter, tokenizer
from compaction_lab.errors import TokenizerError

Measure = Callable[[Message], int]


class CountingRule(Protocol):
    """How many tokens messages, tool definitions and requests are taken to have."""

    @property
    def request_overhead(self) -> int:
        """Tokens of a request beside its messages and tools."""
        ...

    def message(self, message: Message) -> int:
        """Return the tokens of one message."""
        ...

    def tools(self, definitions: Iterable[ToolDefinition]) -> int:
        """Return the tokens of the tool definitions of a request."""
        ...


@dataclass(frozen=True, slots=True)
class MessageRule:
    """A framework's rule: messages alone are counted, each once."""

    name: str
    measure: Measure

    @property
    def request_overhead(self) -> int:
        """Nothing: the framework does not count what surrounds the messages."""
        return 0

    def message(self, message: Message) -> int:
        """Return the tokens of ``message`` by this rule."""
        key = ("tokens", self.name)
        found = message.memo.get(key)
        if isinstance(found, int):
            return found
        tokens = self.measure(message)
        message.memo[key] = tokens
        return tokens

    def tools(self, definitions: Iterable[ToolDefinition]) -> int:  # noqa: ARG002 - the protocol's shape
        """Return nothing: the framework does not count tool definitions."""
        return 0


_RULES: dict[str, MessageRule] = {}


def register_counting(name: str) -> Callable[[Measure], Measure]:
    """Give a framework's way of counting a message its name in ``tokenizer:``."""

    def remember(measure: Measure) -> Measure:
        _RULES[name] = MessageRule(name, measure)
        return measure

    return remember


@cache
def counting_rule(name: str) -> CountingRule:
    """Return the counting rule called ``name``: a tokenizer's, or a framework's.

    Raises
    ------
    TokenizerError
        The name is neither a tokenizer's nor a framework's rule.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import user
    >>> counting_rule("characters").message(user("four")), counting_rule("agent_framework_dotnet").message(user("four"))
    (5, 1)
    """
    if name in ENCODINGS or name in ESTIMATES:
        return TokenCounter(tokenizer(name))
    from compaction_lab.strategies import kinds  # noqa: F401 - for the rules that frameworks' modules register

    if name in _RULES:
        return _RULES[name]
    known = [*ENCODINGS, *ESTIMATES, *sorted(_RULES)]
    close = get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]!r}?" if close else "A model's name is not an encoding's."
    raise TokenizerError(f"Unknown tokenizer {name!r}. {hint} Known: {', '.join(known)}.")
