"""What Inspect's CompactionEdit does with a case; runs in an environment with inspect-ai."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from content_bridge import Message, answer_all, answered
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionEdit,
    ContentReasoning,
    ContentText,
    get_model,
)
from inspect_ai.tool import ToolCall

MODEL = get_model("mockllm/model")


def to(message: Message) -> Any:
    """Return a message as the framework's."""
    if message["role"] == "system":
        return ChatMessageSystem(content=message["text"])
    if message["role"] == "user":
        return ChatMessageUser(content=message["text"])
    if message["role"] == "tool":
        return ChatMessageTool(content=message["text"], tool_call_id=message["call_id"], function=message["name"])
    calls = [ToolCall(id=c["id"], function=c["name"], arguments=json.loads(c["arguments"])) for c in message["calls"]]
    content: Any = message["text"]
    if message["reasoning"]:
        content = [ContentReasoning(reasoning=message["reasoning"])]
        if message["text"]:
            content.append(ContentText(text=message["text"]))
    return ChatMessageAssistant(content=content, tool_calls=calls or None)


def back(message: Any) -> Message:
    """Return the framework's message as a case's."""
    if message.role == "tool":
        return answered("tool", message.text, call_id=message.tool_call_id, name=message.function)
    if message.role != "assistant":
        return answered(message.role, message.text)
    calls = [
        {"id": c.id, "name": c.function, "arguments": json.dumps(c.arguments, ensure_ascii=False)}
        for c in message.tool_calls or ()
    ]
    parts = [] if isinstance(message.content, str) else message.content
    thought = "".join(part.reasoning for part in parts if part.type == "reasoning")
    text = message.content if isinstance(message.content, str) else "\n".join(p.text for p in parts if p.type == "text")
    return answered("assistant", text, calls, reasoning=thought)


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    own = CompactionEdit(memory=False, **parameters)
    done, _ = asyncio.run(own.compact(MODEL, [to(message) for message in messages], []))
    return [back(message) for message in done]


if __name__ == "__main__":
    answer_all(apply, stored=("inspect_ai/compaction_edit",))
