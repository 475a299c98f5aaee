"""Inspect's ``CompactionEdit``: reasoning of older turns and old tool results go from the stored history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from compaction_lab.conversation.context import Context, Key
from compaction_lab.conversation.messages import Reasoning, Text, ToolCall
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.rewriting import Draft
from compaction_lab.strategies.registry import at_least, register

REMOVED = "(Tool result removed)"
NEVER_CLEARED = "tool_search"


class _Use(NamedTuple):
    """A tool call of a visible message and its result."""

    asked: Key
    call: ToolCall
    result: Key


@register("inspect_ai/compaction_edit", semantics=1)
@dataclass(frozen=True, slots=True)
class CompactionEdit:
    """Clear reasoning and tool results, as inspect-ai 0.3.285 does; works from the history at every firing.

    Excluded tools are taken off the list before the newest are kept. Assistant messages at the very end are dropped.

    Parameters
    ----------
    keep_thinking_turns
        Newest assistant messages that keep their reasoning, or ``all``.
    keep_tool_uses
        Newest tool uses whose results stay.
    keep_tool_inputs
        Whether calls stay when their results are cleared; otherwise call and result go and a text note stays.
    exclude_tools
        Tools whose uses stay.
    drop_trailing_assistant
        Inspect drops assistant messages at the end of the list (bug list B106); off leaves them.
    """

    keep_thinking_turns: int | str = 1
    keep_tool_uses: int = 3
    keep_tool_inputs: bool = True
    exclude_tools: tuple[str, ...] = ()
    drop_trailing_assistant: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_tool_uses", 0)
        if self.keep_thinking_turns != "all":
            at_least(self, "keep_thinking_turns", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear."""
        draft = Draft(situation.context, situation.counter)
        self._clear_reasoning(draft)
        uses = [use for use in _uses(situation.context) if not self._excludes(use.call.name)]
        for use in reversed(uses[: max(0, len(uses) - self.keep_tool_uses)]):
            self._clear_use(draft, use)
        if self.drop_trailing_assistant:
            _drop_trailing(draft)
        edits = draft.edits
        return Compaction(edits, None, reason="the threshold was reached" if edits else "")

    def _excludes(self, tool: str) -> bool:
        return tool == NEVER_CLEARED or tool in self.exclude_tools

    def _clear_reasoning(self, draft: Draft) -> None:
        if not isinstance(self.keep_thinking_turns, int):
            return
        turns = 0
        for entry in draft.context.before((draft.context.stop, 0)):
            message = entry.message
            if message.role != "assistant":
                continue
            turns += 1
            parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
            if turns > self.keep_thinking_turns and parts != message.parts and not message.pinned:
                draft.put("clipped", entry.key, replace(message, parts=parts))

    def _clear_use(self, draft: Draft, use: _Use) -> None:
        asked, result = draft.get(use.asked), draft.get(use.result)
        if asked is None or result is None or result.pinned or (asked.pinned and not self.keep_tool_inputs):
            return
        if self.keep_tool_inputs:
            if result.text != REMOVED:
                draft.put("masked", use.result, result.replaced(REMOVED, "placeholder"))
            return
        draft.drop(use.result)
        note = Text(f"[Tool call: {use.call.name} (parameters and results removed from history)]")
        calls = tuple(call for call in asked.calls if call.id != use.call.id)
        parts = tuple(part for part in asked.parts if part != Text(""))
        draft.put("collapsed", use.asked, replace(asked, parts=(*parts, note), calls=calls))


def _uses(context: Context) -> Iterator[_Use]:
    """Yield every call that has a visible result, in the order of the calls."""
    entries = list(context.entries())
    results: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        if entry.message.role == "tool":
            results.setdefault(entry.message.call_id, []).append(at)
    for at, entry in enumerate(entries):
        for call in entry.message.calls:
            found = next((later for later in results.get(call.id, ()) if later > at), None)
            if found is not None:
                yield _Use(entry.key, call, entries[found].key)


def _drop_trailing(draft: Draft) -> None:
    for entry in draft.context.before((draft.context.stop, 0)):
        standing = draft.get(entry.key)
        if standing is None:
            continue
        if standing.role != "assistant" or standing.pinned:
            return
        draft.drop(entry.key)
