"""What the harness's SlidingWindowCompaction keeps; runs with pydantic-ai-harness, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import SlidingWindowCompaction
from scripted import serve


def append(state: list[Any], m: dict[str, Any], before: Any) -> Any:
    """Add a message and return its part; what is not the assistant's joins the part before, if that is still there."""
    text = m["texts"][0]
    if m["role"] == "assistant":
        calls = [ToolCallPart(tool_name=c["name"], args=c["arguments"], tool_call_id=c["id"]) for c in m["calls"]]
        state.append(ModelResponse(parts=[TextPart(text), *calls]))
        return None
    part: Any
    if m["role"] == "tool":
        part = ToolReturnPart(tool_name=m["name"], content=text, tool_call_id=m["call_id"])
    else:
        part = SystemPromptPart(text) if m["role"] == "system" else UserPromptPart(text)
    if before is not None and state and state[-1].parts[-1] is before:
        state[-1] = ModelRequest(parts=[*state[-1].parts, part])
    else:
        state.append(ModelRequest(parts=[part]))
    return part


def kept(message: Any) -> list[Any]:
    """Return the messages that a request or response stands for, in the form that is compared."""
    if isinstance(message, ModelResponse):
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        return [["assistant", text, [p.tool_call_id for p in message.parts if isinstance(p, ToolCallPart)], ""]]
    roles = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}
    return [[roles[p.part_kind], p.content, [], getattr(p, "tool_call_id", "")] for p in message.parts]


def answer(case: dict[str, Any]) -> list[Any]:
    """Trim before a request at every stop."""
    strategy = SlidingWindowCompaction(**case["parameters"])
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    state: list[Any] = []
    newest: Any = None
    out, done = [], 0
    for stop in case["stops"]:
        for at in range(done, stop):
            newest = append(state, case["messages"][at], newest)
        done = stop
        request = Request(messages=state, model=context.model, model_request_parameters=ModelRequestParameters())
        asyncio.run(strategy.before_model_request(context, request))
        state = list(request.messages)
        out.append([line for message in state for line in kept(message)])
    return out


class Request(SimpleNamespace):
    """What the strategy needs of a request."""

    __hash__ = object.__hash__


serve(answer)
