"""What a limited session of the OpenAI Agents SDK returns; runs with openai-agents, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import SQLiteSession
from scripted import serve


def items(m: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the items that a message is stored as."""
    text = m["texts"][0]
    if m["role"] == "tool":
        return [{"type": "function_call_output", "call_id": m["call_id"], "output": text, "of": number}]
    calls = [
        {"type": "function_call", "call_id": c["id"], "name": c["name"], "arguments": c["arguments"], "of": number}
        for c in m["calls"]
    ]
    return [{"role": m["role"], "content": text, "of": number}, *calls]


def kept(found: list[dict[str, Any]]) -> list[Any]:
    """Return the messages that items belong to, in the form that is compared."""
    out: dict[int, list[Any]] = {}
    for item in found:
        if item.get("type") == "function_call_output":
            out[item["of"]] = ["tool", item["output"], [], item["call_id"]]
        elif item.get("type") == "function_call":
            out.setdefault(item["of"], ["assistant", "", [], ""])[2].append(item["call_id"])
        else:
            out[item["of"]] = [item["role"], item["content"], [], ""]
    return list(out.values())


async def _answer(case: dict[str, Any]) -> list[Any]:
    out = []
    for stop in case["stops"]:
        messages = case["messages"][:stop]
        head = 1 if messages[0]["role"] == "system" else 0
        session = SQLiteSession("s", ":memory:")
        await session.add_items([item for at, m in enumerate(messages[head:]) for item in items(m, at)])
        found = await session.get_items(**case["parameters"])
        session.close()
        out.append([["system", m["texts"][0], [], ""] for m in messages[:head]] + kept(found))
    return out


def answer(case: dict[str, Any]) -> list[Any]:
    """Read the session at every stop."""
    return asyncio.run(_answer(case))


serve(answer)
