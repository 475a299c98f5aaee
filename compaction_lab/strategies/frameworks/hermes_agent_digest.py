"""Hermes Agent's pruning before a summary, which needs no model: old results become one line each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Pipeline, Situation, Steps, Strategy
from compaction_lab.strategies.mechanisms.call_inputs import ClearInputs
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.mechanisms.pair_text import first_arguments
from compaction_lab.strategies.mechanisms.spans import largest_fitting_prefix
from compaction_lab.strategies.mechanisms.superseded import ClearSuperseded
from compaction_lab.strategies.mechanisms.tool_results import call_of
from compaction_lab.strategies.registry import at_least, register

SHORTEST_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _DigestResults(ClearResults):
    """Clearing whose stand-in says in one line what was called and how long the result was."""

    def clear_text(self, context: Context, entry: Placed) -> str:
        """Return the line."""
        call = call_of(context.log, entry.key)
        name = "unknown" if call is None else call.name
        shown = "" if call is None else first_arguments(call)
        return f"[{name}]{shown} ({len(entry.message.text):,} chars result)"

    def stand_in(self, context: Context, entry: Placed) -> Message:
        """Return the message with the line."""
        if len(entry.message.text) <= SHORTEST_CHARACTERS:
            return entry.message
        return entry.message.replaced(self.clear_text(context, entry), "placeholder")


@register("hermes_agent/prune_old_tool_results", semantics=1)
@dataclass(frozen=True, slots=True)
class PruneOldToolResults:
    """Digest old results to a line, clear repeated ones, shorten long arguments (hermes-agent 0.19.0).

    Parameters
    ----------
    protect_last_n
        Newest messages that stay.
    protect_tail_tokens
        Tokens of the newest messages that stay, where that is more of them.
    """

    protect_last_n: int = 20
    protect_tail_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "protect_last_n", 0)
        if self.protect_tail_tokens is not None:
            at_least(self, "protect_tail_tokens", 0)

    def _protected(self, situation: Situation) -> int:
        """Return how many of the newest messages stay; the one that the tokens end in is among them."""
        if self.protect_tail_tokens is None:
            return self.protect_last_n
        newest_first = [situation.counter.message(message) for message in reversed(situation.context.messages)]
        return max(self.protect_last_n, largest_fitting_prefix(newest_first, self.protect_tail_tokens) + 1)

    def _parts(self, protected: int) -> tuple[Strategy, ...]:
        duplicates = ClearSuperseded(
            "content",
            min_characters=SHORTEST_CHARACTERS,
            placeholder="[Duplicate tool output — same content as a more recent call]",
        )
        digests = _DigestResults(keep_last=protected, unit="message", spare_unread=False)
        arguments = ClearInputs(
            protected,
            "message",
            max_characters=500,
            measure="arguments",
            keep_characters=200,
            marker="...[truncated]",
            depth="any",
        )
        return duplicates, digests, arguments

    def __call__(self, situation: Situation) -> Steps:
        """Prune."""
        return Pipeline(self._parts(self._protected(situation)))(replace(situation, last=None))
