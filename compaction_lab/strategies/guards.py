"""Guards around any strategy: what it must gain, when it is given up, and what takes its place.

Guards on a single summary (G3 rejected when inflated, G4 when empty or unfinished, G7 input that fits, G8 retries with
shorter input, G9 fold ratio, G11 framing, G12 history kept on errors) are options of the mechanisms that write it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from compaction_lab.conversation.context import Context
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import UNCHANGED, Compaction, Situation, Steps, Strategy, steps
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import register


@remembered
class Watch(NamedTuple):
    """Memory of a guard: attempts in a row that gained nothing, the strategies' own memories, the floor reported."""

    ineffective: int = 0
    inner: object = None
    latch: object = None
    floor: int | None = None


@register("guarded", semantics=1)
@dataclass(frozen=True, slots=True)
class Guarded:
    """Let a strategy act only as long as it gains something.

    A result that a guard rejects changes nothing and is recorded with its cost.

    Parameters
    ----------
    strategy
        What is guarded.
    min_progress
        Smallest share of the request's tokens that acting must save (G1); ``None``: any.
    min_reclaim_tokens
        Fewest tokens that acting must save (G2); ``None``: any.
    only_if_shorter
        Reject a result that has as many tokens as before, or more (G3).
    breaker_after
        After this many attempts in a row that were rejected or failed, do not try again (G5); ``None``: no limit.
    latch_to
        What acts from then on instead (G6); ``None``: nothing.
    floor_tokens
        Do not even try when what may never be touched (system, pinned, the running turn's user message, open calls,
        unread results, tools and overhead) already has more tokens than this (G10).
    """

    strategy: Strategy
    min_progress: float | None = None
    min_reclaim_tokens: int | None = None
    only_if_shorter: bool = False
    breaker_after: int | None = None
    latch_to: Strategy | None = None
    floor_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check that a latch can be reached."""
        if self.latch_to is not None and self.breaker_after is None:
            raise ConfigurationError("guarded: latch_to needs breaker_after, the number of failures that lead to it")

    def __call__(self, situation: Situation) -> Steps:
        """Run the strategy, judge what it gained."""
        watch = situation.memory if isinstance(situation.memory, Watch) else Watch()
        if self.breaker_after is not None and watch.ineffective >= self.breaker_after:
            return (yield from self._latched(situation, watch))
        if self.floor_tokens is not None and (floor := protected_tokens(situation)) > self.floor_tokens:
            # The same floor at the next call is no news.
            told = f"rejected: {floor} tokens may never be touched, {self.floor_tokens} are allowed"
            outcome = "ok" if watch.floor == floor else told
            return replace(_unchanged(situation), memory=watch._replace(floor=floor), outcome=outcome)
        done = yield from steps(self.strategy, replace(situation, memory=watch.inner))
        inner = watch.inner if done.memory is UNCHANGED else done.memory
        before = situation.tokens(_base(situation, done))
        refused = (
            self._refusal(before, situation.tokens(_base(situation, done).apply(done.edits))) if done.edits else ""
        )
        if refused:
            failed = watch._replace(ineffective=watch.ineffective + 1)
            return replace(_unchanged(situation), memory=failed, outcome=refused)
        if done.outcome != "ok":
            watch = watch._replace(ineffective=watch.ineffective + 1)
        elif done.edits:
            watch = watch._replace(ineffective=0)
        return replace(done, memory=watch._replace(inner=inner))

    def _refusal(self, before: int, after: int) -> str:
        saved = before - after
        if self.only_if_shorter and saved <= 0:
            return f"rejected: {after} tokens for {before}"
        if self.min_reclaim_tokens is not None and saved < self.min_reclaim_tokens:
            return f"rejected: saves {saved} tokens, at least {self.min_reclaim_tokens} wanted"
        if self.min_progress is not None and saved < self.min_progress * before:
            return f"rejected: saves {saved} of {before} tokens, at least {self.min_progress:.0%} wanted"
        return ""

    def _latched(self, situation: Situation, watch: Watch) -> Steps:
        if self.latch_to is None:
            return replace(_unchanged(situation), memory=watch)
        done = yield from steps(self.latch_to, replace(situation, memory=watch.latch))
        latch = watch.latch if done.memory is UNCHANGED else done.memory
        return replace(done, memory=watch._replace(latch=latch))


def protected_tokens(situation: Situation) -> int:
    """Return the tokens of a request that no strategy of the lab may touch, tools and overhead included."""
    counter = situation.counter
    kept = (e.message for e in situation.context.entries() if situation.protects(e.key, e.message))
    return situation.overhead_tokens + sum(map(counter.message, kept))


def _base(situation: Situation, done: Compaction) -> Context:
    return situation.last if done.base == "last" and situation.last is not None else situation.context


def _unchanged(situation: Situation) -> Compaction:
    """Leave everything as it was: the previous result when there is one."""
    return Compaction(base="history" if situation.last is None else "last")
