"""Strands: what its window manager cuts out of tool results on overflow, and the plugin that offloads large results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.messages import Media, Part, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clipping import clip
from compaction_lab.strategies.mechanisms.media import describe_media
from compaction_lab.strategies.mechanisms.offloading import OffloadResults
from compaction_lab.strategies.mechanisms.rewriting import Draft
from compaction_lab.strategies.registry import at_least, register

PRESERVED_CHARACTERS = 200
MARKER = "...\n\n... [truncated: {removed} chars removed] ...\n\n..."
CUT = "... [truncated:"
CHARACTERS_PER_TOKEN = 4


@register("strands/truncate_results", semantics=1)
@dataclass(frozen=True, slots=True)
class TruncateResults:
    """Cut the middle out of the oldest batch of tool results, images included (strands-agents 1.62.0).

    The first thing ``SlidingWindowConversationManager.reduce_context`` does on overflow; where the batch holds nothing
    to cut it goes on to drop messages, and this strategy does nothing.

    Parameters
    ----------
    which
        The ``oldest`` batch, however small (bug list B101), or the ``largest`` by tokens that can still be cut.
    """

    which: Literal["oldest", "largest"] = "oldest"

    def __call__(self, situation: Situation) -> Compaction:
        """Cut."""
        context = situation.context
        batches = _batches(context)
        if self.which == "largest":
            batches = [batch for batch in batches if any(map(_can_be_cut, batch))]
            batches.sort(key=lambda batch: -sum(situation.counter.message(entry.message) for entry in batch))
        draft = Draft(context, situation.counter)
        for entry in batches[0] if batches else []:
            if _can_be_cut(entry):
                parts = tuple(map(_cut, entry.message.parts))
                draft.put("clipped", entry.key, replace(entry.message, parts=parts))
        return Compaction(draft.edits, None, reason=f"{self.which} results cut" if draft.edits else "")


@register("strands/context_offloader", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextOffloader:
    """Move large tool results to a store when they arrive; a preview and a reference stay (strands-agents 1.62.0).

    Parameters
    ----------
    max_result_tokens
        Results of more tokens are moved.
    preview_tokens
        Size of the preview, at four characters a token.
    """

    max_result_tokens: int = 2500
    preview_tokens: int = 1000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_result_tokens", 1)
        at_least(self, "preview_tokens", 0)
        if self.preview_tokens >= self.max_result_tokens:
            msg = (
                f"strands context_offloader: preview_tokens={self.preview_tokens} is not below "
                f"max_result_tokens={self.max_result_tokens}; a preview must be shorter than what it stands for"
            )
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> Compaction:
        """Offload."""
        return OffloadResults(
            min_tokens=self.max_result_tokens,
            measure="text",
            head=self.preview_tokens * CHARACTERS_PER_TOKEN,
            handle="mem_{index}_{call_id}_0",
            stand_in="[{characters} characters moved to {handle}. Preview:]\n{preview}",
        )(situation)


def _batches(context: Context) -> list[list[Placed]]:
    """Return runs of neighbouring tool messages, a message in Strands; runs with a pinned one are left out."""
    batches: list[list[Placed]] = []
    follows = False
    for entry in context.entries():
        is_result = entry.message.role == "tool"
        if is_result and not follows:
            batches.append([])
        if is_result:
            batches[-1].append(entry)
        follows = is_result
    return [batch for batch in batches if not any(entry.message.pinned for entry in batch)]


def _can_be_cut(entry: Placed) -> bool:
    return any(_cut(part) is not part for part in entry.message.parts)


def _cut(part: Part) -> Part:
    if isinstance(part, Media) and part.kind == "image":
        return Text(describe_media(part, "[image: {mime}, {bytes} bytes]"))
    if not isinstance(part, Text) or CUT in part.text or len(part.text) <= 2 * PRESERVED_CHARACTERS:
        return part
    return Text(clip(part.text, PRESERVED_CHARACTERS, PRESERVED_CHARACTERS, MARKER))
