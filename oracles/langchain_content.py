"""What langchain's context editing does with a case; runs in an environment with langchain."""

from __future__ import annotations

import json
from typing import Any

from content_bridge import Message, answer_all, answered
from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage


def size(messages: list[Any]) -> int:
    """Count characters of texts, tool names and arguments."""
    total = 0
    for message in messages:
        total += len(message.content)
        for call in getattr(message, "tool_calls", ()):
            total += len(call["name"]) + len(json.dumps(call["args"], ensure_ascii=False))
    return total


def to(message: Message) -> Any:
    """Return a message as the framework's."""
    if message["role"] == "system":
        return SystemMessage(message["text"])
    if message["role"] == "user":
        return HumanMessage(message["text"])
    if message["role"] == "tool":
        return ToolMessage(message["text"], tool_call_id=message["call_id"], name=message["name"])
    calls = [{"id": c["id"], "name": c["name"], "args": json.loads(c["arguments"])} for c in message["calls"]]
    return AIMessage(message["text"], tool_calls=calls)


def back(message: Any) -> Message:
    """Return the framework's message as a case's."""
    if message.type == "tool":
        return answered("tool", message.content, call_id=message.tool_call_id, name=message.name)
    calls = [
        {"id": c["id"], "name": c["name"], "arguments": json.dumps(c["args"], ensure_ascii=False)}
        for c in getattr(message, "tool_calls", ())
    ]
    return answered({"ai": "assistant", "human": "user"}.get(message.type, message.type), message.content, calls)


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    own = [to(message) for message in messages]
    ClearToolUsesEdit(**parameters).apply(own, count_tokens=size)
    return [back(message) for message in own]


if __name__ == "__main__":
    answer_all(apply)
