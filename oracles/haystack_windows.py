"""What Haystack's SlidingWindowCompactor keeps under its hook; runs with haystack-ai, imports nothing of the lab."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from haystack.dataclasses import ChatMessage, TextContent, ToolCall
from haystack.hooks.compaction import CompactionHook, SlidingWindowCompactor
from scripted import serve


def to(m: dict[str, Any]) -> ChatMessage:
    """Return a message as Haystack's."""
    texts = m["texts"]
    if m["role"] == "tool":
        return ChatMessage.from_tool(texts[0], origin=ToolCall(tool_name=m["name"], arguments={}, id=m["call_id"]))
    if m["role"] == "assistant":
        calls = [ToolCall(tool_name=c["name"], arguments=json.loads(c["arguments"]), id=c["id"]) for c in m["calls"]]
        made = ChatMessage.from_assistant(texts[0], tool_calls=calls)
        made._content[1:1] = [TextContent(text) for text in texts[1:]]
        return made
    if m["role"] == "system":
        return ChatMessage.from_system(texts[0])
    return ChatMessage.from_user(content_parts=[TextContent(text) for text in texts])


def kept(message: ChatMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    if message.tool_call_results:
        result = message.tool_call_results[0]
        return ["tool", result.result, [], result.origin.id]
    return [message.role.value, "".join(message.texts), [call.id for call in message.tool_calls], ""]


class State(SimpleNamespace):
    """What the hook needs of an agent's state."""

    def set(self, key: str, value: Any, handler_override: Any = None) -> None:
        """Store a value."""
        self.data[key] = value


def answer(case: dict[str, Any]) -> list[Any]:
    """Run the hook at every stop."""
    parameters = dict(case["parameters"])
    window = {key: parameters.pop(key) for key in ("context_window", "compact_at", "compact_to")}
    hook = CompactionHook(compactor=SlidingWindowCompactor(**parameters), **window)
    messages = [to(m) for m in case["messages"]]
    state = State(data={"messages": []})
    out, done = [], 0
    for stop in case["stops"]:
        state.data["messages"] = [*state.data["messages"], *messages[done:stop]]
        done = stop
        hook.run(state)
        out.append([kept(m) for m in state.data["messages"]])
    return out


serve(answer)
