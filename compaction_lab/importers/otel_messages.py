"""Messages in the manner of the OpenTelemetry GenAI conventions: a role and a list of parts.

Semantics: semantic conventions 1.37 and later, ``gen-ai-input-messages.json`` and ``gen-ai-output-messages.json``.
"""

from __future__ import annotations

from dataclasses import replace

from compaction_lab.conversation.json_values import canonical_json, describe
from compaction_lab.conversation.media import MediaKind, media_from_url
from compaction_lab.conversation.messages import JSON, Message, Opaque, Part, Reasoning, Role, Text, ToolCall
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.content import arguments_text, result_parts
from compaction_lab.importers.fields import Fields

PROVIDER = "otel"
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
}
_MODALITIES: dict[str, MediaKind] = {"image": "image", "audio": "audio"}


def messages_from_parts(value: JSON, where: str, *, keep_media: bool = False) -> list[Message]:
    """Return the messages that one message with parts states: a tool message a result, then the rest.

    Raises
    ------
    TranscriptError
        If it is not such a message.
    """
    fields = Fields.of(value, where)
    role = _ROLES.get(fields.text("role"))
    if role is None:
        raise TranscriptError(
            f"{where}: field 'role' is {describe(fields.object.get('role'))}, expected one of {', '.join(_ROLES)}; "
            "correct it."
        )
    results: list[Message] = []
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for at, item in enumerate(fields.items("parts")):
        part = Fields.of(item, f"{where}.parts[{at}]")
        kind = part.text("type")
        if kind == "tool_call":
            calls.append(ToolCall(part.text("id"), part.text("name"), arguments_text(part.object.get("arguments"))))
        elif kind == "tool_call_response":
            answer = part.object.get("response", part.object.get("result"))
            found = result_parts(answer, part.where, provider=PROVIDER, keep_media=keep_media)
            results.append(Message("tool", found, call_id=part.text("id")))
        else:
            parts.append(_part(part, kind, keep=keep_media))
    message = Message(role, tuple(parts), tuple(calls), name=fields.text("name"))
    if role == "tool" and results:
        # A tool message with loose text beside its result: the text is part of what the tool said.
        return [*results[:-1], replace(results[-1], parts=(*results[-1].parts, *parts))]
    return [*results, message] if parts or calls or not results else results


def instructions_message(value: JSON, where: str) -> list[Message]:
    """Return the system message of ``gen_ai.system_instructions``: text, or a list of parts."""
    if isinstance(value, str):
        return [Message("system", (Text(value),))] if value else []
    if not isinstance(value, list) or not value:
        return []
    parts = [_part(item := Fields.of(each, where), item.text("type"), keep=False) for each in value]
    return [Message("system", tuple(parts))]


def _part(item: Fields, kind: str, *, keep: bool) -> Part:
    text = item.object.get("content", item.object.get("text"))
    if kind in {"text", ""} and isinstance(text, str):
        return Text(text)
    if kind == "reasoning" and isinstance(text, str):
        return Reasoning(text)
    if kind in {"blob", "uri", "file"}:
        mime = item.text("mime_type")
        media_kind = _MODALITIES.get(item.text("modality") or mime.split("/", maxsplit=1)[0], "file")
        address = item.text("uri")
        if kind == "blob" and isinstance(text or item.object.get("data"), str):
            address = f"data:{mime};base64,{text or item.object.get('data')}"
        if address:
            return media_from_url(media_kind, address, keep=keep)
    return Opaque(PROVIDER, canonical_json(item.object))
