"""Byte patterns that tell formats apart where the outline of the first value does not reach."""

from __future__ import annotations

import re


def has_type(head: bytes, *kinds: str) -> bool:
    """Whether an object in ``head`` has one of these values under ``type``; text that quotes JSON does not count."""
    return _has(head, "type", kinds)


def has_value(head: bytes, key: str, *values: str) -> bool:
    """Whether an object in ``head`` has one of these texts under ``key``."""
    return _has(head, key, values)


def has_key(head: bytes, key: str) -> bool:
    """Whether an object in ``head``, however deep, has this key."""
    return re.search(rb'(?<!\\)"' + re.escape(key.encode()) + rb'"\s*:', head) is not None


def _has(head: bytes, key: str, values: tuple[str, ...]) -> bool:
    options = b"|".join(re.escape(value.encode()) for value in values)
    return re.search(rb'(?<!\\)"' + re.escape(key.encode()) + rb'"\s*:\s*"(?:' + options + rb')"', head) is not None
