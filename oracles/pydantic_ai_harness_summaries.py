"""What pydantic-ai-harness' SummarizingCompaction keeps; runs with the package, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import SummarizingCompaction
from pydantic_ai_harness.compaction._summarizing_compaction import _format_messages
from scripted import echo, item, serve


class Scripted(SummarizingCompaction):
    """Writes the scripted summary."""

    async def _summarize(self, messages: list[ModelMessage], ctx: Any, *, previous_summary: str | None = None) -> str:
        shown = _format_messages(messages, skip_previous_summary=previous_summary is not None)
        return echo(f"{shown}\n{previous_summary or ''}", ordered=True)


def append(state: list[ModelMessage], m: dict[str, Any], *, joined: bool) -> None:
    """Add a message; the system prompt shares a request with the first user prompt, results of one batch share one."""
    if m["role"] == "assistant":
        calls = [ToolCallPart("look", {}, tool_call_id=c) for c in m["calls"]]
        state.append(ModelResponse(parts=[TextPart(m["text"]), *calls]))
        return
    if m["role"] == "system":
        part: Any = SystemPromptPart(m["text"])
    elif m["role"] == "user":
        part = UserPromptPart(m["text"])
    else:
        part = ToolReturnPart("look", m["text"], tool_call_id=m["call_id"])
    if joined and isinstance(state[-1], ModelRequest):
        state[-1] = ModelRequest(parts=[*state[-1].parts, part])
    else:
        state.append(ModelRequest(parts=[part]))


def kept(state: list[ModelMessage]) -> list[Any]:
    """Return messages in the form that is compared; a system prompt that is said again is left out."""
    out: list[Any] = []
    said: set[str] = set()
    for m in state:
        if isinstance(m, ModelResponse):
            calls = [str(p.tool_call_id) for p in m.parts if isinstance(p, ToolCallPart)]
            out.append(item("assistant", "".join(p.content for p in m.parts if isinstance(p, TextPart)), calls))
            continue
        for part in m.parts:
            if isinstance(part, SystemPromptPart):
                if part.content not in said:
                    out.append(item("system", part.content))
                said.add(part.content)
            elif isinstance(part, ToolReturnPart):
                out.append(item("tool", str(part.content), [], part.tool_call_id))
            else:
                out.append(item("user", str(part.content)))
    return out


def answer(case: dict[str, Any]) -> list[Any]:
    """Compact at every stop where there are too many messages."""
    parameters = dict(case["parameters"])
    strategy = Scripted(**parameters)
    ctx = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    messages = case["messages"]
    state: list[ModelMessage] = []
    out, done = [], 0
    for stop in case["stops"]:
        for at in range(done, max(done, stop)):
            before = messages[at - 1]["role"] if at else ""
            role = messages[at]["role"]
            append(state, messages[at], joined=(before, role) in (("system", "user"), ("tool", "tool")))
        done = max(done, stop)
        if len(state) > parameters["max_messages"]:
            state = asyncio.run(strategy.compact(state, ctx))
        out.append(kept(state))
    return out


serve(answer)
