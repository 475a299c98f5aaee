"""What Inspect's CompactionSummary keeps; runs with inspect-ai, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionSummary,
    ModelOutput,
    get_model,
)
from inspect_ai.model._trim import partition_messages
from inspect_ai.tool import ToolCall
from scripted import echo, item, serve, weight


def message(m: dict[str, Any]) -> Any:
    """Return a message as Inspect has it."""
    if m["role"] == "assistant":
        calls = [ToolCall(id=c, function="look", arguments={}) for c in m["calls"]]
        return ChatMessageAssistant(content=m["text"], tool_calls=calls or None)
    if m["role"] == "tool":
        return ChatMessageTool(content=m["text"], tool_call_id=m["call_id"], function="look")
    return (ChatMessageUser if m["role"] == "user" else ChatMessageSystem)(content=m["text"])


def kept(m: Any) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [c.id for c in getattr(m, "tool_calls", None) or []]
    return item(m.role, m.text, calls, getattr(m, "tool_call_id", "") or "")


class Scripted:
    """A model that writes the scripted summary and has no window."""

    def __init__(self) -> None:
        self.real = get_model("mockllm/model")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    async def generate(self, input: list[Any], **_: Any) -> ModelOutput:  # noqa: A002 - the framework's name
        """Answer."""
        return ModelOutput.from_content("mockllm/model", echo("\n".join(m.text for m in input[:-1])))

    async def count_tokens(self, input: Any) -> int:  # noqa: A002 - the framework's name
        """Count."""
        return 0 if isinstance(input, str) else sum(weight(m.text) for m in input)


def answer(case: dict[str, Any]) -> list[Any]:
    """Compact at every stop where the weights exceed the threshold."""
    threshold = case["parameters"]["threshold"]
    strategy = CompactionSummary(threshold=threshold)
    state: list[Any] = []
    out, done = [], 0
    for stop in case["stops"]:
        state = [*state, *map(message, case["messages"][done:stop])]
        done = max(done, stop)
        # With nothing but system and input left the orchestrator ends in an error: there the history stays.
        if sum(weight(m.text) for m in state) > threshold and partition_messages(state).conversation:
            state, _ = asyncio.run(strategy.compact(Scripted(), state, []))  # type: ignore[arg-type]
        out.append([kept(m) for m in state])
    return out


serve(answer)
