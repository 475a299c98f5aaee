"""Content parts of an OpenAI chat message to parts and back, each with the shape that a part cannot say itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from compaction_lab.conversation.json_values import Object, canonical_json, describe, pop_required_text
from compaction_lab.conversation.media import MediaKind, media_from_base64, media_from_url
from compaction_lab.conversation.messages import JSON, Media, Opaque, Part, Reasoning, Text
from compaction_lab.errors import TranscriptError

_TEXT_TYPES = ("text", "input_text", "output_text")
_MEDIA_KEYS = {"image": "image_url", "audio": "input_audio", "file": "file"}
_PAYLOAD_KEYS = {"image_url": "url", "input_audio": "data", "file": "file_data"}
_MEDIA_FACTS = ("mime", "byte_size", "width", "height")
_OPAQUE = "compaction_lab.opaque"


def read_part(item: JSON, where: str, *, keep_media: bool) -> tuple[Part, Object]:
    """Return the part an item of ``content`` states, and its shape."""
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
        part: Part = Text(pop_required_text(rest, key, where))
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


def write_part(part: Part, shape: Object) -> JSON:
    """Return the item of ``content`` that states a part, in the shape it was read in."""
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


def _raw_item(part: Opaque) -> Object | None:
    """Return the part as it came, when reading it again gives the same part."""
    if part.provider != "openai":
        return None
    try:
        item = json.loads(part.data)
        return item if read_part(item, "", keep_media=False)[0] == part else None
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
