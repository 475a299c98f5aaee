"""Inspect's CompactionSummary: system and input messages stay, everything else becomes one user-role summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.spans import is_summary, last_where
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Span, Wording, continuing, summarized

DEFAULT_WINDOW = 128_000
PREFIX = (
    "[CONTEXT COMPACTION SUMMARY]\n\nWhat follows sums up the work on this task so far. The compaction process wrote "
    "it in place of the earlier conversation; the user did not:\n\n"
)
SUFFIX = "\n\nGo on with the task from there."


@register("inspect_ai/compaction_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class CompactionSummary:
    """Keep system and input, replace the rest by a summary once the request exceeds a threshold (inspect-ai 0.3.285).

    Input is what stands before and including the first user message.

    Parameters
    ----------
    threshold
        Tokens, or a share of the window when at most 1 (an unknown window is 128,000).
    instructions
        Put behind the prompt.
    prompt
        ``None``: the lab's own.
    """

    threshold: float = 0.9
    instructions: str | None = None
    prompt: str | None = None

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when the threshold is passed."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Compaction | Steps:
        window = situation.window_tokens or DEFAULT_WINDOW
        limit = int(window * self.threshold) if self.threshold <= 1 else int(self.threshold)
        found = situation.tokens(situation.context)
        if found <= limit:
            return Compaction()
        kept, conversation = partition(list(situation.context.entries()))
        old = unpinned(situation.context, conversation)
        if not old:
            return Compaction(outcome="rejected: nothing but system and input messages is left")
        newest = max(0, last_where(conversation, is_summary))
        prompt = self.prompt or INSTRUCTION
        if self.instructions:
            prompt = f"{prompt}\n\n{self.instructions}"
        wording = Wording(prompt, prompt, PREFIX, SUFFIX, max_summary_tokens=None)
        reading = Reading(input_tokens=max(1, window - min(4096, window // 2)), fit="halve_biggest")
        read = tuple(sorted((*kept, *conversation[newest:]), key=lambda entry: entry.key))
        return summarized(situation, Span(old, None, read), wording, reading, Acceptance(only_if_shorter=False))


def partition(entries: list[Placed]) -> tuple[tuple[Placed, ...], tuple[Placed, ...]]:
    """Return what always stays (system, and input up to the first user message) and the conversation."""
    rest = [entry for entry in entries if not is_system(entry.message)]
    system = [entry for entry in entries if is_system(entry.message)]
    at = 0
    while at < len(rest) and not is_summary(rest[at].message):
        at += 1
        if rest[at - 1].message.role == "user":
            break
    return (*system, *rest[:at]), tuple(rest[at:])
