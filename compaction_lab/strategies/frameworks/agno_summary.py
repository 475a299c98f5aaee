"""Agno's session compaction: old runs are folded into one state; its compression manager rewrites single results."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.mechanisms.rewrite_results import RewriteResults
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, is_summary, leading_system, span
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    UPDATE_INSTRUCTION,
    Acceptance,
    Wording,
    continuing,
    summarized,
)
from compaction_lab.strategies.triggers import Overflow

DEFAULT_RUNS = 5


@register("agno/compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class SessionCompaction:
    """Fold everything but the newest runs into a summary once the context is large enough (agno 3.1.10).

    Originals stay readable in the framework through a search tool (live only); here they are gone from view.

    Parameters
    ----------
    compact_at_tokens
        Act when the request has at least this many tokens; ``None``: only on overflow.
    uncompacted_runs
        Newest runs (turns) that stay; ``None`` with ``uncompacted_tokens``: 5.
    uncompacted_tokens
        What stays, by size instead of runs; the cut moves back to a user or assistant message that parts no pair.
    compacted_token_budget
        Length asked of the summariser.
    on_context_overflow
        Whether it also acts on overflow.
    enforce_min_fold_ratio, min_fold_ratio
        Whether what is folded must be this many times what stays (guard G9).
    instructions
        Put behind the prompt.
    """

    compact_at_tokens: int | None = 150_000
    uncompacted_runs: int | None = None
    uncompacted_tokens: int | None = None
    compacted_token_budget: int | None = None
    on_context_overflow: bool = False
    enforce_min_fold_ratio: bool = False
    min_fold_ratio: float = 2.0
    instructions: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        if self.uncompacted_runs is not None and self.uncompacted_tokens is not None:
            raise ConfigurationError("agno: give uncompacted_runs or uncompacted_tokens, not both")
        if self.uncompacted_runs is not None:
            at_least(self, "uncompacted_runs", 0)
        if self.min_fold_ratio < 0:
            raise ConfigurationError(f"agno: min_fold_ratio={self.min_fold_ratio}; expected 0 or more")

    def __call__(self, situation: Situation) -> Steps:
        """Fold when due."""
        return continuing(self._fold, situation)

    def _fold(self, situation: Situation) -> Compaction | Steps:
        limit = self.compact_at_tokens
        due = limit is not None and situation.tokens(situation.context) >= limit
        if not due and not (self.on_context_overflow and Overflow()(situation)):
            return Compaction()
        entries = list(situation.context.entries())
        boundary = self._boundary(entries, situation)
        if boundary is None:
            return Compaction(outcome="rejected: no place to cut")
        count = situation.counter.message
        old = span(entries, leading_system(entries), boundary)
        if not old.hidden:
            return Compaction()
        tail = sum(count(entry.message) for entry in entries[boundary:])
        folded = sum(count(entry.message) for entry in old.hidden)
        if self.enforce_min_fold_ratio and folded < self.min_fold_ratio * tail:
            return Compaction(outcome=f"rejected: {folded} tokens to fold beside {tail} that stay")
        prompt, update = INSTRUCTION, UPDATE_INSTRUCTION
        if self.instructions:
            prompt, update = f"{prompt}\n\n{self.instructions}", f"{update}\n\n{self.instructions}"
        wording = Wording(prompt, update, max_summary_tokens=self.compacted_token_budget)
        earlier = [entry for entry in old.hidden if is_summary(entry.message)]
        previous = wording.bare(earlier[-1].message) if earlier else ""
        read = tuple(entry for entry in old.hidden if not is_summary(entry.message))
        shown = type(old)(old.hidden, old.before, read, previous)
        return summarized(situation, shown, wording, Reading(), Acceptance(only_if_shorter=False))

    def _boundary(self, entries: Entries, situation: Situation) -> int | None:
        if self.uncompacted_tokens is not None:
            return choose_boundary(entries, situation, self.uncompacted_tokens)
        runs = DEFAULT_RUNS if self.uncompacted_runs is None else self.uncompacted_runs
        users = [at for at, e in enumerate(entries) if e.message.role == "user" and not is_summary(e.message)]
        start = len(entries) if not runs else users[-runs] if len(users) > runs else leading_system(entries)
        return _safe(entries, start, leading_system(entries))


def choose_boundary(entries: Entries, situation: Situation, keep_tokens: int) -> int | None:
    """Return where the kept part begins: what fits, moved back to a message that parts no call from its result."""
    floor = leading_system(entries)
    start, used = len(entries), 0
    while start > floor:
        message = entries[start - 1].message
        if not is_summary(message):
            used += situation.counter.message(message)
            if used > keep_tokens:
                break
        start -= 1
    return _safe(entries, start, floor)


def _safe(entries: Entries, start: int, floor: int) -> int | None:
    if start <= floor:
        return None
    at = min(start, len(entries) - 1)
    while at > floor:
        message = entries[at].message
        if message.role == "tool":
            head = _owner(entries, at)
            at = head if head is not None and head >= floor else at - 1
        elif message.role in ("system", "developer") or is_summary(message):
            at -= 1
        elif (orphaned := _orphan_head(entries, at)) is not None:
            at = orphaned
        else:
            return at
    return None


def _owner(entries: Entries, at: int) -> int | None:
    call_id = entries[at].message.call_id
    found = (n for n in range(at - 1, -1, -1) if any(call.id == call_id for call in entries[n].message.calls))
    return next(found, None) if call_id else None


def _orphan_head(entries: Entries, boundary: int) -> int | None:
    owners = (_owner(entries, at) for at in range(boundary, len(entries)) if entries[at].message.role == "tool")
    return min((head for head in owners if head is not None and head < boundary), default=None)


@register("agno/compression_manager", semantics=1)
@dataclass(frozen=True, slots=True)
class CompressionManager:
    """Let a model rewrite every tool result once enough of them are uncompressed (mechanism M29; agno 3.1.10).

    Parameters
    ----------
    compress_tool_results_limit
        Uncompressed results that start it; 3 when neither limit is given.
    compress_token_limit
        Tokens of the request that start it.
    compress_tool_call_instructions
        ``None``: the lab's own.
    """

    compress_tool_results_limit: int | None = None
    compress_token_limit: int | None = None
    compress_tool_call_instructions: str | None = None

    def __call__(self, situation: Situation) -> Steps:
        """Rewrite when due."""
        limit = self.compress_tool_results_limit
        if limit is None and self.compress_token_limit is None:
            limit = 3
        rewriting = RewriteResults(
            limit,
            self.compress_token_limit,
            unread=True,
            only_if_shorter=False,
            prompt=self.compress_tool_call_instructions,
        )
        return rewriting(situation)
