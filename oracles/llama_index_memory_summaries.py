"""What LlamaIndex's Memory keeps without blocks; runs with llama-index-core, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory
from scripted import item, serve, weight


def message(m: dict[str, Any]) -> ChatMessage:
    """Return a message as LlamaIndex has it."""
    extra: dict[str, Any] = {"calls": m["calls"]} if m["calls"] else {}
    if m["call_id"]:
        extra["tool_call_id"] = m["call_id"]
    return ChatMessage(role=MessageRole(m["role"]), content=m["text"], additional_kwargs=extra)


def kept(m: ChatMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    extra = m.additional_kwargs
    return item(m.role.value, str(m.content), extra.get("calls", []), extra.get("tool_call_id", ""))


async def run(case: dict[str, Any]) -> list[Any]:
    """Put messages one by one and get the history at every stop."""
    memory = Memory.from_defaults(session_id="s", tokenizer_fn=lambda text: [0] * weight(text), **case["parameters"])
    messages = case["messages"]
    head = 0
    while head < len(messages) and messages[head]["role"] == "system":
        head += 1
    out, done = [], head
    for stop in case["stops"]:
        for m in messages[done:stop]:
            await memory.aput(message(m))
        done = max(done, stop)
        system = [item("system", m["text"]) for m in messages[: min(head, stop)]]
        out.append(system + [kept(m) for m in await memory.aget()])
    return out


def answer(case: dict[str, Any]) -> list[Any]:
    """Run a case."""
    return asyncio.run(run(case))


serve(answer)
