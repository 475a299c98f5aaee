"""What Kimi CLI's SimpleCompaction keeps; runs with kimi-cli's compaction module alone, imports nothing of the lab."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

from scripted import echo, item, serve, weight


class Part:
    """A text part."""

    def __init__(self, text: str) -> None:
        self.text = text


class Message:
    """A message with parts."""

    def __init__(self, role: str, content: list[Any]) -> None:
        self.role, self.content = role, content
        self.calls: list[str] = []
        self.call_id = ""


def load() -> Any:
    """Load the module without its application: only names, nothing of its behaviour, is stood in for."""
    names = {
        "kosong": {},
        "kosong.chat_provider": {"TokenUsage": object},
        "kosong.message": {"Message": Message},
        "kosong.tooling": {},
        "kosong.tooling.empty": {"EmptyToolset": object},
        "kimi_cli": {},
        "kimi_cli.prompts": {"COMPACT": "compact"},
        "kimi_cli.llm": {"LLM": object},
        "kimi_cli.soul": {},
        "kimi_cli.soul.message": {"system": Part},
        "kimi_cli.utils": {},
        "kimi_cli.utils.logging": {"logger": types.SimpleNamespace(debug=lambda *_: None)},
        "kimi_cli.wire": {},
        "kimi_cli.wire.types": {"ContentPart": object, "TextPart": Part, "ThinkPart": type("ThinkPart", (), {})},
    }
    for name, values in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(values)
        sys.modules[name] = module
    sys.modules["kimi_cli"].prompts = sys.modules["kimi_cli.prompts"]  # type: ignore[attr-defined]
    folder = next(Path(sys.prefix).glob("lib/python*/site-packages/kimi_cli"))
    spec = importlib.util.spec_from_file_location("compaction", folder / "soul" / "compaction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPACTION = load()


def message(m: dict[str, Any]) -> Message:
    """Return a message as Kimi has it."""
    made = Message(m["role"], [Part(m["text"])])
    made.calls, made.call_id = m["calls"], m["call_id"]
    return made


def kept(m: Message) -> list[Any]:
    """Return a message in the form that is compared."""
    return item(m.role, "\n".join(p.text for p in m.content), m.calls, m.call_id)


def answer(case: dict[str, Any]) -> list[Any]:
    """Compact at every stop where it is due."""
    parameters = case["parameters"]
    compaction = COMPACTION.SimpleCompaction(parameters["max_preserved_messages"])
    messages = [message(m) for m in case["messages"]]
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    state: list[Message] = []
    out, done = [], head
    for stop in case["stops"]:
        state = [*state, *messages[done:stop]] if stop > done else state
        done = max(done, stop)
        tokens = sum(weight(p.text) for m in [*messages[: min(head, stop)], *state] for p in m.content)
        if COMPACTION.should_auto_compact(
            tokens,
            case["window"],
            trigger_ratio=parameters["trigger_ratio"],
            reserved_context_size=parameters["reserved_context_size"],
        ):
            asked, preserved = compaction.prepare(state)
            if asked is not None:
                shown = "\n".join(p.text for p in asked.content)
                state = [Message("user", [Part(echo(shown))]), *preserved]
        out.append([kept(m) for m in messages[: min(head, stop)]] + [kept(m) for m in state])
    return out


serve(answer)
