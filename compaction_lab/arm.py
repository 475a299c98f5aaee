"""One arm at work on one conversation: which strategy acts on which occasion, on what history, and what it kept.

Nothing is counted or recorded here, and no model is called: requests are yielded to whoever replays.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from compaction_lab.conversation.context import Context, Counter, Edit
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import ToolDefinition, Usage
from compaction_lab.strategies.base import (
    UNCHANGED,
    Compaction,
    History,
    Occasion,
    Replies,
    Requests,
    Situation,
    Strategy,
    steps,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A strategy in its place, with the counting rule it decides by and what that rule adds for tools and request."""

    strategy: Strategy
    when: Occasion
    history: History
    counter: Counter
    overhead_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Firing:
    """A strategy's result that differs from its previous one carried forward, or an attempt that failed.

    ``edits`` hold only the difference. With ``base == "last"`` they continue the slot's previous result, with
    ``history`` they start from what the slot was shown. ``before`` and ``after`` are the contexts on either side.
    """

    slot: int
    when: Occasion
    history: History
    base: str
    reason: str
    outcome: str
    edits: tuple[Edit, ...]
    before: Context
    after: Context

    @property
    def changed(self) -> bool:
        """Whether the context changed, rather than an attempt having failed."""
        return bool(self.edits)


Occurring: TypeAlias = Generator[Requests, Replies, Context]


@dataclass(slots=True)
class _Kept:
    """What a slot remembers between occasions: its strategy's memory, its previous result, and who acted above it."""

    memory: object = None
    last: Context | None = None
    above: tuple[int, ...] = ()


@dataclass(slots=True)
class ArmRun:
    """The strategies of one arm on one log.

    Parameters
    ----------
    log
        The conversation; it may grow between occasions.
    slots
        The arm's strategies in order.
    tools, window_tokens
        What strategies are told of the tools and of the model's window.

    Attributes
    ----------
    stored
        The history as stored: later occasions start from it.
    shown
        The history that the last occasion began with, before any strategy acted (an overflow is part of it).
    firings
        What happened at the last occasion.
    strategy_s
        Seconds that strategies took at the last occasion, waiting for replies not counted.
    """

    log: Log
    slots: tuple[Slot, ...]
    tools: tuple[ToolDefinition, ...] = ()
    window_tokens: int | None = None
    stored: Context = field(init=False)
    shown: Context = field(init=False)
    firings: list[Firing] = field(init=False, default_factory=list)
    strategy_s: float = field(init=False, default=0.0)
    _turn: Context | None = field(init=False, default=None)
    _kept: list[_Kept] = field(init=False)

    def __post_init__(self) -> None:
        """Start with an empty history."""
        self.stored = self.shown = Context(self.log)
        self._kept = [_Kept() for _ in self.slots]

    def occasion(
        self, occasion: Occasion, stop: int, *, now_s: float | None = None, usage: Usage | None = None
    ) -> Occurring:
        """Let every strategy placed at ``occasion`` act on the first ``stop`` messages; return the context to send.

        Yields requests to models and receives their replies. ``overflow`` and ``requested`` reach every strategy.
        """
        self.firings, self.strategy_s = [], 0.0
        if occasion == "before_turn" and self._turn is not None:
            self._turn = None
            self._forget("turn")
        shown = self._advance(stop)
        if occasion != "overflow":
            self.shown = shown
        fired_above = False
        above: tuple[int, ...] = ()
        for number, slot in enumerate(self.slots):
            if slot.when != occasion and occasion not in ("overflow", "requested"):
                continue
            kept = self._kept[number]
            # Built on another history than the one shown now, a previous result is nothing to go on from.
            stale = kept.last is None or fired_above or kept.above != above
            last = None if stale or kept.last is None else kept.last.advance(stop)
            situation = Situation(
                shown,
                occasion,
                slot.counter,
                kept.memory,
                last,
                self.tools,
                slot.overhead_tokens,
                self.window_tokens,
                now_s,
                usage,
                slot.history,
            )
            done = yield from self._timed(slot.strategy, situation)
            continues = done.base == "last" and last is not None
            after = (last if continues and last is not None else shown).apply(done.edits)
            if done.memory is not UNCHANGED:
                kept.memory = done.memory
            edits = done.edits if continues or last is None else _named(last.difference(after), done.edits)
            if edits or done.outcome != "ok":
                before, base = (shown, "history") if last is None else (last, "last")
                self.firings.append(
                    Firing(number, occasion, slot.history, base, done.reason, done.outcome, edits, before, after)
                )
            if edits and slot.history != "view":
                self._rewrite(slot.history, shown, after, edits)
                self._forget("view")
            fired_above = fired_above or bool(edits)
            kept.last = shown = after
            kept.above = above
            above = (*above, number)
        return shown

    def resume(self, stored: Context, memory: object, last: Context) -> None:
        """Take up an earlier arm's work: its stored history, and the only strategy's memory and last result."""
        self.stored = stored
        (kept,) = self._kept
        kept.memory = memory
        kept.last = last

    def remembered(self, slot: int) -> object:
        """Return the memory of the strategy in a slot."""
        return self._kept[slot].memory

    def fork(self, log: Log) -> ArmRun:
        """Return an independent arm in the same state on another log, which begins with the same messages."""
        fork = ArmRun(log, self.slots, self.tools, self.window_tokens)
        moved: dict[int, Context] = {}

        def move(context: Context) -> Context:
            return moved.setdefault(id(context), context.on(log))

        fork.stored = move(self.stored)
        fork._turn = None if self._turn is None else move(self._turn)
        fork._kept = [replace(kept, last=None if kept.last is None else move(kept.last)) for kept in self._kept]
        return fork

    def _advance(self, stop: int) -> Context:
        """Append new messages to the history; whoever's last result was just that history keeps sharing it."""
        old = self.stored if self._turn is None else self._turn
        self.stored = self.stored.advance(stop)
        new = self.stored
        if self._turn is not None:
            new = self._turn = self._turn.advance(stop)
        for kept in self._kept:
            if kept.last is old:
                kept.last = new
        return new

    def _rewrite(self, history: History, shown: Context, after: Context, edits: tuple[Edit, ...]) -> None:
        """Keep a rewrite for the rest of the turn or for good; what views did at this occasion stays out of it."""
        base = self.stored if self._turn is None else self._turn
        rewritten = after if shown is base else _transferred(edits, base)
        if history == "turn":
            self._turn = rewritten
            return
        self.stored = rewritten if self._turn is None else _transferred(edits, self.stored)
        if self._turn is not None:
            self._turn = rewritten

    def _forget(self, history: History) -> None:
        """Void what strategies hold about a history that has just been rewritten; ``history`` ones start anew."""
        for kept, slot in zip(self._kept, self.slots, strict=True):
            kept.last = None
            if slot.history == history:
                kept.memory = None

    def _timed(self, strategy: Strategy, situation: Situation) -> Generator[Requests, Replies, Compaction]:
        running = steps(strategy, situation)
        replies: Replies | None = None
        while True:
            started = time.perf_counter()
            try:
                requests = next(running) if replies is None else running.send(replies)
            except StopIteration as end:
                done: Compaction = end.value
                return done
            finally:
                self.strategy_s += time.perf_counter() - started
            replies = yield requests


