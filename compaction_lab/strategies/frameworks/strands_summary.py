"""Strands' SummarizingConversationManager: the oldest share of the messages becomes a user-role summary."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Key, Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, leading_system, result_units, span
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Span, Wording, continuing, summarized
from compaction_lab.strategies.triggers import Overflow, WindowFractionExceeds

LOWEST_RATIO, HIGHEST_RATIO = 0.1, 0.8


@register("strands/summarizing_conversation_manager", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizingConversationManager:
    """Summarise the oldest ``summary_ratio`` of the messages when a request overflows (strands-agents 1.62.0).

    The system prompt is not part of the messages; the results of parallel calls are one message.

    Parameters
    ----------
    summary_ratio
        Share of the messages to summarise, clamped to 0.1 - 0.8.
    preserve_recent_messages
        Newest messages that always stay.
    summarization_system_prompt
        ``None``: the lab's own.
    pin_first
        Messages at the start of the conversation that are never summarised.
    proactive_compression
        Share of the window at which it also acts before a call (the framework's ``True`` is 0.7); ``None``: only on
        overflow.
    always
        Act whenever asked, as ``reduce_context`` does.
    """

    summary_ratio: float = 0.3
    preserve_recent_messages: int = 10
    summarization_system_prompt: str | None = None
    pin_first: int | None = None
    proactive_compression: float | None = None
    always: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "preserve_recent_messages", 0)
        if self.proactive_compression is not None and not 0 < self.proactive_compression <= 1:
            raise ConfigurationError(
                f"strands: proactive_compression={self.proactive_compression!r}; expected a share above 0 and at most 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when due."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Steps:
        if not self._due(situation):
            return Compaction()
        every = list(situation.context.entries())
        entries = every[leading_system(every) :]
        units = result_units(entries)
        ratio = max(LOWEST_RATIO, min(HIGHEST_RATIO, self.summary_ratio))
        count = min(max(1, int(len(units) * ratio)), len(units) - self.preserve_recent_messages)
        if count <= 0:
            return Compaction(outcome="rejected: insufficient messages for summarization")
        found = _split(entries, units, count)
        if found is None:
            return Compaction(outcome="rejected: no place to cut that leaves calls and results together")
        stop = units[found][0] if found < len(units) else len(entries)
        old = span(entries, 0, stop)
        whole = _whole(situation)
        # What is pinned is settled by the first reduction, however short the conversation is then.
        first = situation.memory if isinstance(situation.memory, int) else min(self.pin_first or 0, len(whole))
        pinned = _pinned(whole[:first], entries, units)
        hidden = tuple(entry for entry in old.hidden if entry.key not in pinned)
        if not hidden:
            return Compaction(memory=first, outcome="rejected: everything old is pinned")
        prompt = self.summarization_system_prompt or INSTRUCTION
        wording = Wording(prompt, prompt, "", max_summary_tokens=None)
        accepts = Acceptance(only_if_shorter=False)
        done = yield from summarized(situation, Span(hidden, old.before), wording, Reading(), accepts)
        return replace(done, memory=first)

    def _due(self, situation: Situation) -> bool:
        if self.always or Overflow()(situation):
            return True
        share = self.proactive_compression
        return share is not None and WindowFractionExceeds(share, inclusive=True)(situation)


def _whole(situation: Situation) -> list[set[Key]]:
    """Return the keys of the conversation's messages, results of one batch together."""
    log, stop = situation.context.log, situation.context.stop
    whole = [Placed((at, 0), message) for at, message in enumerate(log.messages[:stop])]
    whole = whole[leading_system(whole) :]
    return [{whole[at].key for at in range(start, end)} for start, end in result_units(whole)]


def _pinned(first: list[set[Key]], entries: Entries, units: list[tuple[int, int]]) -> set[Key]:
    """Return the keys of the pinned messages and of what is paired with them."""
    keys = {key for unit in first for key in unit}
    flagged = [entries[start].key in keys for start, _ in units]
    ids = [_call_ids(entries[start:end]) for start, end in units]
    pinned: set[Key] = set()
    for at, (start, end) in enumerate(units):
        near = (other for other in (at - 1, at + 1) if 0 <= other < len(units))
        if flagged[at] or any(flagged[other] and ids[at] & ids[other] for other in near):
            pinned.update(entry.key for entry in entries[start:end])
    return pinned


def _call_ids(entries: Entries) -> set[str]:
    found = {call.id for entry in entries for call in entry.message.calls}
    return found | {entry.message.call_id for entry in entries if entry.message.call_id}


def _split(entries: Entries, units: list[tuple[int, int]], at: int) -> int | None:
    """Move a cut forward past results and past calls that nothing answers directly; ``None`` when none is left."""
    if at == len(units):
        return at
    while at < len(units):
        message = entries[units[at][0]].message
        answered = at + 1 >= len(units) or entries[units[at + 1][0]].message.role == "tool"
        if message.role == "tool" or (message.calls and not answered):
            at += 1
            continue
        return at
    return None
