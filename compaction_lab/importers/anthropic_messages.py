"""Anthropic messages to the lab's: tool results leave their user message, system text leaves the request's envelope.

Semantics: the Messages API reference (content blocks) and its context-management beta (``compaction`` blocks).
"""

from __future__ import annotations

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message, Part, Role, Text, ToolCall
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.content import arguments_text, content_parts, result_parts
from compaction_lab.importers.fields import Fields

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
PROVIDER = "anthropic"
BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "compaction"})
"""Types of content blocks that only this interface has."""


def system_message(value: JSON, where: str) -> list[Message]:
    """Return the system message of a request, if it has one."""
    parts = content_parts(value, where, provider=PROVIDER)
    return [Message("system", parts)] if parts else []


def messages_from_anthropic(value: JSON, where: str, *, keep_media: bool = False) -> list[Message]:
    """Return the messages that one Anthropic message states.

    A user message becomes a tool message a result and then what the user says, if anything; a ``compaction`` block
    becomes a summary of its own before the rest.

    Raises
    ------
    TranscriptError
        If it is not a message.
    """
    fields = Fields.of(value, where)
    role = _ROLES.get(fields.text("role"))
    if role is None:
        raise TranscriptError(
            f"{where}: field 'role' is {describe(fields.object.get('role'))}, expected user or assistant; correct it."
        )
    content = fields.object.get("content")
    blocks = content if isinstance(content, list) else [content] if content else []
    results: list[Message] = []
    rest: list[Part] = []
    calls: list[ToolCall] = []
    summaries: list[Message] = []
    for at, block in enumerate(blocks):
        place = f"{where}.content[{at}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            results.append(_result(Fields.of(block, place), keep_media=keep_media))
        elif kind == "tool_use":
            item = Fields.of(block, place)
            calls.append(ToolCall(item.text("id"), item.text("name"), arguments_text(item.object.get("input"))))
        elif kind == "compaction":
            summaries.append(Message("assistant", (Text(Fields.of(block, place).text("content")),), source="summary"))
        else:
            rest.extend(content_parts(block, place, provider=PROVIDER, keep_media=keep_media))
    messages = [*summaries, *results]
    if rest or calls or not messages:
        messages.append(Message(role, tuple(rest), tuple(calls), id=fields.text("id")))
    return messages


def _result(item: Fields, *, keep_media: bool) -> Message:
    parts = result_parts(item.object.get("content"), f"{item.where}.content", provider=PROVIDER, keep_media=keep_media)
    return Message("tool", parts, call_id=item.text("tool_use_id"), is_error=item.flag("is_error"))
