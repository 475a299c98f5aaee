"""What Strands' SlidingWindowConversationManager keeps; runs with strands-agents, imports nothing of the lab."""

from __future__ import annotations

import json
import types
from typing import Any

from scripted import serve
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException


def append(state: list[Any], m: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Add a message; the results of one batch share a message, unless what they would join has been removed."""
    text = {"text": m["texts"][0]}
    if m["role"] == "tool":
        block = {"toolResult": {"toolUseId": m["call_id"], "status": "success", "content": [text]}}
        newest = state[-1]["content"][-1].get("toolResult", {}) if state else {}
        if before is not None and before["role"] == "tool" and newest.get("toolUseId") == before["call_id"]:
            state[-1]["content"].append(block)
        else:
            state.append({"role": "user", "content": [block]})
        return
    uses = [
        {"toolUse": {"toolUseId": c["id"], "name": c["name"], "input": json.loads(c["arguments"])}} for c in m["calls"]
    ]
    state.append({"role": m["role"], "content": [text, *uses]})


def kept(m: dict[str, Any]) -> list[Any]:
    """Return the messages that a message stands for, in the form that is compared."""
    results = [b["toolResult"] for b in m["content"] if "toolResult" in b]
    if results:
        return [["tool", r["content"][0]["text"], [], r["toolUseId"]] for r in results]
    calls = [b["toolUse"]["toolUseId"] for b in m["content"] if "toolUse" in b]
    return [[m["role"], "".join(b["text"] for b in m["content"] if "text" in b), calls, ""]]


def answer(case: dict[str, Any]) -> list[Any]:
    """Manage the list, or reduce it after an overflow, at every stop."""
    manager = SlidingWindowConversationManager(**case["parameters"])
    messages = case["messages"]
    head = 1 if messages and messages[0]["role"] == "system" else 0
    state: list[Any] = []
    out, done = [], head
    for stop in case["stops"]:
        for at in range(done, max(done, stop)):
            append(state, messages[at], messages[at - 1] if at > head else None)
        done = max(done, stop)
        agent = types.SimpleNamespace(messages=state)
        try:
            if case["occasion"] == "overflow":
                manager.reduce_context(agent, e=Exception("overflow"))
            else:
                manager.apply_management(agent)
        except ContextWindowOverflowException:
            pass
        state = agent.messages
        system = [["system", m["texts"][0], [], ""] for m in messages[: min(head, stop)]]
        out.append(system + [line for m in state for line in kept(m)])
    return out


serve(answer)
