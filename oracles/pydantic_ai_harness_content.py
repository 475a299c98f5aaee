"""What pydantic-ai-harness does with a case; runs in an environment with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from content_bridge import Message, answer_all, answered
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai_harness.compaction import ClampOversizedMessages, ClearToolResults, DeduplicateFileReads


def to(message: Message) -> Any:
    """Return a message as the framework's."""
    if message["role"] == "system":
        return ModelRequest(parts=[SystemPromptPart(message["text"])])
    if message["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(message["text"])])
    if message["role"] == "tool":
        return ModelRequest(parts=[ToolReturnPart(message["name"], message["text"], tool_call_id=message["call_id"])])
    calls = [ToolCallPart(c["name"], c["arguments"], tool_call_id=c["id"]) for c in message["calls"]]
    return ModelResponse(parts=[TextPart(message["text"]), *calls])


def back(message: Any) -> Message:
    """Return the framework's message as a case's."""
    first = message.parts[0]
    if isinstance(first, SystemPromptPart):
        return answered("system", first.content)
    if isinstance(first, UserPromptPart):
        return answered("user", first.content)
    if isinstance(first, ToolReturnPart):
        return answered("tool", first.content, call_id=first.tool_call_id, name=first.tool_name)
    calls = [
        {
            "id": c.tool_call_id,
            "name": c.tool_name,
            "arguments": c.args if isinstance(c.args, str) else json.dumps(c.args, ensure_ascii=False),
        }
        for c in message.parts[1:]
    ]
    return answered("assistant", first.content, calls)


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    parameters = dict(parameters)
    name = strategy.split("/")[1]
    if name == "clear_tool_results":
        parameters["exclude_tools"] = frozenset(parameters["exclude_tools"])
        own: Any = ClearToolResults(max_tokens=1, tokenizer=len, **parameters)
    elif name == "clamp_oversized_messages":
        own = ClampOversizedMessages(tokenizer=len, **parameters)
    else:
        tools, names = parameters["read_tools"], parameters["path_arguments"]

        def file_key(call: ToolCallPart) -> str | None:
            found = [call.args_as_dict().get(each) for each in names]
            return next((each for each in found if each), None) if call.tool_name in tools else None

        own = DeduplicateFileReads(file_key=file_key)
    done = asyncio.run(own.compact([to(message) for message in messages], None))
    return [back(message) for message in done]


if __name__ == "__main__":
    answer_all(apply)
