"""What LlamaIndex's ChatMemoryBuffer and Memory keep; runs with llama-index-core, imports nothing of the lab."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.memory import ChatMemoryBuffer, Memory
from scripted import serve


def pieces(text: str) -> list[str]:
    """Return a text cut into tokens of four characters."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def to(m: dict[str, Any]) -> ChatMessage:
    """Return a message as LlamaIndex's."""
    blocks: list[Any] = [TextBlock(text=m["texts"][0])]
    blocks += [
        ToolCallBlock(tool_call_id=c["id"], tool_name=c["name"], tool_kwargs=json.loads(c["arguments"]))
        for c in m["calls"]
    ]
    extra = {"tool_call_id": m["call_id"]} if m["role"] == "tool" else {}
    return ChatMessage(role=m["role"], blocks=blocks, additional_kwargs=extra)


def kept(message: ChatMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [block.tool_call_id for block in message.blocks if isinstance(block, ToolCallBlock)]
    text = "".join(block.text for block in message.blocks if isinstance(block, TextBlock))
    return [message.role.value, text, calls, message.additional_kwargs.get("tool_call_id", "")]


def answer(case: dict[str, Any]) -> list[Any]:
    """Read the memory at every stop."""
    return asyncio.run(_answer(case))


async def _answer(case: dict[str, Any]) -> list[Any]:
    messages = [to(m) for m in case["messages"]]
    if "buffer" in case["kind"]:
        out = []
        for stop in case["stops"]:
            buffer = ChatMemoryBuffer.from_defaults(messages[:stop], tokenizer_fn=pieces, **case["parameters"])
            out.append([kept(m) for m in buffer.get()])
        return out
    memory = Memory.from_defaults(tokenizer_fn=pieces, **case["parameters"])
    out, done = [], 0
    for stop in case["stops"]:
        for message in messages[done:stop]:
            await memory.aput(message)
        done = stop
        out.append([kept(m) for m in await memory.aget()])
    return out


serve(answer)
