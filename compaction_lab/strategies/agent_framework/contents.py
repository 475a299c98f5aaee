"""Messages as Agent Framework holds them: a list of typed contents; no grouping and no counting.

Contents are plain mappings in the framework's own field names, empty fields left out. What the lab's messages cannot
say (several results in one message, hosted calls, approvals) is an ``Opaque`` part of provider ``agent_framework`` that
holds the content as JSON. The result of a failed tool carries the framework's own mark for the exception's text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import cast

from compaction_lab.conversation.messages import (
    JSON,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
)

Content = dict[str, JSON]

PROVIDER = "agent_framework"
FAILED = "FunctionInvocationError"
"""Stands for the text of an exception, which the framework does not write out either."""

CALL_TYPES = frozenset(
    {
        "function_call",
        "computer_tool_call",
        "mcp_server_tool_call",
        "code_interpreter_tool_call",
        "shell_tool_call",
        "image_generation_tool_call",
    }
)
"""Contents that make an assistant message a tool call."""

_FACETS = ("agent_framework", "facets")


class Facets:
    """What the framework's rules look at in one message, derived once.

    Attributes
    ----------
    role, contents
        The message's role, which may be one the lab does not have, and its contents in order.
    is_call, is_only_reasoning
        Whether it is an assistant message that calls a tool, or one of nothing but reasoning.
    links
        Its declarations and results of function and computer calls in order, as ``(is result, type, call id)``.
    """

    __slots__ = ("contents", "is_call", "is_only_reasoning", "links", "role")

    def __init__(self, role: str, contents: Sequence[Content]) -> None:
        self.role = role
        self.contents = tuple(contents)
        types = [content["type"] for content in contents]
        assistant = role == "assistant"
        self.is_call = assistant and not CALL_TYPES.isdisjoint(types)
        self.is_only_reasoning = assistant and bool(types) and all(kind == "text_reasoning" for kind in types)
        self.links = tuple(_links(role, contents)) if assistant or role == "tool" else ()


def _links(role: str, contents: Sequence[Content]) -> list[tuple[bool, str, str]]:
    links = []
    for content in contents:
        kind, call_id = content["type"], content.get("call_id")
        if not call_id:
            continue
        if role == "assistant" and kind in {"function_call", "computer_tool_call"}:
            links.append((False, kind, cast("str", call_id)))
        elif kind in {"function_result", "computer_tool_result"}:
            call = "function_call" if kind == "function_result" else "computer_tool_call"
            links.append((True, call, cast("str", call_id)))
    return links


def facets(message: Message) -> Facets:
    """Return the facets of a message, memoised on it."""
    found = message.memo.get(_FACETS)
    if found is None:
        found = message.memo[_FACETS] = Facets(message.role, _contents(message))
    return cast("Facets", found)


def message_of(role: str, contents: Sequence[Mapping[str, JSON]], message_id: str = "", name: str = "") -> Message:
    """Return the message of the lab that Agent Framework contents make, one for one.

    Texts, reasoning, function calls and single results become the lab's own parts; every other content is kept opaque.
    """
    exact = [_bare(content) for content in contents]
    parts: list[Part] = []
    calls: list[ToolCall] = []
    call_id, failed = "", False
    for content in exact:
        kind = content["type"]
        if kind == "text" and _has_only(content, "text"):
            parts.append(Text(str(content.get("text", ""))))
        elif kind == "text_reasoning" and _has_only(content, "text", "protected_data", "id"):
            fields = (str(content.get(field) or "") for field in ("text", "protected_data", "id"))
            parts.append(Reasoning(*fields))
        elif kind == "function_call" and role == "assistant" and isinstance(content.get("arguments", ""), str):
            calls.append(
                ToolCall(str(content["call_id"]), str(content.get("name", "")), str(content.get("arguments", "")))
            )
        elif kind == "function_result" and role == "tool" and len(exact) == 1 and not _has_media(content):
            call_id, failed = str(content.get("call_id") or ""), content.get("exception") is not None
            parts.append(Text(str(content.get("result", ""))))
        else:
            parts.append(Opaque(PROVIDER, json.dumps(content, ensure_ascii=False, sort_keys=True)))
    known = role if role in {"system", "developer", "user", "assistant", "tool"} else "assistant"
    message = Message(
        cast("Role", known), tuple(parts), tuple(calls), call_id, is_error=failed, name=name, id=message_id
    )
    # The contents themselves: their order, and arguments given as objects, are not the lab message's to say.
    message.memo[_FACETS] = Facets(role, exact)
    return message


def _bare(content: Mapping[str, JSON]) -> Content:
    bare = {key: value for key, value in content.items() if key != "raw_representation"}
    bare.setdefault("additional_properties", {})
    if bare.get("exception") is not None:
        bare["exception"] = FAILED
    if bare["type"] == "function_call":
        bare.setdefault("hosted", False)
    return bare


def _has_only(content: Content, *fields: str) -> bool:
    return not content.get("additional_properties") and content.keys() <= {"type", "additional_properties", *fields}


def _has_media(content: Content) -> bool:
    items = content.get("items")
    return isinstance(items, list) and any(isinstance(item, dict) and item.get("type") != "text" for item in items)


def _contents(message: Message) -> list[Content]:
    if message.role == "tool" and message.call_id:
        return [_result(message), *(_content(part) for part in message.parts if isinstance(part, Opaque))]
    contents = [_content(part) for part in message.parts]
    contents.extend(
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "hosted": False,
            "additional_properties": {},
        }
        for call in message.calls
    )
    return contents


def _result(message: Message) -> Content:
    shown = [part for part in message.parts if not isinstance(part, (Opaque, Reasoning))]
    texts = [part.text for part in shown if isinstance(part, Text) and part.text]
    result: Content = {
        "type": "function_result",
        "call_id": message.call_id,
        "result": "\n".join(texts),
        "items": [_content(part) for part in shown],
        "additional_properties": {},
    }
    if message.is_error:
        result["exception"] = FAILED
    return result


def _content(part: Part) -> Content:
    match part:
        case Text(text):
            return {"type": "text", "text": text, "additional_properties": {}}
        case Reasoning(text, opaque, item_id):
            fields = {"text": text, "protected_data": opaque, "id": item_id}
            kept: Content = {key: value for key, value in fields.items() if value}
            return {"type": "text_reasoning", **kept, "additional_properties": {}}
        case Media():
            return _media(part)
        case Opaque(provider, data) if provider == PROVIDER:
            return cast("Content", json.loads(data))
        case Opaque(_, data):
            return {"type": "opaque", "text": data, "additional_properties": {}}


def _media(media: Media) -> Content:
    """Return a picture, sound or file; a payload that was not kept counts as as many zero bytes."""
    link = media.payload
    inline = not link.startswith(("http:", "https:")) if link else True
    mime = media.mime or {"image": "image/png", "audio": "audio/wav"}.get(media.kind, "application/octet-stream")
    if inline and not link.startswith("data:"):
        link = f"data:{mime};base64,{link or base64.b64encode(bytes(media.byte_size)).decode()}"
    kind = "data" if inline else "uri"
    return {"type": kind, "uri": link, "media_type": mime, "additional_properties": {}}
