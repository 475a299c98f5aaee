"""pydantic-ai-harness' SummarizingCompaction: an anchored summary behind the system prompt, the task and a tail."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, is_summary, leading_system, result_units
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    UPDATE_INSTRUCTION,
    Acceptance,
    Span,
    Wording,
    continuing,
    summarized,
)
from compaction_lab.strategies.triggers import known_window

PREFIX = "Summary of previous conversation:\n\n"


@register("pydantic_ai_harness/summarizing_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizingCompaction:
    """Summarise all but a tail, keep the first user message (pydantic-ai-harness 0.36.0).

    The results of parallel calls are one message. The framework repeats the system prompt in front of the summary where
    it shares a message with the first user prompt; here it stands once.

    Parameters
    ----------
    max_messages, max_tokens, max_fraction
        Act beyond this many messages or tokens, or this share of the window.
    keep_messages, keep_tokens
        Newest messages that stay, or what fits in so many tokens; the cut moves back off tool pairs.
    preserve_first_user_message
        Whether the task stays verbatim.
    incremental
        Whether an earlier summary is shown apart, to be updated.
    keep_user_messages, keep_user_messages_max_chars
        Keep all user messages, each up to so many characters, within the tail's budget.
    tool_return_max_chars
        Characters of a tool result that the summariser sees.
    summary_prompt
        ``None``: the lab's own.
    """

    max_messages: int | None = None
    max_tokens: int | None = None
    max_fraction: float | None = None
    keep_messages: int = 20
    keep_tokens: int | None = None
    preserve_first_user_message: bool = True
    incremental: bool = True
    keep_user_messages: bool = False
    keep_user_messages_max_chars: int = 20_000
    tool_return_max_chars: int | None = 500
    summary_prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        if self.max_messages is None and self.max_tokens is None and self.max_fraction is None:
            raise ConfigurationError(
                "pydantic_ai_harness: at least one of max_messages, max_tokens, max_fraction must be given"
            )
        if self.max_tokens is not None and self.max_fraction is not None:
            raise ConfigurationError("pydantic_ai_harness: give max_tokens or max_fraction, not both")
        at_least(self, "keep_messages", 0)
        at_least(self, "keep_user_messages_max_chars", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when a threshold is exceeded."""
        return continuing(self._compact, situation)

    def _compact(self, situation: Situation) -> Steps:
        every = list(situation.context.entries())
        entries = every[leading_system(every) :]
        units = result_units(entries)
        if not self._exceeds(situation, len(units)):
            return Compaction()
        cut = self._cut(entries, units, situation)
        if cut <= 0:
            return Compaction()
        stop = units[cut][0] if cut < len(units) else len(entries)
        old = entries[:stop]
        task = next((e for e in entries if e.message.role == "user" and not is_summary(e.message)), None)
        kept = self._users(old, situation) if self.keep_user_messages else []
        if not self.keep_user_messages and self.preserve_first_user_message:
            kept = [entry for entry in old if entry is task]
        stays = {entry.key for entry in kept}
        hidden = unpinned(situation.context, (e for e in old if e.key not in stays))
        wording = Wording(
            self.summary_prompt or INSTRUCTION,
            self.summary_prompt or UPDATE_INSTRUCTION,
            PREFIX,
            role="system",
            max_summary_tokens=None,
        )
        earlier = [entry for entry in entries if is_summary(entry.message)]
        previous = wording.bare(earlier[-1].message) if earlier and self.incremental else ""
        # The summariser is shown the system prompt too.
        shown = (*every[: len(every) - len(entries)], *old)
        read = tuple(e for e in shown if not (previous and is_summary(e.message)))
        going = {entry.key for entry in hidden}
        # The summary is the first message; what stays of the old part follows it.
        first = next((entry.key for entry in entries if entry.key not in going), None)
        reading = Reading(output_characters=self.tool_return_max_chars)
        done = yield from summarized(
            situation, Span(hidden, first, read, previous), wording, reading, Acceptance(only_if_shorter=False)
        )
        if not done.edits:
            return done
        return replace(done, edits=(*self._clips(kept), *done.edits))

    def _exceeds(self, situation: Situation, messages: int) -> bool:
        if self.max_messages is not None and messages > self.max_messages:
            return True
        limit = self.max_tokens
        if self.max_fraction is not None:
            limit = int(known_window(situation, None, "pydantic_ai_harness") * self.max_fraction)
        return limit is not None and situation.tokens(situation.context) > limit

    def _cut(self, entries: Entries, units: list[tuple[int, int]], situation: Situation) -> int:
        if self.keep_tokens is None:
            if self.keep_messages == 0:
                return len(units)
            start = len(units) - self.keep_messages
            if start <= 0:
                return 0
        else:
            left, start = self.keep_tokens, len(units)
            weights = [sum(situation.counter.message(e.message) for e in entries[a:b]) for a, b in units]
            if sum(weights) <= left:
                return 0
            while start and weights[start - 1] <= left:
                start -= 1
                left -= weights[start]
            start = min(start, len(units) - 1)
        while start > 0 and _splits_pair(entries, units, start):
            start -= 1
        return start

    def _users(self, old: Entries, situation: Situation) -> list[Placed]:
        """Return the newest user messages of the old part that the tail's budget has room for."""
        users = [e for e in old if e.message.role == "user" and not is_summary(e.message)]
        users = users[-self.keep_messages :] if self.keep_messages else []
        if self.keep_tokens is None:
            return users
        kept: list[Placed] = []
        left = self.keep_tokens
        for entry in reversed(users):
            left -= situation.counter.message(entry.message)
            if left < 0:
                break
            kept.insert(0, entry)
        return kept

    def _clips(self, kept: list[Placed]) -> list[Edit]:
        limit = self.keep_user_messages_max_chars
        edits = []
        for entry in kept if self.keep_user_messages else []:
            if len(entry.message.text) > limit:
                marker = "[...]"[:limit]
                text = entry.message.text[: limit - len(marker)] + marker
                stand_in = entry.message.replaced(text, "placeholder")
                edits.append(Edit("clipped", (entry.key,), Placed(entry.key, stand_in)))
        return edits


def _splits_pair(entries: Entries, units: list[tuple[int, int]], cut: int) -> bool:
    """Whether a cut before a unit would part a call from its result."""
    border = units[cut][0]
    before = {call.id for entry in entries[:border] for call in entry.message.calls}
    return any(entry.message.role == "tool" and entry.message.call_id in before for entry in entries[border:])
