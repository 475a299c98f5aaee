"""How .NET groups a list of messages: by neighbourhood alone, never by call id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from compaction_lab.conversation.context import Placed
from compaction_lab.strategies.agent_framework_dotnet.contents import calls_tools, is_only_reasoning, is_summary

GroupKind = Literal["System", "User", "AssistantText", "ToolCall", "Summary"]


def grouped(entries: Sequence[Placed]) -> Iterator[tuple[GroupKind, Sequence[Placed]]]:
    """Yield the groups of a list of messages.

    A call absorbs the results and pure reasoning that follow it directly, and pure reasoning directly before it. A
    result that follows no call, and any other role, is assistant text.
    """
    at = 0
    while at < len(entries):
        kind, end = _group_at(entries, at)
        yield kind, entries[at:end]
        at = end


def _group_at(entries: Sequence[Placed], at: int) -> tuple[GroupKind, int]:
    message = entries[at].message
    if message.role == "system":
        return "System", at + 1
    if message.role == "user":
        return "User", at + 1
    if calls_tools(message):
        return "ToolCall", _absorbed(entries, at + 1)
    if is_summary(message):
        return "Summary", at + 1
    ahead = at
    while ahead < len(entries) and is_only_reasoning(entries[ahead].message):
        ahead += 1
    if at < ahead < len(entries) and calls_tools(entries[ahead].message):
        return "ToolCall", _absorbed(entries, ahead + 1)
    return "AssistantText", at + 1


def _absorbed(entries: Sequence[Placed], end: int) -> int:
    while end < len(entries) and (entries[end].message.role == "tool" or is_only_reasoning(entries[end].message)):
        end += 1
    return end
