"""Hermes' ContextCompressor: old results become digests, the middle an updated summary, head and tail stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Pipeline, Situation, Steps
from compaction_lab.strategies.frameworks.hermes_agent_digest import PruneOldToolResults
from compaction_lab.strategies.guards import Guarded
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import is_summary, last_where, leading_system
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    UPDATE_INSTRUCTION,
    Acceptance,
    Span,
    SummaryRole,
    Wording,
    summarized,
    when_due,
)
from compaction_lab.strategies.triggers import WindowFractionExceeds, known_window

PREFIX = (
    "[Context compaction, for reference only: what follows sums up earlier turns; it is no request. Answer the newest "
    "user message below.]\n"
)
SUFFIX = "\n[End of the summary.]"
NOTE = "\n\n[Note: earlier turns of this conversation have been replaced by a summary, which stands below.]"
MOST_SUMMARY_TOKENS = 12_000
SHORTEST_TAIL = 3
LONGEST_FLOOR = 8
OVERSHOOT = 1.5

Entries = Sequence[Placed]
Count = Callable[[Message], int]


@register("hermes_agent/context_compressor", semantics=2)
@dataclass(frozen=True, slots=True)
class ContextCompressor:
    """Prune, then summarise the middle, at a share of the window (mechanisms M11, M12, M22; hermes-agent 0.19.0).

    Parameters
    ----------
    threshold_percent
        Share of the window at which it acts.
    protect_first_n
        Messages behind the system message that stay, until there is a summary.
    summary_target_ratio
        Share of the threshold that the tail may have in tokens.
    protect_last_n
        Newest messages that pruning and, up to eight of them, the summary leave alone.
    min_summary_tokens
        The framework asks for 2,000 tokens at least, whatever it replaces.
    repair
        Reject a summary that is no shorter than what it replaces, and leave the system message as it is, to which the
        framework adds a note.
    """

    threshold_percent: float = 0.5
    protect_first_n: int = 3
    summary_target_ratio: float = 0.2
    protect_last_n: int = 20
    min_summary_tokens: int = 2000
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "protect_first_n", 0)
        at_least(self, "protect_last_n", 0)
        if not 0 < self.threshold_percent <= 1:
            raise ConfigurationError(
                f"hermes_agent: threshold_percent={self.threshold_percent!r}; expected a share up to 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Compress when due; give up after two passes in a row that gained less than a tenth."""
        window = known_window(situation, None, "hermes_agent/context_compressor")
        tail = int(window * self.threshold_percent * self.summary_target_ratio)
        passes = Pipeline((PruneOldToolResults(self.protect_last_n, tail), _Middle(self, tail)))
        whole = Guarded(passes, min_progress=0.1, breaker_after=2)
        return when_due(WindowFractionExceeds(self.threshold_percent, inclusive=True), whole, situation)


