"""What Strands' window manager cuts out of tool results on overflow; runs in an environment with strands-agents."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from content_bridge import Message, answer_all, answered
from strands.agent.conversation_manager import SlidingWindowConversationManager

NEVER = 1_000_000


def framed(messages: list[Message]) -> list[dict[str, Any]]:
    """Return messages as the framework's: a batch of results is one user message."""
    out: list[dict[str, Any]] = []
    batch = False
    for message in messages:
        if message["role"] == "tool":
            block = {"toolResult": {"toolUseId": message["call_id"], "content": [{"text": message["text"]}]}}
            if batch:
                out[-1]["content"].append(block)
            else:
                out.append({"role": "user", "content": [block]})
            batch = True
            continue
        batch = False
        calls = [
            {"toolUse": {"toolUseId": c["id"], "name": c["name"], "input": json.loads(c["arguments"])}}
            for c in message["calls"]
        ]
        role = "assistant" if message["role"] == "assistant" else "user"
        out.append({"role": role, "content": [{"text": message["text"]}, *calls], "as": message})
    return out


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework truncate once, without going on to drop messages."""
    own = SlidingWindowConversationManager(window_size=NEVER)
    agent = SimpleNamespace(messages=framed(messages))
    at = own._find_oldest_message_with_tool_results(agent.messages)
    if at is not None:
        own._truncate_tool_results(agent.messages, at)
    names = {message["call_id"]: message["name"] for message in messages if message["role"] == "tool"}
    back = []
    for message in agent.messages:
        if "as" in message:
            back.append(message["as"])
            continue
        for block in message["content"]:
            result = block["toolResult"]
            call_id = result["toolUseId"]
            back.append(answered("tool", result["content"][0]["text"], call_id=call_id, name=names[call_id]))
    return back


if __name__ == "__main__":
    answer_all(apply, stored=("strands/truncate_results",))
