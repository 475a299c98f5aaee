"""The OpenAI Agents SDK's ``ToolOutputTrimmer``: long tool outputs of older user turns become previews."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.messages import Text
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import call_of
from compaction_lab.strategies.registry import at_least, register


@register("agents/tool_output_trimmer", semantics=1)
@dataclass(frozen=True, slots=True)
class ToolOutputTrimmer:
    """Trim tool outputs that are long and older than the newest user messages (openai-agents 0.24.0).

    With fewer user messages than ``recent_turns`` nothing is ever trimmed. Outputs that hold anything but text stay.

    Parameters
    ----------
    recent_turns
        Newest user messages from which on nothing is trimmed.
    max_output_chars
        Longer outputs are trimmed.
    preview_chars
        Characters of the preview.
    trimmable_tools
        Tools whose outputs alone are trimmed; empty means all.
    """

    recent_turns: int = 2
    max_output_chars: int = 500
    preview_chars: int = 200
    trimmable_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "recent_turns", 1)
        at_least(self, "max_output_chars", 1)
        at_least(self, "preview_chars", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Trim."""
        edge = recent_edge(situation.context, "turn", self.recent_turns)
        return rewrite_before(situation, edge, self._trim, reason=f"older than the last {self.recent_turns} turns")

    def _trim(self, draft: Draft, entry: Placed) -> bool:
        message = entry.message
        if message.role != "tool" or not all(isinstance(part, Text) for part in message.parts):
            return False
        call = call_of(draft.context.log, entry.key)
        name = "" if call is None else call.name
        text = message.text
        if (self.trimmable_tools and name not in self.trimmable_tools) or len(text) <= self.max_output_chars:
            return False
        head = f"[Trimmed: {name or 'unknown_tool'} output — {len(text)} chars → {self.preview_chars} char preview]"
        trimmed = f"{head}\n{text[: self.preview_chars]}..."
        if len(trimmed) >= len(text):
            return False
        draft.put("clipped", entry.key, message.replaced(trimmed, "placeholder"))
        return True
