"""Anthropic's server-side context editing as its documentation describes it; the server itself is not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.mechanisms.reasoning import ClearReasoning
from compaction_lab.strategies.registry import at_least, register


@register("anthropic/clear_tool_uses", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearToolUses:
    """``clear_tool_uses_20250919``: clear the oldest tool results, or do nothing when that frees too little.

    Parameters
    ----------
    keep
        Newest tool uses whose results stay.
    clear_at_least
        Input tokens that must be freed, else nothing is cleared; null: no floor.
    exclude_tools
        Tools whose results stay.
    clear_tool_inputs
        Whether the calls of cleared results lose their arguments too; or the names of the tools whose calls do.
    placeholder
        Text that stands for a cleared result (the server's own is not documented).
    floor_since
        Whether the floor is held against all that is cleared of the ``history`` or what is new since the ``last`` time
        (not documented; the server sees the whole history at every request).
    """

    keep: int = 3
    clear_at_least: int | None = None
    exclude_tools: tuple[str, ...] = ()
    clear_tool_inputs: bool | tuple[str, ...] = False
    placeholder: str = "[cleared]"
    floor_since: Literal["history", "last"] = "history"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep", 0)
        if self.clear_at_least is not None:
            at_least(self, "clear_at_least", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear."""
        inputs = self.clear_tool_inputs
        return ClearResults(
            keep_last=self.keep,
            exclude_tools=self.exclude_tools,
            clear_inputs=inputs is True,
            clear_inputs_of=() if isinstance(inputs, bool) else tuple(inputs),
            at_least_tokens=self.clear_at_least or 0,
            floor_since=self.floor_since,
            placeholder=self.placeholder,
            spare_unread=False,
        )(situation)


@register("anthropic/clear_thinking", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearThinking:
    """``clear_thinking_20251015``: drop the thinking of older assistant turns.

    Parameters
    ----------
    keep
        Newest assistant turns with thinking that keep it, or ``all``, which leaves the prompt cache whole.
    """

    keep: int | str = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.keep != "all" and (not isinstance(self.keep, int) or isinstance(self.keep, bool) or self.keep < 1):
            msg = f"anthropic clear_thinking: keep={self.keep!r}; expected a whole number of at least 1, or 'all'"
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> Compaction:
        """Drop thinking."""
        if not isinstance(self.keep, int):
            return Compaction()
        return ClearReasoning(self.keep, "thinking", keep_open_loop=True)(situation)
