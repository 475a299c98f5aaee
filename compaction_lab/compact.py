"""One-off compaction of a message list: ``lab.compact``, for use inside any agent loop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from compaction_lab.arm import ArmRun, Occurring, Slot
from compaction_lab.conversation.context import Context, Edit, Key, Placed
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.tokens import TokenCounter
from compaction_lab.conversation.tokens import tokenizer as find_tokenizer
from compaction_lab.conversation.validity import Finding, check
from compaction_lab.conversation.wire import from_openai, to_openai, tools_from_openai
from compaction_lab.errors import SummarizerMissing
from compaction_lab.importers.lab import message_from_lab, message_to_lab
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.memory import decode, encode
from compaction_lab.strategies.registry import PlacedStrategy

OpenAIMessage = Mapping[str, JSON]
Summarizer = Callable[[list[dict[str, JSON]]], str]
MEMORY_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a strategy made of a message list.

    Parameters
    ----------
    messages
        The messages to send, as OpenAI chat dicts; untouched ones are equal to the caller's, unknown keys included.
    tokens_before, tokens_after
        Tokens of the request before and after, tools and overhead included.
    edits
        What changed; keys are ``(index, rank)`` in the conversation, rank 0 being message ``index``.
    findings
        Which validity rules ``messages`` breaks, orphaned results of the input included.
    memory
        JSON to hand back with the next list, which may extend this call's list or ``messages``.
    """

    messages: list[dict[str, JSON]]
    tokens_before: int
    tokens_after: int
    edits: tuple[Edit, ...]
    findings: list[Finding]
    memory: JSON

    @property
    def changed(self) -> bool:
        """Whether the strategy changed anything at this occasion."""
        return bool(self.edits)


def compact(
    messages: Sequence[OpenAIMessage],
    s: PlacedStrategy,
    tools: Sequence[Mapping[str, JSON]] | None = None,
    tokenizer: str = "o200k_base",
    summarizer: Summarizer | None = None,
    memory: JSON = None,
) -> Compacted:
    """Let a strategy act once on a message list, at the occasion of its own placement.

    Parameters
    ----------
    messages
        OpenAI chat-format dicts, taken as they stand and left untouched; unknown keys are kept.
    s
        A strategy from :func:`compaction_lab.strategy`.
    tools
        OpenAI tool definitions; counted, never changed.
    tokenizer
        Counting rule, unless the strategy has its own.
    summarizer
        Receives a list of messages and returns the summary's text.
    memory
        ``memory`` of the call before. When ``messages`` extends that call's list or its result, the strategy goes on
        from there; any other list starts afresh.

    Raises
    ------
    SummarizerMissing
        The strategy asked for a summary and no summarizer was given.
    TranscriptError
        A message is not one; the error names its place and field.

    Examples
    --------
    >>> from compaction_lab import strategy
    >>> log = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}] * 3
    >>> compact(log, strategy("sliding_window", keep_last=1), tokenizer="characters").messages[0]["content"]
    'hi'
    """
    parsed = [from_openai(message, f"messages[{at}]", keep_media=True) for at, message in enumerate(messages)]
    definitions = tools_from_openai(cast("JSON", list(tools))) if tools else ()
    run_counter = TokenCounter(find_tokenizer(tokenizer))
    rule = run_counter if s.tokenizer is None else counting_rule(s.tokenizer)
    overhead = run_counter.tools(definitions) + run_counter.request_overhead
    author = _author(s)
    past = _recall(memory, messages, parsed, author)
    slot = Slot(s.run, s.when, s.history, rule, rule.tools(definitions) + rule.request_overhead)
    arm = ArmRun(past.log, (slot,), definitions)
    arm.resume(Context(past.log, past.size) if s.history == "view" else past.result, past.strategy, past.result)
    before = past.given.advance(len(past.log))
    after = _occur(arm.occasion(s.when, len(past.log)), summarizer)
    own = dict(zip(before.keys, messages, strict=True))
    out = [
        dict(own[placed.key]) if placed.message is before.get(placed.key) else to_openai(placed.message)
        for placed in after.entries()
    ]
    return Compacted(
        out,
        before.tokens(run_counter) + overhead,
        after.tokens(run_counter) + overhead,
        tuple(edit for firing in arm.firings for edit in firing.edits),
        check(after.messages),
        _remember(messages, out, before, after, arm.remembered(0)) | {"author": author},
    )


