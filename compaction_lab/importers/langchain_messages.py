"""LangChain messages: serialised (``lc``, ``kwargs``), dumped (``type`` human, ai, tool) or as role and text pairs.

Semantics: langchain-core ``load/dump.py`` and ``messages/utils.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message, Role, ToolCall
from compaction_lab.conversation.wire_calls import read_calls
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.content import arguments_text, content_parts, is_one_of, with_usage
from compaction_lab.importers.fields import Fields

PROVIDER = "langchain"
_ROLES: dict[str, Role] = {
    "human": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "user": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "assistant": "assistant",
    "system": "system",
    "systemmessage": "system",
    "developer": "developer",
    "tool": "tool",
    "toolmessage": "tool",
    "function": "tool",
}
_IN_CONTENT = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Blocks that state a call which ``tool_calls`` states too."""


def is_langchain(value: JSON) -> bool:
    """Whether a value is a message in one of LangChain's spellings and in no other interface's."""
    if isinstance(value, dict):
        kind = value.get("type")
        return "kwargs" in value or (isinstance(kind, str) and kind.lower() in _ROLES and "content" in value)
    return isinstance(value, list) and _is_pair(value)


def message_from_langchain(value: JSON, where: str, warnings: Counter[str], *, keep_media: bool = False) -> Message:
    """Return the message that a LangChain message states, with the usage it carries.

    Raises
    ------
    TranscriptError
        If it is not a message.
    """
    if isinstance(value, list) and _is_pair(value):
        value = {"type": value[0], "content": value[1]}
    outer = Fields.of(value, where)
    fields = outer
    kind = outer.text("role") or outer.text("type")
    if "kwargs" in outer.object:
        fields = Fields(outer.mapping("kwargs"), f"{where}.kwargs")
        path = outer.items("id")
        kind = fields.text("type") or (path[-1] if path and isinstance(path[-1], str) else "")
    role = _ROLES.get(kind.lower())
    if role is None:
        raise TranscriptError(
            f"{where}: found a message of type {describe(kind)}, expected human, ai, system or tool; correct it."
        )
    content = fields.object.get("content")
    if isinstance(content, list) and role == "assistant":
        content = [b for b in content if not (isinstance(b, dict) and is_one_of(b.get("type"), _IN_CONTENT))]
    message = Message(
        role,
        content_parts(content, f"{where}.content", provider=PROVIDER, keep_media=keep_media),
        _calls(fields) if role == "assistant" else (),
        call_id=fields.text("tool_call_id") if role == "tool" else "",
        is_error=fields.object.get("status") == "error",
        id=fields.text("id") if isinstance(fields.object.get("id"), str) else "",
    )
    model = fields.mapping("response_metadata").get("model_name")
    message = replace(message, model=model if isinstance(model, str) else "")
    return with_usage(message, fields.object.get("usage_metadata"), "langsmith", warnings)


def _calls(fields: Fields) -> tuple[ToolCall, ...]:
    found = []
    for at, item in enumerate(fields.items("tool_calls")):
        call = Fields.of(item, f"{fields.where}.tool_calls[{at}]")
        if "function" in call.object:
            return tuple(read_calls({"tool_calls": fields.object["tool_calls"]}, fields.where)[0])
        found.append(ToolCall(call.text("id"), call.text("name"), arguments_text(call.object.get("args"))))
    for at, item in enumerate(fields.items("invalid_tool_calls")):
        call = Fields.of(item, f"{fields.where}.invalid_tool_calls[{at}]")
        found.append(ToolCall(call.text("id"), call.text("name"), arguments_text(call.object.get("args"))))
    recorded = fields.mapping("additional_kwargs").get("tool_calls")
    if not found and recorded:
        found = read_calls({"tool_calls": recorded}, f"{fields.where}.additional_kwargs")[0]
    if not found and isinstance(blocks := fields.object.get("content"), list):
        uses = [Fields(b, fields.where) for b in blocks if isinstance(b, dict) and b.get("type") == "tool_use"]
        found = [ToolCall(u.text("id"), u.text("name"), arguments_text(u.object.get("input"))) for u in uses]
    return tuple(found)


def _is_pair(value: list[JSON]) -> bool:
    return len(value) == 2 and isinstance(value[0], str) and value[0].lower() in _ROLES  # noqa: PLR2004
