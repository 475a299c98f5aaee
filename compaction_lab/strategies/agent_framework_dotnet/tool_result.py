"""``ToolResultCompactionStrategy``: old calls and their results become one short text each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.agent_framework_dotnet.base import Defaults, IndexStrategy, Work, minimum
from compaction_lab.strategies.agent_framework_dotnet.contents import joined_text
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.registry import register


def results_by_name(messages: tuple[Message, ...]) -> str:
    """Return ``[Tool Calls]`` and, for each function by first call, its results as a list (the source's formatter).

    A call without a result of its own takes the next plain text of a tool message that names no call.
    """
    results = {m.call_id: joined_text(m) for m in messages if m.role == "tool" and m.call_id}
    plain = iter([joined_text(m) for m in messages if m.role == "tool" and not m.call_id])
    by_name: dict[str, list[str]] = {}
    for message in messages:
        for call in message.calls:
            listed = by_name.setdefault(call.name, [])
            result = results[call.id] if call.id in results else next(plain, "")
            if result:
                listed.append(result)
    lines = ["[Tool Calls]"]
    for name, listed in by_name.items():
        lines.append(f"{name}:")
        lines.extend(f"  - {result}" for result in listed)
    return "\n".join(lines)


def names_only(messages: tuple[Message, ...]) -> str:
    """Return ``[Tool calls: a, b]``, each function once: the format of the documentation page."""
    return f"[Tool calls: {', '.join(dict.fromkeys(call.name for m in messages for call in m.calls))}]"


@register("agent_framework_dotnet/tool_result", semantics=1)
@dataclass(frozen=True, slots=True)
class ToolResult(IndexStrategy):
    """Replace old tool-call groups by one text each, oldest first, until the target is reached (mechanism M11).

    Parameters
    ----------
    trigger
        When to act.
    minimum_preserved
        Newest groups of any kind but the system's that stay untouched; as ``defaults`` says (documented 2, source 16)
        when not given.
    target
        When to stop; once the trigger no longer holds when not given.
    tool_call_formatter
        ``results``: names and results, as the source writes them; ``names``: names alone, as the documentation does.
    """

    trigger: object
    minimum_preserved: int | None = None
    target: object = None
    defaults: Defaults = "documented"
    tool_call_formatter: Literal["results", "names"] = "results"
    update: Update = "content"

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Collapse tool-call groups, oldest first."""
        yield from ()
        preserved = minimum(self.minimum_preserved, self.defaults, 2, 16)
        if not index.holds("ToolCall", preserved):
            return False
        groups = [group for group in index.included if group.kind != "System"]
        old = [group for group in groups[: max(0, len(groups) - preserved)] if group.kind == "ToolCall"]
        formatted = results_by_name if self.tool_call_formatter == "results" else names_only
        for group in old:
            index.exclude(group)
            index.collapse(group, formatted(group.messages))
            if reached(index):
                break
        return bool(old)
