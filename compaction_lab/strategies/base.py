"""What a strategy is: a situation in, a compaction out, no clock, no files, no model called in between.

A strategy that needs a model is a generator: it yields a tuple of requests and receives the tuple of replies. The
replay loop is the only place where such a request is answered, priced and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from types import GeneratorType
from typing import Literal, Protocol, TypeAlias

from compaction_lab.conversation.context import Context, Counter, Edit, Key
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message, ToolDefinition, Usage
from compaction_lab.errors import StrategyError
from compaction_lab.models.base import ModelReply, ModelRequest

Occasion = Literal["before_call", "before_turn", "after_turn", "overflow", "requested"]
OCCASIONS: tuple[Occasion, ...] = ("before_call", "before_turn", "after_turn", "overflow", "requested")
History = Literal["view", "turn", "stored"]
HISTORIES: tuple[History, ...] = ("view", "turn", "stored")


class _Unchanged:
    """Says that a strategy leaves its memory as it was."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = _Unchanged()


@dataclass(frozen=True)
class Situation:
    """What a strategy is given.

    Parameters
    ----------
    context
        The history shown: the log under whatever has been stored, and under what earlier strategies of a pipeline did.
    occasion
        Why it is asked now.
    counter
        The counting rule that this strategy decides by.
    memory
        What it returned last time; ``None`` at first.
    last
        Its own previous result with the new messages appended; ``None`` at first and after a stored rewrite.
    overhead_tokens
        Tokens of tool definitions and of the request itself, by ``counter``.
    window_tokens
        The model's context window, when known.
    now_s
        Transcript time in seconds since the epoch, when recorded.
    usage
        What the provider reported for the last call, when it did.
    history
        How long what it does is kept: frameworks that keep notes on their messages keep them as long as the messages.
    """

    context: Context
    occasion: Occasion
    counter: Counter
    memory: object = None
    last: Context | None = None
    tools: tuple[ToolDefinition, ...] = ()
    overhead_tokens: int = 0
    window_tokens: int | None = None
    now_s: float | None = None
    usage: Usage | None = None
    history: History = "view"

    @property
    def turn_is_over(self) -> bool:
        """Whether the newest turn has ended, so that none of its messages is still being worked on."""
        return self.occasion == "after_turn"

    @cached_property
    def running_user(self) -> int:
        """Index of the running turn's user message, or -1 when no turn is running."""
        log, stop = self.context.log, self.context.stop
        turn = log.turn_at(stop)
        return -1 if self.turn_is_over or not turn else log.turn_starts[turn]

    @cached_property
    def unread_from(self) -> int:
        """Index from which messages are open calls or results that no call has read; the log's end when none are."""
        return self.context.log.unread_from(self.context.stop)

    def tokens(self, context: Context) -> int:
        """Tokens of a whole request with ``context``, tools and overhead included."""
        return context.tokens(self.counter) + self.overhead_tokens

    def protects(self, key: Key, message: Message) -> bool:
        """Whether no strategy of the lab may touch this message now.

        System and pinned messages, the running turn's user message, open calls and results no call has read yet.
        """
        index, rank = key
        if is_system(message) or message.pinned:
            return True
        return rank == 0 and (index == self.running_user or index >= self.unread_from)

    def removable(self, key: Key, message: Message, before: int) -> bool:
        """Whether a message may be removed with its group: all of it lies before log index ``before``, unprotected."""
        if self.protects(key, message):
            return False
        index, rank = key
        if rank:
            return True
        log = self.context.log
        first = log.groups[index]
        return not log.is_pinned(first) and log.members(first, self.context.stop)[-1] < min(before, self.unread_from)


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a strategy wants changed.

    Parameters
    ----------
    edits
        The changes, in order; none means that the base stays as it is.
    memory
        Handed back next time; omitted means unchanged.
    base
        ``history``: ``edits`` start from the context given. ``last``: they continue the strategy's previous result.
    reason
        Why it acted, in a few words (``tokens 5200 > 4000``).
    outcome
        ``ok``, or why an attempt changed nothing (``rejected: empty summary``): recorded with its cost.
    """

    edits: tuple[Edit, ...] = ()
    memory: object = UNCHANGED
    base: Literal["history", "last"] = "history"
    reason: str = ""
    outcome: str = "ok"


Requests: TypeAlias = tuple[ModelRequest, ...]
Replies: TypeAlias = tuple[ModelReply, ...]
Steps: TypeAlias = Generator[Requests, Replies, Compaction]


class Strategy(Protocol):
    """Anything that turns a situation into a compaction, at once or as a generator that asks a model."""

    def __call__(self, situation: Situation) -> Compaction | Steps:
        """Decide what to change."""
        ...


class Trigger(Protocol):
    """When to start: true when the strategy should act in this situation."""

    def __call__(self, situation: Situation) -> bool:
        """Whether to act now."""
        ...


def steps(strategy: Strategy, situation: Situation) -> Steps:
    """Run a strategy of either shape as a generator."""
    answer = strategy(situation)
    if isinstance(answer, GeneratorType):
        done: Compaction = yield from answer
        return done
    if isinstance(answer, Compaction):
        return answer
    msg = (
        f"strategy {type(strategy).__name__} returned {type(answer).__name__}; a strategy returns a Compaction, or is "
        "a generator that yields tuples of model requests and returns one"
    )
    raise StrategyError(msg)


def drive(running: Steps, ask: Callable[[ModelRequest], ModelReply]) -> Compaction:
    """Run a strategy to its end, answering every request with ``ask``."""
    try:
        requests = next(running)
        while True:
            requests = running.send(tuple(map(ask, requests)))
    except StopIteration as end:
        result: Compaction = end.value
        return result


def start(situation: Situation) -> tuple[Context, Literal["history", "last"], bool]:
    """Return the context to continue from, its base, and whether this is a continuation.

    A continuation needs both the previous result and a memory of it; without either a strategy answers from scratch.
    """
    if situation.last is None or situation.memory is None:
        return situation.context, "history", False
    return situation.last, "last", True


@dataclass(frozen=True, slots=True)
class Triggered:
    """A strategy that acts only when its trigger says so; otherwise it leaves the history as it is.

    Its memory is whether it acted, and the strategy's own, which outlives the occasions without action; what the
    strategy made of the history does not, so that it then starts from the history.
    """

    trigger: Trigger
    strategy: Strategy

    def __call__(self, situation: Situation) -> Compaction | Steps:
        """Ask the trigger, then the strategy."""
        acted, memory = situation.memory if isinstance(situation.memory, tuple) else (False, None)
        if not self.trigger(situation):
            return Compaction(memory=(False, memory))
        return self._act(replace(situation, memory=memory, last=situation.last if acted else None))

    def _act(self, situation: Situation) -> Steps:
        done = yield from steps(self.strategy, situation)
        return replace(done, memory=(True, situation.memory if done.memory is UNCHANGED else done.memory))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All strategies in order, each shown what the earlier ones made of the context (composition C1).

    Its memory is the tuple of its children's; it answers from the history given at every occasion.
    """

    strategies: tuple[Strategy, ...]

    def __call__(self, situation: Situation) -> Steps:
        """Run the children one after the other."""
        remembered = situation.memory if isinstance(situation.memory, tuple) else (None,) * len(self.strategies)
        context = situation.context
        edits: list[Edit] = []
        memories: list[object] = []
        reasons: list[str] = []
        outcome = "ok"
        for strategy, memory in zip(self.strategies, remembered, strict=True):
            done = yield from steps(strategy, replace(situation, context=context, memory=memory, last=None))
            context = context.apply(done.edits)
            edits.extend(done.edits)
            memories.append(memory if done.memory is UNCHANGED else done.memory)
            if done.edits or done.outcome != "ok":
                reasons.append(done.reason)
            if done.outcome != "ok":
                outcome = done.outcome
        return Compaction(tuple(edits), tuple(memories), reason="; ".join(filter(None, reasons)), outcome=outcome)
