"""Inspect's ``CompactionTrim``: a share of the newest messages stays, as inspect-ai 0.3.285 behaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compaction_lab.conversation.messages import Message
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.spans import answered
from compaction_lab.strategies.mechanisms.window import Item, Shown, StandIn, Window
from compaction_lab.strategies.registry import register


@register("inspect_ai/compaction_trim", semantics=1)
@dataclass(frozen=True, slots=True)
class CompactionTrim(Window):
    """Keep the system messages, all up to the first user message, and the newest share of the rest (mechanism M2).

    System messages move to the front, calls without a result and results without a call are dropped, and an assistant
    message at the end as well.

    Parameters
    ----------
    preserve
        Share of the rest that stays.
    drop_trailing_assistant
        Off, an assistant message at the end stays, as it should where the list is kept rather than sent.
    """

    persists: ClassVar[bool] = True

    preserve: float = 0.8
    drop_trailing_assistant: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 <= self.preserve <= 1:
            msg = f"CompactionTrim: preserve={self.preserve}; expected a share from 0 to 1"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the share, and mend what it broke."""
        messages = shown.messages
        rest = [at for at, message in enumerate(messages) if message.role != "system"]
        given = []
        while rest and messages[rest[0]].source != "summary":
            given.append(rest.pop(0))
            if messages[given[-1]].role == "user":
                break
        kept = _with_calls(messages, rest[int(len(rest) * (1 - self.preserve)) :])
        results = answered([messages[at] for at in kept])
        items: list[Item] = [_answered_only(messages, at, results) for at in kept]
        if self.drop_trailing_assistant and kept and messages[kept[-1]].role == "assistant":
            items.pop()
        leading = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
        moved = [message for message in messages[leading:] if message.role == "system"]
        return [*range(leading), *moved, *given, *items]


def _with_calls(messages: Sequence[Message], positions: Sequence[int]) -> list[int]:
    """Return positions less the results that no directly preceding assistant message asked for."""
    kept = []
    asked: set[str] = set()
    for at in positions:
        message = messages[at]
        if message.role == "assistant":
            asked = {call.id for call in message.calls}
        elif message.role == "user":
            asked = set()
        if message.role in ("assistant", "user") or (message.role == "tool" and message.call_id in asked):
            kept.append(at)
    return kept


def _answered_only(messages: Sequence[Message], at: int, results: set[str]) -> Item:
    message = messages[at]
    calls = tuple(call for call in message.calls if call.id in results)
    return at if len(calls) == len(message.calls) else StandIn(at, replace(message, calls=calls))
