"""What AutoGen's model contexts keep; runs with autogen-core, imports nothing of the lab."""

from __future__ import annotations

import asyncio
import json
from math import ceil
from typing import Any

from autogen_core import FunctionCall
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    HeadAndTailChatCompletionContext,
    TokenLimitedChatCompletionContext,
)
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from scripted import serve

CONTEXTS = {
    "buffered": BufferedChatCompletionContext,
    "head_and_tail": HeadAndTailChatCompletionContext,
    "token_limited": TokenLimitedChatCompletionContext,
}


def append(state: list[Any], m: dict[str, Any]) -> None:
    """Add a message; the results of a batch share one."""
    text = m["texts"][0]
    if m["role"] == "tool":
        result = FunctionExecutionResult(content=text, name=m["name"], call_id=m["call_id"])
        if state and isinstance(state[-1], FunctionExecutionResultMessage):
            state[-1].content.append(result)
        else:
            state.append(FunctionExecutionResultMessage(content=[result]))
    elif m["role"] == "assistant" and m["calls"]:
        calls = [FunctionCall(id=c["id"], name=c["name"], arguments=c["arguments"]) for c in m["calls"]]
        state.append(AssistantMessage(content=calls, thought=text, source="a"))
    elif m["role"] == "assistant":
        state.append(AssistantMessage(content=text, source="a"))
    else:
        state.append(SystemMessage(content=text) if m["role"] == "system" else UserMessage(content=text, source="u"))


def kept(message: Any) -> list[Any]:
    """Return the messages that a message stands for, in the form that is compared."""
    if isinstance(message, FunctionExecutionResultMessage):
        return [["tool", result.content, [], result.call_id] for result in message.content]
    if isinstance(message, AssistantMessage) and isinstance(message.content, list):
        return [["assistant", message.thought, [call.id for call in message.content], ""]]
    role = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant"}[message.type]
    return [[role, message.content, [], ""]]


class Client:
    """Counts by the rule that the lab is told to count by: four characters a token, and 3 a message."""

    component_type = "model"

    def count_tokens(self, messages: list[Any], *, tools: Any = ()) -> int:
        """Return the tokens of some messages."""
        return sum(self._one(line, message) for message in messages for line in kept(message))

    def _one(self, line: list[Any], message: Any) -> int:
        role, text, calls, call_id = line
        characters = len(role) + len(text) + len(call_id)
        if calls:
            printed = [
                {"name": c.name, "args": json.loads(c.arguments), "id": c.id, "type": "tool_call"}
                for c in message.content
            ]
            characters += len(repr(printed))
        if role == "tool":
            characters += len(next(r.name for r in message.content if r.call_id == call_id))
        return ceil(characters / 4) + 3


def answer(case: dict[str, Any]) -> list[Any]:
    """Read the context at every stop."""
    name = next(name for name in CONTEXTS if name in case["kind"])
    parameters = dict(case["parameters"])
    if name == "token_limited":
        parameters = {"model_client": Client(), **parameters}
    out = []
    for stop in case["stops"]:
        state: list[Any] = []
        for m in case["messages"][:stop]:
            append(state, m)
        context = CONTEXTS[name](**parameters, initial_messages=state)
        out.append([line for message in asyncio.run(context.get_messages()) for line in kept(message)])
    return out


serve(answer)
