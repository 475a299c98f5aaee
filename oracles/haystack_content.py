"""What Haystack's compactors of tool results do with a case; runs in an environment with haystack-ai."""

from __future__ import annotations

import json
import re
from typing import Any

from content_bridge import Message, answer_all, answered
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.compaction import ToolResultOffloadCompactor, ToolResultPruningCompactor

META = {"context_compaction": {"strategy": "kept"}}


class Sizes:
    """Counts characters of texts, tool names and arguments."""

    def count(self, messages: list[ChatMessage], tools: object = None) -> int:
        """Count."""
        return sum(self._of(message) for message in messages)

    def _of(self, message: ChatMessage) -> int:
        if message.tool_call_result:
            return len(message.tool_call_result.result)
        calls = sum(len(c.tool_name) + len(json.dumps(c.arguments, ensure_ascii=False)) for c in message.tool_calls)
        return len(message.text or "") + calls


class Store:
    """Takes everything and names it by its key."""

    def write(self, key: str, content: str) -> str:
        """Return the name."""
        return key


def to(message: Message) -> ChatMessage:
    """Return a message as the framework's."""
    if message["role"] == "system":
        return ChatMessage.from_system(message["text"])
    if message["role"] == "user":
        return ChatMessage.from_user(message["text"])
    if message["role"] == "tool":
        origin = ToolCall(message["name"], {}, id=message["call_id"])
        return ChatMessage.from_tool(message["text"], origin=origin, meta=dict(META) if message.get("kept") else {})
    calls = [ToolCall(c["name"], json.loads(c["arguments"]), id=c["id"]) for c in message["calls"]]
    return ChatMessage.from_assistant(message["text"], tool_calls=calls)


def back(message: ChatMessage) -> Message:
    """Return the framework's message as a case's; the random part of a store key is blotted out."""
    result = message.tool_call_result
    if result:
        text = re.sub(r"(compacted_\w+?_)[0-9a-f]{32}", r"\1KEY", result.result)
        kept = {"kept": True} if "context_compaction" in message.meta else {}
        return answered("tool", text, call_id=result.origin.id, name=result.origin.tool_name, **kept)
    calls = [
        {"id": c.id, "name": c.tool_name, "arguments": json.dumps(c.arguments, ensure_ascii=False)}
        for c in message.tool_calls
    ]
    return answered(message.role.value, message.text or "", calls)


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    parameters = dict(parameters)
    target = parameters.pop("target_tokens")
    if "pruning" in strategy:
        own: Any = ToolResultPruningCompactor(**parameters)
    else:
        own = ToolResultOffloadCompactor(Store(), **parameters)
    framed = [to(message) for message in messages]
    done = own.compact(messages=framed, target_tokens=target, token_counter=Sizes())
    return [back(message) for message in (framed if done is None else done)]


if __name__ == "__main__":
    answer_all(apply, stored=("haystack/tool_result_pruning_compactor", "haystack/tool_result_offload_compactor"))
