"""What CrewAI's summarize_messages keeps; runs with crewai, imports nothing of the lab."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

os.environ.update(OTEL_SDK_DISABLED="true", CREWAI_DISABLE_TELEMETRY="true", CREWAI_TESTING="true")

from crewai.llms.context_window import summarize_messages
from scripted import echo, item, serve, weight


class Model:
    """A model that writes the scripted summary."""

    def __init__(self, window: int) -> None:
        self.window = window

    def get_context_window_size(self) -> int:
        """Return the usable window."""
        return self.window

    def get_input_tokens_count(self, messages: list[dict[str, Any]]) -> int:
        """Count."""
        return sum(weight(str(m["content"])) for m in messages)

    async def acall(self, messages: list[dict[str, Any]], **_: Any) -> str:
        """Answer."""
        return echo("\n".join(str(m["content"]) for m in messages))


def message(m: dict[str, Any]) -> dict[str, Any]:
    """Return a message as CrewAI has it."""
    made: dict[str, Any] = {"role": m["role"], "content": m["text"]}
    if m["calls"]:
        made["tool_calls"] = [
            {"id": c, "type": "function", "function": {"name": "look", "arguments": "{}"}} for c in m["calls"]
        ]
    if m["call_id"]:
        made["tool_call_id"] = m["call_id"]
    return made


def kept(m: dict[str, Any]) -> list[Any]:
    """Return a message in the form that is compared."""
    calls = [c["id"] for c in m.get("tool_calls", [])]
    return item(m["role"], str(m["content"]), calls, m.get("tool_call_id", ""))


def answer(case: dict[str, Any]) -> list[Any]:
    """Summarise at every stop."""
    state: list[Any] = []
    out, done = [], 0
    for stop in case["stops"]:
        state = [*state, *map(message, case["messages"][done:stop])]
        done = max(done, stop)
        with contextlib.redirect_stdout(io.StringIO()):
            summarize_messages(Model(case["parameters"]["context_window"]), state, [], False)  # noqa: FBT003
        out.append([kept(m) for m in state])
    return out


serve(answer)
