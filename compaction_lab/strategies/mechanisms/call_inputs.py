"""Tool-input clearing (M9): shorten what older assistant messages handed to tools, whether or not results stay."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.messages import JSON, ToolCall
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import RecentUnit, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.registry import at_least, register


@register("clear_inputs", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearInputs:
    """Empty or shorten the arguments of older tool calls; arguments stay a JSON object (mechanism M9).

    Parameters
    ----------
    keep_last, unit
        Newest units whose calls keep their arguments.
    how
        ``empty``: the arguments become ``{}``. ``shorten``: text values longer than ``max_characters`` are cut.
    max_characters
        Longest text value, or, with ``measure=arguments``, longest arguments text, that is left alone.
    measure
        What ``max_characters`` measures: each ``value``, or the ``arguments`` as a whole before values are looked at.
    keep_characters, marker
        With ``shorten``: characters that stay of a cut value, and the text put behind them.
    depth
        Whether values are looked for at the ``top`` level only or at ``any`` depth.
    only_tools
        Tools whose calls alone are shortened; empty means all.
    """

    keep_last: int = 20
    unit: RecentUnit = "message"
    how: Literal["empty", "shorten"] = "shorten"
    max_characters: int = 2000
    measure: Literal["value", "arguments"] = "value"
    keep_characters: int = 20
    marker: str = "...(argument truncated)"
    depth: Literal["top", "any"] = "top"
    only_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in ("keep_last", "max_characters", "keep_characters"):
            at_least(self, field, 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Shorten the calls that fell out of the window."""
        edge = recent_edge(situation.context, self.unit, self.keep_last)
        return rewrite_before(situation, edge, self.shorten, reason=f"calls older than the last {self.keep_last}")

    def shorten(self, draft: Draft, entry: Placed) -> bool:
        """Shorten the calls of one message; say whether one was shortened."""
        message = draft.get(entry.key)
        if message is None or not message.calls:
            return False
        calls = tuple(map(self._shortened, message.calls))
        if calls == message.calls:
            return False
        draft.put("clipped", entry.key, replace(message, calls=calls))
        return True

    def _shortened(self, call: ToolCall) -> ToolCall:
        if self.only_tools and call.name not in self.only_tools:
            return call
        if self.how == "empty":
            return call if call.arguments == "{}" else replace(call, arguments="{}")
        if self.measure == "arguments" and len(call.arguments) <= self.max_characters:
            return call
        try:
            arguments: JSON = json.loads(call.arguments)
        except ValueError:
            return call
        cut = self._cut(arguments, 0)
        return call if cut == arguments else replace(call, arguments=json.dumps(cut, ensure_ascii=False))

    def _cut(self, value: JSON, level: int) -> JSON:
        longest = self.max_characters if self.measure == "value" else self.keep_characters
        if isinstance(value, str):
            return value[: self.keep_characters] + self.marker if len(value) > longest else value
        if level and self.depth == "top":
            return value
        if isinstance(value, dict):
            return {key: self._cut(item, level + 1) for key, item in value.items()}
        return [self._cut(item, level + 1) for item in value] if isinstance(value, list) else value
