"""What Strands' SummarizingConversationManager keeps; runs with strands-agents, imports nothing of the lab."""

from __future__ import annotations

import contextlib
import types
from typing import Any

from scripted import echo, item, serve
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.types.exceptions import ContextWindowOverflowException


class Scripted(SummarizingConversationManager):
    """Writes the scripted summary."""

    def _generate_summary(self, messages: list[Any], agent: Any) -> Any:
        shown = "\n".join(text for m in messages for text in texts(m))
        return {"role": "user", "content": [{"text": echo(shown)}]}


def texts(m: dict[str, Any]) -> list[str]:
    """Return the texts of a message, those of tool results included."""
    out = []
    for block in m["content"]:
        if "text" in block:
            out.append(block["text"])
        if "toolResult" in block:
            out.extend(c["text"] for c in block["toolResult"]["content"])
    return out


def append(state: list[Any], m: dict[str, Any], *, joined: bool) -> None:
    """Add a message; results of one batch share a message."""
    if m["role"] == "tool":
        block = {"toolResult": {"toolUseId": m["call_id"], "status": "success", "content": [{"text": m["text"]}]}}
        if joined and state and any("toolResult" in b for b in state[-1]["content"]):
            state[-1]["content"].append(block)
        else:
            state.append({"role": "user", "content": [block]})
        return
    content = [{"text": m["text"]}]
    content += [{"toolUse": {"toolUseId": c, "name": "look", "input": {}}} for c in m["calls"]]
    state.append({"role": m["role"], "content": content})


def kept(m: dict[str, Any]) -> list[Any]:
    """Return the messages that a message stands for, in the form that is compared."""
    results = [b["toolResult"] for b in m["content"] if "toolResult" in b]
    if results:
        return [item("tool", r["content"][0]["text"], [], r["toolUseId"]) for r in results]
    calls = [b["toolUse"]["toolUseId"] for b in m["content"] if "toolUse" in b]
    return [item(m["role"], "".join(texts(m)), calls)]


def answer(case: dict[str, Any]) -> list[Any]:
    """Reduce at every stop."""
    parameters = {k: v for k, v in case["parameters"].items() if k != "always"}
    manager = Scripted(**parameters)
    messages = case["messages"]
    head = 1 if messages and messages[0]["role"] == "system" else 0
    state: list[Any] = []
    out, done = [], head
    for stop in case["stops"]:
        for at in range(done, max(done, stop)):
            append(state, messages[at], joined=at > head and messages[at - 1]["role"] == "tool")
        done = max(done, stop)
        agent = types.SimpleNamespace(messages=state)
        with contextlib.suppress(ContextWindowOverflowException):
            manager.reduce_context(agent, e=Exception("overflow"))
        state = agent.messages
        system = [item("system", m["text"]) for m in messages[: min(head, stop)]]
        out.append(system + [line for m in state for line in kept(m)])
    return out


serve(answer)
