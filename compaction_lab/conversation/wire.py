"""OpenAI chat-format mappings to messages and back without loss; no files and no checks between messages.

What a message cannot say (content as a list of one part, arguments as an object, keys inside a part) is kept as a small
*shape* in ``extra`` and used again on the way back wherever the part or call it describes is still of that type.
The format is that of the OpenAI API reference, "Chat completions", with the additions other providers make to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from compaction_lab.conversation.json_values import Object, canonical_json, describe
from compaction_lab.conversation.messages import JSON, ROLES, Message, Part, Reasoning, Role, Text, ToolCall
from compaction_lab.conversation.wire_calls import read_calls, tools_from_openai, tools_to_openai, write_call
from compaction_lab.conversation.wire_parts import read_part, write_part
from compaction_lab.errors import TranscriptError

__all__ = ["SHAPE", "canonical_json", "from_openai", "to_openai", "tools_from_openai", "tools_to_openai"]

SHAPE = "compaction_lab.shape"
"""Key of ``Message.extra`` under which the wire shape is kept; it is never written to the wire."""

_REASONING_KEYS = ("reasoning_content", "reasoning")


def from_openai(mapping: Mapping[str, JSON] | JSON, where: str = "message", *, keep_media: bool = False) -> Message:
    """Return the message that an OpenAI chat-format mapping states.

    Parameters
    ----------
    mapping
        ``role``, ``content`` (null, text or parts), ``tool_calls``, ``tool_call_id`` and so on; unknown keys are kept.
    where
        Where the mapping stands, for error messages.
    keep_media
        Keep the base64 of images, sounds and files instead of their type and size alone.

    Raises
    ------
    TranscriptError
        For what is not an object, an unknown role, or a field of a type the format does not have.

    Examples
    --------
    >>> message = from_openai({"role": "user", "content": [{"type": "text", "text": "hi"}]})
    >>> message.text, to_openai(message)["content"]
    ('hi', [{'type': 'text', 'text': 'hi'}])
    """
    if not isinstance(mapping, Mapping):
        raise TranscriptError(
            f"{where}: found {describe(mapping)}, expected a message object such as "
            '{"role": "user", "content": "..."}; remove the entry or write it as an object.'
        )
    extra = dict(mapping)
    extra.pop(SHAPE, None)
    shape: Object = {}
    role = _role(extra, shape, where)
    parts, part_shapes = _reasoning(extra)
    _content(extra, shape, where, parts, part_shapes, keep_media=keep_media)
    calls, call_shapes = read_calls(extra, where)
    call_id = _text_field(extra, "tool_call_id", where)
    name = _text_field(extra, "name", where)
    wire_id = extra.get("id")
    message_id = cast("str", extra.pop("id")) if isinstance(wire_id, str) and wire_id else ""
    if any(part_shapes):
        shape["parts"] = list(part_shapes)
    if any(call_shapes):
        shape["calls"] = list(call_shapes)
    message = Message(role, tuple(parts), tuple(calls), call_id, name=name, id=message_id, extra=extra)
    if shape and to_openai(message) != mapping:
        extra[SHAPE] = shape
    return message


def to_openai(message: Message) -> Object:
    """Return the OpenAI chat-format mapping of a message, in the shape it was read in.

    Media whose payload was dropped get an empty URL and a ``media`` object with type and size.
    """
    shape = cast("Object", message.extra.get(SHAPE) or {})
    out: Object = {"role": shape.get("role", message.role) if message.role == "tool" else message.role}
    _write_content(out, message.parts, shape)
    _write_calls(out, message.calls, shape)
    for key, value in (("tool_call_id", message.call_id), ("name", message.name), ("id", message.id)):
        if value:
            out[key] = value
    for key, kept in message.extra.items():
        if key != SHAPE:
            out.setdefault(key, kept)
    return out


def _role(extra: Object, shape: Object, where: str) -> Role:
    if "role" not in extra:
        raise TranscriptError(
            f"{where}: field 'role' is missing, expected one of {', '.join(ROLES)}; "
            f"the object has {', '.join(map(repr, list(extra)[:8])) or 'no keys'}."
        )
    role = extra.pop("role")
    if role == "function":
        shape["role"] = "function"
        return "tool"
    if role not in ROLES:
        raise TranscriptError(
            f"{where}: field 'role' is {describe(role)}, expected one of {', '.join(ROLES)}; "
            "rename the role, or say which format the file has."
        )
    return role


def _text_field(extra: Object, key: str, where: str) -> str:
    value = extra.get(key)
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise TranscriptError(f"{where}: field {key!r} is {describe(value)}, expected text; write it in quotes.")
    del extra[key]
    return value


def _reasoning(extra: Object) -> tuple[list[Part], list[Object]]:
    for key in _REASONING_KEYS:
        if isinstance(extra.get(key), str):
            return [Reasoning(cast("str", extra.pop(key)))], [{"at": key}]
    return [], []


def _content(
    extra: Object, shape: Object, where: str, parts: list[Part], shapes: list[Object], *, keep_media: bool
) -> None:
    if "content" not in extra:
        shape["content"] = "absent"
    else:
        content = extra.pop("content")
        if isinstance(content, str):
            parts.append(Text(content))
            shapes.append({})
        elif isinstance(content, list):
            if len(content) <= 1:
                shape["content"] = "list"
            for index, item in enumerate(content):
                part, part_shape = read_part(item, f"{where}.content[{index}]", keep_media=keep_media)
                parts.append(part)
                shapes.append(part_shape)
        elif content is not None:
            raise TranscriptError(
                f"{where}: field 'content' is {describe(content)}, expected text, a list of parts or null; "
                "write structured content as JSON text."
            )
    if isinstance(extra.get("refusal"), str):
        parts.append(Text(cast("str", extra.pop("refusal"))))
        shapes.append({"at": "refusal"})


def _shapes(shape: Object, key: str, length: int) -> list[Object]:
    """Return one shape an item; none apply once the number of items changed."""
    found = shape.get(key)
    if isinstance(found, list) and len(found) == length:
        return [item if isinstance(item, dict) else {} for item in found]
    return [{} for _ in range(length)]


def _write_content(out: Object, parts: Sequence[Part], shape: Object) -> None:
    body: list[JSON] = []
    plain = True
    for index, (part, part_shape) in enumerate(zip(parts, _shapes(shape, "parts", len(parts)), strict=True)):
        place = part_shape.get("at")
        if isinstance(part, Reasoning) and isinstance(place, str) and place in _REASONING_KEYS:
            out[place] = part.text
        elif isinstance(part, Reasoning) and index == 0 and not (part_shape or part.opaque or part.id):
            out["reasoning_content"] = part.text
        elif isinstance(part, Text) and place == "refusal":
            out["refusal"] = part.text
        else:
            plain = plain and isinstance(part, Text) and not part_shape
            body.append(write_part(part, part_shape))
    as_list = shape.get("content") == "list"
    if len(body) == 1 and plain and not as_list:
        out["content"] = next(part.text for part in parts if isinstance(part, Text))
    elif body or as_list:
        out["content"] = body
    elif shape.get("content") != "absent":
        out["content"] = None


def _write_calls(out: Object, calls: Sequence[ToolCall], shape: Object) -> None:
    listed: list[JSON] = []
    for call, call_shape in zip(calls, _shapes(shape, "calls", len(calls)), strict=True):
        written = write_call(call, call_shape)
        if call_shape.get("at") == "function_call":
            out["function_call"] = written["function"]
        else:
            listed.append(written)
    if listed:
        out["tool_calls"] = listed
