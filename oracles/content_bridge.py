"""What every bridge to a framework that changes content has in common: cases in, answers out, one a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
Apply = Callable[[str, dict[str, Any], list[Message]], list[Message]]


def answer_all(apply: Apply, *, stored: tuple[str, ...] = ()) -> None:
    """Answer every case on standard input; strategies in ``stored`` go on from their own earlier result."""
    for line in sys.stdin:
        case = json.loads(line)
        kept: list[Message] = []
        done = 0
        answers = []
        for stop in case["stops"]:
            kept = kept + case["messages"][done:stop] if case["strategy"] in stored else case["messages"][:stop]
            done = stop
            kept = apply(case["strategy"], case["parameters"], kept)
            answers.append(kept)
        print(json.dumps({"seed": case["seed"], "answers": answers}, ensure_ascii=False), flush=True)


def answered(role: str, text: str, calls: list[dict[str, str]] | None = None, **more: str) -> Message:
    """Return a message with every key of the cases' format."""
    return {"role": role, "text": text, "calls": calls or [], "call_id": "", "name": "", "reasoning": "", **more}
