"""A judge's answer read strictly: one JSON object with a score in range, however it is wrapped, or no score at all."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping

from compaction_lab.conversation.messages import JSON

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def read_score(text: str, top: float) -> float | None:
    """Return the score an answer states between 0 and ``top``, or ``None``.

    It must be the number under ``score`` in a JSON object. The object may stand in prose or a code fence, use single
    quotes or end with a comma; a digit outside an object is never a score, a score out of range is none, and objects
    with different scores cancel out.

    Examples
    --------
    >>> read_score('5 of 5? No: {"reason": "half of it", "score": 2}', 5), read_score("Score: 4", 5)
    (2.0, None)
    """
    found = {_number(item.get("score")) for item in read_objects(text) if "score" in item}
    if len(found) != 1:
        return None
    score = found.pop()
    return score if score is not None and 0 <= score <= top else None


def read_objects(text: str) -> Iterator[Mapping[str, JSON]]:
    """Yield the outermost JSON objects of a text, in order."""
    text = _THOUGHT.sub("", text)
    at = text.find("{")
    while at >= 0:
        end = _end(text, at)
        found = None if end is None else _object(text[at:end])
        if found is not None and end is not None:
            yield found
            at = text.find("{", end)
        else:
            at = text.find("{", at + 1)


def _end(text: str, start: int) -> int | None:
    """Return the place behind the brace that closes the one at ``start``, quoted braces left out."""
    depth, quote, at = 0, "", start
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and text[start:at].rstrip()[-1:] in "{[:,"):
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if not depth:
                return at + 1
        at += 1
    return None


def _object(text: str) -> Mapping[str, JSON] | None:
    for read in (json.loads, lambda written: json.loads(_TRAILING_COMMA.sub(r"\1", written)), ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _number(value: JSON) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
