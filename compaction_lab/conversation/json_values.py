"""JSON objects as the readers and writers of wire formats see them: their type, and how to describe and spell them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import TranscriptError

Object = dict[str, JSON]

_SHOWN_CHARACTERS = 40


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


def pop_required_text(rest: Object, key: str, where: str) -> str:
    """Take a text out of an object, or refuse the object at ``where`` for lacking it."""
    value = rest.pop(key, None)
    if not isinstance(value, str):
        raise TranscriptError(f"{where}: field {key!r} is {describe(value)}, expected text; write it in quotes.")
    return value
