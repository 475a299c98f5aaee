"""pydantic-ai-harness: what it clears, clamps and deduplicates in place, without a model."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.mechanisms.clipping import ClipParts
from compaction_lab.strategies.mechanisms.superseded import ClearSuperseded
from compaction_lab.strategies.registry import at_least, register


@register("pydantic_ai_harness/clear_tool_results", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearToolResults:
    """Blank the oldest tool results beyond the newest pairs (pydantic-ai-harness 0.36.0).

    Parameters
    ----------
    keep_pairs
        Newest pairs of call and result that stay, excluded tools' pairs counted.
    placeholder
        Text that stands for a cleared result.
    exclude_tools
        Tools whose results stay.
    clear_tool_inputs
        Whether the calls of cleared results lose their arguments too.
    min_clear_tokens
        Tokens that must be freed, else nothing is cleared.
    """

    keep_pairs: int = 3
    placeholder: str = "[tool result cleared]"
    exclude_tools: tuple[str, ...] = ()
    clear_tool_inputs: bool = False
    min_clear_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_pairs", 0)
        if self.min_clear_tokens is not None:
            at_least(self, "min_clear_tokens", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear."""
        return ClearResults(
            keep_last=self.keep_pairs,
            exclude_tools=self.exclude_tools,
            orphans="ignore",
            clear_inputs=self.clear_tool_inputs,
            at_least_tokens=self.min_clear_tokens or 0,
            placeholder=self.placeholder,
            only_if_shorter=False,
            spare_unread=False,
        )(situation)


@register("pydantic_ai_harness/clamp_oversized_messages", semantics=1)
@dataclass(frozen=True, slots=True)
class ClampOversizedMessages:
    """Clip what a model wrote when a single part of it is huge; tool results stay (pydantic-ai-harness 0.36.0).

    Parameters
    ----------
    max_part_tokens, max_part_chars
        A part of more tokens, or more characters, is clipped; at least one is needed.
    keep_head_chars, keep_tail_chars
        Characters that stay at either end.
    clamp_tool_call_args
        Whether arguments of tool calls are clipped too, into an object with one key.
    """

    max_part_tokens: int | None = None
    max_part_chars: int | None = None
    keep_head_chars: int = 2000
    keep_tail_chars: int = 2000
    clamp_tool_call_args: bool = True

    def __post_init__(self) -> None:
        """Check the parameters by building the mechanism."""
        self._mechanism()

    def _mechanism(self) -> ClipParts:
        return ClipParts(
            self.max_part_chars,
            self.max_part_tokens,
            self.keep_head_chars,
            self.keep_tail_chars,
            "\n[clamped: removed {removed} of {original} characters]\n",
            roles=("assistant",),
            arguments="wrap" if self.clamp_tool_call_args else "keep",
            arguments_key="_clamped",
        )

    def __call__(self, situation: Situation) -> Compaction:
        """Clip."""
        return self._mechanism()(situation)


@register("pydantic_ai_harness/deduplicate_file_reads", semantics=1)
@dataclass(frozen=True, slots=True)
class DeduplicateFileReads:
    """Blank a file read once a newer one reads the same file (pydantic-ai-harness 0.36.0).

    Parameters
    ----------
    read_tools, path_arguments
        What its ``file_key`` function does: tools that read files, and the call arguments that name the file.
    placeholder
        Text that stands for a superseded read.
    """

    read_tools: tuple[str, ...] = ("read_file", "read")
    path_arguments: tuple[str, ...] = ("path", "file_path")
    placeholder: str = "[superseded file read]"

    def __call__(self, situation: Situation) -> Compaction:
        """Deduplicate."""
        return ClearSuperseded(
            "arguments",
            self.read_tools,
            self.path_arguments,
            placeholder=self.placeholder,
            only_if_shorter=False,
        )(situation)
