"""What Haystack's SummarizationCompactor keeps; runs with haystack-ai, imports nothing of the lab."""

from __future__ import annotations

from typing import Any

from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.compaction import SummarizationCompactor
from scripted import echo, item, serve, weight


class Generator:
    """Writes the scripted summary."""

    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        """Answer."""
        return {"replies": [ChatMessage.from_assistant(echo(messages[-1].text or ""))]}


class Weights:
    """Counts the weights that texts name."""

    def count(self, messages: list[ChatMessage], **_: Any) -> int:
        """Count."""
        return sum(weight(text(m)) for m in messages)


def text(m: ChatMessage) -> str:
    """Return the text of a message, that of a result included."""
    return str(m.tool_call_result.result) if m.tool_call_result else (m.text or "")


def message(m: dict[str, Any]) -> ChatMessage:
    """Return a message as Haystack has it."""
    if m["role"] == "tool":
        return ChatMessage.from_tool(m["text"], origin=ToolCall("look", {}, id=m["call_id"]))
    if m["role"] == "assistant":
        return ChatMessage.from_assistant(m["text"], tool_calls=[ToolCall("look", {}, id=c) for c in m["calls"]])
    return (ChatMessage.from_user if m["role"] == "user" else ChatMessage.from_system)(m["text"])


def kept(m: ChatMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [str(c.id) for c in m.tool_calls]
    result = m.tool_call_result
    return item(m.role.value, text(m), calls, str(result.origin.id) if result else "")


def answer(case: dict[str, Any]) -> list[Any]:
    """Compact at every stop as the hook does."""
    parameters = dict(case["parameters"])
    at, to = parameters.pop("compact_at"), parameters.pop("compact_to")
    compactor = SummarizationCompactor(Generator(), **parameters)
    state: list[ChatMessage] = []
    out, done = [], 0
    for stop in case["stops"]:
        state = [*state, *map(message, case["messages"][done:stop])]
        done = max(done, stop)
        if Weights().count(state) >= case["window"] * at:
            target = max(int(case["window"] * to), 0)
            state = compactor.compact(state, target, Weights()) or state
        out.append([kept(m) for m in state])
    return out


serve(answer)
