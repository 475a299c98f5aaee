"""What langchain-core's ``trim_messages`` keeps; runs with langchain-core, imports nothing of the lab."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import trim_messages
from scripted import serve

ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def to(m: dict[str, Any]) -> BaseMessage:
    """Return a message as LangChain's."""
    texts = m["texts"]
    content: Any = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
    if m["role"] == "assistant":
        calls = [{"id": c["id"], "name": c["name"], "args": json.loads(c["arguments"])} for c in m["calls"]]
        return AIMessage(content, tool_calls=calls, name=m["name"] or None)
    if m["role"] == "tool":
        return ToolMessage(content, tool_call_id=m["call_id"], name=m["name"] or None)
    return (SystemMessage if m["role"] == "system" else HumanMessage)(content, name=m["name"] or None)


def kept(message: BaseMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    content = message.content
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    calls = [call["id"] for call in getattr(message, "tool_calls", [])]
    return [ROLES[message.type], text, calls, getattr(message, "tool_call_id", "")]


def answer(case: dict[str, Any]) -> list[Any]:
    """Trim at every stop."""
    parameters = dict(case["parameters"])
    if parameters["token_counter"] == "len":
        parameters["token_counter"] = len
    messages = [to(m) for m in case["messages"]]
    return [[kept(m) for m in trim_messages(messages[:stop], **parameters)] for stop in case["stops"]]


if __name__ == "__main__":
    serve(answer)
