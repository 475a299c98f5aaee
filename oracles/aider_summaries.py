"""What aider's ChatSummary keeps; runs with aider-chat's history module alone, imports nothing of the lab."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

from scripted import echo, item, serve, weight


def load() -> Any:
    """Load the module without its application; the prompts are stood in for."""
    aider = types.ModuleType("aider")
    aider.models = types.ModuleType("aider.models")  # type: ignore[attr-defined]
    aider.prompts = types.SimpleNamespace(summarize="summarise", summary_prefix="")  # type: ignore[attr-defined]
    dump = types.ModuleType("aider.dump")
    dump.dump = print  # type: ignore[attr-defined]
    sys.modules.update({"aider": aider, "aider.models": aider.models, "aider.dump": dump})
    folder = next(Path(sys.prefix).glob("lib/python*/site-packages/aider"))
    spec = importlib.util.spec_from_file_location("history", folder / "history.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HISTORY = load()


class Model:
    """A weak model that writes the scripted summary."""

    name = "scripted"

    def __init__(self, window: int) -> None:
        self.info = {"max_input_tokens": window}

    def token_count(self, messages: Any) -> int:
        """Count."""
        messages = messages if isinstance(messages, list) else [messages]
        return sum(weight(m["content"]) for m in messages)

    def simple_send_with_retries(self, messages: list[dict[str, Any]]) -> str:
        """Answer."""
        return echo(messages[-1]["content"])


def answer(case: dict[str, Any]) -> list[Any]:
    """Summarise at every stop where the messages are too big."""
    parameters = case["parameters"]
    summary = HISTORY.ChatSummary(Model(parameters["max_input_tokens"]), parameters["max_tokens"])
    messages = [{"role": m["role"], "content": m["text"], "m": m} for m in case["messages"]]
    head = 0
    while head < len(messages) and messages[head]["role"] == "system":
        head += 1
    state: list[dict[str, Any]] = []
    out, done = [], head
    for stop in case["stops"]:
        state = [*state, *messages[done:stop]] if stop > done else state
        done = max(done, stop)
        if summary.too_big(state):
            state = summary.summarize(list(state))
        lines = [*messages[: min(head, stop)], *state]
        extra = [m.get("m", {"calls": [], "call_id": ""}) for m in lines]
        out.append([item(m["role"], m["content"], e["calls"], e["call_id"]) for m, e in zip(lines, extra, strict=True)])
    return out


serve(answer)
