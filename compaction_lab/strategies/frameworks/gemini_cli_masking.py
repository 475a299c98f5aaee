"""Gemini CLI's masking of old tool output, which needs no model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearBeyondTokens
from compaction_lab.strategies.mechanisms.clipping import clip
from compaction_lab.strategies.mechanisms.offloading import TAG
from compaction_lab.strategies.mechanisms.tool_results import fill
from compaction_lab.strategies.registry import at_least, register

PREVIEW_CHARACTERS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class _Masking(ClearBeyondTokens):
    """Clearing whose stand-in shows both ends of the output and names the file that holds it."""

    def stand_in(self, context: Context, entry: Placed) -> Message:
        """Return the preview with the file's name; the log keeps the text."""
        text = entry.message.text
        if len(text) > 2 * PREVIEW_CHARACTERS:
            text = clip(text, PREVIEW_CHARACTERS, PREVIEW_CHARACTERS, "\n... [TRUNCATED] ...\n")
        handle = f"tool-outputs/{fill('{tool}', context.log, entry).lower()}_{entry.key[0]}.txt"
        note = f"Output too large. Full output available at: {handle}"
        masked = f"<tool_output_masked>\n{text}\n\n{note}\n</tool_output_masked>"
        return replace(entry.message.replaced(masked, "placeholder"), tags=(*entry.message.tags, TAG + handle))


@register("gemini_cli/tool_output_masking", semantics=1)
@dataclass(frozen=True, slots=True)
class GeminiToolOutputMasking:
    """Move tool output beyond the newest tokens of it to files, when there is enough of it (Gemini CLI).

    Parameters
    ----------
    tool_protection_threshold
        Tokens of the newest tool output that stay.
    min_prunable_tokens_threshold
        Mask only when at least this many tokens lie beyond.
    protect_latest_turn
        Whether the newest message, a batch of results being one, stays and is not counted.
    exempt_tools
        Tools whose output stays and is not counted.
    """

    tool_protection_threshold: int = 50_000
    min_prunable_tokens_threshold: int = 30_000
    protect_latest_turn: bool = True
    exempt_tools: tuple[str, ...] = ("activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode")

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "tool_protection_threshold", 0)
        at_least(self, "min_prunable_tokens_threshold", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Mask."""
        return _Masking(
            protect_tokens=self.tool_protection_threshold,
            protect_messages=1 if self.protect_latest_turn else 0,
            at_least_tokens=self.min_prunable_tokens_threshold,
            exclude_tools=self.exempt_tools,
            spare_unread=False,
        )(situation)
