"""What LangChain's SummarizationMiddleware keeps; runs in an environment with langchain, imports nothing of the lab."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from scripted import echo, item, serve, weight

ROLES = {"ai": "assistant", "human": "user", "tool": "tool", "system": "system"}


def message(m: dict[str, Any]) -> BaseMessage:
    """Return a message as LangChain has it."""
    if m["role"] == "assistant":
        calls = [{"id": c, "name": "look", "args": {}} for c in m["calls"]]
        return AIMessage(m["text"], tool_calls=calls)
    if m["role"] == "tool":
        return ToolMessage(m["text"], tool_call_id=m["call_id"])
    return (HumanMessage if m["role"] == "user" else SystemMessage)(m["text"])


def kept(m: BaseMessage) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [c["id"] for c in m.tool_calls] if isinstance(m, AIMessage) else []
    return item(ROLES[m.type], str(m.content), calls, getattr(m, "tool_call_id", ""))


def pair(size: dict[str, Any]) -> tuple[str, Any]:
    """Return a size as the middleware takes it."""
    ((kind, value),) = size.items()
    return kind, value


def answer(case: dict[str, Any]) -> list[Any]:
    """Run the middleware at every stop, on what it left the time before."""
    parameters = case["parameters"]
    model = GenericFakeChatModel(messages=iter([]))
    model.profile = {"max_input_tokens": case["window"]}
    trigger = parameters["trigger"]
    middleware = SummarizationMiddleware(
        model=model,
        trigger=trigger if isinstance(trigger, list) else dict(trigger),
        keep=pair(parameters["keep"]),
        token_counter=lambda messages: sum(weight(str(m.content)) for m in messages),
        trim_tokens_to_summarize=parameters["trim_tokens_to_summarize"],
        summarizer=lambda messages: echo("\n".join(str(m.content) for m in messages)),
    )
    messages = [message(m) for m in case["messages"]]
    head = 0
    while head < len(messages) and isinstance(messages[head], SystemMessage):
        head += 1
    state: list[BaseMessage] = []
    out, done = [], head
    for stop in case["stops"]:
        state = state + messages[done:stop] if stop > done else state
        done = max(done, stop)
        update = middleware.before_model({"messages": state}, None)
        if update is not None:
            state = list(update["messages"][1:])
        out.append([kept(m) for m in messages[: min(head, stop)]] + [kept(m) for m in state])
    return out


serve(answer)
