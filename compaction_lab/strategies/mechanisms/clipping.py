"""Clipping (M15): shorten a text that is too long by itself, keeping its head, its tail or both."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.messages import Message, Part, Text, ToolCall
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import RecentUnit, end_of, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import tool_of
from compaction_lab.strategies.registry import at_least, register

TextUnit = Literal["characters", "tokens"]


def clip(text: str, head: int, tail: int, marker: str) -> str:
    """Return a text's first ``head`` and last ``tail`` characters around a marker.

    Parameters
    ----------
    text
        The text, taken as too long by whoever calls.
    head, tail
        Characters that stay.
    marker
        Stands for what is left out; may name ``{removed}``, ``{original}`` and ``{kept}`` (characters). Other braces
        are text.

    Examples
    --------
    >>> clip("abcdefghij", 2, 1, "[{removed} left out]")
    'ab[7 left out]j'
    """
    end = text[len(text) - tail :] if tail else ""
    removed = len(text) - head - len(end)
    for name, value in (("{removed}", removed), ("{original}", len(text)), ("{kept}", head + len(end))):
        marker = marker.replace(name, str(value))
    return text[:head] + marker + end


@register("clip_parts", semantics=1)
@dataclass(frozen=True, slots=True)
class ClipParts:
    """Shorten every text part that is too long, whoever wrote it (mechanism M15).

    Parameters
    ----------
    max_characters, max_tokens
        A part of more characters, or of more tokens by the strategy's tokenizer, is clipped; at least one is needed.
    keep_head, keep_tail
        Characters that stay at either end.
    marker
        Stands for what is left out; may name ``{removed}``, ``{original}`` and ``{kept}`` (characters).
    roles
        Whose messages are clipped.
    arguments
        What becomes of too long arguments of tool calls: ``keep``, or ``wrap`` the clipped text (as compact JSON) in an
        object with one key, so that it stays JSON.
    arguments_key
        That key.
    only_tools
        Tools whose results alone are clipped; empty means all.
    keep_last, unit
        Newest units that are left alone.
    """

    max_characters: int | None = None
    max_tokens: int | None = None
    keep_head: int = 2000
    keep_tail: int = 2000
    marker: str = "\n[{removed} of {original} characters left out]\n"
    roles: tuple[str, ...] = ("tool", "assistant")
    arguments: Literal["keep", "wrap"] = "keep"
    arguments_key: str = "clipped"
    only_tools: tuple[str, ...] = ()
    keep_last: int = 0
    unit: RecentUnit = "message"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.max_characters is None and self.max_tokens is None:
            msg = "clip_parts: neither max_characters nor max_tokens is given; say from which length parts are clipped"
            raise ConfigurationError(msg)
        for field in ("max_characters", "max_tokens"):
            if getattr(self, field) is not None:
                at_least(self, field, 1)
        for field in ("keep_head", "keep_tail", "keep_last"):
            at_least(self, field, 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clip what has come since the last time."""
        context = situation.context
        edge = recent_edge(context, self.unit, self.keep_last) if self.keep_last else end_of(context)
        return rewrite_before(situation, edge, self.clip_message, reason="parts too long by themselves")

    def clip_message(self, draft: Draft, entry: Placed) -> bool:
        """Clip one message's parts and calls; say whether one was clipped."""
        message = draft.get(entry.key)
        if message is None or message.role not in self.roles:
            return False
        if message.role == "tool" and self.only_tools and tool_of(draft.context.log, entry) not in self.only_tools:
            return False
        parts = tuple(self._clipped_part(draft, part) for part in message.parts)
        calls = tuple(self._clipped_call(draft, call) for call in message.calls)
        if parts == message.parts and calls == message.calls:
            return False
        draft.put("clipped", entry.key, replace(message, parts=parts, calls=calls))
        return True

    def _clipped_part(self, draft: Draft, part: Part) -> Part:
        return Text(self._clipped(draft, part.text)) if isinstance(part, Text) else part

    def _clipped_call(self, draft: Draft, call: ToolCall) -> ToolCall:
        if self.arguments == "keep":
            return call
        text = _compact(call.arguments)
        clipped = self._clipped(draft, text)
        if clipped == text:
            return call
        return replace(call, arguments=json.dumps({self.arguments_key: clipped}, ensure_ascii=False))

    def _clipped(self, draft: Draft, text: str) -> str:
        too_long = self.max_characters is not None and len(text) > self.max_characters
        if not too_long and self.max_tokens is not None:
            too_long = text_tokens(draft, text) > self.max_tokens
        if not too_long:
            return text
        clipped = clip(text, min(self.keep_head, len(text)), self.keep_tail, self.marker)
        return clipped if len(clipped) < len(text) else text


def _compact(arguments: str) -> str:
    """Return arguments without the blanks between their JSON values; as they are when they are no JSON."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return arguments


def text_tokens(draft: Draft, text: str) -> int:
    """Return the tokens of a text by itself, by the draft's counting rule."""
    return draft.counter.message(Message("user", (Text(text),))) - draft.counter.message(Message("user"))
