"""OpenAI chat-format mappings to messages and back without loss; no files and no checks between messages.

What a message cannot say (content as a list of one part, arguments as an object, keys inside a part) is kept as a small
*shape* in ``extra`` and used again on the way back wherever the part or call it describes is still of that type.
The format is that of the OpenAI API reference, "Chat completions", with the additions other providers make to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from compaction_lab.conversation.media import MediaKind, media_from_base64, media_from_url
from compaction_lab.conversation.messages import (
    JSON,
    ROLES,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolDefinition,
)
from compaction_lab.errors import TranscriptError

SHAPE = "compaction_lab.shape"
"""Key of ``Message.extra`` under which the wire shape is kept; it is never written to the wire."""

Object = dict[str, JSON]

_SHOWN_CHARACTERS = 40
_REASONING_KEYS = ("reasoning_content", "reasoning")
_TEXT_TYPES = ("text", "input_text", "output_text")
_MEDIA_KEYS = {"image": "image_url", "audio": "input_audio", "file": "file"}
_PAYLOAD_KEYS = {"image_url": "url", "input_audio": "data", "file": "file_data"}
_MEDIA_FACTS = ("mime", "byte_size", "width", "height")
_OPAQUE = "compaction_lab.opaque"


def canonical_json(value: JSON) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, characters unescaped."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def describe(value: object) -> str:
    """Return a short description of a value found in JSON, for messages of errors."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, str):
        shown = value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "..."
        return f"the text {shown.encode('utf-8', 'backslashreplace').decode()!r}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, Sequence) else f"a {type(value).__name__}"


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
    calls, call_shapes = _calls(extra, where)
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


def tools_from_openai(definitions: JSON, where: str = "tools") -> tuple[ToolDefinition, ...]:
    """Return the tools of a request's ``tools`` (or legacy ``functions``) list.

    Raises
    ------
    TranscriptError
        For what is not a list of objects that name their tool.
    """
    if definitions is None:
        return ()
    if not isinstance(definitions, list):
        raise TranscriptError(f"{where}: found {describe(definitions)}, expected a list of tools; leave the field out.")
    tools = []
    for index, definition in enumerate(definitions):
        at = f"{where}[{index}]"
        body = definition.get("function", definition) if isinstance(definition, dict) else definition
        if not isinstance(definition, dict) or not isinstance(body, dict):
            raise TranscriptError(f"{at}: found {describe(body)}, expected an object with a name; write it as one.")
        name = body.get("name", definition.get("type"))
        description = body.get("description") or ""
        parameters = body.get("parameters") or body.get("input_schema") or {}
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(parameters, dict):
            raise TranscriptError(
                f"{at}: found name {describe(name)}, description {describe(description)} and parameters "
                f"{describe(parameters)}, expected text, text and an object; correct the definition."
            )
        tools.append(ToolDefinition(name, description, parameters))
    return tuple(tools)


