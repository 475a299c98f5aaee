"""What the first bytes of a file tell of its shape, however large the file and wherever the bytes end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_MAX_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a file's first JSON value.

    Parameters
    ----------
    kind
        ``object``, ``array`` or ``none``.
    keys
        Keys of the object, or of the objects directly in the array.
    strings
        Those of its values that are short texts.
    several
        Whether another value follows: the file has one a line.
    """

    kind: Literal["object", "array", "none"] = "none"
    keys: frozenset[str] = frozenset()
    strings: Mapping[str, str] = field(default_factory=dict)
    several: bool = False


@lru_cache(maxsize=8)
def outline(head: bytes) -> Outline:
    """Return the outline of the first JSON object or array in ``head``, which may be cut anywhere."""
    start = min((at for at in (head.find(b"{"), head.find(b"[")) if at >= 0), default=-1)
    if start < 0:
        return Outline()
    kind: Literal["object", "array"] = "object" if head[start : start + 1] == b"{" else "array"
    keys: dict[str, None] = {}
    strings: dict[str, str] = {}
    stack: list[bytes] = []
    text = key = ""
    for found in _TOKEN.finditer(head, start):
        token = found.group()
        if token in {b"{", b"["}:
            if not stack and found.start() != start:
                return Outline(kind, frozenset(keys), strings, several=True)
            stack.append(token)
            key = ""
        elif token in {b"}", b"]"}:
            if stack:
                stack.pop()
        elif stack == ([b"{"] if kind == "object" else [b"[", b"{"]):
            if token == b":":
                key = text
                keys[key] = None
            elif token == b",":
                key = ""
            elif token.startswith(b'"'):
                text = _text(token)
                if key:
                    strings.setdefault(key, text)
    return Outline(kind, frozenset(keys), strings)


def _text(token: bytes) -> str:
    try:
        value = json.loads(token)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
