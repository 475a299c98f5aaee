"""Reasoning clearing (M13): drop the reasoning of older assistant messages, all else stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.messages import Message, Reasoning
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import end_of, newest
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.registry import at_least, register


@register("clear_reasoning", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearReasoning:
    """Drop the reasoning parts of all but the newest assistant turns (mechanism M13).

    Parameters
    ----------
    keep_last
        Newest units whose reasoning stays.
    unit
        ``thinking``: assistant messages that carry reasoning (Anthropic). ``assistant``: all assistant messages
        (Inspect). ``message``: all messages (Vercel AI SDK). ``turn``: user turns, whatever they hold.
    keep_open_loop
        Whether reasoning of a tool loop that is still running stays: providers that sign reasoning refuse a request
        without it (validity rule V5).
    opaque
        Whether reasoning that is only an opaque item (signed, encrypted, redacted) is dropped as well.
    empty
        What becomes of a message that held nothing but reasoning: ``drop`` it, ``keep`` it empty, or ``spare`` its
        reasoning.
    """

    keep_last: int = 1
    unit: Literal["thinking", "assistant", "message", "turn"] = "thinking"
    keep_open_loop: bool = True
    opaque: bool = True
    empty: Literal["drop", "keep", "spare"] = "spare"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Drop the reasoning that is no longer recent."""
        edge = newest(situation.context, self.keep_last, self._weigh)
        if self.keep_open_loop:
            edge = min(edge, _loop_start(situation))
        return rewrite_before(situation, edge, self.strip, reason=f"older than the last {self.keep_last} {self.unit}s")

    def strip(self, draft: Draft, entry: Placed) -> bool:
        """Drop the reasoning of one message; say whether it had any."""
        message = draft.get(entry.key)
        if message is None or message.role != "assistant":
            return False
        kept = tuple(part for part in message.parts if not isinstance(part, Reasoning) or self._spares(part))
        if kept == message.parts:
            return False
        if kept or message.calls or self.empty == "keep":
            draft.put("clipped", entry.key, replace(message, parts=kept))
        elif self.empty == "drop":
            draft.drop(entry.key)
        return True

    def _spares(self, part: Reasoning) -> bool:
        return not self.opaque and bool(part.opaque) and not part.text

    def _weigh(self, entry: Placed) -> int:
        message = entry.message
        match self.unit:
            case "thinking":
                return has_reasoning(message)
            case "assistant":
                return message.role == "assistant"
            case "turn":
                return message.role == "user"
            case "message":
                return 1


def has_reasoning(message: Message) -> bool:
    """Whether a message carries reasoning."""
    return message.role == "assistant" and any(isinstance(part, Reasoning) for part in message.parts)


def _loop_start(situation: Situation) -> Key:
    """Return the key of the first message after the last user message when a tool loop is running, else the end."""
    context: Context = situation.context
    last = next(context.before(end_of(context)), None)
    if last is None or last.message.role != "tool":
        return end_of(context)
    start = last.key
    for entry in context.before(end_of(context)):
        if entry.message.role == "user":
            break
        start = entry.key
    return start
