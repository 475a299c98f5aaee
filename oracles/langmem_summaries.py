"""What langmem's summarize_messages shows; runs with langmem, imports nothing of the lab."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langmem.short_term import summarize_messages
from scripted import echo, item, serve, weight

warnings.simplefilter("ignore")
ROLES = {"ai": "assistant", "human": "user", "tool": "tool", "system": "system"}


def message(number: int, m: dict[str, Any]) -> BaseMessage:
    """Return a message as LangChain has it."""
    identity = f"m{number}"
    if m["role"] == "assistant":
        calls = [{"id": c, "name": "look", "args": {}} for c in m["calls"]]
        return AIMessage(m["text"], tool_calls=calls, id=identity)
    if m["role"] == "tool":
        return ToolMessage(m["text"], tool_call_id=m["call_id"], id=identity)
    return (HumanMessage if m["role"] == "user" else SystemMessage)(m["text"], id=identity)


def kept(m: BaseMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [c["id"] for c in m.tool_calls] if isinstance(m, AIMessage) else []
    return item(ROLES[m.type], str(m.content), calls, getattr(m, "tool_call_id", ""))


def answer(case: dict[str, Any]) -> list[Any]:
    """Summarise at every stop, the history untouched, the running summary handed on."""
    messages = [message(n, m) for n, m in enumerate(case["messages"])]
    model = RunnableLambda(lambda prompt: AIMessage(echo("\n".join(str(m.content) for m in prompt), ordered=True)))
    running, out = None, []
    for stop in case["stops"]:
        result = summarize_messages(
            messages[:stop],
            running_summary=running,
            model=model,
            token_counter=lambda given: sum(weight(str(m.content)) for m in given),
            **case["parameters"],
        )
        running = result.running_summary
        out.append([kept(m) for m in result.messages])
    return out


serve(answer)
