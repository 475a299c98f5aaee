"""LlamaIndex's ChatSummaryMemoryBuffer: what does not fit the token limit is folded into a system-role summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import leading_system, span
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Wording, continuing, summarized


@register("llama_index/chat_summary_memory_buffer", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatSummaryMemoryBuffer:
    """Keep the newest messages within ``token_limit`` and fold what came before into a summary (llama-index 0.14.25).

    The kept part never begins with an assistant or tool message. Agents hold their system prompt apart from the memory.

    Parameters
    ----------
    token_limit
        Most tokens of the kept messages, the summary not counted.
    summarize_prompt
        ``None``: the lab's own.
    count_initial_tokens
        Whether the system prompt counts towards the limit.
    system_in_history
        Whether leading system messages were put into the memory themselves, to be summarised like any other.
    """

    token_limit: int = 3000
    summarize_prompt: str | None = None
    count_initial_tokens: bool = False
    system_in_history: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "token_limit", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Fold what does not fit."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Compaction | Steps:
        every = list(situation.context.entries())
        head = 0 if self.system_in_history else leading_system(every)
        entries, count = every[head:], situation.counter.message
        left = self.token_limit
        if self.count_initial_tokens:
            left -= sum(count(entry.message) for entry in every[:head])
            if left < 0:
                return Compaction(outcome="rejected: the system prompt alone exceeds the token limit")
        at = len(entries)
        while at and count(entries[at - 1].message) <= left:
            at -= 1
            left -= count(entries[at].message)
        if at == 0 and (not entries or entries[0].message.role not in ("assistant", "tool")):
            return Compaction()
        while at < len(entries) and entries[at].message.role in ("assistant", "tool"):
            at += 1
        old = span(entries, 0, at)
        if len(old.hidden) == 1 and old.hidden[0].message.role == "system":
            return Compaction()
        prompt = self.summarize_prompt or INSTRUCTION
        wording = Wording(prompt, prompt, "", role="system", max_summary_tokens=None)
        return summarized(situation, old, wording, Reading(), Acceptance(only_if_shorter=False))
