"""What Semantic Kernel's summarisation reducer keeps; runs with semantic-kernel, imports nothing of the lab."""

from __future__ import annotations

import asyncio
from typing import Any

from scripted import echo, item, serve
from semantic_kernel.contents import (
    AuthorRole,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
)
from semantic_kernel.contents.history_reducer.chat_history_summarization_reducer import ChatHistorySummarizationReducer


class Scripted(ChatHistorySummarizationReducer):
    """Writes the scripted summary."""

    async def _summarize(self, messages: list[Any]) -> Any:
        shown = "\n".join(text(m) for m in messages)
        return ChatMessageContent(role=AuthorRole.ASSISTANT, content=echo(shown))


def text(m: Any) -> str:
    """Return the text of a message, that of a result included."""
    return "".join(str(i.result) if isinstance(i, FunctionResultContent) else getattr(i, "text", "") for i in m.items)


def message(m: dict[str, Any]) -> Any:
    """Return a message as the framework has it."""
    if m["role"] == "tool":
        items: list[Any] = [FunctionResultContent(id=m["call_id"], name="look", result=m["text"])]
    else:
        items = [TextContent(text=m["text"])]
        items += [FunctionCallContent(id=c, name="look", arguments="{}") for c in m["calls"]]
    return ChatMessageContent(role=AuthorRole(m["role"]), items=items)


def kept(m: Any) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [i.id for i in m.items if isinstance(i, FunctionCallContent)]
    results = [i.id for i in m.items if isinstance(i, FunctionResultContent)]
    return item(m.role.value, text(m), calls, results[0] if results else "")


def answer(case: dict[str, Any]) -> list[Any]:
    """Reduce at every stop."""
    service = None  # never asked: the summary is scripted
    parameters = case["parameters"]
    reducer = Scripted.model_construct(
        service=service, fail_on_error=True, execution_settings=None, summarization_instructions="", **parameters
    )
    reducer.messages = []
    out, done = [], 0
    for stop in case["stops"]:
        reducer.messages = [*reducer.messages, *map(message, case["messages"][done:stop])]
        done = max(done, stop)
        asyncio.run(reducer.reduce())
        out.append([kept(m) for m in reducer.messages])
    return out


serve(answer)
