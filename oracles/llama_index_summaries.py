"""What LlamaIndex's ChatSummaryMemoryBuffer keeps; runs with llama-index-core, imports nothing of the lab."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatSummaryMemoryBuffer
from scripted import echo, item, serve, weight


class Scripted(MockLLM):
    """Writes the scripted summary."""

    def chat(self, messages: Any, **_: Any) -> Any:
        shown = "\n".join(str(m.content) for m in messages[1:])
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=echo(shown)))


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


def answer(case: dict[str, Any]) -> list[Any]:
    """Get the history at every stop."""
    memory = ChatSummaryMemoryBuffer.from_defaults(
        chat_history=[], token_limit=1, tokenizer_fn=lambda text: [0] * weight(text)
    )
    memory.llm = Scripted()
    memory.token_limit = case["parameters"]["token_limit"]
    out, done = [], 0
    for stop in case["stops"]:
        for m in case["messages"][done:stop]:
            memory.put(message(m))
        done = max(done, stop)
        out.append([kept(m) for m in memory.get()])
    return out


serve(answer)