def tools_to_openai(tools: Sequence[ToolDefinition]) -> list[JSON]:
    """Return tool definitions as the ``tools`` list of an OpenAI chat request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


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
                part, part_shape = _part(item, f"{where}.content[{index}]", keep_media=keep_media)
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


def _part(item: JSON, where: str, *, keep_media: bool) -> tuple[Part, Object]:
    if isinstance(item, str):
        return Text(item), {"type": "string"}
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise TranscriptError(
            f'{where}: found {describe(item)}, expected a part object with a "type"; write it as one.'
        )
    rest = dict(item)
    kind = cast("str", rest.pop("type"))
    shape: Object = {}
    if kind in _TEXT_TYPES or kind == "refusal":
        key = "refusal" if kind == "refusal" else "text"
        part: Part = Text(_required_text(rest, key, where))
        if kind != "text":
            shape["type"] = kind
    elif kind in {"thinking", "reasoning"} and isinstance(rest.get("thinking", rest.get("text")), str):
        key = "thinking" if "thinking" in rest else "text"
        text = cast("str", rest.pop(key))
        part = Reasoning(text, _pop_text(rest, "signature"), _pop_text(rest, "id"))
        shape["type"] = kind if key == "thinking" else f"{kind}.text"
    elif _is_media(kind, rest.get(kind)):
        part = _media(kind, rest, shape, keep=keep_media)
    elif kind == _OPAQUE and isinstance(rest.get("provider"), str) and isinstance(rest.get("data"), str):
        part = Opaque(cast("str", rest.pop("provider")), cast("str", rest.pop("data")))
    else:
        return Opaque("openai", canonical_json(item)), {}
    if rest:
        shape["extra"] = rest
    return part, shape


def _required_text(rest: Object, key: str, where: str) -> str:
    value = rest.pop(key, None)
    if not isinstance(value, str):
        raise TranscriptError(f"{where}: field {key!r} is {describe(value)}, expected text; write it in quotes.")
    return value


def _pop_text(rest: Object, key: str) -> str:
    value = rest.get(key)
    if isinstance(value, str) and value:
        del rest[key]
        return value
    return ""


def _is_media(kind: str, body: JSON) -> bool:
    """Whether a part states its payload, or where it is, in a way the lab knows."""
    if kind == "image_url" and isinstance(body, str):
        return True
    if kind not in _PAYLOAD_KEYS or not isinstance(body, dict):
        return False
    payload = body.get(_PAYLOAD_KEYS[kind])
    known = isinstance(payload, str) or (kind == "file" and payload is None and isinstance(body.get("file_id"), str))
    return known and isinstance(body.get("format", ""), str)


def _media(kind: str, rest: Object, shape: Object, *, keep: bool) -> Media:
    body = rest.pop(kind)
    if isinstance(body, str):
        shape["bare"] = True
        inner: Object = {"url": body}
    else:
        inner = dict(cast("Object", body))
    data = inner.pop(_PAYLOAD_KEYS[kind], "")
    payload = data if isinstance(data, str) else ""
    if kind == "input_audio":
        sound = inner.pop("format", "")
        media = media_from_base64("audio", f"audio/{sound}" if sound else "", payload, keep=keep)
    else:
        media = media_from_url("image" if kind == "image_url" else "file", payload, keep=keep)
    facts = rest.get("media")
    if isinstance(facts, dict) and set(facts) == set(_MEDIA_FACTS):
        del rest["media"]
        media = _with_facts(media, facts)
    if inner:
        shape["inner"] = inner
    return media


def _with_facts(media: Media, facts: Mapping[str, JSON]) -> Media:
    numbers = [facts[key] for key in _MEDIA_FACTS[1:]]
    sizes = [number if isinstance(number, int) else 0 for number in numbers]
    return Media(media.kind, str(facts["mime"]), sizes[0], sizes[1], sizes[2], media.payload)


def _calls(extra: Object, where: str) -> tuple[list[ToolCall], list[Object]]:
    calls: list[ToolCall] = []
    shapes: list[Object] = []
    recorded = extra.get("tool_calls")
    if isinstance(recorded, list) and recorded:
        del extra["tool_calls"]
        for index, item in enumerate(recorded):
            call, shape = _call(item, f"{where}.tool_calls[{index}]")
            calls.append(call)
            shapes.append(shape)
    elif recorded is not None and recorded != []:
        raise TranscriptError(
            f"{where}: field 'tool_calls' is {describe(recorded)}, expected a list of calls or null; write it so."
        )
    legacy = extra.get("function_call")
    if legacy is not None:
        del extra["function_call"]
        call, shape = _call({"type": "function", "function": legacy}, f"{where}.function_call")
        calls.append(call)
        shapes.append({**shape, "at": "function_call"})
    return calls, shapes


def _call(item: JSON, where: str) -> tuple[ToolCall, Object]:
    if not isinstance(item, dict):
        raise TranscriptError(f"{where}: found {describe(item)}, expected a call object; write it as one.")
    rest = dict(item)
    shape: Object = {}
    call_id = rest.get("id")
    if call_id is not None and not isinstance(call_id, str):
        raise TranscriptError(f"{where}: field 'id' is {describe(call_id)}, expected text; write it in quotes.")
    if call_id:
        del rest["id"]
    kind = rest.get("type", "function")
    if kind == "function" and isinstance(rest.get("function"), dict):
        body = dict(cast("Object", rest.pop("function")))
        name, arguments = _named(body, "arguments", shape, where)
        if "type" not in rest:
            shape["type"] = ""
        rest.pop("type", None)
    elif kind == "custom" and isinstance(rest.get("custom"), dict):
        body = dict(cast("Object", rest.pop("custom")))
        name, arguments = _named(body, "input", shape, where)
        shape["type"] = rest.pop("type")
    elif isinstance(kind, str) and kind not in {"function", "custom"}:
        # A hosted tool's call: named by its type, everything it states is its arguments.
        del rest["type"]
        return ToolCall(call_id or "", kind, canonical_json(rest)), {"type": kind}
    else:
        raise TranscriptError(
            f"{where}: found no object {kind!r} in a call of type {describe(kind)}, expected "
            '{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}; write the call so.'
        )
    if rest:
        shape["extra"] = rest
    if body:
        shape["inner"] = body
    return ToolCall(call_id or "", name, arguments), shape


def _named(body: Object, key: str, shape: Object, where: str) -> tuple[str, str]:
    name = _required_text(body, "name", where)
    if key not in body:
        shape["arguments"] = "absent"
        return name, ""
    arguments = body.pop(key)
    if isinstance(arguments, str):
        return name, arguments
    if arguments is None:
        shape["arguments"] = "null"
        return name, ""
    shape["arguments"] = "value"
    return name, json.dumps(arguments, ensure_ascii=False)


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
            body.append(_write_part(part, part_shape))
    as_list = shape.get("content") == "list"
    if len(body) == 1 and plain and not as_list:
        out["content"] = next(part.text for part in parts if isinstance(part, Text))
    elif body or as_list:
        out["content"] = body
    elif shape.get("content") != "absent":
        out["content"] = None


def _write_part(part: Part, shape: Object) -> JSON:
    kind = shape.get("type")
    extra = cast("Object", shape.get("extra", {}))
    if isinstance(part, Text):
        if kind == "string":
            return part.text
        if kind == "refusal":
            return {"type": "refusal", "refusal": part.text, **extra}
        return {"type": kind if kind in _TEXT_TYPES else "text", "text": part.text, **extra}
    if isinstance(part, Reasoning):
        reasoning = kind if isinstance(kind, str) and kind.startswith("reasoning") else "thinking"
        name, _, key = reasoning.partition(".")
        out: Object = {"type": name, key or "thinking": part.text}
        out.update({key: value for key, value in (("signature", part.opaque), ("id", part.id)) if value})
        return {**out, **extra}
    if isinstance(part, Opaque):
        raw = _raw_item(part)
        return {"type": _OPAQUE, "provider": part.provider, "data": part.data, **extra} if raw is None else raw
    return _write_media(part, shape, extra)


def _raw_item(part: Opaque) -> Object | None:
    """Return the part as it came, when reading it again gives the same part."""
    if part.provider != "openai":
        return None
    try:
        item = json.loads(part.data)
        return item if _part(item, "", keep_media=False)[0] == part else None
    except (ValueError, RecursionError, TranscriptError):
        return None


def _write_media(media: Media, shape: Object, extra: Object) -> Object:
    key = _MEDIA_KEYS[media.kind]
    inner: Object = dict(cast("Object", shape.get("inner", {})))
    measured: Media
    if media.kind == "audio":
        inner["data"] = media.payload
        if media.mime.startswith("audio/"):
            inner["format"] = media.mime.removeprefix("audio/")
        mime = media.mime if media.mime.startswith("audio/") else ""
        measured = media_from_base64("audio", mime, media.payload, keep=True)
    else:
        reference = media.payload
        if media.kind == "image":
            inner["url"] = reference
        elif reference or "file_id" not in inner:
            inner["file_data"] = reference
        measured = media_from_url(cast("MediaKind", media.kind), reference, keep=True)
    out: Object = {"type": key, key: inner["url"] if shape.get("bare") and "url" in inner else inner}
    if measured != media:
        out["media"] = {
            "mime": media.mime,
            "byte_size": media.byte_size,
            "width": media.width,
            "height": media.height,
        }
    return {**out, **extra}


def _write_calls(out: Object, calls: Sequence[ToolCall], shape: Object) -> None:
    listed: list[JSON] = []
    for call, call_shape in zip(calls, _shapes(shape, "calls", len(calls)), strict=True):
        written = _write_call(call, call_shape)
        if call_shape.get("at") == "function_call":
            out["function_call"] = written["function"]
        else:
            listed.append(written)
    if listed:
        out["tool_calls"] = listed


def _write_call(call: ToolCall, shape: Object) -> Object:
    kind = shape.get("type", "function")
    out: Object = {"id": call.id} if call.id else {}
    if isinstance(kind, str) and kind not in {"", "function", "custom"}:
        stated = _parsed(call.arguments, lambda value: isinstance(value, dict))
        return {**out, "type": kind, **cast("Object", stated if isinstance(stated, dict) else {})}
    custom = kind == "custom"
    arguments: JSON = call.arguments
    written = shape.get("arguments")
    if written == "value":
        arguments = _parsed(call.arguments, lambda value: not isinstance(value, str))
    body: Object = {"name": call.name}
    if not (written == "absent" and not call.arguments):
        body["input" if custom else "arguments"] = None if written == "null" and not call.arguments else arguments
    body.update(cast("Object", shape.get("inner", {})))
    if kind != "":
        out["type"] = kind
    out["custom" if custom else "function"] = body
    return {**out, **cast("Object", shape.get("extra", {}))}


def _parsed(text: str, accept: Callable[[JSON], bool]) -> JSON:
    try:
        value = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        return text
    return value if accept(value) else text
