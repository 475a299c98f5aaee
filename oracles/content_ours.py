"""What the lab does with a case of ``content_cases``: same moments, same way of counting, same shape of answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Reasoning, Text, ToolCall
from compaction_lab.strategies.registry import strategy

Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Counts characters of texts, tool names and arguments."""

    def message(self, message: Message) -> int:
        """Count."""
        return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)


def message_of(row: Mapping[str, Any]) -> Message:
    """Return a case's message as the lab's."""
    parts: list[Any] = [Reasoning(row["reasoning"])] if row["reasoning"] else []
    if row["text"]:
        parts.append(Text(row["text"]))
    calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in row["calls"])
    return Message(row["role"], tuple(parts), calls, row["call_id"], name=row["name"])


def row_of(message: Message) -> Row:
    """Return the lab's message as a case's."""
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls]
    thought = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    text = re.sub(r"(compacted_\w+?_)[0-9a-f]{32}", r"\1KEY", message.text)
    return {
        "role": message.role,
        "text": text,
        "calls": calls,
        "call_id": message.call_id,
        "name": message.name,
        "reasoning": thought,
    }


def configured(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return the strategy of a case; what the framework takes elsewhere is put where the lab has it."""
    given = dict(parameters)
    if name == "langchain/clear_tool_uses_edit":
        given["trigger"] = {"tokens_exceed": given["trigger"]}
    elif name in {"pydantic_ai_harness/clear_tool_results", "inspect_ai/compaction_edit"} or name in {
        "strands/truncate_results",
        "deepagents/truncate_args",
    }:
        given["trigger"] = None
    elif name.startswith("haystack/"):
        # The hook turns shares of a window into a target; the cases name the target.
        window = 1_000_000
        given |= {
            "context_window": window,
            "compact_to": (given.pop("target_tokens") + 0.5) / window,
            "compact_at": 1.0,
        }
    return strategy(name, **given)


def ours(case: Mapping[str, Any]) -> list[list[Row]]:
    """Return what stands after each moment of a case."""
    placed = configured(case["strategy"], case["parameters"])
    run = placed.run
    if case["strategy"].startswith("haystack/"):
        object.__setattr__(run, "compact_at", 1e-12)  # the compactor alone: whatever the trigger would say
    log = Log(map(message_of, case["messages"]))
    arm = ArmRun(log, (Slot(run, "before_call", placed.history, Sizes()),))
    answers = []
    for stop in case["stops"]:
        occurring = arm.occasion("before_call", stop)
        try:
            next(occurring)
        except StopIteration as end:
            answers.append([row_of(message) for message in end.value.messages])
        else:
            raise AssertionError("no model is needed here")
    return answers
