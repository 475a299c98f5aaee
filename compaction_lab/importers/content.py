"""Content blocks of every chat interface as parts: text, reasoning, media; what is none of these is carried along."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container
from dataclasses import replace

from compaction_lab.accounting.usage import read_usage
from compaction_lab.conversation.json_values import canonical_json, describe
from compaction_lab.conversation.media import MediaKind, media_from_base64, media_from_url
from compaction_lab.conversation.messages import JSON, Media, Message, Opaque, Part, Reasoning, Text
from compaction_lab.errors import TranscriptError

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "summary_text": "text", "refusal": "refusal"}
_REASONING = {"thinking", "reasoning", "reasoning_text", "text_reasoning", "redacted_thinking"}
_MEDIA: dict[str, MediaKind] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "video": "file",
}


def content_parts(value: JSON, where: str, *, provider: str, keep_media: bool = False) -> tuple[Part, ...]:
    """Return the parts of a message's or tool result's content.

    Parameters
    ----------
    value
        Text, null, one block or a list of blocks, in the manner of OpenAI, Anthropic, LangChain or Inspect.
    where
        Its place, for error messages.
    provider
        Named in the opaque part that carries a block of unknown type.
    keep_media
        Keep the payload of images, sounds and files.

    Raises
    ------
    TranscriptError
        If it is none of these.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise TranscriptError(
            f"{where}: found {describe(value)}, expected text or a list of content blocks; "
            "write structured content as JSON text."
        )
    return tuple(_part(item, f"{where}[{at}]", provider, keep=keep_media) for at, item in enumerate(value))


def result_parts(value: JSON, where: str, *, provider: str, keep_media: bool = False) -> tuple[Part, ...]:
    """Return the parts of a tool's result: content blocks when it is a list of them, else its JSON text."""
    blocks = value if isinstance(value, list) else [value]
    if value is None or isinstance(value, str) or all(isinstance(item, dict) and "type" in item for item in blocks):
        return content_parts(value, where, provider=provider, keep_media=keep_media)
    return (Text(json.dumps(value, ensure_ascii=False)),)


def is_one_of(value: JSON, options: Container[str]) -> bool:
    """Whether a value found in JSON is one of some texts; it may be anything, even what cannot be looked up."""
    return isinstance(value, str) and value in options


def arguments_text(value: JSON) -> str:
    """Return a call's arguments as JSON text: text as it is, anything else spelled as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def parsed(value: JSON) -> JSON:
    """Return the JSON that a text spells, unwrapped twice at most; anything else as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "[", '"'}:
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def with_usage(message: Message, payload: JSON, dialect: str, warnings: Counter[str]) -> Message:
    """Return the message with the usage a payload states; contradictions are counted, zeros mean not measured."""
    reading = read_usage(payload, dialect) if isinstance(payload, dict) else None
    if reading is None or not (reading.usage.input_tokens or reading.usage.output_tokens):
        return message
    warnings.update(f"usage_{kind}" for kind in reading.odd)
    return replace(message, usage=reading.usage)


def _part(item: JSON, where: str, provider: str, *, keep: bool) -> Part:
    if isinstance(item, str):
        return Text(item)
    if not isinstance(item, dict):
        raise TranscriptError(f"{where}: found {describe(item)}, expected a content block; write it as an object.")
    kind = item.get("type", "text")
    if isinstance(kind, str):
        text = item.get(_TEXTS.get(kind, ""))
        if isinstance(text, str):
            return Text(text)
        if kind in _REASONING:
            return _reasoning(item)
        if kind in _MEDIA and (media := _media(_MEDIA[kind], item, keep=keep)) is not None:
            return media
    return Opaque(provider, canonical_json(item))


def _reasoning(item: dict[str, JSON]) -> Reasoning:
    if item.get("redacted") is True:  # Inspect: the text is the opaque payload
        return Reasoning(opaque=_text(item, "reasoning"), id=_text(item, "id"))
    return Reasoning(
        _text(item, "thinking", "reasoning", "text", "content"),
        _text(item, "signature", "data", "encrypted_content", "protected_data"),
        _text(item, "id"),
    )


def _media(kind: MediaKind, item: dict[str, JSON], *, keep: bool) -> Media | None:
    """Return what a block shows, or ``None`` when it names neither a payload nor an address."""
    body = next((item[key] for key in ("source", *_MEDIA) if isinstance(item.get(key), dict | str)), item)
    if isinstance(body, str):
        body = {"url": body}
    if not isinstance(body, dict):
        return None
    mime = _text(body, "media_type", "mime_type")
    data = _text(body, "data", "base64")
    if data and not data.startswith("data:"):
        if sound := _text(body, "format"):
            return media_from_base64(kind, mime or f"audio/{sound}", data, keep=keep)
        return media_from_url(kind, f"data:{mime};base64,{data}", keep=keep)
    address = data or _text(body, "url", "uri", "file_data", "file_url")
    return media_from_url(kind, address, keep=keep) if address else None


def _text(item: dict[str, JSON], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := item.get(key), str) and value), "")
