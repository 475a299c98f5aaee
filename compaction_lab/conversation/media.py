"""Images, sounds and files in base64: what they are and how big, read from their first bytes without keeping them."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import Literal
from urllib.parse import unquote_to_bytes

from compaction_lab.conversation.messages import Media

MediaKind = Literal["image", "audio", "file"]

_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_HEAD_CHARACTERS = 87_384
"""Enough base64 for 64 KiB: the size of a JPEG stands after its metadata."""
_PNG_HEADER = 24
_GIF_HEADER = 10
_JPEG_MARKER = 0xFF
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of the frame headers, which hold the size."""


def media_from_url(kind: MediaKind, url: str, *, keep: bool = False) -> Media:
    """Return the media a URL names; a ``data:`` URL is measured and its payload dropped unless ``keep``.

    Parameters
    ----------
    kind
        ``image``, ``audio`` or ``file``.
    url
        A ``data:`` URL (RFC 2397) or any other reference, which is kept since it holds no payload.
    keep
        Keep the ``data:`` URL as the payload.
    """
    head = _DATA_URL.match(url)
    if head is None:
        return Media(kind, payload=url)
    mime, parameters = head.group(1).lower(), head.group(2).lower()
    start = head.end()
    if not parameters.endswith(";base64"):
        content = unquote_to_bytes(url[start:].encode("utf-8", "surrogatepass"))
        return Media(kind, mime, len(content), payload=url if keep else "")
    measured = media_from_base64(kind, mime, url[start:])
    return Media(kind, mime, measured.byte_size, measured.width, measured.height, url if keep else "")


def media_from_base64(kind: MediaKind, mime: str, data: str, *, keep: bool = False) -> Media:
    """Return the media that base64 text holds: its size in bytes and, for PNG, GIF and JPEG, in pixels."""
    byte_size = max(0, len(data) * 3 // 4 - data[-2:].count("="))
    width, height = _pixels(_first_bytes(data)) if kind == "image" else (0, 0)
    return Media(kind, mime, byte_size, width, height, data if keep else "")


def _first_bytes(data: str) -> bytes:
    head = data[:_HEAD_CHARACTERS]
    try:
        return base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _pixels(head: bytes) -> tuple[int, int]:
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= _PNG_HEADER:
        return struct.unpack(">II", head[16:_PNG_HEADER])
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= _GIF_HEADER:
        return struct.unpack("<HH", head[6:_GIF_HEADER])
    if head.startswith(b"\xff\xd8"):
        return _jpeg_pixels(head)
    return 0, 0


def _jpeg_pixels(head: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(head) and head[at] == _JPEG_MARKER:
        marker = head[at + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int(struct.unpack(">H", head[at + 2 : at + 4])[0])
    return 0, 0
