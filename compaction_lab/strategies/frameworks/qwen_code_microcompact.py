"""qwen-code's clearing of old tool output and media after an idle time, which needs no model."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Pipeline, Situation, Steps, Strategy
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.mechanisms.media import ClearMedia
from compaction_lab.strategies.registry import register


@register("qwen_code/microcompact", semantics=1)
@dataclass(frozen=True, slots=True)
class QwenMicrocompact:
    """Clear the output of certain tools and old media once the session has been idle (qwen-code).

    Parameters
    ----------
    tool_results_num_to_keep
        Newest results, and newest media, that stay: each kind has this budget of its own; at least 1.
    compactable_tools
        Tools whose output is cleared; results that are errors stay but are counted.
    """

    tool_results_num_to_keep: int = 5
    compactable_tools: tuple[str, ...] = (
        "read_file",
        "run_shell_command",
        "grep_search",
        "glob",
        "web_fetch",
        "edit",
        "write_file",
    )

    def _parts(self) -> tuple[Strategy, ...]:
        keep = max(1, self.tool_results_num_to_keep)
        results = ClearResults(
            keep_last=keep,
            only_tools=self.compactable_tools,
            excluded="not_counted",
            errors="keep",
            placeholder="[Old tool result content cleared]",
            only_if_shorter=False,
            spare_unread=False,
        )
        kinds = ("image", "audio", "file")
        pasted = ClearMedia(keep, "media", kinds, "others", placeholder="[Old inline media cleared: {mime}]")
        nested = ClearMedia(keep, "message", kinds, "results", self.compactable_tools, placeholder="")
        return results, pasted, nested

    def __call__(self, situation: Situation) -> Steps:
        """Clear."""
        return Pipeline(self._parts())(situation)
