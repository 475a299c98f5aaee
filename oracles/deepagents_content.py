"""How Deep Agents shortens arguments of older calls in a case; runs in an environment with deepagents."""

from __future__ import annotations

import json
from typing import Any

from content_bridge import Message, answer_all
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage

RENAMED = {"read": "write_file"}


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    settings = {
        "trigger": ("messages", 1),
        "keep": ("messages", parameters["keep_messages"]),
        "max_length": parameters["max_length"],
    }
    own = SummarizationMiddleware(
        FakeListChatModel(responses=["x"]), backend=StateBackend(), truncate_args_settings=settings
    )
    framed = []
    for message in messages:
        calls = [
            {"id": c["id"], "name": RENAMED.get(c["name"], c["name"]), "args": json.loads(c["arguments"])}
            for c in message["calls"]
        ]
        framed.append(AIMessage(message["text"], tool_calls=calls) if calls else HumanMessage(message["text"]))
    done, _ = own._truncate_args(framed, 0)
    back = []
    for message, old in zip(done, messages, strict=True):
        calls = [
            {**c, "arguments": json.dumps(new["args"], ensure_ascii=False)}
            for c, new in zip(old["calls"], getattr(message, "tool_calls", ()), strict=False)
        ]
        back.append({**old, "calls": calls})
    return back


if __name__ == "__main__":
    answer_all(apply)
