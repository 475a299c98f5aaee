"""Summaries: what is old is replaced by one message that a model wrote about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from compaction_lab.conversation.context import Context, Key
from compaction_lab.strategies.ageing import boundary, complete_steps, complete_turns
from compaction_lab.strategies.base import Compaction, Occasion, Situation, Steps
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.reading import Reading, Shows
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import (
    Acceptance,
    Span,
    SummaryRole,
    Wording,
    behind,
    continuing,
    latest,
    summarized,
)


@dataclass(frozen=True, slots=True)
class SummarizePrefix:
    """Replace everything older than the newest complete units by one summary (mechanism M18; M19 with ``keep_last=0``).

    Parameters
    ----------
    keep_last, unit
        Newest complete units that stay verbatim.
    role
        Role of the summary message.
    max_summary_tokens
        Asked of the summariser.
    reads
        Whether the summariser is shown what is ``visible`` (stand-ins included) or the ``original`` messages of the log
        wherever a stand-in stands for one.
    only_if_shorter
        Reject a summary that has as many tokens as what it replaces, or more (guard G3).
    """

    keep_last: int = 0
    unit: Literal["turn", "step"] = "turn"
    role: SummaryRole = "user"
    max_summary_tokens: int = 500
    reads: Shows = "visible"
    only_if_shorter: bool = True

    def __call__(self, situation: Situation) -> Steps:
        """Ask for one summary of what is old and put it in its place."""
        return continuing(self._replace, situation)

    def _replace(self, situation: Situation) -> Compaction | Steps:
        index = boundary(situation, self.unit, self.keep_last)
        context = situation.context
        old = tuple(e for e in context.entries(None, (index, 0)) if situation.removable(e.key, e.message, index))
        if all(entry.message.source == "summary" for entry in old):
            return Compaction()
        wording = Wording(role=self.role, max_summary_tokens=self.max_summary_tokens)
        reading, acceptance = Reading(shows=self.reads), Acceptance(self.only_if_shorter)
        return summarized(situation, Span(old, behind(context, old[-1].key)), wording, reading, acceptance)


@remembered
class Summarised(NamedTuple):
    """Memory of a summariser that counts: the units complete when it last tried, and a message that it then hid."""

    done: int
    hidden: Key | None = None


@register("summarization", semantics=1)
@dataclass(frozen=True, slots=True)
class Summarization:
    """Summarise after every so many complete units, counted since the last summary.

    An attempt that fails counts as well: the next is made ``every`` units later, not at once. Where a summary is not
    kept (a view under a history that was rewritten) the count begins anew.

    Parameters
    ----------
    every
        Complete units since the last summary at which the next is written.
    unit
        What ``every`` and ``keep_last`` count.
    keep_last
        Newest complete units that stay verbatim.
    role
        Role of the summary message.
    max_summary_tokens
        Length asked of the summariser, in tokens.
    """

    every: int = 10
    unit: Literal["turn", "step"] = "turn"
    keep_last: int = 0
    role: Literal["user", "assistant", "system"] = "user"
    max_summary_tokens: int = 500
    reads: Literal["visible", "original"] = "visible"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "every", 1)
        at_least(self, "keep_last", 0)
        at_least(self, "max_summary_tokens", 1)

    @property
    def default_when(self) -> Occasion:
        """Turns are counted when they are over, steps before the next call."""
        return "after_turn" if self.unit == "turn" else "before_call"

    def __call__(self, situation: Situation) -> Compaction | Steps:
        """Summarise when enough units have passed."""
        context, base = latest(situation)
        done = complete_turns(situation) if self.unit == "turn" else complete_steps(situation)
        if done - self._counted(situation.memory, context) < self.every:
            return Compaction(base=base)
        return self._summarise(situation, done)

    def _counted(self, memory: object, context: Context) -> int:
        """Return how many units an earlier summary that still stands has counted."""
        if not isinstance(memory, Summarised):
            return 0
        return memory.done if memory.hidden is None or context.get(memory.hidden) is None else 0

    def _summarise(self, situation: Situation, done: int) -> Steps:
        mechanism = SummarizePrefix(self.keep_last, self.unit, self.role, self.max_summary_tokens, reads=self.reads)
        result = yield from mechanism(situation)
        if not result.edits and result.outcome == "ok":
            return result
        hidden = next((key for edit in result.edits for key in edit.keys if not key[1]), None)
        memory = Summarised(done, hidden)
        return Compaction(result.edits, memory, result.base, f"{self.every} {self.unit}s", result.outcome)


@register("summarize_all", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizeAll:
    """Replace all but the system message by one summary whenever visible user messages reach a multiple of ``every``.

    The article's summarisation (github.com/L3mur1/SemanticKernelContextManagement): no tail is kept, and the
    user-role summary counts as a user message, so that summaries fall after turns 10, 19, 28, ...

    Parameters
    ----------
    every
        Summarise when the number of visible user-role messages is a multiple of this.
    max_summary_tokens
        Length asked of the summariser, in tokens (the article sets none).
    reads
        Whether the summariser is shown what is visible or the original messages behind the stand-ins.
    """

    every: int = 10
    max_summary_tokens: int = 500
    reads: Literal["visible", "original"] = "visible"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "every", 2)
        at_least(self, "max_summary_tokens", 1)

    def __call__(self, situation: Situation) -> Compaction | Steps:
        """Summarise when the count says so."""
        context, base = latest(situation)
        count = sum(message.role == "user" for message in context.messages)
        if not count or count % self.every:
            return Compaction(base=base)
        return self._summarise(situation, count)

    def _summarise(self, situation: Situation, count: int) -> Steps:
        mechanism = SummarizePrefix(max_summary_tokens=self.max_summary_tokens, reads=self.reads, only_if_shorter=False)
        result = yield from mechanism(situation)
        return replace(result, reason=f"{count} user messages")
