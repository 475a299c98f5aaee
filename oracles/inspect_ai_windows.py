"""What Inspect's CompactionTrim keeps; runs with inspect-ai, imports nothing of the lab."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionTrim,
    get_model,
)
from inspect_ai.tool import ToolCall
from scripted import serve

MODEL = get_model("mockllm/model")


def to(m: dict[str, Any]) -> Any:
    """Return a message as Inspect's."""
    text = m["texts"][0]
    if m["role"] == "assistant":
        calls = [ToolCall(id=c["id"], function=c["name"], arguments=json.loads(c["arguments"])) for c in m["calls"]]
        return ChatMessageAssistant(content=text, tool_calls=calls or None)
    if m["role"] == "tool":
        return ChatMessageTool(content=text, tool_call_id=m["call_id"], function=m["name"])
    return (ChatMessageSystem if m["role"] == "system" else ChatMessageUser)(content=text)


def kept(message: Any) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [call.id for call in getattr(message, "tool_calls", None) or []]
    return [message.role, message.text, calls, getattr(message, "tool_call_id", "") or ""]


def answer(case: dict[str, Any]) -> list[Any]:
    """Trim the list at every stop."""
    strategy = CompactionTrim(**case["parameters"], memory=False)
    messages = [to(m) for m in case["messages"]]
    state: list[Any] = []
    out, done = [], 0
    for stop in case["stops"]:
        state, _ = asyncio.run(strategy.compact(MODEL, [*state, *messages[done:stop]], []))
        done = stop
        out.append([kept(m) for m in state])
    return out


serve(answer)
