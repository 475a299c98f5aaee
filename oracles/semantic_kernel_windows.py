"""What Semantic Kernel's ChatHistoryTruncationReducer keeps; runs with semantic-kernel, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from scripted import serve
from semantic_kernel.contents import ChatMessageContent, FunctionCallContent, FunctionResultContent, TextContent
from semantic_kernel.contents.history_reducer.chat_history_truncation_reducer import ChatHistoryTruncationReducer


def to(m: dict[str, Any]) -> ChatMessageContent:
    """Return a message as Semantic Kernel's."""
    if m["role"] == "tool":
        items: list[Any] = [FunctionResultContent(id=m["call_id"], name=m["name"], result=m["texts"][0])]
    else:
        items = [TextContent(text=m["texts"][0])]
        items += [FunctionCallContent(id=c["id"], name=c["name"], arguments=c["arguments"]) for c in m["calls"]]
    return ChatMessageContent(role=m["role"], items=items)


def kept(message: ChatMessageContent) -> list[Any]:
    """Return a message in the form that is compared."""
    results = [i for i in message.items if isinstance(i, FunctionResultContent)]
    if results:
        return ["tool", str(results[0].result), [], results[0].id]
    calls = [i.id for i in message.items if isinstance(i, FunctionCallContent)]
    return [message.role.value, message.content, calls, ""]


def answer(case: dict[str, Any]) -> list[Any]:
    """Reduce the history at every stop."""
    reducer = ChatHistoryTruncationReducer(**case["parameters"])
    messages = [to(m) for m in case["messages"]]
    out, done = [], 0
    for stop in case["stops"]:
        reducer.messages = [*reducer.messages, *messages[done:stop]]
        done = stop
        asyncio.run(reducer.reduce())
        out.append([kept(m) for m in reducer.messages])
    return out


serve(answer)
