"""Agent Framework's two strategies on old tool calls: leave them out, or leave their results as one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from compaction_lab.conversation.messages import JSON
from compaction_lab.strategies.agent_framework.acting import Acts
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.entries import Entry, Group
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import register

PREFIX, SUFFIX, CUT = "[Tool results: ", "]", "... [truncated]"
MOST_CHARACTERS = 4096


def _old_groups(ledger: Ledger, keep_last: int) -> list[Group]:
    """Return the included tool-call groups but the newest, oldest first."""
    return list(islice(ledger.newest(tools=True), keep_last, None))[::-1]


def _check(keep_last: int) -> None:
    refuse(keep_last < 0, "keep_last_tool_call_groups must be greater than or equal to 0.")


@register("agent_framework/selective_tool_call", semantics=1)
@dataclass(frozen=True, slots=True)
class SelectiveToolCall(Acts):
    """Exclude tool-call groups, results included, but for the newest (mechanism M6).

    Parameters
    ----------
    keep_last_tool_call_groups
        How many stay. With 0 an agent's loop never sees the results it just got.
    """

    keep_last_tool_call_groups: int = 1

    from_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        _check(self.keep_last_tool_call_groups)

    def act(self, ledger: Ledger, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Exclude old tool-call groups."""
        changed = False
        for group in _old_groups(ledger, self.keep_last_tool_call_groups):
            changed = ledger.exclude(group) or changed
        if changed:
            ledger.reasons.append(f"tool calls older than the last {self.keep_last_tool_call_groups}")
        return changed


@register("agent_framework/tool_result", semantics=1)
@dataclass(frozen=True, slots=True)
class ToolResult(Acts):
    """Put one assistant message with the results in place of each old tool-call group (mechanism M11).

    Lost are arguments, reasoning, the calling message's own text, media, and that a call failed. The message is cut at
    4,096 characters a group.

    Parameters
    ----------
    keep_last_tool_call_groups
        How many of the newest stay as they are.
    """

    keep_last_tool_call_groups: int = 1

    from_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        _check(self.keep_last_tool_call_groups)

    def act(self, ledger: Ledger, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Collapse old tool-call groups."""
        old = [g for g in _old_groups(ledger, self.keep_last_tool_call_groups) if not g.pinned]
        if not old:
            return False
        ledger.reasons.append(f"tool calls older than the last {self.keep_last_tool_call_groups}")
        changed = False
        for group_id in [group.id for group in old]:
            # Each insertion regroups what follows, so that a later group may have changed or gone by its turn.
            group = ledger.groups.get(group_id)
            members = list(group.members) if group else []
            first = members[0] if members else ledger.entries[0]
            line = results_line(members)
            changed = ledger.summarise(members, first, line, f"tool_summary_{group_id}", "collapsed") or changed
        return changed


def results_line(members: list[Entry]) -> str:
    """Return the line that stands for a group's results: ``[Tool results: get_weather: sunny; 3 docs]``."""
    contents = [content for entry in members if not entry.excluded for content in entry.facets.contents]
    names: dict[JSON, JSON] = {}
    for content in contents:
        field = {"function_call": "name", "mcp_server_tool_call": "tool_name"}.get(str(content["type"]), "")
        if content.get("call_id") and content.get(field):
            names[str(content["call_id"])] = content[field]
    results = []
    for content in contents:
        if content["type"] == "function_result":
            found = content.get("result")
            text = found if isinstance(found, str) else str(found)
        elif content["type"] == "mcp_server_tool_result":
            text = plain(content.get("output"))
        else:
            continue
        name = names.get(str(content.get("call_id") or ""))
        results.append((f"{name}: {text}" if name else text).strip())
    label = "; ".join(results) if results else "no results"
    line = f"{PREFIX}{label}{SUFFIX}"
    if len(line) <= MOST_CHARACTERS:
        return line
    room = MOST_CHARACTERS - len(PREFIX) - len(CUT) - len(SUFFIX)
    return f"{PREFIX}{label[:room].rstrip()}{CUT}{SUFFIX}"


def plain(value: JSON) -> str:
    """Return a tool's output or arguments as text: texts of a list joined by newlines, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [
            text
            for item in value
            if isinstance(item, dict) and item.get("type") == "text" and isinstance(text := item.get("text"), str)
        ]
        if texts:
            return "\n".join(texts)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
