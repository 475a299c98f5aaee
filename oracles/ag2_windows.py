"""What AG2's limiters and tail window keep; runs with ag2 1.2, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from ag2.compact import TailWindowCompact
from ag2.events import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResultEvent,
    ToolResultsEvent,
)
from ag2.events.tool_events import ToolResult
from ag2.middleware.builtin.history_limiter import HistoryLimiter
from ag2.middleware.builtin.token_limiter import TokenLimiter
from scripted import serve


def append(state: list[Any], m: dict[str, Any]) -> None:
    """Add a message; the results of a batch share an event."""
    text = m["texts"][0]
    if m["role"] == "tool":
        result = ToolResultEvent(parent_id=m["call_id"], name=m["name"], result=ToolResult.ensure_result(text))
        if state and isinstance(state[-1], ToolResultsEvent):
            state[-1].results.append(result)
        else:
            state.append(ToolResultsEvent([result]))
    elif m["role"] == "assistant":
        calls = [ToolCallEvent(c["name"], id=c["id"], arguments=c["arguments"]) for c in m["calls"]]
        state.append(ModelResponse(ModelMessage(text), tool_calls=ToolCallsEvent(calls)))
    else:
        state.append(ModelRequest([TextInput(text)]))


def kept(event: Any) -> list[Any]:
    """Return the messages that an event stands for, in the form that is compared."""
    if isinstance(event, ToolResultsEvent):
        return [["tool", r.result.parts[0].content, [], r.parent_id] for r in event.results]
    if isinstance(event, ModelResponse):
        return [["assistant", event.message.content, [call.id for call in event.tool_calls.calls], ""]]
    return [["user", event.parts[0].content, [], ""]]


async def limited(factory: Any, events: list[Any]) -> list[Any]:
    """Return what a limiter passes on."""
    passed: list[Any] = []

    async def call_next(left: Any, context: Any) -> None:
        passed.extend(left)

    await factory(None, None).on_llm_call(call_next, events, None)
    return passed


def answer(case: dict[str, Any]) -> list[Any]:
    """Limit, or compact, at every stop."""
    state: list[Any] = []
    out, done = [], 0
    for stop in case["stops"]:
        for m in case["messages"][done:stop]:
            append(state, m)
        done = stop
        if "compact" in case["kind"]:
            strategy = TailWindowCompact(**case["parameters"])
            left = state = asyncio.run(strategy.compact(state, None, None))
        else:
            limiter = HistoryLimiter if "history" in case["kind"] else TokenLimiter
            left = asyncio.run(limited(limiter(**case["parameters"]), state))
        out.append([line for event in left for line in kept(event)])
    return out


serve(answer)
