"""Semantic Kernel ``ChatHistory``, as .NET and Python serialise it.

A .NET tool message states its result twice, as text and as a result item: the item counts. Semantics: semantic-kernel
1.15 and later (.NET ``ChatMessageContent``, Python ``contents``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.media import media_from_base64, media_from_url
from compaction_lab.conversation.messages import JSON, Message, Part, Role, Text, ToolCall
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, content_parts, result_parts, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.markers import has_key, has_value
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

PROVIDER = "semantic_kernel"
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_KINDS = {
    "TextContent": "text",
    "FunctionCallContent": "function_call",
    "FunctionResultContent": "function_result",
    "ImageContent": "image",
}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a chat history."""
    del path
    keys = outline(head).keys
    if {"Role", "Items"} <= keys or ("Role" in keys and has_key(head, "Label")):
        return 0.95
    chat = "messages" in keys or {"role", "items"} <= keys
    return 0.9 if chat and has_value(head, "content_type", "message", "text", "function_call") else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a line or, for a document, the whole of it."""
    if outline(source.head()).several:
        yield from source.lines()
    else:
        yield source.document()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation.

    Raises
    ------
    TranscriptError
        If a message is not one.
    """
    value = record.value()
    envelope = value if isinstance(value, dict) else {}
    listed = envelope.get("messages", envelope.get("Messages")) if isinstance(value, dict) else value
    if not isinstance(listed, list):
        record.refuse("messages", f"found {describe(listed)}", "a list of messages", "serialise the whole ChatHistory")
    warnings: Counter[str] = Counter()
    messages: list[Message] = []
    for at, item in enumerate(listed):
        messages.extend(_messages(Fields.of(item, record.at(f"messages[{at}]")), warnings, keep=record.keep_media))
    opening = envelope.get("system_message")
    if isinstance(opening, str) and opening and not any(m.role == "system" for m in messages):
        messages.insert(0, Message("system", (Text(opening),)))
    yield assemble(record, messages, format_name=IMPORTER.name, warnings=warnings, accept_orphans=True)


def _messages(fields: Fields, warnings: Counter[str], *, keep: bool) -> list[Message]:
    stated = _either(fields, "role")
    label = stated.get("Label", stated.get("label")) if isinstance(stated, dict) else stated
    role = _ROLES.get(label.lower()) if isinstance(label, str) else None
    if role is None:
        raise TranscriptError(
            f"{fields.where}: the role is {describe(label)}, expected one of {', '.join(_ROLES)}; correct it."
        )
    parts: list[Part] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    items = _either(fields, "items")
    for at, value in enumerate(items if isinstance(items, list) else []):
        item = Fields.of(value, f"{fields.where}.items[{at}]")
        stated_kind = item.text("$type") or item.text("content_type")
        kind = _KINDS.get(stated_kind, stated_kind)
        if kind == "function_call":
            arguments = arguments_text(_either(item, "arguments"))
            calls.append(ToolCall(_string(item, "id"), _name(item), arguments))
        elif kind == "function_result":
            answer = _either(item, "result")
            found = result_parts(answer, item.where, provider=PROVIDER, keep_media=keep)
            call_id = _string(item, "callid") or _string(item, "id")
            results.append(Message("tool", found, call_id=call_id, name=_name(item)))
        else:
            parts.append(_part(item, kind, keep=keep))
    if not parts and not calls and not results:
        parts.extend(content_parts(_either(fields, "content"), fields.where, provider=PROVIDER))
    if results or role == "tool":
        metadata_id = _string(Fields(fields.mapping("Metadata"), fields.where), "chatcompletionsfunctiontoolcallid")
        return results or [Message("tool", tuple(parts), call_id=metadata_id)]
    metadata = _either(fields, "metadata")
    usage = _either(Fields(metadata, fields.where), "usage") if isinstance(metadata, dict) else None
    message = Message(
        role, tuple(parts), tuple(calls), model=_string(fields, "modelid") or _string(fields, "ai_model_id")
    )
    return [with_usage(message, _usage(usage), "openai_chat", warnings) if role == "assistant" else message]


def _either(fields: Fields, key: str) -> JSON:
    """Return a field whose name .NET writes with capitals and Python without."""
    return next((value for name, value in fields.object.items() if name.lower() == key), None)


def _string(fields: Fields, key: str) -> str:
    value = _either(fields, key)
    return value if isinstance(value, str) else ""


def _name(item: Fields) -> str:
    plugin = _string(item, "pluginname") or _string(item, "plugin_name")
    function = _string(item, "functionname") or _string(item, "function_name")
    return _string(item, "name") or (f"{plugin}-{function}" if plugin else function)


def _part(item: Fields, kind: str, *, keep: bool) -> Part:
    if kind == "image":
        mime, data = _string(item, "mimetype") or _string(item, "mime_type"), _string(item, "data")
        address = _string(item, "datauri") or _string(item, "data_uri") or _string(item, "uri")
        if data and not address:
            return media_from_base64("image", mime, data, keep=keep)
        return media_from_url("image", address, keep=keep)
    text = _either(item, "text")
    if isinstance(text, str):
        return Text(text)
    return content_parts(item.object, item.where, provider=PROVIDER, keep_media=keep)[0]


def _usage(value: JSON) -> JSON:
    """Return usage under the names of the chat completions interface, which .NET writes in its own."""
    if not isinstance(value, dict):
        return None
    names = {"prompttokens": "prompt_tokens", "inputtokencount": "prompt_tokens", "inputtokens": "prompt_tokens"}
    names |= {
        "completiontokens": "completion_tokens",
        "outputtokencount": "completion_tokens",
        "outputtokens": "completion_tokens",
        "totaltokens": "total_tokens",
        "totaltokencount": "total_tokens",
    }
    return {names.get(key.lower(), key): number for key, number in value.items()}


IMPORTER = Importer("semantic_kernel", "Semantic Kernel ChatHistory (.NET and Python)", sniff, records, read)