def _named(difference: tuple[Edit, ...], said: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return a difference in the strategy's own words: a summary with what it newly hides, a stand-in by its kind."""
    told = {edit.new.key: edit for edit in said if edit.new is not None}
    hidden = dict.fromkeys(key for edit in difference if edit.kind == "dropped" for key in edit.keys)
    named = []
    for edit in difference:
        if edit.new is not None and (own := told.get(edit.new.key)) is not None:
            keys = (*edit.keys, *(key for key in own.keys if key in hidden))
            for key in keys:
                hidden.pop(key, None)
            named.append(replace(edit, kind=own.kind, keys=keys))
        elif edit.kind != "dropped":
            named.append(edit)
    return (Edit("dropped", tuple(hidden)), *named) if hidden else tuple(named)


def _transferred(edits: tuple[Edit, ...], base: Context) -> Context:
    """Return ``base`` after edits made to a view of it: what only the view hid or showed is left out."""
    for edit in edits:
        if edit.kind == "restored":
            keys = tuple(key for key in edit.keys if base.get(key) is not base.log.messages[key[0]])
        else:
            keys = tuple(key for key in edit.keys if base.get(key) is not None)
        new = edit.new
        if new is not None and new.key not in keys and base.get(new.key) is not None:
            new = replace(new, key=base.free_key(new.key[0]))
        if keys or new is not None:
            base = base.apply((replace(edit, keys=keys, new=new),))
    return base


@dataclass(frozen=True, slots=True)
class Playback:
    """A strategy that does again what was recorded: edits by the number of log messages at which they happened."""

    recorded: Mapping[tuple[Occasion, int], Compaction]

    def __call__(self, situation: Situation) -> Compaction:
        """Return the recorded edits of this occasion."""
        found = self.recorded.get((situation.occasion, situation.context.stop))
        if found is not None:
            return found
        return Compaction((), (), "history" if situation.last is None else "last")


def occasions(log: Log) -> Iterator[tuple[Occasion, int, int]]:
    """Yield ``(occasion, stop, turn)`` for a recorded conversation, in order.

    Every assistant message (messages sharing a response id count once) is a call; a conversation that ends in a user
    or tool message has one further call without output. A turn is over where the next user message begins, and at the
    end of a conversation that an answer without tool calls ends.
    """
    size = len(log)
    stops = list(log.calls)
    if size and log.messages[-1].role in ("user", "tool"):
        stops.append(size)
    turn = 0
    for stop in stops:
        at = log.turn_at(stop)
        while turn < at:
            if turn:
                yield "after_turn", log.turn_starts[turn + 1], turn
            turn += 1
            yield "before_turn", log.turn_starts[turn] + 1, turn
        yield "before_call", stop, turn
    if turn and log.messages[-1].role == "assistant" and not log.messages[-1].calls:
        yield "after_turn", size, turn
