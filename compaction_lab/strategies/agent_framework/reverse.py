"""The other way round: a strategy of the lab as a compaction strategy inside Agent Framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import cast

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context, Key
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.wire import to_openai
from compaction_lab.errors import SummarizerMissing
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.agent_framework.convert import Theirs, from_framework, to_framework
from compaction_lab.strategies.registry import PlacedStrategy

Summarizer = Callable[[list[dict[str, JSON]]], "str | Awaitable[str]"]


@dataclass(frozen=True, slots=True)
class FrameworkStrategy:
    """What :func:`to_agent_framework` returns: an async callable on that framework's messages."""

    strategy: PlacedStrategy
    summarizer: object = None
    tokenizer_name: str = "o200k_base"

    async def __call__(self, messages: list[Theirs]) -> bool:
        """Let the strategy act once on what is not excluded; exclude what it hides and insert what it makes."""
        shown = [message for message in messages if not message.additional_properties.get("_excluded", False)]
        log = Log([from_framework(message) for message in shown])
        counter = counting_rule(self.strategy.tokenizer or self.tokenizer_name)
        placed = self.strategy
        arm = ArmRun(log, (Slot(placed.run, placed.when, placed.history, counter, counter.request_overhead),))
        acting = arm.occasion(placed.when, len(log))
        try:
            requests = next(acting)
            while True:
                requests = acting.send(tuple([await self._reply(request) for request in requests]))
        except StopIteration as end:
            context: Context = end.value
        return _rewritten(messages, shown, log, context)

    async def _reply(self, request: ModelRequest) -> ModelReply:
        if self.summarizer is None:
            msg = "the strategy asks for a summary; give to_agent_framework a summarizer: a callable or a chat client"
            raise SummarizerMissing(msg)
        if hasattr(self.summarizer, "get_response"):
            import agent_framework as af

            sent = [to_framework(message, af) for message in request.messages]
            response = await cast("Theirs", self.summarizer).get_response(sent, stream=False)
            return ModelReply(response.text or "")
        text = cast("Summarizer", self.summarizer)([to_openai(message) for message in request.messages])
        return ModelReply(await text if isawaitable(text) else text)


def to_agent_framework(
    strategy: PlacedStrategy, summarizer: object = None, *, tokenizer: str = "o200k_base"
) -> FrameworkStrategy:
    """Return a strategy of the lab as an Agent Framework compaction strategy.

    Parameters
    ----------
    strategy
        From :func:`compaction_lab.strategy`. At each call it acts once, at its own occasion, on the messages that are
        not excluded; what it hides is excluded, what it makes is inserted, so that it works in the tool loop and in
        context providers alike. It keeps no memory between calls.
    summarizer
        A callable from chat messages to text (async or not), or one of the framework's chat clients.
    tokenizer
        Counting rule, unless the strategy has its own.

    Raises
    ------
    SummarizerMissing
        When called, if the strategy asks for a summary and there is none to give it.
    """
    return FrameworkStrategy(strategy, summarizer, tokenizer)


def _rewritten(messages: list[Theirs], shown: Sequence[Theirs], log: Log, context: Context) -> bool:
    """Bring the framework's list in line with a context."""
    stands: dict[Key, Message] = dict(zip(context.keys, context.messages, strict=True))
    kept = {index for index, message in enumerate(log.messages) if stands.get((index, 0)) is message}
    new = {key: message for key, message in stands.items() if key[1] or key[0] not in kept}
    for index, original in enumerate(shown):
        if index not in kept:
            original.additional_properties["_excluded"] = True
            original.additional_properties["_exclude_reason"] = "compaction_lab"
    if new:
        import agent_framework as af

        before = {id(original): index for index, original in enumerate(shown)}
        out: list[Theirs] = []
        waiting = sorted(new.items(), reverse=True)
        for original in messages:
            at = before.get(id(original))
            while at is not None and waiting and waiting[-1][0] < (at, 1):
                out.append(_inserted(waiting.pop()[1], af))
            out.append(original)
        out.extend(_inserted(message, af) for _, message in reversed(waiting))
        messages[:] = out
    return bool(new) or len(kept) < len(shown)


def _inserted(message: Message, af: Theirs) -> Theirs:
    made = to_framework(message, af)
    made.message_id = None
    return made
