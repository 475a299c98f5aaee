"""Removal by pattern (M32): whatever matches a regular expression goes from the texts of older messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.messages import Part, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import end_of, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.registry import at_least, register


@register("remove_patterns", semantics=1)
@dataclass(frozen=True, slots=True)
class RemovePatterns:
    """Delete what matches a pattern from all but the newest messages (mechanism M32).

    Parameters
    ----------
    patterns
        Regular expressions of Python's ``re``; ``.`` matches line ends too. Applied one after the other.
    keep_last
        Newest messages that stay as they are, system messages counted.
    roles
        Whose messages are searched; empty means all.
    """

    patterns: tuple[str, ...]
    keep_last: int = 0
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)
        for pattern in self.patterns:
            _compiled(pattern)

    def __call__(self, situation: Situation) -> Compaction:
        """Delete matches from what fell out of the window."""
        context = situation.context
        edge = recent_edge(context, "message", self.keep_last) if self.keep_last else end_of(context)
        return rewrite_before(situation, edge, self.remove, reason="texts that match a pattern")

    def remove(self, draft: Draft, entry: Placed) -> bool:
        """Delete matches from one message; say whether there were any."""
        message = draft.get(entry.key)
        if message is None or (self.roles and message.role not in self.roles):
            return False
        parts = tuple(map(self._cleaned, message.parts))
        if parts == message.parts:
            return False
        draft.put("clipped", entry.key, replace(message, parts=parts))
        return True

    def _cleaned(self, part: Part) -> Part:
        if not isinstance(part, Text):
            return part
        text = part.text
        for pattern in self.patterns:
            text = _compiled(pattern).sub("", text)
        return part if text == part.text else Text(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        msg = f"remove_patterns: {pattern!r} is no regular expression ({error}); correct it or escape its characters"
        raise ConfigurationError(msg) from error
