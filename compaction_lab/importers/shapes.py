"""Messages in whatever interface's shape a tracing tool wrote them down: told from the value, read by its reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message, ToolDefinition
from compaction_lab.conversation.wire import from_openai, tools_from_openai
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.anthropic_messages import BLOCKS, messages_from_anthropic, system_message
from compaction_lab.importers.content import is_one_of, parsed
from compaction_lab.importers.langchain_messages import is_langchain, message_from_langchain
from compaction_lab.importers.otel_messages import messages_from_parts
from compaction_lab.importers.responses_items import ITEM_TYPES, messages_from_items

_ENVELOPES = ("messages", "input", "output", "contents")


@dataclass(frozen=True, slots=True)
class Spoken:
    """Messages and tools found in a value, and what was odd about them."""

    messages: list[Message] = field(default_factory=list)
    tools: tuple[ToolDefinition, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)


def read_shape(value: JSON, where: str, *, keep_media: bool = False) -> Spoken:
    """Return the messages a value states.

    Parameters
    ----------
    value
        A message, a list of messages, a request or response with them inside, or JSON text of one of these; chat
        completions, Responses items, Anthropic messages, LangChain messages, OpenTelemetry messages.
    where
        Its place, for error messages.
    keep_media
        Keep the payload of images, sounds and files.

    Raises
    ------
    TranscriptError
        If a message is none of these.
    """
    value = parsed(value)
    if isinstance(value, dict):
        return _object(value, where, keep_media=keep_media)
    if not isinstance(value, list):
        raise TranscriptError(f"{where}: found {describe(value)}, expected messages; leave the record out.")
    spoken = Spoken()
    items, tools = _without_tools(value, where)
    if any(isinstance(item, dict) and is_one_of(item.get("type"), ITEM_TYPES) and "role" not in item for item in items):
        spoken.messages.extend(messages_from_items(items, where, keep_media=keep_media))
        return replace(spoken, tools=tools)
    anthropic = any(map(is_anthropic, items))
    for at, item in enumerate(items):
        place = f"{where}[{at}]"
        if isinstance(item, list) and not is_langchain(item):  # LangChain batches: a list of conversations
            spoken.messages.extend(read_shape(item, place, keep_media=keep_media).messages)
        elif is_langchain(item) or (isinstance(item, dict) and "additional_kwargs" in item):
            spoken.messages.append(message_from_langchain(item, place, spoken.warnings, keep_media=keep_media))
        elif isinstance(item, dict) and isinstance(item.get("parts"), list):
            spoken.messages.extend(messages_from_parts(item, place, keep_media=keep_media))
        elif anthropic:
            spoken.messages.extend(messages_from_anthropic(item, place, keep_media=keep_media))
        elif isinstance(item, dict) and item.get("type") == "message" and isinstance(item.get("content"), list):
            spoken.messages.extend(messages_from_items([item], place, keep_media=keep_media))
        else:
            spoken.messages.append(from_openai(item, place, keep_media=keep_media))
    return replace(spoken, tools=tools)


def is_anthropic(value: JSON) -> bool:
    """Whether a message has a content block that only Anthropic's interface has."""
    blocks = value.get("content") if isinstance(value, dict) else None
    if not isinstance(blocks, list) or (isinstance(value, dict) and "tool_calls" in value):
        return False
    return any(isinstance(block, dict) and is_one_of(block.get("type"), BLOCKS) for block in blocks)


def _object(value: dict[str, JSON], where: str, *, keep_media: bool) -> Spoken:
    """Return what stands in a message, or in a request or response with messages inside."""
    tools = tools_from_openai(value.get("tools"), f"{where}.tools") if isinstance(value.get("tools"), list) else ()
    if "choices" in value:
        choices = value["choices"]
        first = choices[0] if isinstance(choices, list) and choices else {}
        inner: JSON = [first["message"]] if isinstance(first, dict) and "message" in first else []
        return read_shape(inner, f"{where}.choices[0].message", keep_media=keep_media)
    if "role" in value or is_langchain(value):
        return replace(read_shape([value], where, keep_media=keep_media), tools=tools)
    if isinstance(value.get("message"), dict):
        return read_shape([value["message"]], f"{where}.message", keep_media=keep_media)
    for key in _ENVELOPES:
        inner = parsed(value.get(key))
        if isinstance(inner, list | dict):
            spoken = read_shape(inner, f"{where}.{key}", keep_media=keep_media)
            opening = [*system_message(value.get("system"), where), *system_message(value.get("instructions"), where)]
            return replace(spoken, messages=[*opening, *spoken.messages], tools=tools or spoken.tools)
        if isinstance(inner, str) and key == "input":
            opening = system_message(value.get("instructions"), where)
            return Spoken([*opening, from_openai({"role": "user", "content": inner}, where)], tools)
    raise TranscriptError(f"{where}: found an object without messages, expected some; leave the record out.")


def _without_tools(items: list[JSON], where: str) -> tuple[list[JSON], tuple[ToolDefinition, ...]]:
    """Take out tool definitions that some tracers write among the messages, as the content of a tool message."""
    kept: list[JSON] = []
    offered: list[JSON] = []
    for item in items:
        content = item.get("content") if isinstance(item, dict) and item.get("role") == "tool" else None
        if isinstance(content, dict) and content.get("type") == "function" and "function" in content:
            offered.append(content)
        else:
            kept.append(item)
    return kept, tools_from_openai(offered, where) if offered else ()