@dataclass(frozen=True, slots=True)
class _Middle:
    """Put a summary in the place of what lies between head and tail."""

    settings: ContextCompressor
    tail_tokens: int

    def __call__(self, situation: Situation) -> Compaction | Steps:
        entries = list(situation.context.entries())
        earlier = [entry for entry in entries if is_summary(entry.message)]
        start = leading_system(entries) + (0 if earlier else self.settings.protect_first_n)
        start = _behind_results(entries, start)
        if len(entries) <= start + SHORTEST_TAIL + 1:
            return Compaction()
        stop = self._tail(entries, start, situation.counter.message)
        limit = entries[stop].key[0] if stop < len(entries) else situation.context.stop
        middle = entries[start:stop]
        hidden = tuple(e for e in middle if situation.removable(e.key, e.message, limit))
        if all(is_summary(entry.message) for entry in hidden):
            return Compaction()
        return self._summarise(situation, entries, stop, hidden)

    def _summarise(self, situation: Situation, entries: Entries, stop: int, hidden: tuple[Placed, ...]) -> Steps:
        settings = self.settings
        wording = Wording(
            INSTRUCTION,
            UPDATE_INSTRUCTION,
            PREFIX,
            SUFFIX,
            _role(entries, stop, hidden),
            max(settings.min_summary_tokens, min(self.tail_tokens // 5, MOST_SUMMARY_TOKENS)),
        )
        earlier = [entry for entry in hidden if is_summary(entry.message)]
        previous = wording.bare(earlier[-1].message) if earlier else ""
        read = tuple(entry for entry in hidden if not is_summary(entry.message))
        before = entries[stop].key if stop < len(entries) else None
        done = yield from summarized(
            situation, Span(hidden, before, read, previous), wording, Reading(), Acceptance(settings.repair)
        )
        noted = () if settings.repair or not done.edits else _noted(entries[:1])
        return replace(done, edits=(*done.edits, *noted))

    def _tail(self, entries: Entries, head: int, count: Count) -> int:
        """Return where the tail begins: by tokens, with a floor of messages, never behind the newest two anchors."""
        size = len(entries)
        available = max(0, size - head - 1)
        floor = max(SHORTEST_TAIL, min(self.settings.protect_last_n, LONGEST_FLOOR))
        floor = min(floor, max(SHORTEST_TAIL, available - 2), available) if available > 1 else 0
        ceiling = int(self.tail_tokens * OVERSHOOT)
        cut = _walk(entries, head, ceiling, floor, count)
        if cut <= head and sum(count(entry.message) for entry in entries[head:]) <= ceiling:
            # All of it fits with the overshoot: cut by the budget itself, so that something is left to summarise.
            cut = _walk(entries, head, self.tail_tokens, floor, count, takes_last=True)
        cut = min(cut, size - floor)
        if cut <= head:
            cut = max(size - floor, head + 1)
        cut = self._anchored(entries, _before_calls(entries, cut), head)
        return _behind_results(entries, max(cut, head + 1))

    def _anchored(self, entries: Entries, cut: int, head: int) -> int:
        """Move the cut back to the newest user message and the newest answer."""
        asked = last_where(entries, lambda message: message.role == "user" and not is_summary(message))
        if head <= asked < cut:
            cut = asked
            if asked == head:
                # A request that is the first of the middle goes together with what came of it.
                cut = _behind_results(
                    entries, asked + 2 if entries[asked + 1].message.role == "assistant" else asked + 1
                )
        said = last_where(entries, lambda message: message.role == "assistant" and not is_summary(message))
        if head <= said < cut:
            cut = max(_before_calls(entries, said), head + 1)
        return cut


def _walk(entries: Entries, head: int, budget: int, floor: int, count: Count, *, takes_last: bool = False) -> int:
    """Return how far back a budget reaches, a floor of messages granted; ``takes_last``: one message further."""
    used = 0
    for at in range(len(entries) - 1, head - 1, -1):
        used += count(entries[at].message)
        if used > budget and len(entries) - at >= floor:
            return at if takes_last else at + 1
    return head


def _behind_results(entries: Entries, at: int) -> int:
    while at < len(entries) and entries[at].message.role == "tool":
        at += 1
    return at


def _before_calls(entries: Entries, at: int) -> int:
    """Return a cut moved before the exchange that it would split, or that ends directly before it."""
    if not 0 < at < len(entries):
        return at
    asked = at - 1
    while asked >= 0 and entries[asked].message.role == "tool":
        asked -= 1
    return asked if asked >= 0 and entries[asked].message.calls else at


def _role(entries: Entries, stop: int, hidden: tuple[Placed, ...]) -> SummaryRole:
    """Return the role that stands apart from its neighbours where one does; some user message must be left."""
    going = {entry.key for entry in hidden}
    left = [entry for entry in entries[:stop] if entry.key not in going]
    before = left[-1].message.role if left else "user"
    behind = entries[stop].message.role if stop < len(entries) else "user"
    if before in ("system", "developer") or not any(e.message.role == "user" for e in (*left, *entries[stop:])):
        return "user"
    wanted: SummaryRole = "user" if before in ("assistant", "tool") else "assistant"
    other: SummaryRole = "assistant" if wanted == "user" else "user"
    return other if wanted == behind and other != before else wanted


def _noted(first: Entries) -> tuple[Edit, ...]:
    """Return the edit that adds the note to the system message, once."""
    found = [e for e in first if is_system(e.message) and not e.message.pinned and NOTE not in e.message.text]
    return tuple(
        Edit("masked", (e.key,), Placed(e.key, e.message.replaced(e.message.text + NOTE, "placeholder"))) for e in found
    )
