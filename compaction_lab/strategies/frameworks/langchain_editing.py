"""LangChain's context editing: ``ClearToolUsesEdit`` of ``ContextEditingMiddleware``."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.registry import at_least, register


@register("langchain/clear_tool_uses_edit", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearToolUsesEdit:
    """Clear old tool results once the request is long, oldest first (langchain 1.5.2).

    ``keep`` is applied before ``exclude_tools``; ``clear_at_least`` is a ceiling: clearing stops once so much is freed.
    A result whose call the last assistant message before it does not make stays.

    Parameters
    ----------
    clear_at_least
        Tokens after which clearing stops; 0 clears all candidates.
    keep
        Newest results that stay, excluded tools' results counted.
    clear_tool_inputs
        Whether the calls of cleared results lose their arguments too.
    exclude_tools
        Tools whose results stay.
    placeholder
        Text that stands for a cleared result.
    """

    clear_at_least: int = 0
    keep: int = 3
    clear_tool_inputs: bool = False
    exclude_tools: tuple[str, ...] = ()
    placeholder: str = "[cleared]"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "clear_at_least", 0)
        at_least(self, "keep", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear."""
        return ClearResults(
            keep_last=self.keep,
            exclude_tools=self.exclude_tools,
            orphans="keep",
            clear_inputs=self.clear_tool_inputs,
            stop_after_tokens=self.clear_at_least,
            placeholder=self.placeholder,
            only_if_shorter=False,
            spare_unread=False,
        )(situation)