@dataclass(frozen=True, slots=True)
class _Past:
    """The conversation as known: its log, how much of it is old, where the list stands in it, what was made of it.

    The log holds every message that was ever given, so that a view starts from the same history whichever of the two
    lists was extended.
    """

    log: Log
    size: int
    given: Context
    result: Context
    strategy: object = None


def _author(s: PlacedStrategy) -> str:
    """Return what tells one strategy's memory from another's."""
    text = json.dumps(
        [s.name, s.semantics, dict(s.parameters)], sort_keys=True, default=lambda value: type(value).__name__
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _recall(memory: JSON, messages: Sequence[OpenAIMessage], parsed: list[Message], author: str) -> _Past:
    """Find out which earlier list this one extends, and rebuild the log behind it; any other list starts afresh."""
    if isinstance(memory, dict) and memory.get("format") == MEMORY_FORMAT and memory.get("author") == author:
        for name in ("given", "result"):
            keys = [_key(key) for key in cast("list[JSON]", memory[name])]
            if len(messages) >= len(keys) and _digest(messages[: len(keys)]) == memory[f"{name}_sha256"]:
                return _continued(memory, parsed, name, keys)
    log = Log(parsed)
    return _Past(log, 0, Context(log), Context(log))


def _continued(memory: dict[str, JSON], parsed: list[Message], name: str, keys: list[Key]) -> _Past:
    made = _by_key(memory[f"{name}_made"])
    originals = {key: message for key, message in zip(keys, parsed, strict=False) if key not in made}
    originals |= _by_key(memory["hidden"])
    size = cast("int", memory["size"])
    log = Log([originals[index, 0] for index in range(size)] + parsed[len(keys) :])

    def standing(places: list[Key], made: dict[Key, Message]) -> Context:
        shown = (Placed(key, made[key] if key in made else log.messages[key[0]]) for key in places)
        return Context.of(log, size, shown)

    result = standing([_key(key) for key in cast("list[JSON]", memory["result"])], _by_key(memory["result_made"]))
    return _Past(log, size, standing(keys, made), result, decode(memory["strategy"]))


def _remember(
    messages: Sequence[OpenAIMessage], out: Sequence[OpenAIMessage], before: Context, after: Context, strategy: object
) -> dict[str, JSON]:
    """Return what the next call needs: where everything stands, and the messages that its list may not hold."""
    log = after.log
    made, made_before = _made(after), _made(before)
    standing = (set(after.keys) - made.keys()) & (set(before.keys) - made_before.keys())
    return {
        "format": MEMORY_FORMAT,
        "size": len(log),
        "given": [list(key) for key in before.keys],
        "given_sha256": _digest(messages),
        "given_made": _to_json(made_before),
        "result": [list(key) for key in after.keys],
        "result_sha256": _digest(out),
        "result_made": _to_json(made),
        "hidden": _to_json({(at, 0): log.messages[at] for at in range(len(log)) if (at, 0) not in standing}),
        "strategy": encode(strategy),
    }


def _made(context: Context) -> dict[Key, Message]:
    """Return what stands in a context and is not a message of the log."""
    messages = context.log.messages
    return {
        placed.key: placed.message
        for placed in context.entries()
        if placed.key[1] or placed.message is not messages[placed.key[0]]
    }


def _to_json(messages: Mapping[Key, Message]) -> JSON:
    return {f"{index} {rank}": cast("JSON", message_to_lab(message)) for (index, rank), message in messages.items()}


def _by_key(value: JSON) -> dict[Key, Message]:
    found = {}
    for text, message in cast("dict[str, JSON]", value).items():
        index, rank = text.split()
        found[int(index), int(rank)] = message_from_lab(message)
    return found


def _key(value: JSON) -> Key:
    index, rank = cast("list[int]", value)
    return (index, rank)


def _digest(messages: Sequence[OpenAIMessage]) -> str:
    text = json.dumps([dict(message) for message in messages], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _occur(occurring: Occurring, summarizer: Summarizer | None) -> Context:
    try:
        requests = next(occurring)
        while True:
            requests = occurring.send(tuple(_reply(request, summarizer) for request in requests))
    except StopIteration as end:
        context: Context = end.value
        return context


def _reply(request: ModelRequest, summarizer: Summarizer | None) -> ModelReply:
    if summarizer is None:
        msg = "the strategy asks for a summary; give summarizer=, a callable from a list of messages to text"
        raise SummarizerMissing(msg)
    return ModelReply(summarizer([to_openai(message) for message in request.messages]))
