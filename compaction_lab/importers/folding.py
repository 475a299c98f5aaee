"""Model calls that each repeat the conversation so far, folded into the conversations they were.

A call belongs to the conversation it continues: the one whose every message it repeats, or whose response it names, or
whose open call it answers. Within a conversation that the log names, a call that repeats only some of it after its last
response shows a compaction; what it sends beside the messages known is the summary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from compaction_lab.conversation.messages import Message, ToolDefinition
from compaction_lab.conversation.pairing import Pairing
from compaction_lab.conversation.transcript import RecordedCompaction

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One model call of a log.

    Parameters
    ----------
    sent, received
        Messages of the request and the response.
    tools
        Offered in the request.
    conversation
        Name of the conversation (or trace) in the log; empty when it has none, then only whole repetition joins calls.
    id, continues
        Of the response, and of the response whose history the provider kept.
    stateful
        Whether the log names the conversation as the provider's: user messages alone then continue it.
    """

    sent: Sequence[Message]
    received: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    conversation: str = ""
    id: str = ""
    continues: str = ""
    stateful: bool = False


@dataclass(slots=True)
class Conversation:
    """Messages of the calls folded so far; ``mark`` is a number that equal conversations share."""

    name: str
    messages: list[Message] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    tools: tuple[ToolDefinition, ...] = ()
    compactions: list[RecordedCompaction] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    responses: set[str] = field(default_factory=set)
    pairing: Pairing = field(default_factory=Pairing)
    mark: int = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Append messages."""
        for message in messages:
            key = _key(message)
            self.messages.append(message)
            self.keys.append(key)
            self.pairing.append(message)
            self.mark = hash((self.mark, key))


def fold(exchanges: Iterable[Exchange]) -> list[Conversation]:
    """Return the conversations of a log's calls, in the order of their first call.

    Parameters
    ----------
    exchanges
        In the order of the calls. Two with one ``id`` are one call written twice.
    """
    conversations: list[Conversation] = []
    ends: dict[int, list[Conversation]] = {}
    seen: set[str] = set()
    for exchange in exchanges:
        if exchange.id and exchange.id in seen:
            continue
        seen.add(exchange.id)
        keys = [_key(message) for message in exchange.sent]
        found = _repeated(keys, ends)
        if found is not None:
            found.add(exchange.sent[len(found.keys) :])
        elif (found := _continued(exchange, keys, conversations)) is None:
            found = Conversation(exchange.conversation)
            conversations.append(found)
            if exchange.continues:
                found.warnings["missing_history"] += 1
            found.add(exchange.sent)
        found.add(exchange.received)
        found.tools = tuple(exchange.tools) or found.tools
        found.responses.add(exchange.id)
        ends.setdefault(found.mark, []).append(found)
    return conversations


def _repeated(keys: list[Key], ends: dict[int, list[Conversation]]) -> Conversation | None:
    """Return the longest conversation that the keys begin with."""
    chain = _chain(keys)
    for length in range(len(keys), 0, -1):
        for conversation in reversed(ends.get(chain[length], [])):
            if len(conversation.keys) == length and conversation.keys == keys[:length]:
                return conversation
    return None


def _continued(exchange: Exchange, keys: list[Key], conversations: list[Conversation]) -> Conversation | None:
    """Append an exchange that does not repeat the whole of a conversation to the one it continues all the same."""
    news = [message for message in exchange.sent if message.role not in {"system", "developer"}]
    for conversation in reversed(conversations):
        same = bool(exchange.conversation) and conversation.name == exchange.conversation
        if exchange.continues:
            if exchange.continues not in conversation.responses:
                continue
        elif news and news[0].role == "tool":
            if not (same or not exchange.conversation) or not conversation.pairing.is_open(news[0].call_id):
                continue
        elif same and conversation.keys[-1] in keys:
            _compact(conversation, exchange.sent, keys)
            return conversation
        elif not (same and exchange.stateful and news) or any(message.role != "user" for message in news):
            continue
        # The provider kept the history: only what is new was sent, the instructions apart.
        conversation.add(news)
        return conversation
    return None


def _compact(conversation: Conversation, sent: Sequence[Message], keys: list[Key]) -> None:
    last = len(keys) - 1 - keys[::-1].index(conversation.keys[-1])
    known = set(conversation.keys)
    position = len(conversation.messages)
    fresh = [message for message, key in zip(sent[:last], keys, strict=False) if key not in known]
    conversation.compactions.append(RecordedCompaction(position, "history_rewritten"))
    conversation.add(replace(message, source="summary") for message in fresh)
    conversation.add(sent[last + 1 :])


def _chain(keys: Sequence[Key]) -> list[int]:
    """Return a number for each prefix of the keys, equal for equal prefixes."""
    chain = [0]
    for key in keys:
        chain.append(hash((chain[-1], key)))
    return chain


def _key(message: Message) -> Key:
    """Return what stays the same of a message when it is sent again: not its reasoning, ids or spelling of JSON."""
    role = "system" if message.role == "developer" else message.role
    return (
        role,
        message.text,
        tuple((call.id, call.name, _spelled(call.arguments)) for call in message.calls),
        message.call_id,
    )


def _spelled(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
