"""Messages as .NET's chat abstractions hold them: what their contents weigh, and when two of them are the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from compaction_lab.conversation.context import Counter
from compaction_lab.conversation.counting import register_counting
from compaction_lab.conversation.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall
from compaction_lab.conversation.tokens import TokenCounter, Tokenizer

BYTES = "agent_framework_dotnet"
"""The counting rule of a strategy without a tokenizer: a quarter of the payload's bytes, per group of messages."""

_DECODER = json.JSONDecoder()
_LITERALS = {"true": "True", "false": "False", "null": ""}


def calls_tools(message: Message) -> bool:
    """Whether an assistant message holds a function call."""
    return message.role == "assistant" and bool(message.calls)


def is_only_reasoning(message: Message) -> bool:
    """Whether all contents of an assistant message are reasoning; true of one without any contents."""
    return (
        message.role == "assistant" and not message.calls and all(isinstance(part, Reasoning) for part in message.parts)
    )


def is_summary(message: Message) -> bool:
    """Whether an assistant message is marked as a summary."""
    return message.role == "assistant" and message.source == "summary"


def joined_text(message: Message) -> str:
    """Return the text contents, with nothing between them."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def message_bytes(message: Message) -> int:
    """Return the UTF-8 bytes of a message's payload; ids of calls count, roles and names of authors do not."""
    key = (BYTES, "bytes")
    found = message.memo.get(key)
    if isinstance(found, int):
        return found
    total = sum(map(_part_bytes, message.parts)) + sum(map(_call_bytes, message.calls))
    if message.role == "tool":
        total += _utf8(message.call_id)
    message.memo[key] = total
    return total


def group_tokens(messages: Iterable[Message], counter: Counter) -> int:
    """Return the tokens of a group: a quarter of its bytes, or exact ones of its texts and a quarter of the rest."""
    tokenizer = counter.tokenizer if isinstance(counter, TokenCounter) else None
    if tokenizer is None or tokenizer.name in ("characters", "bytes_over_4"):
        return sum(map(message_bytes, messages)) // 4
    return sum(_exact_tokens(message, tokenizer) for message in messages)


@register_counting(BYTES)
def message_tokens(message: Message) -> int:
    """Return the estimate for one message that is a group of its own."""
    return message_bytes(message) // 4


def same_content(message: Message, other: Message) -> bool:
    """Whether the framework takes two messages for one: by ids when both have one, else by role, author, contents."""
    if message is other:
        return True
    if message.id and other.id:
        return message.id == other.id
    return (
        message.role == other.role
        and _author(message) == _author(other)
        and message.call_id == other.call_id
        and message.parts == other.parts
        and [_facts(call) for call in message.calls] == [_facts(call) for call in other.calls]
    )


def _author(message: Message) -> str:
    return "" if message.role == "tool" else message.name


def _facts(call: ToolCall) -> tuple[str, str, dict[str, str]]:
    return call.id, call.name, dict(argument_texts(call))


def _part_bytes(part: Part) -> int:
    match part:
        case Text(text):
            return _utf8(text)
        case Reasoning():
            return _utf8(part.text) + _utf8(part.opaque)
        case Media():
            return (part.byte_size or _utf8(part.payload)) + _utf8(part.mime)
        case Opaque():
            return 0


def _call_bytes(call: ToolCall) -> int:
    return _utf8(call.id) + _utf8(call.name) + sum(_utf8(key) + _utf8(text) for key, text in argument_texts(call))


def _exact_tokens(message: Message, tokenizer: Tokenizer) -> int:
    key = (BYTES, tokenizer.name)
    found = message.memo.get(key)
    if isinstance(found, int):
        return found
    tokens = 0
    result = message.role == "tool" and message.call_id
    if result:
        tokens += message_bytes(message) // 4
    else:
        for part in message.parts:
            if isinstance(part, Text):
                tokens += tokenizer.count(part.text)
            elif isinstance(part, Reasoning):
                tokens += tokenizer.count(part.text) + tokenizer.count(part.opaque)
            else:
                tokens += _part_bytes(part) // 4
    tokens += sum(_call_bytes(call) // 4 for call in message.calls)
    message.memo[key] = tokens
    return tokens


def argument_texts(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Yield a call's arguments by name as .NET prints them: texts bare, ``True``, null as nothing, the rest as written.

    Arguments that are no JSON object were never parsed, so that the call has none.

    Examples
    --------
    >>> list(argument_texts(ToolCall("c", "f", '{"a": "x", "b": true, "c": [1, 2]}')))
    [('a', 'x'), ('b', 'True'), ('c', '[1, 2]')]
    """
    try:
        if not isinstance(json.loads(call.arguments), dict):
            return
    except (ValueError, RecursionError):
        return
    text = call.arguments
    at = text.index("{") + 1
    while True:
        at = _skip(text, at)
        if text[at] == "}":
            return
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        value, end = _DECODER.raw_decode(text, at)
        written = text[at:end]
        yield key, value if isinstance(value, str) else _LITERALS.get(written, written)
        at = end


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n,:":
        at += 1
    return at


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
