"""One strategy on one conversation, call by call: what tests of strategies ask of an arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from compaction_lab.arm import ArmRun, Occurring, Slot, occasions
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.base import Compaction, Occasion, Situation, Steps, Strategy, drive, steps
from compaction_lab.strategies.registry import PlacedStrategy

CHARACTERS = TokenCounter(tokenizer("characters"))
O200K = TokenCounter(tokenizer("o200k_base"))

Ask = Callable[[ModelRequest], ModelReply]


@dataclass
class Scribe:
    """A summariser that numbers its summaries and keeps what it was shown."""

    text: str = "so far"
    requests: list[ModelRequest] = field(default_factory=list)

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return ModelReply(f"{self.text} {len(self.requests)}")

    @property
    def read(self) -> list[str]:
        return [request.messages[-1].text for request in self.requests]


def nobody(request: ModelRequest) -> ModelReply:
    raise AssertionError(f"no model is needed here, yet one was asked: {request.messages[-1].text[:80]}")


def slot(strategy: PlacedStrategy | Strategy, when: Occasion = "before_call", history: str = "view") -> Slot:
    if isinstance(strategy, PlacedStrategy):
        return Slot(strategy.run, strategy.when, strategy.history, CHARACTERS)
    return Slot(strategy, when, history, CHARACTERS)


def answered(occurring: Occurring, ask: Ask = nobody) -> Context:
    try:
        requests = next(occurring)
        while True:
            requests = occurring.send(tuple(map(ask, requests)))
    except StopIteration as end:
        return end.value


def every_occasion(
    messages: Sequence[Message], *slots: Slot, ask: Ask = nobody
) -> Iterator[tuple[Occasion, int, Context, ArmRun]]:
    """Let an arm live through a recorded conversation; yield what each occasion ended with."""
    log = Log(messages)
    arm = ArmRun(log, slots)
    for occasion, stop, _ in occasions(log):
        yield occasion, stop, answered(arm.occasion(occasion, stop), ask), arm


def sent(messages: Sequence[Message], *slots: Slot, ask: Ask = nobody) -> list[tuple[Message, ...]]:
    """Return what each call of a recorded conversation would have been sent."""
    return [
        context.messages for what, _, context, _ in every_occasion(messages, *slots, ask=ask) if what == "before_call"
    ]


def applied(
    messages: Sequence[Message], strategy: Strategy, when: Occasion = "before_call", ask: Ask = nobody
) -> Context:
    """Return what a strategy makes of a message list at one occasion, nothing remembered."""
    arm = ArmRun(Log(messages), (Slot(strategy, when, "view", CHARACTERS),))
    return answered(arm.occasion(when, len(messages)), ask)


def situation(messages: Sequence[Message], when: Occasion = "before_call") -> Situation:
    log = Log(messages)
    return Situation(Context(log, len(log)), when, CHARACTERS)


@dataclass(frozen=True)
class Watched:
    """A strategy with a witness of every situation it was given and of what it answered."""

    strategy: Strategy
    witness: Callable[[Situation, Compaction], None]

    def __call__(self, situation: Situation) -> Steps:
        done = yield from steps(self.strategy, situation)
        self.witness(situation, done)
        return done


def result(situation: Situation, done: Compaction) -> Context:
    """Return the context that a compaction leads to."""
    base = situation.last if done.base == "last" else situation.context
    assert base is not None
    return base.apply(done.edits)


def from_scratch(strategy: Strategy, situation: Situation, ask: Ask = nobody) -> Context:
    """Return what the strategy makes of the history alone: no memory, no previous result."""
    bare = Situation(situation.context, situation.occasion, situation.counter)
    return result(bare, drive(steps(strategy, bare), ask))


def standing(context: Context) -> list[tuple[tuple[int, int], tuple[object, ...]]]:
    """Return what stands where, to be compared."""
    return [(placed.key, placed.message.wire) for placed in context.entries()]
