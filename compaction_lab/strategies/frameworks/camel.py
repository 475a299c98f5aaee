"""CAMEL's deletion of tool traffic from an agent's memory."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.context import Placed
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import end_of
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.registry import register


@register("camel/prune_tool_calls_from_memory", semantics=1)
@dataclass(frozen=True, slots=True)
class PruneToolCallsFromMemory:
    """Drop tool results and assistant messages that call tools, their text included (camel-ai 0.2.90)."""

    def __call__(self, situation: Situation) -> Compaction:
        """Drop."""
        return rewrite_before(situation, end_of(situation.context), _drop, reason="tool calls of the turn")


def _drop(draft: Draft, entry: Placed) -> bool:
    message = entry.message
    if message.role != "tool" and not message.calls:
        return False
    if entry.key[1] == 0 and draft.context.log.is_pinned(draft.context.log.groups[entry.key[0]]):
        return False
    draft.drop(entry.key)
    return True
