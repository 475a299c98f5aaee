"""What AG2's classic message transforms keep; runs with ag2 0.11, imports nothing of the lab."""

from __future__ import annotations

from typing import Any

from autogen.agentchat.contrib.capabilities.transforms import MessageHistoryLimiter, MessageTokenLimiter
from scripted import serve


def to(m: dict[str, Any]) -> dict[str, Any]:
    """Return a message as AG2's."""
    out: dict[str, Any] = {"role": m["role"], "content": m["texts"][0]}
    if m["calls"]:
        out["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in m["calls"]
        ]
    if m["call_id"]:
        out["tool_call_id"] = m["call_id"]
    return out


def answer(case: dict[str, Any]) -> list[Any]:
    """Transform at every stop."""
    transform = MessageHistoryLimiter if "history" in case["kind"] else MessageTokenLimiter
    out = []
    for stop in case["stops"]:
        left = transform(**case["parameters"]).apply_transform([to(m) for m in case["messages"][:stop]])
        out.append(
            [
                [m["role"], m["content"], [c["id"] for c in m.get("tool_calls", [])], m.get("tool_call_id", "")]
                for m in left
            ]
        )
    return out


serve(answer)
