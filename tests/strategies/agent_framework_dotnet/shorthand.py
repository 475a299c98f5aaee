"""Conversations in shorthand, and what a strategy of the .NET flavour leaves of them.

``S:`` system, ``U:`` user, ``A:`` assistant text, ``R`` reasoning alone, ``E`` an assistant message without contents,
``C:id/name,id`` calls, ``T:id=text`` a result, ``T:=text`` a tool message of plain text. ``~`` is a space.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Reasoning, ToolCall, assistant, system, tool, user
from compaction_lab.strategies.agent_framework_dotnet.contents import BYTES
from compaction_lab.strategies.registry import build
from tests.strategies.harness import Ask, answered, nobody

PREFIX = "agent_framework_dotnet/"


def message(word: str) -> Message:
    kind, _, rest = word.partition(":")
    rest = rest.replace("~", " ")
    if kind == "R":
        return Message("assistant", (Reasoning("hm"),))
    if kind == "E":
        return Message("assistant")
    if kind == "C":
        named = [item.partition("/") for item in rest.split(",")]
        return assistant("", *(ToolCall(call_id, name or "tool", "{}") for call_id, _, name in named))
    if kind == "T":
        call_id, _, text = rest.partition("=")
        return tool(call_id, text or "ok")
    return {"S": system, "U": user, "A": assistant}[kind](rest)


def conversation(text: str) -> list[Message]:
    return [message(word) for word in text.split()]


def written(found: Message) -> str:
    if found.source == "summary":
        return f"«{found.text}»"
    if found.calls:
        return "C:" + ",".join(call.id for call in found.calls)
    if found.role == "tool":
        return f"T:{found.call_id}" + ("" if found.text == "ok" else f"={found.text}")
    if not found.text:
        return "R" if found.parts else "E"
    return {"system": "S", "user": "U", "assistant": "A"}[found.role] + ":" + found.text


class Session:
    """One strategy on a growing conversation."""

    def __init__(self, name: str, history: str = "view", **parameters: object) -> None:
        placed = build({"kind": PREFIX + name, **parameters})
        self.log = Log()
        slot = Slot(placed.run, "before_call", history, counting_rule(str(parameters.get("tokenizer") or BYTES)))
        self.arm = ArmRun(self.log, (slot,))

    def send(self, messages: Sequence[Message], ask: Ask = nobody) -> list[str]:
        for new in messages:
            self.log.append(new)
        return [written(m) for m in answered(self.arm.occasion("before_call", len(self.log)), ask).messages]


def left(text: str, name: str, ask: Ask = nobody, **parameters: object) -> str:
    return "  ".join(Session(name, **parameters).send(conversation(text), ask))
